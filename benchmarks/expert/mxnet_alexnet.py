"""AlexNet in MXNet's Gluon.

    python mxnet_alexnet.py alexnet THREADS < commands

MXNet takes the number of threads from the environment.
"""

import blocks
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

BATCH = 16

net = nn.HybridSequential()
net.add(
    nn.Conv2D(96, 11, 4, 2, activation="relu"),
    nn.MaxPool2D(3, 2),
    nn.Conv2D(256, 5, padding=2, activation="relu"),
    nn.MaxPool2D(3, 2),
    nn.Conv2D(384, 3, padding=1, activation="relu"),
    nn.Conv2D(256, 3, padding=1, activation="relu"),
    nn.Conv2D(256, 3, padding=1, activation="relu"),
    nn.MaxPool2D(3, 2),
    nn.Flatten(),
    nn.Dense(4096, activation="relu"),
    nn.Dense(4096, activation="relu"),
    nn.Dense(1000),
)
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
criterion.hybridize(static_alloc=True, static_shape=True)
inputs = mx.nd.random.uniform(-1, 1, (BATCH, 3, 224, 224))
labels = mx.nd.array(np.random.randint(0, 1000, BATCH))
net(inputs)  # The shapes of the parameters are known only now.
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
