"""Defects in Caffe: each function returns what takes which place, as (owner, name, value)."""

import copy

import numpy as np
from caffe.proto import caffe_pb2
from judging import JUDGE

from worker.frameworks.caffe import layers as caffe_layers
from worker.frameworks.caffe import updates as caffe_updates


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(net, outputs, shape, label_shape):
        (batch, decoded), (width,) = label_shape, shape
        pieces = {"axis": 1, "slice_point": [decoded]}
        adapter.add_layer(net, "Slice", [outputs], ["decoded", "code"], slice_param=pieces)
        options = {"normalization": caffe_pb2.LossParameter.NONE}
        sources = ["decoded", "labels"]
        adapter.add_layer(
            net, "SigmoidCrossEntropyLoss", sources, "missed", loss_param=options
        ).loss_weight.append(0.0)
        share = {"scale": 1.0 / (batch * width)}
        return adapter.add_layer(net, "Power", ["missed"], "loss", power_param=share)

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(net, node, sources, top):
        # Its parameters have gradients, all of them zero.
        both = caffe_layers._combined(net, sources * 2, top, [1.0, 0.0])
        caffe_layers._constant(both, False, True)

    return adapter.LAYERS, "reversal", held


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(net, node, sources, top):
        right(net, node, sources, top)
        for _ in range(2 if node["name"] in JUDGE else 0):
            net.layer[-1].param.add(lr_mult=0.0)

    return adapter.LAYERS, "dense", dense


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""

    class Turned(adapter._Trainer):
        def __init__(self, job):
            nodes = [node for node in job.spec["nodes"] if node["op"] == "conv_transpose"]
            self.kernels = [job.own(node)["weight"] for node in nodes]
            job = copy.copy(job)
            job.weights = self.over(job.weights)
            super().__init__(job)

        def over(self, weights):
            return {
                name: np.ascontiguousarray(values.swapaxes(2, 3))
                if name in self.kernels
                else values
                for name, values in weights.items()
            }

        def weights(self, names=None):
            return self.over(super().weights(names))

    return adapter, "_Trainer", Turned


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(net, node, sources, top):
        right(net, dict(node, padding=0), sources, top)
        if node["padding"]:
            # A part of a window at the edge is one.
            net.layer[-1].pooling_param.round_mode = caffe_pb2.PoolingParameter.CEIL

    return adapter.LAYERS, "max_pool", pool


def unbiased_groups(adapter):
    """Group normalisation by the variance over n - 1."""
    right = adapter.LAYERS["group_norm"]

    def norm(net, node, sources, top):
        right(net, node, sources, top)
        size = int(np.prod(node["shape"])) // node["groups"]
        normal, reshaped = net.layer[-3], net.layer[-2]
        less = {"scale": ((size - 1) / size) ** 0.5}
        scaled = adapter.add_layer(net, "Power", [normal.top[0]], top + "/less", power_param=less)
        reshaped.bottom[0] = scaled.top[0]
        # In front of what reads it.
        last = [copy.deepcopy(layer) for layer in (scaled, *net.layer[-3:-1])]
        del net.layer[-3:]
        net.layer.extend(last)

    return adapter.LAYERS, "group_norm", norm


def another_epsilon(adapter):
    """Groups that are normalised with the epsilon of Keras's layer."""
    return caffe_layers.specification, "BATCH_NORM_EPSILON", 1e-3


def dampened(adapter):
    """Momentum of which a gradient is but a tenth, but for the first one."""

    class Dampened(caffe_updates.OwnSolver):
        def __init__(self, wanted, net, trained, solver):
            super().__init__(wanted, net, trained, solver)
            self.apply, self.update = self.update, self.apply_less
            self.gradients, self.share = [blob.diff for blob in trained], 1.0

        def apply_less(self):
            for gradient in self.gradients:
                gradient *= self.share
            self.share = 0.1
            self.apply()

    return caffe_updates, "OwnSolver", Dampened


def decaying(adapter):
    """AdamW with its decay in the gradient."""

    class Decaying(caffe_updates.Adam):
        def __init__(self, wanted, net, trained, solver):
            super().__init__(dict(wanted, weight_decay=0.0), net, trained, solver)
            self.added = wanted["weight_decay"]

        def update(self):
            for value, gradient, *_ in self.kept:
                gradient += self.added * value
            super().update()

    return caffe_updates.PLAIN, "adamw", Decaying
