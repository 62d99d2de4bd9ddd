"""VAE in TensorFlow by Keras, with the sizes of PyTorch's example; its noise is given.

python tensorflow_vae.py vae THREADS < commands
"""

import sys

import blocks
import keras
import numpy as np
import tensorflow as tf
from keras import layers

PIXELS, HIDDEN, CODE, BATCH = 784, 400, 20, 64
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)

image, noise = keras.Input((PIXELS,)), keras.Input((CODE,))
# One product for means and logarithms of variances.
mean, spread = keras.ops.split(
    layers.Dense(2 * CODE)(layers.Dense(HIDDEN, activation="relu")(image)), 2, 1
)
code = mean + keras.ops.exp(0.5 * spread) * noise
made = layers.Dense(PIXELS)(layers.Dense(HIDDEN, activation="relu")(code))
model = keras.Model([image, noise], [made, mean, spread])
optimiser = keras.optimizers.SGD(0.001)
optimiser.build(model.trainable_variables)
images, noises = tf.random.uniform((BATCH, PIXELS)), tf.random.normal((BATCH, CODE))


@tf.function
def step():
    with tf.GradientTape() as tape:
        made, mean, spread = model([images, noises], training=True)
        missed = tf.nn.sigmoid_cross_entropy_with_logits(images, made)
        apart = 0.5 * (tf.square(mean) + tf.exp(spread) - spread - 1)
        loss = (tf.reduce_sum(missed) + tf.reduce_sum(apart)) / BATCH
    optimiser.apply(tape.gradient(loss, model.trainable_variables))
    return loss


def train(steps):
    for _ in range(steps):
        loss = step()
    return float(loss)


blocks.obey(train, sum(np.prod(variable.shape) for variable in model.trainable_variables))
