"""GPT-small in TensorFlow by Keras.

python tensorflow_gpt-small.py gpt-small THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

STEPS, WORDS, UNITS, HEADS, BLOCKS, BATCH = 256, 65, 384, 6, 6, 8
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


class Attention(layers.Layer):
    """One product for queries, keys and values, which `MultiHeadAttention` makes three of."""

    def __init__(self):
        super().__init__()
        self.qkv = layers.Dense(3 * UNITS, use_bias=False)
        self.projection = layers.Dense(UNITS, use_bias=False)
        # Added to the scores: a sum takes less time than a choice, and its gradient costs nothing.
        self.mask = -1e9 * (1 - tf.linalg.band_part(tf.ones([STEPS, STEPS]), -1, 0))

    def call(self, x):
        parts = tf.reshape(self.qkv(x), [-1, STEPS, 3, HEADS, UNITS // HEADS])
        q, k, v = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
        scores = tf.matmul(q * (UNITS // HEADS) ** -0.5, k, transpose_b=True) + self.mask
        y = tf.matmul(tf.nn.softmax(scores), v)
        return self.projection(tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [-1, STEPS, UNITS]))


def norm(x):
    return layers.LayerNormalization(epsilon=1e-5, center=False)(x)


def mlp(x):
    x = layers.Dense(4 * UNITS, activation=tf.nn.gelu, use_bias=False)(x)
    return layers.Dense(UNITS, use_bias=False)(x)


class Tied(layers.Layer):
    """The words' embedding, which the scores are taken with, too."""

    def __init__(self):
        super().__init__()
        self.words = self.add_weight((WORDS, UNITS), keras.initializers.RandomNormal(stddev=0.02))
        self.steps = self.add_weight((STEPS, UNITS), keras.initializers.RandomNormal(stddev=0.02))
        tokens = keras.Input((STEPS, UNITS))
        x = tokens
        for _ in range(BLOCKS):
            x = layers.Add()([x, Attention()(norm(x))])
            x = layers.Add()([x, mlp(norm(x))])
        self.body = keras.Model(tokens, norm(x))

    def call(self, words):
        x = self.body(tf.gather(self.words, words) + self.steps)
        return tf.matmul(tf.reshape(x, [-1, UNITS]), self.words, transpose_b=True)


inputs, labels = (tf.random.uniform((BATCH, STEPS), 0, WORDS, tf.int32) for _ in range(2))
model = Tied()
model(inputs)
loops.tensorflow(model, inputs, tf.reshape(labels, [-1]))
