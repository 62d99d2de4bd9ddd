"""ViT-tiny in TensorFlow by Keras.

python tensorflow_vit-tiny.py vit-tiny THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

UNITS, HEADS, BLOCKS, STEPS, BATCH = 192, 3, 12, 197, 8
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


class Attention(layers.Layer):
    """One product for queries, keys and values, which `MultiHeadAttention` makes three of."""

    def __init__(self):
        super().__init__()
        self.qkv, self.projection = layers.Dense(3 * UNITS), layers.Dense(UNITS)

    def call(self, x):
        parts = tf.reshape(self.qkv(x), [-1, STEPS, 3, HEADS, UNITS // HEADS])
        q, k, v = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
        scores = tf.matmul(q * (UNITS // HEADS) ** -0.5, k, transpose_b=True)
        y = tf.matmul(tf.nn.softmax(scores), v)
        return self.projection(tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [-1, STEPS, UNITS]))


class Tokens(layers.Layer):
    """The class token before the patches, and the positions of all."""

    def __init__(self):
        super().__init__()
        self.token = self.add_weight((1, 1, UNITS), "zeros")
        self.positions = self.add_weight((STEPS, UNITS), keras.initializers.RandomNormal(0, 0.02))

    def call(self, x):
        token = tf.broadcast_to(self.token, [tf.shape(x)[0], 1, UNITS])
        return tf.concat([token, x], 1) + self.positions


def norm(x):
    return layers.LayerNormalization(epsilon=1e-6)(x)


def mlp(x):
    return layers.Dense(UNITS)(layers.Dense(4 * UNITS, activation=tf.nn.gelu)(x))


image = keras.Input((224, 224, 3))
x = Tokens()(layers.Reshape((STEPS - 1, UNITS))(layers.Conv2D(UNITS, 16, 16)(image)))
for _ in range(BLOCKS):
    x = layers.Add()([x, Attention()(norm(x))])
    x = layers.Add()([x, mlp(norm(x))])
model = keras.Model(image, layers.Dense(1000)(norm(x)[:, 0]))
inputs = tf.random.normal((BATCH, 224, 224, 3))
loops.tensorflow(model, inputs, tf.random.uniform((BATCH,), 0, 1000, tf.int32))
