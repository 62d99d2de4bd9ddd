"""Caffe2: a net of operators on named blobs, with Caffe2's own gradients, run by its own executor."""

import logging

import numpy as np
import torch
from caffe2.python import brew, core, model_helper, recurrent, rnn_cell, workspace

from shared import specification

MODES = ("graph",)
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "lstm": "units first",
    "rnn": "units first",
    "gates": "ifog",
}
KERNELS = "mkl"
REASONS = {"gpu": "the Caffe2 adapter speaks to CPUs only"}

# What Caffe2 appends to a layer's name to name the blobs of its parameters, where it names them itself.
_WEIGHTED = {"weight": "_w", "bias": "_b"}
_RECURRENT = {"input": "/i2h_w", "recurrent": "/gates_t_w", "bias": "/i2h_b"}
_HOMES = {
    "dense": _WEIGHTED,
    "conv": _WEIGHTED,
    "batch_norm": {"gamma": "_s", "beta": "_b"},
    "lstm": _RECURRENT,
    "rnn": _RECURRENT,
}
# The first bias of a recurrent layer is added to the product with its input. The second, redundant one stays at zero.
_SPARE = "/gates_t_b"
_UNROLLED = ("lstm", "rnn")


def versions():
    """Returns the version of PyTorch that Caffe2 came with: since 2018, Caffe2 has had none of its own."""
    lines = [line.strip(" -") for line in torch.__config__.show().splitlines()]
    return {
        "framework_version": torch.__version__,
        "blas": "; ".join(line for line in lines if "Math Kernel" in line or "MKL-DNN" in line),
    }


def build(job):
    """Returns a trainer of the specification, whose blobs replace all others of the process."""
    logging.getLogger("caffe2").setLevel(logging.ERROR)
    workspace.GlobalInit(
        ["caffe2", "--caffe2_log_level=2", "--caffe2_omp_num_threads={}".format(job.threads)]
    )
    workspace.ResetWorkspace()
    # Without start values of its own: of a hundred million those take seconds.
    model = model_helper.ModelHelper(name="network", arg_scope={"order": "NCHW"}, init_params=False)
    workspace.FeedBlob("input", job.inputs)
    workspace.FeedBlob("labels", job.labels)
    kind, shape = job.spec["input"]["kind"], job.inputs.shape
    # Sequences have their steps first.
    batch = shape[0 if kind in ("dense", "image") else 1]
    scores = _add_network(model, job.spec["nodes"], batch)
    axis = len(job.labels.shape)
    loss = model.net.SoftmaxWithLoss([scores, "labels"], ["probabilities", "loss"], axis=axis)[1]
    return _Trainer(model, loss, job)


class _Trainer(object):
    def __init__(self, model, loss, job):
        self.threads, self._loss, self._net, self._layout = job.threads, loss, model.net, job.layout
        self.settings = {"net": "simple"}
        self._homes = {
            name: node["name"] + _HOMES.get(node["op"], {}).get(role, "/" + role)
            for node in job.spec["nodes"]
            for role, name in job.own(node).items()
        }
        workspace.RunNetOnce(model.param_init_net)
        for name, blob in self._homes.items():
            workspace.FeedBlob(blob, np.ascontiguousarray(job.take(name)))
        gradients = model.AddGradientOperators([loss])
        workspace.FeedBlob("one", np.ones(1, np.float32))
        workspace.FeedBlob("minus_rate", np.full(1, -job.learning_rate, np.float32))
        for blob in self._homes.values():
            _descend(model.net, blob, gradients[blob])
        _leave_out_unread(model.net.Proto())
        spare = [node["name"] + _SPARE for node in job.spec["nodes"] if node["op"] in _UNROLLED]
        for blob in spare:
            workspace.FeedBlob(blob, np.zeros_like(workspace.FetchBlob(blob)))
        for operator in model.net.Proto().op:
            # Its executor would start a thread for each core and more.
            if operator.type.startswith("RecurrentNetwork"):
                recurrent.set_rnn_executor_config(operator, num_threads=job.threads)
        # One operator after the other: each has all threads.
        model.net.Proto().type = "simple"
        workspace.CreateNet(model.net)
        self.parameters = sum(workspace.FetchBlob(blob).size for blob in self._homes.values())
        self.frozen_parameters = sum(workspace.FetchBlob(blob).size for blob in spare)

    def run(self, steps):
        workspace.RunNet(self._net, steps)
        return float(workspace.FetchBlob(self._loss))

    def weights(self, names=None):
        wanted = self._homes if names is None else names
        return {
            name: self._layout.leave(name, workspace.FetchBlob(self._homes[name]))
            for name in wanted
        }


def _add_network(model, nodes, batch):
    """Adds the layers, and returns the blob of the scores."""
    values, repeating = {"input": "input"}, specification.repeating(nodes)
    for node in nodes:
        node = dict(node, batch=batch, repeats=node["inputs"][0] in repeating)
        sources = [values[name] for name in node["inputs"]]
        values[node["name"]] = LAYERS[node["op"]](model, node, *sources)
    return values[nodes[-1]["name"]]


def _descend(net, blob, gradient):
    """Adds SGD's update, as `caffe2.python.optimizer` does, but without its counter of iterations."""
    if isinstance(gradient, core.GradientSlice):
        terms = [blob, "one", gradient.indices, gradient.values, "minus_rate"]
        net.ScatterWeightedSum(terms, blob)
    else:
        net.WeightedSum([blob, "one", gradient, "minus_rate"], blob)


