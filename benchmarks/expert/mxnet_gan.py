"""A GAN for MNIST in MXNet's Gluon, whose players move at once; its codes are given.

    python mxnet_gan.py gan THREADS < commands

MXNet takes the number of threads from the environment.
"""

import loops
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

PIXELS, CODE, MADE, JUDGED, BATCH = 784, 100, 1200, 240, 64


def player(before, hidden, behind, activation=None):
    net = nn.HybridSequential()
    net.add(
        nn.Dense(hidden, "relu", in_units=before),
        nn.Dense(hidden, "relu", in_units=hidden),
        nn.Dense(behind, activation, in_units=hidden),
    )
    return net


class Game(gluon.HybridBlock):
    """What the judge loses by each image."""

    def __init__(self):
        super().__init__()
        self.generator = player(CODE, MADE, PIXELS, "tanh")
        self.judge = player(PIXELS, JUDGED, 1)
        self.missed = gluon.loss.SigmoidBinaryCrossEntropyLoss()

    def hybrid_forward(self, F, images, codes, verdicts):
        made = self.generator(codes)
        # The generator climbs where the judge descends.
        made = 2 * F.BlockGrad(made) - made
        return self.missed(self.judge(F.concat(images, made, dim=0)), verdicts)


game = Game()
images, codes = (mx.nd.random.uniform(-1, 1, (BATCH, size)) for size in (PIXELS, CODE))
verdicts = mx.nd.concat(mx.nd.ones((BATCH, 1)), mx.nd.zeros((BATCH, 1)), dim=0)
loops.mxnet_losses(game, lambda: game(images, codes, verdicts), 2 * BATCH)
