"""Caffe 1.0: a net of its layers, run forward and backward by pycaffe, on a CPU."""

import os
import tempfile

import caffe
import numpy as np
from caffe.proto import caffe_pb2

from shared import specification

from ... import kernels

MODES = ("graph",)
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "lstm": "units first",
    "rnn": "units first",
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
_HOMES = {
    "batch_norm": {"gamma": ("/scale", 0), "beta": ("/scale", 1)},
    "lstm": {"input": ("", 0), "bias": ("", 1), "recurrent": ("", 2)},
    "rnn": {"input": ("", 0), "bias": ("", 1), "recurrent": ("/step0/product", 0)},
}


def versions():
    """Returns the versions of Caffe and of the BLAS that it has loaded."""
    return {"framework_version": caffe.__version__, "blas": kernels.describe_openblas()}


def build(job, make=None):
    """Returns a trainer of the specification, by `make` or this module's own; the BLAS reads its threads itself."""
    caffe.set_mode_cpu()
    caffe.set_random_seed(job.seed)
    return (make or Trainer)(job)


class Trainer(object):
    settings = {"update": "w -= g, with the learning rate as the weight of the loss"}

    def __init__(self, job):
        self.layout = job.layout
        net = _describe(job.spec, job.inputs.shape, job.labels.shape)
        self.net = self.load(net, job.learning_rate)
        self.net.blobs["input"].data[...] = job.inputs
        self.net.blobs["labels"].data[...] = job.labels
        if "continued" in self.net.blobs:
            self.net.blobs["continued"].data[0] = 0
            self.net.blobs["continued"].data[1:] = 1
        self.homes = {}
        for node in job.spec["nodes"]:
            for role, name in job.own(node).items():
                ending, place = _HOMES.get(node["op"], _WEIGHTED)[role]
                self.homes[name] = self.net.params[node["name"] + ending][place]
                self.homes[name].data.flat = job.take(name)
        trained = _trained(self.net)
        self.pairs = [(blob.data, blob.diff) for blob in trained]
        self.parameters = sum(blob.count for blob in trained)
        self.threads = kernels.count_threads()

    def load(self, net, rate):
        """Loads a net from a message, with SGD's learning rate as the weight of its loss."""
        net.layer[-1].loss_weight.append(rate)
        return load_network(net)

    def run(self, steps):
        last = len(self.net.layers) - 1
        for _ in range(steps):
            self.net.clear_param_diffs()
            self.net._forward(0, last)
            self.net._backward(last, 0)
            for value, gradient in self.pairs:
                np.subtract(value, gradient, out=value)
        return float(self.net.blobs["loss"].data)

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, self.homes[name].data) for name in names}


def _trained(net):
    """Returns a net's parameters, each once: equal names mean one, and a layer BatchNorm holds only statistics."""
    kinds = dict(zip(net._layer_names, [layer.type for layer in net.layers]))
    blobs = [blob for name, own in net.params.items() if kinds[name] != "BatchNorm" for blob in own]
    return list({blob.data.ctypes.data: blob for blob in blobs}.values())


def _describe(spec, input_shape, label_shape):
    """Returns the network as Caffe's message NetParameter."""
    net = caffe_pb2.NetParameter()
    shapes = {"input": input_shape, "labels": label_shape}
    for node in spec["nodes"]:
        if node["op"] == "lstm":
            shapes["continued"] = input_shape[:2]
        elif node["op"] == "rnn":
            shapes[_zero(node)] = input_shape[1], node["units"]
    for name, shape in shapes.items():
        add_layer(net, "Input", [], name).input_param.shape.add().dim.extend(shape)
    readers = [source for node in spec["nodes"] for source in node["inputs"]]
    blobs = {"input": "input"}
    for node in spec["nodes"]:
        sources = [blobs[source] for source in node["inputs"]]
        alone = readers.count(node["inputs"][0]) == 1 and sources[0] != "input"
        in_place = alone and node["op"] in ("relu", "sigmoid")
        blobs[node["name"]] = sources[0] if in_place else node["name"]
        LAYERS[node["op"]](net, node, sources, blobs[node["name"]])
    loss = add_layer(net, "SoftmaxWithLoss", [blobs[node["name"]], "labels"], "loss")
    loss.softmax_param.axis = len(label_shape)
    return net


