"""Caffe 1.0: a net of its layers, run forward and backward by pycaffe, on a CPU; its solvers where it is not SGD.

What was chosen here, and by which measured ratios: docs/adapters/caffe.md.
"""

import os
import tempfile

import caffe
import numpy as np
from caffe.proto import caffe_pb2

from shared import specification

from ... import kernels
from ...contract import Unsupported
from . import layers, updates
from .layers import add_layer

MODES = ("graph",)
LOSSES = (
    "softmax_cross_entropy",
    "mean_squares",
    "binary_cross_entropy",
    "evidence_bound",
    "adversarial",
    "mean_output",
)
OPTIMISERS = ("sgd", "adadelta", "rmsprop", "momentum", "adam", "adamw")
TASKS = ("step", "training")
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "dense_within": "units first",
    "lstm": "units first",
    "rnn": "units first",
    "gru": "units first",
    "rbm": "units first",
    "gates": "ifog",
}
KERNELS = "openblas:libblas.so.3"
REASONS = {
    "gpu": "this package of Caffe is built without CUDA",
    "attention": "Caffe multiplies matrices by its own weights alone, and attention multiplies two results",
    "table": "Caffe has no attention, and no network without it has a table of words",
    "lookup": "Caffe has no attention, and no network without it has a table of words",
    "unembedding": "Caffe has no attention, and no network without it has a table of words",
    "positions": "Caffe has no attention, and no network without it has positions",
    "patches": "Caffe has no layer that turns axes, as pixels must be for a sequence of them",
    "transpose": "Caffe has no layer that turns axes",
    "layer_norm": "Caffe has no layer that turns axes, as the channels of images must be for their normalisation",
    "gelu": "Caffe has no error function, of which an exact GELU is made",
}

# Where a parameter of the specification lives: the ending of the layer's name and the place among the layer's blobs.
_WEIGHTED = {"weight": ("", 0), "bias": ("", 1)}
_NORMAL = {"gamma": ("/scale", 0), "beta": ("/scale", 1)}
_UNROLLED = {"input": ("", 0), "bias": ("", 1), "recurrent": ("/step0/product", 0)}
_HOMES = {
    "dense": _WEIGHTED,
    "dense_within": _WEIGHTED,
    "conv": _WEIGHTED,
    "grouped_conv": _WEIGHTED,
    "conv_transpose": _WEIGHTED,
    "batch_norm": _NORMAL,
    "group_norm": _NORMAL,
    "embedding": {"weight": ("", 0)},
    "lstm": {"input": ("", 0), "bias": ("", 1), "recurrent": ("", 2)},
    "rnn": _UNROLLED,
    "gru": _UNROLLED,
    "rbm": {"weight": ("/scores", 0), "hidden": ("/scores", 1), "visible": ("/down", 1)},
}


def versions():
    """Versions of Caffe and of the BLAS that it has loaded."""
    return {"framework_version": caffe.__version__, "blas": kernels.describe_openblas()}


def build(job):
    """A trainer of the specification. The BLAS reads its thread number from the environment."""
    caffe.set_mode_cpu()
    caffe.set_random_seed(job.seed)
    return _Trainer(job)


class _Trainer(object):
    def __init__(self, job):
        self.layout, self.spec = job.layout, job.spec
        described, self.outputs = _describe(job.spec, job.inputs.shape, job.labels.shape)
        self.solver = _solver(described, job.spec)
        self.net = getattr(self.solver, "net", self.solver)
        self.judge = None
        self.net.blobs["input"].data[...] = job.inputs
        self.net.blobs["labels"].data[...] = job.labels
        if "continued" in self.net.blobs:
            self.net.blobs["continued"].data[0] = 0
            self.net.blobs["continued"].data[1:] = 1
        self.homes = {}
        for node in job.spec["nodes"]:
            for role, name in job.own(node).items():
                ending, place = _HOMES[node["op"]][role]
                self.homes[name] = self.net.params[node["name"] + ending][place]
                self.homes[name].data.flat = job.take(name)
        trained = _trained(self.net)
        self.parameters = sum(blob.count for blob in trained)
        self.threads = kernels.count_threads()
        name = job.spec["optimiser"]["name"]
        make = updates.PLAIN.get(name, updates.OwnSolver)
        self.optimiser = make(job.spec["optimiser"], self.net, trained, self.solver)
        self.settings = {"update": self.optimiser.said}

    def run(self, steps):
        for _ in range(steps):
            self.step()
        return float(self.net.blobs["loss"].data)

    def step(self):
        self.net.clear_param_diffs()
        self.net._forward(0, self.last)
        self.net._backward(self.last, 0)
        self.optimiser.update()

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self.net.blobs["input"].data[...] = self.layout.inputs(inputs)
            self.net.blobs["labels"].data[...] = self.layout.labels(labels)
            self.optimiser.set_rate(rate)
            self.step()
            total, steps = total + float(self.net.blobs["loss"].data), steps + 1
        return total / steps

    def scores(self, inputs):
        if self.judge is None:
            blobs = self.net.blobs
            shapes = blobs["input"].data.shape, blobs["labels"].data.shape
            self.judge = load_network(_describe(self.spec, *shapes)[0], caffe.TEST)
            self.judge.share_with(self.net)
        self.judge.blobs["input"].data[...] = self.layout.inputs(inputs)
        self.judge._forward(0, self.last)
        return np.array(self.judge.blobs[self.outputs].data)

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, self.homes[name].data) for name in names}

    @property
    def last(self):
        return len(self.net.layers) - 1


