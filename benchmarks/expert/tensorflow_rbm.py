"""A restricted Boltzmann machine and a deep belief network by CD-1 in TensorFlow; their noise is given.

python tensorflow_rbm.py {rbm,dbn} THREADS < commands
"""

import sys

import blocks
import numpy as np
import tensorflow as tf

UNITS, BATCH, RATE = {"rbm": (784, 500), "dbn": (784, 500, 500)}[sys.argv[1]], 64, 0.01
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)


class Machine(tf.Module):
    def __init__(self, visible, hidden):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((visible, hidden), stddev=0.01))
        self.visible, self.hidden = tf.Variable(tf.zeros(visible)), tf.Variable(tf.zeros(hidden))
        self.noise = tf.random.uniform((BATCH, hidden))

    def learn(self, data):
        """Moves the parameters; gives the free energy of the data less that of the chain's end, and hidden chances."""
        scores = tf.nn.bias_add(tf.matmul(data, self.weight), self.hidden)
        chances = tf.sigmoid(scores)
        drawn = tf.cast(chances > self.noise, tf.float32)
        end = tf.matmul(drawn, self.weight, transpose_b=True)
        end = tf.sigmoid(tf.nn.bias_add(end, self.visible))
        again = tf.nn.bias_add(tf.matmul(end, self.weight), self.hidden)
        energy = tf.reduce_sum(tf.nn.softplus(again) - tf.nn.softplus(scores))
        energy += tf.reduce_sum(tf.linalg.matvec(end - data, self.visible))
        expected, share = tf.sigmoid(again), RATE / BATCH
        # One product of both ends of the chain.
        ends, signed = tf.concat([data, end], 0), tf.concat([chances, -expected], 0)
        self.weight.assign_add(share * tf.matmul(ends, signed, transpose_a=True))
        self.hidden.assign_add(share * tf.reduce_sum(signed, 0))
        self.visible.assign_add(share * tf.reduce_sum(data - end, 0))
        return energy / BATCH, chances


machines = [Machine(*pair) for pair in zip(UNITS, UNITS[1:], strict=False)]
pixels = tf.random.uniform((BATCH, UNITS[0]), -1, 1)


@tf.function
def step():
    data, loss = tf.sigmoid(pixels), 0.0
    for machine in machines:
        energy, data = machine.learn(data)
        loss += energy
    return loss


def train(steps):
    for _ in range(steps):
        loss = step()
    return float(loss)


variables = [variable for machine in machines for variable in machine.trainable_variables]
blocks.obey(train, sum(np.prod(variable.shape) for variable in variables))
