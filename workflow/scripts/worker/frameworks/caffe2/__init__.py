"""Caffe2: a net of operators on named blobs, with Caffe2's own gradients, run by its own executor.

What was chosen here: docs/adapters/caffe2.md.
"""

import logging

import numpy as np
import torch
from caffe2.python import brew, model_helper, recurrent, rnn_cell, workspace

from shared import specification

from . import layers, updates

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
KERNELS = "mkl"
REASONS = {"gpu": "the Caffe2 adapter speaks to CPUs only"}

# What Caffe2 appends to a layer's name to name the blobs of its parameters, where it names them itself.
_WEIGHTED = {"weight": "_w", "bias": "_b"}
_RECURRENT = {"input": "/i2h_w", "recurrent": "/gates_t_w", "bias": "/i2h_b"}
_HOMES = {
    "dense": _WEIGHTED,
    "dense_within": _WEIGHTED,
    "conv": _WEIGHTED,
    "batch_norm": {"gamma": "_s", "beta": "_b"},
    "lstm": _RECURRENT,
    "rnn": _RECURRENT,
    "gru": _RECURRENT,
}
# The first bias of a recurrent layer is added to the product with its input. The second, which is redundant, stays at
# zero.
_SPARE = "/gates_t_b"
_UNROLLED = ("lstm", "rnn", "gru")


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
    kind, shape = job.spec["input"]["kind"], job.inputs.shape
    # Sequences have their steps first.
    batch = shape[0 if kind in ("dense", "image") else 1]
    scores = _add_network(model, job.spec["nodes"], batch, job.seed)
    distance = _DISTANCES[job.spec.get("loss", LOSSES[0])]
    loss = distance(model.net, scores, job.spec["nodes"][-1]["shape"], job.labels.shape)
    return _Trainer(model, loss, job, batch)


def _model(name):
    """An empty one, without start values of its own: of a hundred million those take seconds."""
    return model_helper.ModelHelper(name=name, arg_scope={"order": "NCHW"}, init_params=False)


class _Trainer(object):
    def __init__(self, model, loss, job, batch):
        self.threads, self._loss, self._net, self._layout = job.threads, loss, model.net, job.layout
        self.settings, self._nodes, self._judge = {"net": "simple"}, job.spec["nodes"], None
        self._batch = batch
        self._homes = {
            name: node["name"] + _HOMES.get(node["op"], {}).get(role, "/" + role)
            for node in job.spec["nodes"]
            for role, name in job.own(node).items()
        }
        workspace.RunNetOnce(model.param_init_net)
        for name, blob in self._homes.items():
            workspace.FeedBlob(blob, np.ascontiguousarray(job.take(name)))
        gradients = model.AddGradientOperators([loss])
        updates.add_updates(model.net, gradients, self._homes.values(), job.spec["optimiser"])
        _leave_out_unread(model.net.Proto())
        updates.set_rate(job.learning_rate)
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

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            workspace.FeedBlob("input", self._layout.inputs(inputs))
            workspace.FeedBlob("labels", self._layout.labels(labels))
            updates.set_rate(rate)
            total, steps = total + self.run(1), steps + 1
        return total / steps

    def scores(self, inputs):
        if self._judge is None:
            self._judge = _model("judge")
            self._scores = _add_network(self._judge, self._nodes, self._batch)
            workspace.CreateNet(self._judge.net)
        workspace.FeedBlob("input", self._layout.inputs(inputs))
        workspace.RunNet(self._judge.net)
        return workspace.FetchBlob(self._scores)

    def weights(self, names=None):
        wanted = self._homes if names is None else names
        return {
            name: self._layout.leave(name, workspace.FetchBlob(self._homes[name]))
            for name in wanted
        }


def _add_network(model, nodes, batch, seed=None):
    """Adds the layers, and returns the blob of the scores; without a seed for its dropout, there is none."""
    values, repeating = {"input": "input"}, layers.repeating(nodes)
    for node in nodes:
        node = dict(node, batch=batch, repeats=node["inputs"][0] in repeating)
        value, more = values[node["inputs"][0]], [values[name] for name in node["inputs"][1:]]
        if node["op"] != "dropout":
            value = LAYERS[node["op"]](model, node, value, *more)
        elif seed is not None:
            # Layers of one seed would drop the same values.
            value = LAYERS[node["op"]](model, node, value, seed + len(values))
        values[node["name"]] = value
    return values[nodes[-1]["name"]]


def _leave_out_unread(net):
    """Takes gradients of the data out of products and convolutions, which make what is asked for alone."""
    read = {blob for operator in net.op for blob in operator.input}
    for operator in net.op:
        if operator.type in ("FCGradient", "ConvGradient") and operator.output[-1] not in read:
            del operator.output[-1]


def _cross_entropy(net, scores, shape, label_shape):
    axis = len(label_shape)
    return net.SoftmaxWithLoss([scores, "labels"], ["probabilities", "loss"], axis=axis)[1]


