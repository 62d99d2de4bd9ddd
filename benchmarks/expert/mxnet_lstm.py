"""LSTM-32 and LSTM-64 in MXNet's Gluon.

    python mxnet_lstm.py {lstm32,lstm64} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import blocks
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

STEPS = {"lstm32": 32, "lstm64": 64}[sys.argv[1]]
BATCH = 128

net = nn.HybridSequential()
net.add(
    nn.Embedding(10000, 256),
    rnn.LSTM(256, num_layers=2, input_size=256),
    nn.Dense(10000, flatten=False, in_units=256),
)
# MXNet's second bias is redundant, and no part of the network.
net.collect_params(".*h2h_bias").setattr("grad_req", "null")
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
criterion = gluon.loss.SoftmaxCrossEntropyLoss(batch_axis=1)
criterion.hybridize(static_alloc=True, static_shape=True)
inputs = mx.nd.array(np.random.randint(0, 10000, (STEPS, BATCH)))
labels = mx.nd.array(np.random.randint(0, 10000, (STEPS, BATCH)))
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
