"""LeNet-5, a convolutional autoencoder and a deconvolutional network for MNIST in TensorFlow by Keras.

python tensorflow_conv.py {lenet,autoencoder-conv,deconv} THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


def lenet():
    return [
        keras.Input((32, 32, 1)),
        layers.Conv2D(6, 5, activation="sigmoid"),
        layers.AveragePooling2D(2),
        layers.Conv2D(16, 5, activation="sigmoid"),
        layers.AveragePooling2D(2),
        layers.Flatten(),
        layers.Dense(120, activation="sigmoid"),
        layers.Dense(84, activation="sigmoid"),
        layers.Dense(10),
    ]


def autoencoder():
    """As in Keras's own example, whose pooling pads 7 rows to 8."""
    return [
        keras.Input((28, 28, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(2, padding="same"),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(2, padding="same"),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(2, padding="same"),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.UpSampling2D(2),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.UpSampling2D(2),
        layers.Conv2D(16, 3, activation="relu"),
        layers.UpSampling2D(2),
        layers.Conv2D(1, 3, padding="same"),
        layers.Flatten(),
    ]


def transposed(channels, kernel, **window):
    layer = layers.Conv2DTranspose(channels, kernel, 2, "same", use_bias=False, **window)
    return layer, *normalised()


def normalised():
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5), layers.ReLU()


def deconv():
    """Of an image of one pixel, the first transposed convolution is a product, as in TensorFlow's DCGAN."""
    return [
        keras.Input((100,)),
        layers.Dense(4 * 4 * 256, use_bias=False),
        layers.Reshape((4, 4, 256)),
        *normalised(),
        *transposed(128, 3, output_padding=0),
        *transposed(64, 4),
        layers.Conv2DTranspose(1, 4, 2, "same"),
        layers.Flatten(),
    ]


make, criterion = {
    "lenet": (lenet, keras.losses.SparseCategoricalCrossentropy(from_logits=True)),
    "autoencoder-conv": (autoencoder, keras.losses.BinaryCrossentropy(from_logits=True)),
    "deconv": (deconv, keras.losses.MeanSquaredError()),
}[sys.argv[1]]
model = keras.Sequential(make())
inputs = tf.random.uniform((64, *model.input_shape[1:]), -1, 1)
answers = tf.random.uniform((64, 784))
if make is lenet:
    answers = tf.random.uniform((64,), 0, 10, tf.int32)
loops.tensorflow(model, inputs, answers, criterion)
