"""LeNet-5, a convolutional autoencoder and a deconvolutional network for MNIST in MXNet's Gluon.

    python mxnet_conv.py {lenet,autoencoder-conv,deconv} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


def lenet():
    return [
        nn.Conv2D(6, 5, activation="sigmoid"),
        nn.AvgPool2D(2),
        nn.Conv2D(16, 5, activation="sigmoid"),
        nn.AvgPool2D(2),
        nn.Flatten(),
        nn.Dense(120, activation="sigmoid"),
        nn.Dense(84, activation="sigmoid"),
        nn.Dense(10),
    ]


def wider():
    return nn.HybridLambda(lambda F, x: F.UpSampling(x, scale=2, sample_type="nearest"))


def autoencoder():
    return [
        nn.Conv2D(16, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(8, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(8, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2, padding=1),
        nn.Conv2D(8, 3, padding=1, activation="relu"),
        wider(),
        nn.Conv2D(8, 3, padding=1, activation="relu"),
        wider(),
        nn.Conv2D(16, 3, activation="relu"),
        wider(),
        nn.Conv2D(1, 3, padding=1),
        nn.Flatten(),
    ]


def transposed(channels, *window):
    layer = nn.Conv2DTranspose(channels, *window, use_bias=False)
    return layer, nn.BatchNorm(), nn.Activation("relu")


class Spread(gluon.HybridBlock):
    """To one channel by a convolution of sub-pixels: oneDNN has no transposed one of 64 channels to one."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2D(4, 2, padding=1, use_bias=False)
        self.bias = self.params.get("bias", shape=(1, 1, 1, 1), init="zeros")

    def hybrid_forward(self, F, x, bias):
        x = F.depth_to_space(self.convolution(x), 2)
        x = F.slice(x, begin=(None, None, 1, 1), end=(None, None, 29, 29))
        return F.broadcast_add(x, bias)


def deconv():
    return [
        *transposed(256, 4),
        *transposed(128, 3, 2, 1),
        *transposed(64, 4, 2, 1),
        Spread(),
        nn.Flatten(),
    ]


make, shape, criterion = {
    "lenet": (lenet, (1, 32, 32), gluon.loss.SoftmaxCrossEntropyLoss()),
    "autoencoder-conv": (autoencoder, (1, 28, 28), gluon.loss.SigmoidBinaryCrossEntropyLoss()),
    # Gluon's has half of the squares.
    "deconv": (deconv, (100, 1, 1), gluon.loss.L2Loss(weight=2)),
}[sys.argv[1]]
net = nn.HybridSequential()
net.add(*make())
inputs = mx.nd.random.uniform(-1, 1, (64, *shape))
answers = mx.nd.random.uniform(shape=(64, 784))
if make is lenet:
    answers = mx.nd.floor(mx.nd.random.uniform(0, 10, (64,)))
loops.mxnet(net, inputs, answers, criterion)
