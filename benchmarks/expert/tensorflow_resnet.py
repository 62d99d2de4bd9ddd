"""ResNet-50 in TensorFlow by Keras, with the stride in the 3 x 3 convolution.

python tensorflow_resnet.py resnet50 THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


def convolution(x, channels, kernel, stride=1):
    if stride > 1 and kernel > 1:
        x = layers.ZeroPadding2D(kernel // 2)(x)
        return layers.Conv2D(channels, kernel, stride, use_bias=False)(x)
    return layers.Conv2D(channels, kernel, stride, padding="same", use_bias=False)(x)


def normalised(x):
    return layers.BatchNormalization(epsilon=1e-5)(x)


def bottleneck(x, width, stride):
    shortcut = x
    out = layers.ReLU()(normalised(convolution(x, width, 1)))
    out = layers.ReLU()(normalised(convolution(out, width, 3, stride)))
    out = normalised(convolution(out, 4 * width, 1))
    if x.shape[-1] != 4 * width:
        shortcut = normalised(convolution(x, 4 * width, 1, stride))
    return layers.ReLU()(layers.Add()([out, shortcut]))


image = keras.Input((224, 224, 3))
x = layers.ReLU()(normalised(convolution(image, 64, 7, 2)))
x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
for width, blocks_of_stage, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for block in range(blocks_of_stage):
        x = bottleneck(x, width, stride if block == 0 else 1)
model = keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))
inputs = tf.random.uniform((16, 224, 224, 3), -1, 1)
labels = tf.random.uniform((16,), 0, 1000, tf.int32)
loops.tensorflow(model, inputs, labels)
