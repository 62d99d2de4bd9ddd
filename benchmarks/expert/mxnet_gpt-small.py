"""GPT-small in MXNet's Gluon.

    python mxnet_gpt-small.py gpt-small THREADS < commands

MXNet takes the number of threads from the environment.
"""

import blocks
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

STEPS, WORDS, UNITS, HEADS, BLOCKS, BATCH, RATE = 256, 65, 384, 6, 6, 8, 0.01


class Norm(gluon.HybridBlock):
    """Sums by products with ones: nn.LayerNorm's backward pass takes several times as long."""

    def __init__(self):
        super().__init__()
        self.gamma = self.params.get("gamma", shape=(1, UNITS), init="ones")

    def hybrid_forward(self, F, x, gamma):
        row = F.ones_like(gamma)
        column = F.reshape(row, shape=(-1, 1))
        x = x - F.dot(F.dot(x, column) / UNITS, row)
        variance = F.dot(F.square(x), column) / UNITS
        return x * F.dot(F.rsqrt(variance + 1e-5), gamma)


class Attention(gluon.HybridBlock):
    """By GluonNLP's operators, which have the queries, keys and values of a head beside each other."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Dense(3 * UNITS, use_bias=False, flatten=False, in_units=UNITS)
        self.projection = nn.Dense(UNITS, use_bias=False, flatten=False, in_units=UNITS)
        later = np.triu(np.full((1, STEPS, STEPS), -1e30, "float32"), 1)
        self.mask = self.params.get_constant("mask", later)

    def hybrid_forward(self, F, x, mask):
        qkv = self.qkv(x)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=HEADS)
        weights = F.softmax(F.broadcast_add(scores, mask), axis=-1)
        return self.projection(
            F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=HEADS)
        )


class Block(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = Norm(), Attention(), Norm()
        self.mlp = nn.HybridSequential()
        self.mlp.add(nn.Dense(4 * UNITS, use_bias=False, flatten=False, in_units=UNITS))
        self.mlp.add(nn.GELU())
        self.mlp.add(nn.Dense(UNITS, use_bias=False, flatten=False, in_units=4 * UNITS))

    def hybrid_forward(self, F, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(gluon.HybridBlock):
    """The loss of each word, of (steps, batch)."""

    def __init__(self):
        super().__init__()
        self.words = self.params.get("words", shape=(WORDS, UNITS))
        self.positions = self.params.get("positions", shape=(STEPS, UNITS))
        self.blocks = nn.HybridSequential()
        self.blocks.add(*[Block() for _ in range(BLOCKS)])
        self.norm = Norm()
        self.missed = gluon.loss.SoftmaxCrossEntropyLoss(batch_axis=1)

    def hybrid_forward(self, F, inputs, labels, words, positions):
        x = F.take(words, inputs)
        x = self.norm(self.blocks(F.broadcast_add(x, F.expand_dims(positions, axis=1))))
        logits = F.FullyConnected(x, words, num_hidden=WORDS, no_bias=True, flatten=False)
        return self.missed(logits, labels)


net = Model()
net.initialize(mx.init.Normal(0.02))
net.hybridize(static_alloc=True, static_shape=True)
inputs, labels = (
    mx.nd.array(np.random.randint(WORDS, size=(STEPS, BATCH)).astype("float32")) for _ in range(2)
)
parameters = [
    parameter for parameter in net.collect_params().values() if parameter.grad_req != "null"
]
learning_rates = mx.nd.full((BATCH,), RATE / BATCH)


def train(steps):
    for _ in range(steps):
        with autograd.record():
            loss = net(inputs, labels)
        loss.backward(learning_rates)
        for parameter in parameters:
            value = parameter.data()
            value -= parameter.grad()
    mx.nd.waitall()
    return loss.mean().asscalar()


blocks.obey(train, sum(parameter.data().size for parameter in parameters))
