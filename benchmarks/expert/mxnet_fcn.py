"""FCN-5 and FCN-8 in MXNet's Gluon.

    python mxnet_fcn.py {fcn5,fcn8} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import blocks
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

HIDDEN_LAYERS = {"fcn5": 3, "fcn8": 6}[sys.argv[1]]
BATCH = 64

net = nn.HybridSequential()
features = 26752
for _ in range(HIDDEN_LAYERS):
    net.add(nn.Dense(2048, activation="sigmoid", in_units=features))
    features = 2048
net.add(nn.Dense(26752, in_units=features))
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
criterion.hybridize(static_alloc=True, static_shape=True)
inputs = mx.nd.random.uniform(-1, 1, (BATCH, 26752))
labels = mx.nd.array(np.random.randint(0, 26752, BATCH))
parameters = [
    parameter for parameter in net.collect_params().values() if parameter.grad_req != "null"
]
# Gradients that hold the learning rate need only be subtracted: Trainer and sgd_update take several times as long.
learning_rates = mx.nd.full((BATCH,), 0.01 / BATCH)


def train(steps):
    for _ in range(steps):
        with autograd.record():
            loss = criterion(net(inputs), labels)
        loss.backward(learning_rates)
        for parameter in parameters:
            value = parameter.data()
            value -= parameter.grad()
    mx.nd.waitall()
    return loss.mean().asscalar()


blocks.obey(train, sum(parameter.data().size for parameter in parameters))