def _mean_squares(net, scores, shape, label_shape):
    """Caffe2's own is half the sum of the squares of a sample."""
    halves = net.SquaredL2Distance([scores, "labels"], "halves")
    return net.AveragedLoss(net.Scale(halves, "squares", scale=2.0 / np.prod(shape)), "loss")


def _binary_cross_entropy(net, scores, shape, label_shape):
    missed = net.SigmoidCrossEntropyWithLogits([scores, "labels"], "missed")
    return net.AveragedLoss(missed, "loss")


def _evidence_bound(net, scores, shape, label_shape):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    (_, decoded), (width,) = label_shape, shape
    code = (width - decoded) // 2
    starts = {"decoded": 0, "means": decoded, "spreads": decoded + code}
    parts = [
        net.Slice(scores, name, starts=[0, start], ends=[-1, start + (code if start else decoded)])
        for name, start in starts.items()
    ]
    missed = net.SigmoidCrossEntropyWithLogits([parts[0], "labels"], "missed")
    missed = net.Scale(missed, "share missed", scale=float(decoded) / width)
    apart = net.Sub([net.Exp(parts[2], "variances"), parts[2]], "apart")
    apart = net.Add([apart, net.Sqr(parts[1], "squares")], "divergences")
    apart = net.ReduceSum(apart, "divergence", axes=[1], keepdims=0)
    apart = net.Scale(apart, "share apart", scale=0.5 / width)
    total = net.AveragedLoss(net.Add([missed, apart], "losses"), "mean loss")
    least = layers.constant("least", -0.5 * code / width)
    return net.Add([total, least], "loss")


def _mean_output(net, scores, shape, label_shape):
    return net.AveragedLoss(scores, "loss")


_DISTANCES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": _mean_squares,
    "binary_cross_entropy": _binary_cross_entropy,
    "evidence_bound": _evidence_bound,
    "adversarial": _binary_cross_entropy,
    "mean_output": _mean_output,
}


def _dense(model, node, value):
    axis = len(node["in_shape"])
    if not node["bias"]:
        return layers.product(model, value, node["name"] + _WEIGHTED["weight"], node, axis)
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


def _dropout(model, node, value, seed):
    name = node["name"]
    kept = {"ratio": node["rate"], "is_test": 0, "random_seed": seed}
    return model.net.Dropout(value, [name, name + "_mask"], **kept)[0]


def _lstm(model, node, value):
    name = node["name"]
    start = layers.constant(name + "/start", np.zeros((1, node["batch"], node["units"])))
    sizes = (node["in_shape"][-1], node["units"])
    options = {"scope": name, "outputs_with_grads": (0,)}
    return rnn_cell.LSTM(model, value, None, (start,) * 2, *sizes, **options)[0]


LAYERS = {
    "dense": _dense,
    "dense_within": _dense,
    "conv": _conv,
    "grouped_conv": layers.conv,
    "conv_transpose": layers.conv_transpose,
    "max_pool": layers.max_pool,
    "avg_pool": layers.avg_pool,
    "adaptive_avg_pool": layers.adaptive_avg_pool,
    "global_average_pool": layers.global_average_pool,
    "flatten": layers.plain("Flatten"),
    "upsample": layers.upsample,
    "channel_shuffle": layers.channel_shuffle,
    "batch_norm": _batch_norm,
    "group_norm": layers.group_norm,
    "layer_norm": layers.layer_norm,
    "rms_norm": layers.rms_norm,
    "local_response_norm": layers.local_response_norm,
    "relu": layers.plain("Relu"),
    "sigmoid": layers.plain("Sigmoid"),
    "tanh": layers.plain("Tanh"),
    "gelu": layers.plain("Gelu"),
    "gelu_tanh": layers.plain("Gelu", fast_gelu=True),
    "silu": layers.plain("Swish"),
    "dropout": _dropout,
    "add": lambda model, node, left, right: brew.sum(model, [left, right], node["name"]),
    "concat": layers.concat,
    "bias": layers.bias,
    "layer_scale": layers.layer_scale,
    "embedding": lambda model, node, value: model.net.Gather(
        [layers.own(node, "weight"), value], node["name"]
    ),
    "lstm": _lstm,
    "rnn": layers.rnn,
    "gru": layers.gru,
    "table": lambda model, node, value: layers.own(node, "weight"),
    "lookup": layers.lookup,
    "unembedding": layers.unembedding,
    "positions": layers.positions,
    "attention": layers.attention,
    "patches": layers.patches,
    "class_token": layers.class_token,
    "first_step": layers.first_step,
    "mean_steps": lambda model, node, value: model.net.ReduceFrontMean(
        value, node["name"], num_reduce_dim=1
    ),
    "transpose": layers.plain("Transpose", axes=[2, 1, 0]),
    "part": layers.part,
    "stack": layers.stack,
    "unstack": layers.unstack,
    "reversal": layers.reversal,
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
}
