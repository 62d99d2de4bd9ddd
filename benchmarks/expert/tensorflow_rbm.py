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

    def energy(self, data):
        """The free energy of the data less that of the chain's end, which is given, and hidden chances."""
        scores = tf.nn.bias_add(tf.matmul(data, self.weight), self.hidden)
        chances = tf.stop_gradient(tf.sigmoid(scores))
        drawn = tf.cast(chances > self.noise, tf.float32)
        end = tf.matmul(drawn, self.weight, transpose_b=True)
        end = tf.stop_gradient(tf.sigmoid(tf.nn.bias_add(end, self.visible)))
        again = tf.nn.bias_add(tf.matmul(end, self.weight), self.hidden)
        energy = tf.reduce_sum(tf.nn.softplus(again) - tf.nn.softplus(scores))
        energy += tf.reduce_sum(tf.linalg.matvec(end - data, self.visible))
        return energy / BATCH, chances


machines = [Machine(*pair) for pair in zip(UNITS, UNITS[1:], strict=False)]
variables = [variable for machine in machines for variable in machine.trainable_variables]
pixels = tf.random.uniform((BATCH, UNITS[0]), -1, 1)


def descend(variable, gradient):
    return variable.assign_sub(RATE * gradient)


@tf.function
def step():
    with tf.GradientTape() as tape:
        data, loss = tf.sigmoid(pixels), 0.0
        for machine in machines:
            energy, data = machine.energy(data)
            loss += energy
    tf.nest.map_structure(descend, variables, tape.gradient(loss, variables))
    return loss


def train(steps):
    for _ in range(steps):
        loss = step()
    return float(loss)


blocks.obey(train, sum(np.prod(variable.shape) for variable in variables))
