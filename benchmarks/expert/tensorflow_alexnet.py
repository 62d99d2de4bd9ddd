"""AlexNet in TensorFlow by Keras.

python tensorflow_alexnet.py alexnet THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)

model = keras.Sequential(
    [
        keras.Input((224, 224, 3)),
        layers.ZeroPadding2D(2),
        layers.Conv2D(96, 11, 4, activation="relu"),
        layers.MaxPooling2D(3, 2),
        layers.Conv2D(256, 5, padding="same", activation="relu"),
        layers.MaxPooling2D(3, 2),
        layers.Conv2D(384, 3, padding="same", activation="relu"),
        layers.Conv2D(256, 3, padding="same", activation="relu"),
        layers.Conv2D(256, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(3, 2),
        layers.Flatten(),
        layers.Dense(4096, activation="relu"),
        layers.Dense(4096, activation="relu"),
        layers.Dense(1000),
    ]
)
inputs = tf.random.uniform((16, 224, 224, 3), -1, 1)
labels = tf.random.uniform((16,), 0, 1000, tf.int32)
loops.tensorflow(model, inputs, labels)
