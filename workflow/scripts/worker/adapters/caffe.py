"""Caffe 1.0: a net of its layers, run forward and backward by pycaffe, on a CPU; its solvers where it is not SGD.

What was chosen here, and by which measured ratios: docs/adapters/caffe.md.
"""

import os
import tempfile

import caffe
import numpy as np
from caffe.proto import caffe_pb2

from .. import kernels, specification

MODES = ("graph",)
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
TASKS = ("step", "training")
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "lstm": "units first",
    "gates": "ifog",
}
KERNELS = "openblas:libblas.so.3"
REASONS = {"gpu": "this package of Caffe is built without CUDA"}

# Where a parameter of the specification lives: the ending of the layer's name and the place among the layer's blobs.
_HOMES = {
    "dense": {"weight": ("", 0), "bias": ("", 1)},
    "conv": {"weight": ("", 0), "bias": ("", 1)},
    "batch_norm": {"gamma": ("/scale", 0), "beta": ("/scale", 1)},
    "embedding": {"weight": ("", 0)},
    "lstm": {"input": ("", 0), "bias": ("", 1), "recurrent": ("", 2)},
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
        self.solver = _solver(_describe(job.spec, job.inputs.shape, job.labels.shape), job.spec)
        self.net = getattr(self.solver, "net", self.solver)
        self.plain, self.judge = self.net is self.solver, None
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
                self.homes[name].data[...] = job.take(name)
        # A layer BatchNorm holds only statistics.
        kinds = dict(zip(self.net._layer_names, [layer.type for layer in self.net.layers]))
        trained = [
            blob
            for name, own in self.net.params.items()
            if kinds[name] != "BatchNorm"
            for blob in own
        ]
        self.updates = [(blob.data, blob.diff) for blob in trained]
        self.parameters = sum(blob.count for blob in trained)
        self.threads = kernels.count_threads()
        self.settings = {
            "update": "w -= g, with the learning rate as the weight of the loss"
            if self.plain
            else "Caffe's own solver",
        }

    def run(self, steps):
        for _ in range(steps):
            self.step()
        return float(self.net.blobs["loss"].data)

    def step(self):
        self.net.clear_param_diffs()
        self.net._forward(0, self.last)
        self.net._backward(self.last, 0)
        if not self.plain:
            self.solver.apply_update()
            return
        for value, gradient in self.updates:
            np.subtract(value, gradient, out=value)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self.net.blobs["input"].data[...] = self.layout.inputs(inputs)
            self.net.blobs["labels"].data[...] = self.layout.labels(labels)
            if self.plain:
                self.net.blobs["loss"].diff[...] = rate
            else:
                self.solver.param.base_lr = rate
            self.step()
            total, steps = total + float(self.net.blobs["loss"].data), steps + 1
        return total / steps

    def scores(self, inputs):
        if self.judge is None:
            blobs = self.net.blobs
            shapes = blobs["input"].data.shape, blobs["labels"].data.shape
            self.judge = load_network(_describe(self.spec, *shapes), caffe.TEST)
            self.judge.share_with(self.net)
        self.judge.blobs["input"].data[...] = self.layout.inputs(inputs)
        self.judge._forward(0, self.last)
        return np.array(self.judge.blobs[self.judge.bottom_names["loss"][0]].data)

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, self.homes[name].data) for name in names}

    @property
    def last(self):
        return len(self.net.layers) - 1


def _describe(spec, input_shape, label_shape):
    """The network as Caffe's message NetParameter, with SGD's learning rate as the weight of the loss."""
    net = caffe_pb2.NetParameter()
    add_layer(net, "Input", [], "input").input_param.shape.add().dim.extend(input_shape)
    add_layer(net, "Input", [], "labels").input_param.shape.add().dim.extend(label_shape)
    if any(node["op"] == "lstm" for node in spec["nodes"]):
        add_layer(net, "Input", [], "continued").input_param.shape.add().dim.extend(input_shape[:2])
    readers = [source for node in spec["nodes"] for source in node["inputs"]]
    blobs = {"input": "input"}
    for node in spec["nodes"]:
        sources = [blobs[source] for source in node["inputs"]]
        in_place = readers.count(node["inputs"][0]) == 1 and node["op"] in ("relu", "sigmoid")
        blobs[node["name"]] = sources[0] if in_place else node["name"]
        LAYERS[node["op"]](net, node, sources, blobs[node["name"]])
    loss = add_layer(net, "SoftmaxWithLoss", [blobs[node["name"]], "labels"], "loss")
    loss.softmax_param.axis = len(label_shape)
    plain = spec["optimiser"]["name"] == "sgd"
    loss.loss_weight.append(spec["optimiser"]["learning_rate"] if plain else 1.0)
    return net


def _solver(net, spec):
    """Caffe's own solver; the bare net for SGD, whose gradients come out as its steps."""
    wanted = spec["optimiser"]
    if wanted["name"] == "sgd":
        return load_network(net)
    asked = caffe_pb2.SolverParameter(
        base_lr=wanted["learning_rate"], lr_policy="fixed", delta=wanted["epsilon"]
    )
    asked.net_param.CopyFrom(net)
    if wanted["name"] == "adadelta":
        asked.type, asked.momentum = "AdaDelta", wanted["rho"]
    else:
        asked.type, asked.rms_decay = "RMSProp", wanted["rho"]
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


def add_layer(net, kind, bottoms, top, name=None, **options):
    """Adds a layer; `options` are its own message's, such as inner_product_param, as a dict."""
    layer = net.layer.add(type=kind, name=name or top, bottom=bottoms, top=[top])
    for message, values in options.items():
        for key, value in values.items():
            if isinstance(value, list):
                getattr(getattr(layer, message), key).extend(value)
            else:
                setattr(getattr(layer, message), key, value)
    return layer


def _dense(net, node, sources, top):
    options = {
        "num_output": node["units"],
        "bias_term": node["bias"],
        "axis": len(node["in_shape"]),
    }
    add_layer(net, "InnerProduct", sources, top, node["name"], inner_product_param=options)


def _conv(net, node, sources, top):
    window = {"kernel_size": [node["kernel"]], "stride": [node["stride"]], "pad": [node["padding"]]}
    options = dict(window, num_output=node["channels"], bias_term=node["bias"])
    add_layer(net, "Convolution", sources, top, node["name"], convolution_param=options)


def _max_pool(net, node, sources, top):
    window = {"kernel_size": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    # Caffe's own way is to round up, and to look at a part of a window at the edge.
    options = dict(
        window, pool=caffe_pb2.PoolingParameter.MAX, round_mode=caffe_pb2.PoolingParameter.FLOOR
    )
    add_layer(net, "Pooling", sources, top, node["name"], pooling_param=options)


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
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda net, node, sources, top: add_layer(
        net, "Flatten", sources, top, node["name"]
    ),
    "batch_norm": _batch_norm,
    "relu": lambda net, node, sources, top: add_layer(net, "ReLU", sources, top, node["name"]),
    "dropout": _dropout,
    "sigmoid": lambda net, node, sources, top: add_layer(
        net, "Sigmoid", sources, top, node["name"]
    ),
    "add": lambda net, node, sources, top: add_layer(net, "Eltwise", sources, top, node["name"]),
    "embedding": _embedding,
    "lstm": _lstm,
}
