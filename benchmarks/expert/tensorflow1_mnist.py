"""The CNN for MNIST in TensorFlow 1 by its layers.

python tensorflow1_mnist.py mnist THREADS IMAGES < commands
"""

import itertools
import sys

import blocks
import images
import numpy as np
import tensorflow as tf

THREADS = int(sys.argv[2])
inputs, labels = tf.placeholder(tf.float32, [None, 28, 28, 1]), tf.placeholder(tf.int32, [None])
value = tf.layers.conv2d(inputs, 32, 3, activation=tf.nn.relu)
value = tf.layers.conv2d(value, 64, 3, activation=tf.nn.relu)
value = tf.nn.dropout(tf.layers.max_pooling2d(value, 2, 2), 0.75)
value = tf.layers.dense(tf.reshape(value, [-1, 12 * 12 * 64]), 128, activation=tf.nn.relu)
scores = tf.layers.dense(tf.nn.dropout(value, 0.5), 10)
loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
update = tf.train.AdadeltaOptimizer(1.0, 0.95, 1e-8).minimize(loss)
session = tf.Session(
    config=tf.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=1)
)
session.run(tf.global_variables_initializer())
pictures, digits = images.read(sys.argv[3])
drawn = images.batches(pictures.transpose(0, 2, 3, 1), digits, 128)


def train(steps):
    for pixels, answers in itertools.islice(drawn, steps):
        last, _ = session.run([loss, update], {inputs: pixels, labels: answers})
    return last


blocks.obey(
    train, sum(np.prod(variable.get_shape().as_list()) for variable in tf.trainable_variables())
)
