"""LSTM-32 and LSTM-64 in MXNet's Gluon.

    python mxnet_lstm.py {lstm32,lstm64} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
import numpy as np
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
inputs = mx.nd.array(np.random.randint(0, 10000, (STEPS, BATCH)))
labels = mx.nd.array(np.random.randint(0, 10000, (STEPS, BATCH)))
loops.mxnet(net, inputs, labels, batch_axis=1)
