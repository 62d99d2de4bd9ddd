"""AlexNet in TensorFlow by Keras.

python tensorflow_alexnet.py alexnet THREADS < commands
"""

import sys

import blocks
import keras
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
criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimiser = keras.optimizers.SGD(0.01)
optimiser.build(model.trainable_variables)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = criterion(labels, model(inputs, training=True))
    optimiser.apply(tape.gradient(loss, model.trainable_variables))
    return loss


def train(steps):
    for _ in range(steps):
        loss = step()
    return float(loss)


blocks.obey(train, model.count_params())
