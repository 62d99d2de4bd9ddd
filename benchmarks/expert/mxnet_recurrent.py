"""RNN-32, GRU-32, LSTM-32 and LSTM-64 in MXNet's Gluon.

    python mxnet_recurrent.py {rnn32,gru32,lstm32,lstm64} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
import numpy as np
from mxnet.gluon import nn, rnn

STEPS = int(sys.argv[1][-2:])
BATCH = 128
# Gluon's RNN has ReLU otherwise.
KINDS = {"rnn": (rnn.RNN, {"activation": "tanh"}), "gru": (rnn.GRU, {}), "lstm": (rnn.LSTM, {})}

kind, options = KINDS[sys.argv[1][:-2]]
net = nn.HybridSequential()
net.add(
    nn.Embedding(10000, 256),
    kind(256, num_layers=2, input_size=256, **options),
    nn.Dense(10000, flatten=False, in_units=256),
)
# MXNet's second bias is redundant, and no part of the network.
net.collect_params(".*h2h_bias").setattr("grad_req", "null")
inputs = mx.nd.array(np.random.randint(0, 10000, (STEPS, BATCH)))
labels = mx.nd.array(np.random.randint(0, 10000, (STEPS, BATCH)))
loops.mxnet(net, inputs, labels, batch_axis=1)
