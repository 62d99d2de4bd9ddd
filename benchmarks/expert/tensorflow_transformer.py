"""GPT-small, BERT-base, ViT-tiny and MLP-Mixer in TensorFlow by Keras.

python tensorflow_transformer.py {gpt-small,gpt-small-adamw,bert-base,vit-tiny,mlp-mixer} THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(int(sys.argv[2]))


class Attention(layers.Layer):
    """One product for queries, keys and values, which `MultiHeadAttention` makes three of."""

    def __init__(self, steps, units, heads, bias=True, causal=False):
        super().__init__()
        self.qkv = layers.Dense(3 * units, use_bias=bias)
        self.projection = layers.Dense(units, use_bias=bias)
        self.parts, self.size = [-1, steps, 3, heads, units // heads], units // heads
        # Added to the scores: a sum takes less time than a choice, and its gradient costs nothing.
        lower = tf.linalg.band_part(tf.ones([steps, steps]), -1, 0)
        self.mask = -1e9 * (1 - lower) if causal else None

    def call(self, x):
        parts = tf.reshape(self.qkv(x), self.parts)
        q, k, v = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
        scores = tf.matmul(q * self.size**-0.5, k, transpose_b=True)
        scores = scores if self.mask is None else scores + self.mask
        y = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])
        return self.projection(tf.reshape(y, [-1, *x.shape[1:]]))


class Places(layers.Layer):
    """The class token before the patches, and the positions of all."""

    def __init__(self, steps, units):
        super().__init__()
        start = keras.initializers.RandomNormal(stddev=0.02)
        self.token = self.add_weight((1, 1, units), "zeros")
        self.positions = self.add_weight((steps, units), start)

    def call(self, x):
        token = tf.broadcast_to(self.token, [tf.shape(x)[0], 1, x.shape[-1]])
        return tf.concat([token, x], 1) + self.positions


class Language(layers.Layer):
    """The words' embedding, which the scores are taken with, too; and those of steps, and of sentences of 64 words."""

    def __init__(self, words, rows, sentences, body, bias):
        super().__init__()
        start, units = keras.initializers.RandomNormal(stddev=0.02), body.output.shape[-1]
        sizes = [size for size in (words, rows, sentences) if size]
        self.embeddings = [self.add_weight((size, units), start) for size in sizes]
        self.bias = self.add_weight((words,), "zeros") if bias else None
        self.body = body

    def call(self, words):
        table, steps, *sentences = self.embeddings
        x = tf.gather(table, words) + steps[: words.shape[1]]
        x = self.body(x + tf.repeat(sentences[0], 64, 0) if sentences else x)
        x = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), table, transpose_b=True)
        return x if self.bias is None else tf.nn.bias_add(x, self.bias)


def norm(x, epsilon=1e-6, bias=True):
    return layers.LayerNormalization(epsilon=epsilon, center=bias)(x)


def mlp(x, hidden, bias=True):
    wide = layers.Dense(hidden, activation=tf.nn.gelu, use_bias=bias)(x)
    return layers.Dense(x.shape[-1], use_bias=bias)(wide)


def gpt():
    tokens = x = keras.Input((256, 384))
    for _ in range(6):
        attention = Attention(256, 384, 6, False, True)
        x = layers.Add()([x, attention(norm(x, 1e-5, False))])
        x = layers.Add()([x, mlp(norm(x, 1e-5, False), 1536, False)])
    return Language(65, 256, 0, keras.Model(tokens, norm(x, 1e-5, False)), False)


def bert():
    tokens = keras.Input((128, 768))
    x = norm(tokens, 1e-12)
    for _ in range(12):
        x = norm(layers.Add()([x, Attention(128, 768, 12)(x)]), 1e-12)
        x = norm(layers.Add()([x, mlp(x, 3072)]), 1e-12)
    x = norm(layers.Dense(768, activation=tf.nn.gelu)(x), 1e-12)
    return Language(30522, 512, 2, keras.Model(tokens, x), True)


def cut(units):
    image = keras.Input((224, 224, 3))
    return image, layers.Reshape((196, units))(layers.Conv2D(units, 16, 16)(image))


def vit():
    image, x = cut(192)
    x = Places(197, 192)(x)
    for _ in range(12):
        x = layers.Add()([x, Attention(197, 192, 3)(norm(x))])
        x = layers.Add()([x, mlp(norm(x), 768)])
    return keras.Model(image, layers.Dense(1000)(norm(x)[:, 0]))


def mixer():
    image, x = cut(512)
    for _ in range(8):
        y = mlp(layers.Permute((2, 1))(norm(x)), 256)
        x = layers.Add()([x, layers.Permute((2, 1))(y)])
        x = layers.Add()([x, mlp(norm(x), 2048)])
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling1D()(norm(x))))


# The network, its mini-batch, and its steps and words, which images do not have.
make, batch, steps, words = {
    "gpt-small": (gpt, 8, 256, 65),
    "bert-base": (bert, 4, 128, 30522),
    "vit-tiny": (vit, 8, 0, 0),
    "mlp-mixer": (mixer, 8, 0, 0),
}[sys.argv[1].removesuffix("-adamw")]
if words:
    inputs, labels = (tf.random.uniform((batch, steps), 0, words, tf.int32) for _ in range(2))
else:
    inputs = tf.random.normal((batch, 224, 224, 3))
    labels = tf.random.uniform((batch,), 0, 1000, tf.int32)
model = make()
model(inputs)
loops.tensorflow(model, inputs, tf.reshape(labels, [-1]))
