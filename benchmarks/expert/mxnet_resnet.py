"""ResNet-50 in MXNet's Gluon, with the stride in the 3 x 3 convolution.

    python mxnet_resnet.py resnet50 THREADS < commands

MXNet takes the number of threads from the environment.
"""

import loops
import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

BATCH = 16


class Bottleneck(gluon.HybridBlock):
    def __init__(self, width, stride, shortcut):
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(
            nn.Conv2D(width, 1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(width, 3, stride, 1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(4 * width, 1, use_bias=False),
            nn.BatchNorm(),
        )
        self.shortcut = nn.HybridSequential()
        if shortcut:
            self.shortcut.add(nn.Conv2D(4 * width, 1, stride, use_bias=False), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        return F.Activation(self.body(x) + self.shortcut(x), act_type="relu")


net = nn.HybridSequential()
net.add(
    nn.Conv2D(64, 7, 2, 3, use_bias=False),
    nn.BatchNorm(),
    nn.Activation("relu"),
    nn.MaxPool2D(3, 2, 1),
)
for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for block in range(depth):
        net.add(Bottleneck(width, stride if block == 0 else 1, shortcut=block == 0))
net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(1000))
inputs = mx.nd.random.uniform(-1, 1, (BATCH, 3, 224, 224))
labels = mx.nd.array(np.random.randint(0, 1000, BATCH))
loops.mxnet(net, inputs, labels)