def _trained(net):
    """The parameters of a net, each once: those of one name are one, and a layer BatchNorm holds only statistics."""
    kinds = dict(zip(net._layer_names, [layer.type for layer in net.layers]))
    blobs = [blob for name, own in net.params.items() if kinds[name] != "BatchNorm" for blob in own]
    return list({blob.data.ctypes.data: blob for blob in blobs}.values())


def _describe(spec, input_shape, label_shape):
    """The network as Caffe's message NetParameter, with SGD's learning rate as the weight of the loss; its outputs."""
    net = caffe_pb2.NetParameter()
    shapes = {"input": input_shape, "labels": label_shape}
    for node in spec["nodes"]:
        if node["op"] == "lstm":
            shapes["continued"] = input_shape[:2]
        elif node["op"] in ("rnn", "gru"):
            shapes[layers.zero(node)] = input_shape[1], node["units"]
    for name, shape in shapes.items():
        add_layer(net, "Input", [], name).input_param.shape.add().dim.extend(shape)
    readers = [source for node in spec["nodes"] for source in node["inputs"]]
    blobs = {"input": "input"}
    for node in spec["nodes"]:
        sources = [blobs[source] for source in node["inputs"]]
        alone = readers.count(node["inputs"][0]) == 1 and sources[0] != "input"
        in_place = alone and node["op"] in ("relu", "sigmoid", "tanh")
        blobs[node["name"]] = sources[0] if in_place else node["name"]
        LAYERS[node["op"]](net, node, sources, blobs[node["name"]])
    outputs = blobs[node["name"]]
    loss = _DISTANCES[spec.get("loss", LOSSES[0])](net, outputs, node["shape"], label_shape)
    plain = spec["optimiser"]["name"] == "sgd"
    loss.loss_weight.append(spec["optimiser"]["learning_rate"] if plain else 1.0)
    return net, outputs


def _cross_entropy(net, outputs, shape, label_shape):
    loss = add_layer(net, "SoftmaxWithLoss", [outputs, "labels"], "loss")
    loss.softmax_param.axis = len(label_shape)
    return loss


def _mean_squares(net, outputs, shape, label_shape):
    """Caffe's own is half the sum of the squares of a sample."""
    add_layer(net, "EuclideanLoss", [outputs, "labels"], "halves").loss_weight.append(0.0)
    options = {"scale": 2.0 / np.prod(shape)}
    return add_layer(net, "Power", ["halves"], "loss", power_param=options)


def _binary_cross_entropy(net, outputs, shape, label_shape):
    options = {"normalization": caffe_pb2.LossParameter.FULL}
    sources = [outputs, "labels"]
    return add_layer(net, "SigmoidCrossEntropyLoss", sources, "loss", loss_param=options)


def _evidence_bound(net, outputs, shape, label_shape):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    (batch, decoded), (width,) = label_shape, shape
    code = (width - decoded) // 2
    pieces, points = ["decoded", "means", "spreads"], [decoded, decoded + code]
    add_layer(net, "Slice", [outputs], pieces, slice_param={"axis": 1, "slice_point": points})
    options = {"normalization": caffe_pb2.LossParameter.NONE}
    sources = ["decoded", "labels"]
    missed = add_layer(net, "SigmoidCrossEntropyLoss", sources, "missed", loss_param=options)
    missed.loss_weight.append(0.0)
    add_layer(net, "Exp", ["spreads"], "variances")
    sums, terms = caffe_pb2.ReductionParameter, ["missed"]
    for name, operation in (("means", sums.SUMSQ), ("variances", sums.SUM), ("spreads", sums.SUM)):
        terms.append("sum of " + name)
        add_layer(net, "Reduction", [name], terms[-1], reduction_param={"operation": operation})
    add_layer(net, "Eltwise", terms, "sum", eltwise_param={"coeff": [1.0, 0.5, 0.5, -0.5]})
    share = 1.0 / (batch * width)
    options = {"scale": share, "shift": -0.5 * batch * code * share}
    return add_layer(net, "Power", ["sum"], "loss", power_param=options)


