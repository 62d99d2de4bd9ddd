"""Caffe2: a net of operators on named blobs, with Caffe2's own gradients, run by its own executor."""

import logging

import numpy as np
import torch
from caffe2.python import brew, core, model_helper, recurrent, rnn_cell, workspace

from shared import specification

from . import layers

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
# The first bias of a recurrent layer is added to the product with its input. The second, which is redundant, stays at
# zero.
_SPARE = "/gates_t_b"
_UNROLLED = ("lstm", "rnn")


def versions():
    """The version of PyTorch that Caffe2 came with: it has had none of its own since 2018."""
    lines = [line.strip(" -") for line in torch.__config__.show().splitlines()]
    return {
        "framework_version": torch.__version__,
        "blas": "; ".join(line for line in lines if "Math Kernel" in line or "MKL-DNN" in line),
    }


def build(job):
    """A trainer of the specification, whose blobs take the place of all that the process had."""
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
    """Adds SGD's update, as `caffe2.python.optimizer` does, less its counter of iterations."""
    if isinstance(gradient, core.GradientSlice):
        terms = [blob, "one", gradient.indices, gradient.values, "minus_rate"]
        net.ScatterWeightedSum(terms, blob)
    else:
        net.WeightedSum([blob, "one", gradient, "minus_rate"], blob)


def _leave_out_unread(net):
    """Takes gradients of the data out of products and convolutions, which make what is asked for alone."""
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
    start = layers.constant(name + "/start", np.zeros((1, node["batch"], node["units"])))
    sizes = (node["in_shape"][-1], node["units"])
    options = {"scope": name, "outputs_with_grads": (0,)}
    return rnn_cell.LSTM(model, value, None, (start,) * 2, *sizes, **options)[0]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "grouped_conv": layers.conv,
    "max_pool": layers.max_pool,
    "avg_pool": layers.avg_pool,
    "global_average_pool": layers.global_average_pool,
    "flatten": layers.plain("Flatten"),
    "channel_shuffle": layers.channel_shuffle,
    "batch_norm": _batch_norm,
    "local_response_norm": layers.local_response_norm,
    "relu": layers.plain("Relu"),
    "sigmoid": layers.plain("Sigmoid"),
    "add": lambda model, node, left, right: brew.sum(model, [left, right], node["name"]),
    "concat": layers.concat,
    "embedding": lambda model, node, value: model.net.Gather(
        [layers.own(node, "weight"), value], node["name"]
    ),
    "lstm": _lstm,
    "rnn": layers.rnn,
}
