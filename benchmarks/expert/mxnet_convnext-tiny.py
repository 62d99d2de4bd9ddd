"""ConvNeXt-tiny in MXNet's Gluon, without stochastic depth.

    python mxnet_convnext-tiny.py convnext-tiny THREADS < commands

MXNet takes the number of threads from the environment.
"""

import loops
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

WIDTHS, BLOCKS, BATCH = (96, 192, 384, 768), (3, 3, 9, 3), 4


class Norm(gluon.HybridBlock):
    """Over the last axis, by products with ones: nn.LayerNorm's backward pass takes several times as long."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.gamma = self.params.get("gamma", shape=(1, width), init="ones")
        self.beta = self.params.get("beta", shape=(1, width), init="zeros")

    def hybrid_forward(self, F, x, gamma, beta):
        row = F.ones_like(gamma)
        column = F.reshape(row, shape=(-1, 1))
        x = x - F.dot(F.dot(x, column) / self.width, row)
        scale = F.rsqrt(F.dot(F.square(x), column) / self.width + 1e-6)
        return x * F.dot(scale, gamma) + F.dot(F.ones_like(scale), beta)


class Turned(gluon.HybridBlock):
    """Layers that want the channels last, among those that have them in front."""

    def __init__(self, *layers):
        super().__init__()
        self.inner = nn.HybridSequential()
        self.inner.add(*layers)

    def hybrid_forward(self, F, x):
        return F.transpose(self.inner(F.transpose(x, axes=(0, 2, 3, 1))), axes=(0, 3, 1, 2))


class Scale(gluon.HybridBlock):
    def __init__(self, width):
        super().__init__()
        self.gamma = self.params.get("gamma", shape=(1, width), init=mx.init.Constant(1e-6))

    def hybrid_forward(self, F, x, gamma):
        ones = F.ones_like(F.slice_axis(x, axis=-1, begin=0, end=1))
        return x * F.dot(ones, gamma)


class Block(gluon.HybridBlock):
    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2D(width, 7, padding=3, groups=width, in_channels=width)
        self.mlp = Turned(
            Norm(width),
            nn.Dense(4 * width, flatten=False, in_units=width),
            nn.GELU(),
            nn.Dense(width, flatten=False, in_units=4 * width),
            Scale(width),
        )

    def hybrid_forward(self, F, x):
        return x + self.mlp(self.depthwise(x))


net = nn.HybridSequential()
net.add(nn.Conv2D(WIDTHS[0], 4, 4, in_channels=3), Turned(Norm(WIDTHS[0])))
for stage, width in enumerate(WIDTHS):
    if stage:
        before = WIDTHS[stage - 1]
        net.add(Turned(Norm(before)), nn.Conv2D(width, 2, 2, in_channels=before))
    net.add(*[Block(width) for _ in range(BLOCKS[stage])])
net.add(nn.GlobalAvgPool2D(), nn.Flatten(), Norm(WIDTHS[-1]))
net.add(nn.Dense(1000, in_units=WIDTHS[-1]))
labels = mx.nd.floor(mx.nd.random.uniform(0, 1000, shape=(BATCH,)))
loops.mxnet(net, mx.nd.random.normal(shape=(BATCH, 3, 224, 224)), labels)
