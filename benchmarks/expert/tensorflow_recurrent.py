"""RNN-32, GRU-32, LSTM-32 and LSTM-64 in TensorFlow by Keras.

python tensorflow_recurrent.py {rnn32,gru32,lstm32,lstm64} THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

STEPS = int(sys.argv[1][-2:])
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


class Cell(layers.Layer):
    """A GRU's step behind the product of its input, which has the one bias. Keras's own cell has two."""

    def __init__(self):
        super().__init__()
        self.state_size = self.output_size = 256

    def build(self, shape):
        self.recurrent = self.add_weight((256, 768), "orthogonal")

    def call(self, product, states):
        (state,) = states
        r, z, n = tf.split(product, 3, 1)
        own_r, own_z, own_n = tf.split(tf.matmul(state, self.recurrent), 3, 1)
        n = tf.tanh(n + tf.sigmoid(r + own_r) * own_n)
        z = tf.sigmoid(z + own_z)
        state = n + z * (state - n)
        return state, [state]


def gru():
    return [layers.Dense(768), layers.RNN(Cell(), return_sequences=True, unroll=True)]


def rnn():
    return [layers.SimpleRNN(256, return_sequences=True, unroll=True)]


def lstm():
    return [layers.LSTM(256, return_sequences=True)]


recur = {"rnn": rnn, "gru": gru, "lstm": lstm}[sys.argv[1][:-2]]
model = keras.Sequential(
    [
        keras.Input((STEPS,), dtype="int32"),
        layers.Embedding(10000, 256),
        *recur(),
        *recur(),
        layers.Dense(10000),
    ]
)
inputs = tf.random.uniform((128, STEPS), 0, 10000, tf.int32)
labels = tf.random.uniform((128, STEPS), 0, 10000, tf.int32)
loops.tensorflow(model, inputs, labels)
