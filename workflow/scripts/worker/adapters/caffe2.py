"""Caffe2: a net of operators on named blobs, with Caffe2's own gradients, run by its own executor.

What was chosen here: docs/adapters/caffe2.md.
"""

import logging

import numpy as np
import torch
from caffe2.python import brew, core, model_helper, recurrent, rnn_cell, workspace

from .. import specification
from ..contract import Unsupported

MODES = ("graph",)
OPTIMISERS = ("sgd", "adadelta")
TASKS = ("step", "training")
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "lstm": "units first",
    "gates": "ifog",
}
KERNELS = "mkl"
REASONS = {
    "gpu": "the Caffe2 adapter speaks to CPUs only",
    "rmsprop": "the epsilon of Caffe2's RmsProp stands inside of the root, which is another rule",
}

# What Caffe2 appends to a layer's name to name the blobs of its parameters.
_HOMES = {
    "dense": {"weight": "_w", "bias": "_b"},
    "conv": {"weight": "_w", "bias": "_b"},
    "batch_norm": {"gamma": "_s", "beta": "_b"},
    "embedding": {"weight": "_w"},
    "lstm": {"input": "/i2h_w", "recurrent": "/gates_t_w", "bias": "/i2h_b"},
}
# The first bias of an LSTM is added to the product with its input. The second, which is redundant, stays at zero.
_SPARE = "/gates_t_b"


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
    model = _model("network")
    workspace.FeedBlob("input", job.inputs)
    workspace.FeedBlob("labels", job.labels)
    scores = _add_network(model, job.spec["nodes"], job.labels.shape, job.seed)
    _, loss = model.net.SoftmaxWithLoss(
        [scores, "labels"], ["probabilities", "loss"], axis=len(job.labels.shape)
    )
    return _Trainer(model, loss, job)


def _model(name):
    """An empty one, without start values of its own: of a hundred million those take seconds."""
    return model_helper.ModelHelper(name=name, arg_scope={"order": "NCHW"}, init_params=False)


class _Trainer(object):
    def __init__(self, model, loss, job):
        self.threads, self._loss, self._net, self._layout = job.threads, loss, model.net, job.layout
        self.settings, self._nodes, self._judge = {"net": "simple"}, job.spec["nodes"], None
        self._labels_shape = job.labels.shape
        self._homes = {
            name: node["name"] + _HOMES[node["op"]][role]
            for node in job.spec["nodes"]
            for role, name in job.own(node).items()
        }
        gradients = model.AddGradientOperators([loss])
        self._averages = _add_updates(
            model.net, gradients, self._homes.values(), job.spec["optimiser"]
        )
        for operator in model.net.Proto().op:
            # Its executor would start a thread for each core and more.
            if operator.type.startswith("RecurrentNetwork"):
                recurrent.set_rnn_executor_config(operator, num_threads=job.threads)
        # One operator after the other: each has all threads.
        model.net.Proto().type = "simple"
        workspace.RunNetOnce(model.param_init_net)
        workspace.FeedBlob("one", np.ones(1, np.float32))
        self._set_rate(job.learning_rate)
        for name, blob in self._homes.items():
            workspace.FeedBlob(blob, np.ascontiguousarray(job.take(name)))
        for average, blob in self._averages:
            workspace.FeedBlob(average, np.zeros_like(workspace.FetchBlob(blob)))
        spare = [node["name"] + _SPARE for node in job.spec["nodes"] if node["op"] == "lstm"]
        for blob in spare:
            workspace.FeedBlob(blob, np.zeros_like(workspace.FetchBlob(blob)))
        workspace.CreateNet(model.net)
        self.parameters = sum(workspace.FetchBlob(blob).size for blob in self._homes.values())
        self.frozen_parameters = sum(workspace.FetchBlob(blob).size for blob in spare)

    def run(self, steps):
        workspace.RunNet(self._net, steps)
        return float(workspace.FetchBlob(self._loss))

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            workspace.FeedBlob("input", self._layout.inputs(inputs))
            workspace.FeedBlob("labels", self._layout.labels(labels))
            self._set_rate(rate)
            total, steps = total + self.run(1), steps + 1
        return total / steps

    def scores(self, inputs):
        if self._judge is None:
            self._judge = _model("judge")
            self._scores = _add_network(self._judge, self._nodes, self._labels_shape)
            workspace.CreateNet(self._judge.net)
        workspace.FeedBlob("input", self._layout.inputs(inputs))
        workspace.RunNet(self._judge.net)
        return workspace.FetchBlob(self._scores)

    def _set_rate(self, rate):
        workspace.FeedBlob("minus_rate", np.full(1, -rate, np.float32))

    def weights(self, names=None):
        wanted = self._homes if names is None else names
        return {
            name: self._layout.leave(name, workspace.FetchBlob(self._homes[name]))
            for name in wanted
        }


