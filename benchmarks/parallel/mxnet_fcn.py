"""FCN-5 on several ranks as MXNet's own guide to `dist_sync` has it: python mxnet_fcn.py RANK PORT,PORT.

The first rank starts the scheduler and the server, which share its CPU.
"""

import os
import subprocess
import sys

rank, ports = int(sys.argv[1]), sys.argv[2].split(",")
os.environ.update(
    DMLC_PS_ROOT_URI="127.0.0.1",
    DMLC_PS_ROOT_PORT=ports[0],
    DMLC_NODE_HOST="127.0.0.1",
    DMLC_INTERFACE="lo",
    DMLC_NUM_SERVER="1",
    DMLC_NUM_WORKER=str(len(ports)),
    MXNET_KVSTORE_REDUCTION_NTHREADS="1",
)
for role in ("scheduler", "server") if rank == 0 else ():
    subprocess.Popen(
        [sys.executable, "-c", "import mxnet"],
        env=dict(os.environ, DMLC_ROLE=role),
        stdout=subprocess.DEVNULL,
    )
os.environ["DMLC_ROLE"] = "worker"
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
import steps  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402
from mxnet.gluon import nn  # noqa: E402

batch = 64 // len(ports)
net = nn.HybridSequential()
features = 26752
for _ in range(3):
    net.add(nn.Dense(2048, activation="sigmoid", in_units=features))
    features = 2048
net.add(nn.Dense(26752, in_units=features))
net.initialize(mx.init.Xavier())
net.hybridize(static_alloc=True, static_shape=True)
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
criterion.hybridize(static_alloc=True, static_shape=True)
inputs = mx.nd.random.uniform(-1, 1, (batch, 26752))
labels = mx.nd.array(np.random.randint(0, 26752, batch))
parameters = list(net.collect_params().values())
trainer = gluon.Trainer(
    parameters, "sgd", {"learning_rate": 0.01}, kvstore="dist_sync", update_on_kvstore=False
)
# Gradients that hold the learning rate, as in the expert's script of one device.
learning_rates = mx.nd.full((batch,), 0.01 / 64)


def step():
    with autograd.record():
        loss = criterion(net(inputs), labels)
    loss.backward(learning_rates)
    trainer.allreduce_grads()
    for parameter in parameters:
        value = parameter.data()
        value -= parameter.grad()
    mx.nd.waitall()
    return loss.mean().asscalar()


steps.clock(step)
