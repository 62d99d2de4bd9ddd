"""VAE in MXNet's Gluon; its noise is given.

    python mxnet_vae.py vae THREADS < commands

MXNet takes the number of threads from the environment.
"""

import loops
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

PIXELS, HIDDEN, CODE, BATCH = 784, 400, 20, 64


class Bound(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.HybridSequential(), nn.HybridSequential()
        self.encoder.add(nn.Dense(HIDDEN, "relu", in_units=PIXELS))
        self.encoder.add(nn.Dense(2 * CODE, in_units=HIDDEN))
        self.decoder.add(nn.Dense(HIDDEN, "relu", in_units=CODE))
        self.decoder.add(nn.Dense(PIXELS, in_units=HIDDEN))
        self.missed = gluon.loss.SigmoidBinaryCrossEntropyLoss()

    def hybrid_forward(self, F, x, noise):
        mu, logvar = F.split(self.encoder(x), num_outputs=2, axis=1)
        made = self.decoder(mu + F.exp(0.5 * logvar) * noise)
        apart = 0.5 * F.sum(F.square(mu) + F.exp(logvar) - logvar - 1, axis=1)
        return PIXELS * self.missed(made, x) + apart


net = Bound()
images = mx.nd.random.uniform(shape=(BATCH, PIXELS))
noise = mx.nd.random.normal(shape=(BATCH, CODE))
loops.mxnet_losses(net, lambda: net(images, noise), BATCH, rate=0.001)
