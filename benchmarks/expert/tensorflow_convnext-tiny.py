"""ConvNeXt-tiny in TensorFlow by Keras, block by block as `keras.applications.ConvNeXtTiny`, without stochastic depth.

python tensorflow_convnext-tiny.py convnext-tiny THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

WIDTHS, BLOCKS, BATCH = (96, 192, 384, 768), (3, 3, 9, 3), 4
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


class Scale(layers.Layer):
    def build(self, shape):
        self.weight = self.add_weight(shape[-1:], keras.initializers.Constant(1e-6))

    def call(self, x):
        return x * self.weight


def norm(x):
    return layers.LayerNormalization(epsilon=1e-6)(x)


def block(x, width):
    y = norm(layers.DepthwiseConv2D(7, padding="same")(x))
    y = layers.Dense(4 * width, activation=tf.nn.gelu)(y)
    return layers.Add()([x, Scale()(layers.Dense(width)(y))])


image = keras.Input((224, 224, 3))
x = norm(layers.Conv2D(WIDTHS[0], 4, 4)(image))
for stage, width in enumerate(WIDTHS):
    if stage:
        x = layers.Conv2D(width, 2, 2)(norm(x))
    for _ in range(BLOCKS[stage]):
        x = block(x, width)
model = keras.Model(image, layers.Dense(1000)(norm(layers.GlobalAveragePooling2D()(x))))
inputs = tf.random.normal((BATCH, 224, 224, 3))
loops.tensorflow(model, inputs, tf.random.uniform((BATCH,), 0, 1000, tf.int32))
