"""VAE in MXNet's Gluon; its noise is given.

    python mxnet_vae.py vae THREADS < commands

MXNet takes the number of threads from the environment.
"""

import blocks
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

PIXELS, HIDDEN, CODE, BATCH, RATE = 784, 400, 20, 64, 0.001


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
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
images, noise = (
    mx.nd.random.uniform(shape=(BATCH, PIXELS)),
    mx.nd.random.normal(shape=(BATCH, CODE)),
)
parameters = list(net.collect_params().values())
learning_rates = mx.nd.full((BATCH,), RATE / BATCH)


def train(steps):
    for _ in range(steps):
        with autograd.record():
            loss = net(images, noise)
        loss.backward(learning_rates)
        for parameter in parameters:
            value = parameter.data()
            value -= parameter.grad()
    mx.nd.waitall()
    return loss.mean().asscalar()


blocks.obey(train, sum(parameter.data().size for parameter in parameters))
