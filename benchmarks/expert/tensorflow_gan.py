"""A GAN for MNIST in TensorFlow by Keras, whose players move at once; its codes are given.

python tensorflow_gan.py gan THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

PIXELS, CODE, MADE, JUDGED, BATCH = 784, 100, 1200, 240, 64
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


@tf.custom_gradient
def reverse(x):
    """So that the generator climbs where the judge descends."""
    return tf.identity(x), lambda upstream: -upstream


def player(before, hidden, behind, activation=None):
    return keras.Sequential(
        [
            keras.Input((before,)),
            layers.Dense(hidden, activation="relu"),
            layers.Dense(hidden, activation="relu"),
            layers.Dense(behind, activation=activation),
        ]
    )


class Game(keras.Model):
    def __init__(self):
        super().__init__()
        self.generator = player(CODE, MADE, PIXELS, "tanh")
        self.judge = player(PIXELS, JUDGED, 1)

    def call(self, given, training=True):
        images, codes = given
        return self.judge(tf.concat([images, reverse(self.generator(codes))], 0))


given = tf.random.uniform((BATCH, PIXELS), -1, 1), tf.random.uniform((BATCH, CODE), -1, 1)
verdicts = tf.concat([tf.ones((BATCH, 1)), tf.zeros((BATCH, 1))], 0)
game, criterion = Game(), keras.losses.BinaryCrossentropy(from_logits=True)
game(given)
loops.tensorflow(game, given, verdicts, criterion)
