"""A restricted Boltzmann machine and a deep belief network by CD-1 in MXNet's Gluon; their noise is given.

    python mxnet_rbm.py {rbm,dbn} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

UNITS, BATCH = {"rbm": (784, 500), "dbn": (784, 500, 500)}[sys.argv[1]], 64


class Machine(gluon.HybridBlock):
    """The free energy of the data less that of the chain's end, which is held, and hidden chances."""

    def __init__(self, visible, hidden):
        super().__init__()
        self.weight = self.params.get("weight", shape=(hidden, visible))
        self.visible = self.params.get("visible", shape=(1, visible), init="zeros")
        self.hidden = self.params.get("hidden", shape=(hidden,), init="zeros")
        self.units = hidden

    def hybrid_forward(self, F, data, noise, weight, visible, hidden):
        def score(values):
            return F.FullyConnected(values, weight, hidden, num_hidden=self.units)

        def soft(values):
            return F.Activation(values, act_type="softrelu")

        scores = score(data)
        chances = F.BlockGrad(F.sigmoid(scores))
        end = F.broadcast_add(F.dot(chances > noise, weight), visible)
        end = F.BlockGrad(F.sigmoid(end))
        energy = F.sum(soft(score(end)) - soft(scores), axis=1)
        return energy + F.sum(F.broadcast_mul(end - data, visible), axis=1), chances


class Machines(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.machines = nn.HybridSequential()
        self.machines.add(*[Machine(*pair) for pair in zip(UNITS, UNITS[1:], strict=False)])

    def hybrid_forward(self, F, pixels, *noises):
        data = F.sigmoid(pixels)
        energies = []
        for machine, noise in zip(self.machines, noises, strict=True):
            energy, data = machine(data, noise)
            energies.append(energy)
        return F.add_n(*energies)


net = Machines()
pixels = mx.nd.random.uniform(-1, 1, (BATCH, UNITS[0]))
noises = [mx.nd.random.uniform(shape=(BATCH, units)) for units in UNITS[1:]]
loops.mxnet_losses(net, lambda: net(pixels, *noises), BATCH)
