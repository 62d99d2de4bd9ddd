"""FCN-5, FCN-8, feed-forward networks and an autoencoder for MNIST in MXNet's Gluon.

    python mxnet_fcn.py {fcn5,fcn8,ffn-shallow,ffn-deep,autoencoder} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

net, sizes = nn.HybridSequential(), loops.dense(sys.argv[1])
for before, behind, bent in sizes:
    net.add(nn.Dense(behind, activation="sigmoid" if bent else None, in_units=before))
inputs = mx.nd.random.uniform(-1, 1, (64, sizes[0][0]))
if sys.argv[1] == "autoencoder":
    criterion = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    loops.mxnet(net, inputs, (inputs + 1) / 2, criterion)
else:
    loops.mxnet(net, inputs, mx.nd.array(np.random.randint(0, behind, 64)))
