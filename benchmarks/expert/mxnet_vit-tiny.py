"""ViT-tiny in MXNet's Gluon.

    python mxnet_vit-tiny.py vit-tiny THREADS < commands

MXNet takes the number of threads from the environment.
"""

import loops
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

UNITS, HEADS, BLOCKS, BATCH = 192, 3, 12, 8


class Norm(gluon.HybridBlock):
    """Sums by products with ones: nn.LayerNorm's backward pass takes several times as long."""

    def __init__(self):
        super().__init__()
        self.gamma = self.params.get("gamma", shape=(1, UNITS), init="ones")
        self.beta = self.params.get("beta", shape=(1, UNITS), init="zeros")

    def hybrid_forward(self, F, x, gamma, beta):
        row = F.ones_like(gamma)
        column = F.reshape(row, shape=(-1, 1))
        x = x - F.dot(F.dot(x, column) / UNITS, row)
        scale = F.rsqrt(F.dot(F.square(x), column) / UNITS + 1e-6)
        return x * F.dot(scale, gamma) + F.dot(F.ones_like(scale), beta)


class Attention(gluon.HybridBlock):
    """By GluonNLP's operators, which have the queries, keys and values of a head beside each other."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Dense(3 * UNITS, flatten=False, in_units=UNITS)
        self.projection = nn.Dense(UNITS, flatten=False, in_units=UNITS)

    def hybrid_forward(self, F, x):
        qkv = self.qkv(x)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=HEADS)
        weights = F.softmax(scores, axis=-1)
        return self.projection(
            F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=HEADS)
        )


class Block(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = Norm(), Attention(), Norm()
        self.mlp = nn.HybridSequential()
        self.mlp.add(nn.Dense(4 * UNITS, flatten=False, in_units=UNITS))
        self.mlp.add(nn.GELU())
        self.mlp.add(nn.Dense(UNITS, flatten=False, in_units=4 * UNITS))

    def hybrid_forward(self, F, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(gluon.HybridBlock):
    """Steps come first, as those operators want them."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2D(UNITS, 16, 16, in_channels=3)
        self.token = self.params.get("token", shape=(1, 1, UNITS), init="zeros")
        self.positions = self.params.get("positions", shape=(197, 1, UNITS))
        self.blocks = nn.HybridSequential()
        self.blocks.add(*[Block() for _ in range(BLOCKS)])
        self.norm, self.head = Norm(), nn.Dense(1000, in_units=UNITS)

    def hybrid_forward(self, F, images, token, positions):
        x = F.transpose(F.reshape(self.patches(images), shape=(0, 0, -1)), axes=(2, 0, 1))
        x = F.concat(F.broadcast_axis(token, axis=1, size=BATCH), x, dim=0)
        x = self.blocks(F.broadcast_add(x, positions))
        first = F.reshape(F.slice_axis(x, axis=0, begin=0, end=1), shape=(-1, UNITS))
        return self.head(self.norm(first))


labels = mx.nd.floor(mx.nd.random.uniform(0, 1000, shape=(BATCH,)))
loops.mxnet(Model(), mx.nd.random.normal(shape=(BATCH, 3, 224, 224)), labels)
