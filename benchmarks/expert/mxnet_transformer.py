"""GPT-small, BERT-base, ViT-tiny and MLP-Mixer in MXNet's Gluon.

    python mxnet_transformer.py {gpt-small,gpt-small-adamw,bert-base,vit-tiny,mlp-mixer} THREADS < commands

MXNet takes the number of threads from the environment.
"""

import sys

import loops
import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn


class Norm(gluon.HybridBlock):
    """Sums by products with ones: nn.LayerNorm's backward pass takes several times as long."""

    def __init__(self, units, epsilon=1e-6, bias=True):
        super().__init__()
        self.units, self.epsilon = units, epsilon
        self.gamma = self.params.get("gamma", shape=(1, units), init="ones")
        if bias:
            self.beta = self.params.get("beta", shape=(1, units), init="zeros")

    def hybrid_forward(self, F, x, gamma, beta=None):
        row = F.ones_like(gamma)
        column = F.reshape(row, shape=(-1, 1))
        x = x - F.dot(F.dot(x, column) / self.units, row)
        scale = F.rsqrt(F.dot(F.square(x), column) / self.units + self.epsilon)
        y = x * F.dot(scale, gamma)
        return y if beta is None else y + F.dot(F.ones_like(scale), beta)


def dense(before, behind, bias=True):
    return nn.Dense(behind, use_bias=bias, flatten=False, in_units=before)


class Attention(gluon.HybridBlock):
    """By GluonNLP's operators, which have the queries, keys and values of a head beside each other, and steps first."""

    def __init__(self, units, heads, bias=True, causal_steps=0):
        super().__init__()
        self.heads = heads
        self.qkv, self.projection = dense(units, 3 * units, bias), dense(units, units, bias)
        if causal_steps:
            later = np.full((1, causal_steps, causal_steps), -1e30, "float32")
            self.mask = self.params.get_constant("mask", np.triu(later, 1))

    def hybrid_forward(self, F, x, mask=None):
        qkv = self.qkv(x)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self.heads)
        scores = scores if mask is None else F.broadcast_add(scores, mask)
        weights = F.softmax(scores, axis=-1)
        return self.projection(
            F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=self.heads)
        )


def sequential(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def mlp(units, hidden, bias=True):
    return sequential(dense(units, hidden, bias), nn.GELU(), dense(hidden, units, bias))


class Mixed(gluon.HybridBlock):
    """Layers over the patches of each channel."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def hybrid_forward(self, F, x):
        return F.swapaxes(self.layers(F.swapaxes(x, dim1=1, dim2=2)), dim1=1, dim2=2)


class Residual(gluon.HybridBlock):
    """A branch with a layer norm before it, or behind the sum."""

    def __init__(self, branch, norm, behind=False):
        super().__init__()
        self.branch, self.norm, self.behind = branch, norm, behind

    def hybrid_forward(self, F, x):
        if self.behind:
            return self.norm(x + self.branch(x))
        return x + self.branch(self.norm(x))


class Language(gluon.HybridBlock):
    """The loss of each word, of (steps, batch), with the embedding of words for the scores, too."""

    def __init__(self, words, units, rows, sentences, steps, body, bias):
        super().__init__()
        self.count, self.steps, start = words, steps, mx.init.Normal(0.02)
        self.words = self.params.get("words", shape=(words, units), init=start)
        self.positions = self.params.get("positions", shape=(rows, 1, units), init=start)
        if sentences:
            self.sentences = self.params.get("sentences", shape=(2, 1, units), init=start)
        if bias:
            self.bias = self.params.get("bias", shape=(words,), init="zeros")
        self.body = body
        self.missed = gluon.loss.SoftmaxCrossEntropyLoss(batch_axis=1)

    def hybrid_forward(self, F, inputs, labels, words, positions, sentences=None, bias=None):
        x = F.take(words, inputs)
        places = F.slice_axis(positions, axis=0, begin=0, end=self.steps)
        if sentences is not None:
            places = places + F.repeat(sentences, repeats=64, axis=0)
        x = self.body(F.broadcast_add(x, places))
        arrays = (x, words) if bias is None else (x, words, bias)
        logits = F.FullyConnected(
            *arrays, num_hidden=self.count, no_bias=bias is None, flatten=False
        )
        return self.missed(logits, labels)


class Images(gluon.HybridBlock):
    """Classes by the first step, which is learned and has steps first; or by the mean of all patches."""

    def __init__(self, units, steps, body):
        super().__init__()
        self.patches, self.steps, self.units = nn.Conv2D(units, 16, 16, in_channels=3), steps, units
        if steps:
            self.token = self.params.get("token", shape=(1, 1, units), init="zeros")
            self.positions = self.params.get("positions", shape=(steps, 1, units))
        self.body, self.head = body, nn.Dense(1000, in_units=units)

    def hybrid_forward(self, F, images, token=None, positions=None):
        x = F.reshape(self.patches(images), shape=(0, 0, -1))
        if token is None:
            return self.head(F.mean(self.body(F.transpose(x, axes=(0, 2, 1))), axis=1))
        x = F.transpose(x, axes=(2, 0, 1))
        x = F.concat(F.broadcast_axis(token, axis=1, size=BATCH), x, dim=0)
        x = F.slice_axis(self.body(F.broadcast_add(x, positions)), axis=0, begin=0, end=1)
        return self.head(F.reshape(x, shape=(-1, self.units)))


def gpt():
    body = [
        Residual(branch, Norm(384, 1e-5, False))
        for _ in range(6)
        for branch in (Attention(384, 6, False, 256), mlp(384, 1536, False))
    ]
    body = sequential(*body, Norm(384, 1e-5, False))
    return Language(65, 384, 256, 0, 256, body, False)


def bert():
    body = [
        Residual(branch, Norm(768, 1e-12), behind=True)
        for _ in range(12)
        for branch in (Attention(768, 12), mlp(768, 3072))
    ]
    head = dense(768, 768), nn.GELU(), Norm(768, 1e-12)
    body = sequential(Norm(768, 1e-12), *body, *head)
    return Language(30522, 768, 512, 2, 128, body, True)


def image_blocks(units, count, *makers):
    blocks = [Residual(make(), Norm(units)) for _ in range(count) for make in makers]
    return sequential(*blocks, Norm(units))


def vit():
    makers = lambda: Attention(192, 3), lambda: mlp(192, 768)
    return Images(192, 197, image_blocks(192, 12, *makers))


def mixer():
    makers = lambda: Mixed(mlp(196, 256)), lambda: mlp(512, 2048)
    return Images(512, 0, image_blocks(512, 8, *makers))


# The network, its mini-batch, and its steps and words, which images do not have.
make, BATCH, steps, words = {
    "gpt-small": (gpt, 8, 256, 65),
    "bert-base": (bert, 4, 128, 30522),
    "vit-tiny": (vit, 8, 0, 0),
    "mlp-mixer": (mixer, 8, 0, 0),
}[sys.argv[1].removesuffix("-adamw")]
net = make()
if words:
    inputs, labels = (
        mx.nd.array(np.random.randint(words, size=(steps, BATCH)).astype("float32"))
        for _ in range(2)
    )
    loops.mxnet_losses(net, lambda: net(inputs, labels), BATCH)
else:
    labels = mx.nd.floor(mx.nd.random.uniform(0, 1000, shape=(BATCH,)))
    loops.mxnet(net, mx.nd.random.normal(shape=(BATCH, 3, 224, 224)), labels)