def _add_network(model, nodes, labels_shape, seed=None):
    """Adds the layers, and returns the blob of the scores; without a seed for its dropout, there is none."""
    values = {"input": "input"}
    for node in nodes:
        if node["op"] == "lstm":
            start = np.zeros((1, labels_shape[1], node["units"]), np.float32)
            workspace.FeedBlob(node["name"] + "/start", start)
        value, more = values[node["inputs"][0]], [values[name] for name in node["inputs"][1:]]
        if node["op"] != "dropout":
            value = LAYERS[node["op"]](model, node, value, *more)
        elif seed is not None:
            # Layers of one seed would drop the same values.
            value = LAYERS[node["op"]](model, node, value, seed + len(values))
        values[node["name"]] = value
    return values[nodes[-1]["name"]]


def _add_updates(net, gradients, blobs, wanted):
    """Adds the optimiser's operators, as `caffe2.python.optimizer` does, less its counter of iterations.

    Returns the blobs of its averages, each with that of its parameter.
    """
    averages = []
    for blob in blobs:
        gradient = gradients[blob]
        if wanted["name"] == "adadelta":
            own = [blob + "_squares", blob + "_steps"]
            averages += [(name, blob) for name in own]
            rule = {"decay": wanted["rho"], "epsilon": wanted["epsilon"]}
            net.Adadelta([blob] + own + [gradient, "minus_rate"], [blob] + own, **rule)
        elif isinstance(gradient, core.GradientSlice):
            net.ScatterWeightedSum(
                [blob, "one", gradient.indices, gradient.values, "minus_rate"], blob
            )
        else:
            net.WeightedSum([blob, "one", gradient, "minus_rate"], blob)
    return averages


def _dense(model, node, value):
    if not node["bias"]:
        raise Unsupported("Caffe2's dense layer has a bias that cannot be left out")
    sizes = (node["in_shape"][-1], node["units"])
    return brew.fc(model, value, node["name"], *sizes, axis=len(node["in_shape"]))


def _conv(model, node, value):
    sizes = (node["in_shape"][0], node["channels"], node["kernel"])
    where = {"stride": node["stride"], "pad": node["padding"]}
    return brew.conv(model, value, node["name"], *sizes, no_bias=not node["bias"], **where)


def _max_pool(model, node, value):
    where = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    return brew.max_pool(model, value, node["name"], **where)


def _batch_norm(model, node, value):
    name, channels = node["name"], node["in_shape"][0]
    workspace.FeedBlob(name + "_rm", np.zeros(channels, np.float32))
    workspace.FeedBlob(name + "_riv", np.ones(channels, np.float32))
    return brew.spatial_bn(
        model, value, name, channels, epsilon=specification.BATCH_NORM_EPSILON, is_test=False
    )


def _dropout(model, node, value, seed):
    name = node["name"]
    kept = {"ratio": node["rate"], "is_test": 0, "random_seed": seed}
    return model.net.Dropout(value, [name, name + "_mask"], **kept)[0]


def _lstm(model, node, value):
    name, start = node["name"], (node["name"] + "/start",) * 2
    sizes = (node["in_shape"][-1], node["units"])
    return rnn_cell.LSTM(model, value, None, start, *sizes, scope=name, outputs_with_grads=(0,))[0]


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda model, node, value: brew.average_pool(
        model, value, node["name"], global_pooling=True
    ),
    # A dense layer flattens what it is given, in the specification's order.
    "flatten": lambda model, node, value: value,
    "batch_norm": _batch_norm,
    "relu": lambda model, node, value: brew.relu(model, value, node["name"]),
    "dropout": _dropout,
    "sigmoid": lambda model, node, value: model.net.Sigmoid(value, node["name"]),
    "add": lambda model, node, left, right: brew.sum(model, [left, right], node["name"]),
    "embedding": lambda model, node, value: model.net.Gather(
        [node["name"] + "_w", value], node["name"]
    ),
    "lstm": _lstm,
}
