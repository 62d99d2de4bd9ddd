"""AlexNet in MXNet's Gluon.

    python mxnet_alexnet.py alexnet THREADS < commands

MXNet takes the number of threads from the environment.
"""

import loops
import mxnet as mx
import numpy as np
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
inputs = mx.nd.random.uniform(-1, 1, (BATCH, 3, 224, 224))
labels = mx.nd.array(np.random.randint(0, 1000, BATCH))
loops.mxnet(net, inputs, labels)