def _mean_output(net, outputs, shape, label_shape):
    options = {"operation": caffe_pb2.ReductionParameter.MEAN}
    return add_layer(net, "Reduction", [outputs], "loss", reduction_param=options)


_DISTANCES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": _mean_squares,
    "binary_cross_entropy": _binary_cross_entropy,
    "evidence_bound": _evidence_bound,
    "adversarial": _binary_cross_entropy,
    "mean_output": _mean_output,
}


def _solver(net, spec):
    """Caffe's own solver; the bare net for rules that are written in NumPy."""
    wanted = spec["optimiser"]
    if wanted["name"] in updates.PLAIN:
        return load_network(net)
    asked = caffe_pb2.SolverParameter(base_lr=wanted["learning_rate"], lr_policy="fixed")
    asked.net_param.CopyFrom(net)
    if wanted["name"] == "adadelta":
        asked.type, asked.momentum, asked.delta = "AdaDelta", wanted["rho"], wanted["epsilon"]
    elif wanted["name"] == "rmsprop":
        asked.type, asked.rms_decay, asked.delta = "RMSProp", wanted["rho"], wanted["epsilon"]
    else:
        if "decay" in wanted or "after_epochs" in wanted:
            raise Unsupported(
                "Caffe's momentum keeps steps, in which the rate of each of them stays"
            )
        asked.type, asked.momentum = "SGD", wanted["momentum"]
    return _read(asked, caffe.get_solver)


def load_network(net, phase=caffe.TRAIN):
    return _read(net, caffe.Net, phase)


def _read(message, make, *arguments):
    """What Caffe makes of a message, which it takes from a file alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "message.prototxt")
        with open(path, "w") as file:
            file.write(str(message))
        return make(path, *arguments)


def _dense(net, node, sources, top):
    options = {
        "num_output": node["units"],
        "bias_term": node["bias"],
        "axis": len(node["in_shape"]),
    }
    add_layer(net, "InnerProduct", sources, top, node["name"], inner_product_param=options)


def _global_average_pool(net, node, sources, top):
    options = {"pool": caffe_pb2.PoolingParameter.AVE, "global_pooling": True}
    add_layer(net, "Pooling", sources, top + "/maps", pooling_param=options)
    add_layer(net, "Flatten", [top + "/maps"], top, node["name"])


def _batch_norm(net, node, sources, top):
    options = {"use_global_stats": False, "eps": specification.BATCH_NORM_EPSILON}
    add_layer(net, "BatchNorm", sources, top + "/normal", batch_norm_param=options)
    add_layer(
        net,
        "Scale",
        [top + "/normal"],
        top,
        node["name"] + "/scale",
        scale_param={"bias_term": True},
    )


def _embedding(net, node, sources, top):
    options = {"input_dim": node["vocabulary"], "num_output": node["units"], "bias_term": False}
    add_layer(net, "Embed", sources, top, node["name"], embed_param=options)


def _dropout(net, node, sources, top):
    add_layer(
        net, "Dropout", sources, top, node["name"], dropout_param={"dropout_ratio": node["rate"]}
    )


def _lstm(net, node, sources, top):
    options = {"num_output": node["units"]}
    add_layer(net, "LSTM", sources + ["continued"], top, node["name"], recurrent_param=options)


LAYERS = {
    "dense": _dense,
    "dense_within": _dense,
    "conv": layers.conv,
    "grouped_conv": layers.conv,
    "conv_transpose": layers.conv,
    "max_pool": layers.pool,
    "avg_pool": layers.pool,
    "adaptive_avg_pool": layers.adaptive_avg_pool,
    "global_average_pool": _global_average_pool,
    "flatten": layers.flatten,
    "batch_norm": _batch_norm,
    "group_norm": layers.group_norm,
    "local_response_norm": layers.local_response_norm,
    "relu": layers.plain("ReLU"),
    "sigmoid": layers.plain("Sigmoid"),
    "tanh": layers.plain("TanH"),
    "silu": layers.plain("Swish"),
    "dropout": _dropout,
    "add": layers.plain("Eltwise"),
    "concat": layers.plain("Concat"),
    "upsample": layers.upsample,
    "channel_shuffle": layers.channel_shuffle,
    "embedding": _embedding,
    "lstm": _lstm,
    "rnn": layers.rnn,
    "gru": layers.gru,
    "part": layers.part,
    "stack": layers.stack,
    "unstack": layers.unstack,
    "reversal": layers.reversal,
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
}
