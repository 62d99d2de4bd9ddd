"""FCN-5 on two contexts of one process as MXNet's own guide to several devices has it."""

import mxnet as mx
import numpy as np
import steps
from mxnet import autograd, gluon
from mxnet.gluon import nn

contexts, batch = [mx.cpu(0), mx.cpu(1)], 64
net = nn.HybridSequential()
features = 26752
for _ in range(3):
    net.add(nn.Dense(2048, activation="sigmoid", in_units=features))
    features = 2048
net.add(nn.Dense(26752, in_units=features))
net.initialize(mx.init.Xavier(), ctx=contexts)
net.hybridize(static_alloc=True, static_shape=True)
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
criterion.hybridize(static_alloc=True, static_shape=True)
inputs = gluon.utils.split_and_load(mx.nd.random.uniform(-1, 1, (batch, 26752)), contexts)
labels = gluon.utils.split_and_load(mx.nd.array(np.random.randint(0, 26752, batch)), contexts)
parameters = list(net.collect_params().values())
trainer = gluon.Trainer(
    parameters, "sgd", {"learning_rate": 0.01}, kvstore="local", update_on_kvstore=False
)
# Gradients that hold the learning rate, as in the expert's script of one device.
learning_rates = [mx.nd.full((batch // 2,), 0.01 / batch, ctx=context) for context in contexts]


def step():
    with autograd.record():
        losses = [criterion(net(part), own) for part, own in zip(inputs, labels, strict=True)]
    autograd.backward(losses, learning_rates)
    trainer.allreduce_grads()
    for parameter in parameters:
        for value, gradient in zip(parameter.list_data(), parameter.list_grad(), strict=True):
            value -= gradient
    mx.nd.waitall()
    return np.mean([loss.mean().asscalar() for loss in losses])


steps.clock(step)