def load_network(net):
    """Loads a net from a message, which Caffe only reads from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.prototxt")
        with open(path, "w") as file:
            file.write(str(net))
        return caffe.Net(path, caffe.TRAIN)


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


def _lstm(net, node, sources, top):
    options = {"num_output": node["units"]}
    add_layer(net, "LSTM", sources + ["continued"], top, node["name"], recurrent_param=options)


def add_layer(net, kind, bottoms, top, name=None, **options):
    """Adds a layer; `options` are the fields of its own message, such as inner_product_param, as a dict."""
    tops = top if isinstance(top, list) else [top]
    layer = net.layer.add(type=kind, name=name or tops[0], bottom=bottoms, top=tops)
    for message, values in options.items():
        for key, value in values.items():
            if isinstance(value, list):
                getattr(getattr(layer, message), key).extend(value)
            else:
                setattr(getattr(layer, message), key, value)
    return layer


def _plain(kind):
    """Returns what adds a layer without options."""
    return lambda net, node, sources, top: add_layer(net, kind, sources, top, node["name"])


def _flatten(net, node, sources, top):
    """Adds a Reshape: Caffe's own Flatten moves its input's gradient to other memory, unseen by a Reshape before it."""
    _reshaped(net, sources[0], top, [0, -1])


def _reshaped(net, source, top, shape):
    add_layer(net, "Reshape", [source], top).reshape_param.shape.dim.extend(shape)
    return top


def _pieces(net, source, top, count, axis):
    """Cuts a blob into `count` pieces of the same size; returns the blob itself for one."""
    if count == 1:
        return [source]
    tops = ["{}/{}".format(top, at) for at in range(count)]
    add_layer(net, "Slice", [source], tops, slice_param={"axis": axis})
    return tops


def _conv(net, node, sources, top):
    """Adds a convolution, in groups if it has them."""
    window = {"kernel_size": [node["kernel"]], "stride": [node["stride"]], "pad": [node["padding"]]}
    options = dict(window, num_output=node["channels"], bias_term=node["bias"])
    options["group"] = node.get("groups", 1)
    add_layer(net, "Convolution", sources, top, node["name"], convolution_param=options)


def _pool(net, node, sources, top):
    """Adds a pool: the largest value of a window, or its mean, in which padding counts."""
    methods = {
        "max_pool": caffe_pb2.PoolingParameter.MAX,
        "avg_pool": caffe_pb2.PoolingParameter.AVE,
    }
    window = {"kernel_size": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    # Caffe's own way is to round up, and to look at a part of a window at the edge.
    rounded = caffe_pb2.PoolingParameter.FLOOR
    options = dict(window, pool=methods[node["op"]], round_mode=rounded)
    add_layer(net, "Pooling", sources, top, node["name"], pooling_param=options)


def _dropout(net, node, sources, top):
    options = {"dropout_ratio": node["rate"]}
    add_layer(net, "Dropout", sources, top, node["name"], dropout_param=options)


def _local_response_norm(net, node, sources, top):
    """Adds Caffe's own layer, in whose terms the specification is written."""
    options = {"local_size": node["size"], "alpha": 1.0 / node["inverse_alpha"], "beta": 0.75}
    add_layer(net, "LRN", sources, top, node["name"], lrn_param=options)


def _channel_shuffle(net, node, sources, top):
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = [
        _reshaped(net, part, part + "/apart", [0, channels // groups, 1, height * width])
        for part in _pieces(net, sources[0], top + "/group", groups, 1)
    ]
    add_layer(net, "Concat", parts, top + "/turns", concat_param={"axis": 2})
    _reshaped(net, top + "/turns", top, [0, channels, height, width])


def _rnn(net, node, sources, top):
    """Adds one product of all steps' inputs, then layers for each step, as Caffe's own recurrent layers do inside."""
    options = {"num_output": node["units"], "axis": 2}
    add_layer(net, "InnerProduct", sources, top + "/all", node["name"], inner_product_param=options)
    count = node["in_shape"][0]
    outputs = []
    given = _pieces(net, top + "/all", top + "/given", count, 0)
    before = _zero(node)
    for at in range(count):
        rows = _reshaped(net, given[at], given[at] + "/rows", [-1, node["units"]])
        name = "{}/step{}".format(node["name"], at)
        inner = _recurrent(net, node, before, name + "/product")
        add_layer(net, "Eltwise", [rows, inner], name + "/sum")
        add_layer(net, "TanH", [name + "/sum"], name)
        before = name
        outputs.append(_reshaped(net, name, name + "/row", [1, -1, node["units"]]))
    add_layer(net, "Concat", outputs, top, top + "/steps", concat_param={"axis": 0})


def _recurrent(net, node, output, name):
    """Adds the product of the last step's output by a weight that all steps share by its name."""
    options = {"num_output": node["units"], "bias_term": False}
    layer = add_layer(net, "InnerProduct", [output], name, inner_product_param=options)
    shared = caffe_pb2.ParamSpec.PERMISSIVE
    layer.param.add(name=node["name"] + "/recurrent", share_mode=shared)
    return name


def _zero(node):
    """Returns an input of the net for the output before the first step."""
    return "zero/{}".format(node["units"])


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "grouped_conv": _conv,
    "max_pool": _pool,
    "avg_pool": _pool,
    "global_average_pool": _global_average_pool,
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": _plain("ReLU"),
    "dropout": _dropout,
    "sigmoid": _plain("Sigmoid"),
    "add": _plain("Eltwise"),
    "concat": _plain("Concat"),
    "channel_shuffle": _channel_shuffle,
    "embedding": _embedding,
    "lstm": _lstm,
    "rnn": _rnn,
}
