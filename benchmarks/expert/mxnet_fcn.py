"""FCN-5 and FCN-8 in MXNet's Gluon.

    python mxnet_fcn.py {fcn5,fcn8} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
import numpy as np
from mxnet.gluon import nn

HIDDEN_LAYERS = {"fcn5": 3, "fcn8": 6}[sys.argv[1]]
BATCH = 64

net = nn.HybridSequential()
features = 26752
for _ in range(HIDDEN_LAYERS):
    net.add(nn.Dense(2048, activation="sigmoid", in_units=features))
    features = 2048
net.add(nn.Dense(26752, in_units=features))
inputs = mx.nd.random.uniform(-1, 1, (BATCH, 26752))
labels = mx.nd.array(np.random.randint(0, 26752, BATCH))
loops.mxnet(net, inputs, labels)