def _leave_out_unread(net):
    """Removes gradients of the data from products and convolutions, which only compute what is asked for."""
    read = {blob for operator in net.op for blob in operator.input}
    for operator in net.op:
        if operator.type in ("FCGradient", "ConvGradient") and operator.output[-1] not in read:
            del operator.output[-1]


def _dense(model, node, value):
    axis = len(node["in_shape"])
    sizes = (node["in_shape"][-1], node["units"])
    return brew.fc(model, value, node["name"], *sizes, axis=axis)


def _conv(model, node, value):
    sizes = (node["in_shape"][0], node["channels"], node["kernel"])
    where = {"stride": node["stride"], "pad": node["padding"]}
    return brew.conv(model, value, node["name"], *sizes, no_bias=not node["bias"], **where)


def _batch_norm(model, node, value):
    name, channels = node["name"], node["in_shape"][0]
    workspace.FeedBlob(name + "_rm", np.zeros(channels, np.float32))
    workspace.FeedBlob(name + "_riv", np.ones(channels, np.float32))
    return brew.spatial_bn(
        model, value, name, channels, epsilon=specification.BATCH_NORM_EPSILON, is_test=False
    )


def _lstm(model, node, value):
    name = node["name"]
    start = _constant(name + "/start", np.zeros((1, node["batch"], node["units"])))
    sizes = (node["in_shape"][-1], node["units"])
    options = {"scope": name, "outputs_with_grads": (0,)}
    return rnn_cell.LSTM(model, value, None, (start,) * 2, *sizes, **options)[0]


def _own(node, role):
    """Returns the blob of a layer's parameter."""
    return "{}/{}".format(node["name"], role)


def _constant(name, values):
    """Returns a blob that no step changes."""
    workspace.FeedBlob(name, np.ascontiguousarray(values, np.float32))
    return name


def _plain(kind, **options):
    """Returns what makes a layer of one operator without parameters."""
    return lambda model, node, value: getattr(model.net, kind)(value, node["name"], **options)


def _grouped_conv(model, node, value):
    """Returns a convolution in groups."""
    window = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    blobs = [value, _own(node, "weight")] + ([_own(node, "bias")] if node["bias"] else [])
    return model.net.Conv(blobs, node["name"], group=node["groups"], order="NCHW", **window)


def _max_pool(model, node, value):
    """Adds a max pool; where pixels repeat, ATen's, since Caffe2's own gives the gradient to each of equal maxima."""
    size, stride, pad = node["kernel"], node["stride"], node["padding"]
    if not node["repeats"]:
        window = {"kernel": size, "stride": stride, "pad": pad}
        return model.net.MaxPool(value, node["name"], order="NCHW", **window)
    window = {"kernel_size": [size] * 2, "stride": [stride] * 2, "padding": [pad] * 2}
    options = dict(window, dilation=[1, 1], ceil_mode=0, operator="max_pool2d_with_indices")
    return model.net.ATen(value, [node["name"], node["name"] + "/places"], **options)[0]


@core.GradientRegistry.RegisterGradient("ATen")
def _to_one(pool, flowing):
    """Adds the gradient of ATen's pool, for which Caffe2 has operators and no rule."""
    (value,), (_, places) = pool.input, pool.output
    window = [arg for arg in pool.arg if arg.name != "operator"]
    sources, made = [flowing[0], value, places], value + "_grad"
    back = "max_pool2d_with_indices_backward"
    return core.CreateOperator("ATen", sources, [made], arg=window, operator=back), [made]


def _avg_pool(model, node, value):
    """Adds an average pool in which padding counts."""
    window = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    return model.net.AveragePool(value, node["name"], count_include_pad=1, order="NCHW", **window)


def _global_average_pool(model, node, value):
    """Adds an average pool of whole maps: one number a channel."""
    name = node["name"]
    value = model.net.AveragePool(value, name + "/maps", global_pooling=True, order="NCHW")
    return model.net.Squeeze(value, name, dims=[2, 3])


def _local_response_norm(model, node, value):
    """Adds Caffe2's own layer, which divides its alpha by the number of neighbours, as Caffe does."""
    rule = {"size": node["size"], "alpha": 1.0 / node["inverse_alpha"], "beta": 0.75, "bias": 1.0}
    name = node["name"]
    return model.net.LRN(value, [name, name + "/scale"], order="NCHW", **rule)[0]


def _concat(model, node, *values):
    name = node["name"]
    return model.net.Concat(list(values), [name, name + "/sizes"], axis=1)[0]


def _channel_shuffle(model, node, value):
    """Adds Caffe2's own layer."""
    return model.net.ChannelShuffle(value, node["name"], group=node["groups"], order="NCHW")


def _rnn(model, node, value):
    """Adds Caffe2's own layer, which multiplies the inputs of all steps at once."""
    name, units = node["name"], node["units"]
    start = _constant(name + "/start", np.zeros((1, node["batch"], units)))
    sizes, cell = (node["in_shape"][-1], units), rnn_cell.BasicRNNCell
    options = {"activation": "tanh", "scope": name, "outputs_with_grads": (0,)}
    return rnn_cell._LSTM(cell, model, value, None, (start,), *sizes, **options)[0]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "grouped_conv": _grouped_conv,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_average_pool": _global_average_pool,
    "flatten": _plain("Flatten"),
    "channel_shuffle": _channel_shuffle,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": _plain("Relu"),
    "sigmoid": _plain("Sigmoid"),
    "add": lambda model, node, left, right: brew.sum(model, [left, right], node["name"]),
    "concat": _concat,
    "embedding": lambda model, node, value: model.net.Gather(
        [_own(node, "weight"), value], node["name"]
    ),
    "lstm": _lstm,
    "rnn": _rnn,
}
