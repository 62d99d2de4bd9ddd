"""PaddlePaddle 1: a static program of fluid's layers with its own gradients and SGD, run by its executor.

What was chosen here: docs/adapters/paddle.md.
"""

import os

import numpy as np
import paddle
from paddle import fluid

from shared import specification

from . import layers
from .layers import at
from .optimisers import OPTIMISERS as RULES

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
# So that a step of all samples lies in one piece.
LAYOUT = {"sequences": "steps first"}
KERNELS = "mkl"
REASONS = {"gpu": "this build of PaddlePaddle is for CPUs only"}
# Layers that are unrolled over the steps.
_UNROLLED = ("lstm", "rnn", "gru")


def versions():
    """The version of Paddle."""
    return {"framework_version": paddle.__version__}


def build(job):
    """A trainer of the specification, with the batch and the start values in the memory of a scope of its own."""
    inputs = job.inputs
    inputs = inputs.astype(np.int64) if job.spec["input"]["kind"] == "tokens" else inputs
    return _Trainer(job, inputs)


class _Trainer(object):
    def __init__(self, job, inputs):
        # Paddle does not tell; this is where it reads it from.
        self.threads = int(os.environ["OMP_NUM_THREADS"])
        kinds = {node["op"] for node in job.spec["nodes"]}
        self.settings = {kind: "from primitives, unrolled" for kind in _UNROLLED if kind in kinds}
        if "dropout" in kinds:
            # A seed of its own would give it the same mask in each step.
            self.settings["dropout"] = "seeded by the system"
        self._layout, self._aimed = job.layout, job.spec.get("loss", LOSSES[0]) != LOSSES[0]
        labels = self._answers(job.labels)
        self._program, start = fluid.Program(), fluid.Program()
        with fluid.program_guard(self._program, start):
            block = self._program.global_block()
            self._logits, self._loss = _add_network(block, job.spec, inputs, labels)
            self._judging = self._program.clone(for_test=True)
            optimiser = RULES[job.spec["optimiser"]["name"]](job.spec["optimiser"])
            optimiser.minimize(self._loss)
            self._rate = optimiser._global_learning_rate().name
        self._place, self._scope = fluid.CPUPlace(), fluid.core.Scope()
        self._executor = fluid.Executor(self._place)
        self._executor.run(start, scope=self._scope)
        # In the scope for good, so that no step is fed.
        self._set("input", inputs)
        self._set("labels", labels)
        self._names = job.layout.names
        for name in self._names:
            self._set(name, job.take(name))
        parameters = self._program.global_block().all_parameters()
        self.parameters = sum(
            int(np.prod(parameter.shape)) for parameter in parameters if parameter.trainable
        )

    def run(self, steps):
        for _ in range(steps - 1):
            self._executor.run(self._program, scope=self._scope, use_program_cache=True)
        return self._step()

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._set("input", self._layout.inputs(inputs))
            self._set("labels", self._answers(self._layout.labels(labels)))
            self._set(self._rate, np.array([rate], np.float32))
            total, steps = total + self._step(), steps + 1
        return total / steps

    def scores(self, inputs):
        self._set("input", self._layout.inputs(inputs))
        fetched = self._executor.run(
            self._judging, fetch_list=[self._logits], scope=self._scope, use_program_cache=True
        )
        return fetched[0]

    def _step(self):
        """Takes a step, and returns its loss."""
        fetched = self._executor.run(
            self._program, fetch_list=[self._loss], scope=self._scope, use_program_cache=True
        )
        return float(fetched[0].ravel()[0])

    def weights(self, names=None):
        wanted = self._names if names is None else names
        return {name: np.array(self._scope.find_var(name).get_tensor()) for name in wanted}

    def _answers(self, labels):
        """Classes one a row, or targets as they are."""
        return labels if self._aimed else labels.reshape(-1, 1).astype(np.int64)

    def _set(self, name, value):
        self._scope.var(name).get_tensor().set(np.ascontiguousarray(value), self._place)


def _add_network(block, spec, inputs, labels):
    """Adds the layers and the loss to the program that is being written; returns the scores and the loss."""
    values = {"input": _batch(block, "input", inputs)}
    for node in spec["nodes"]:
        values[node["name"]] = LAYERS[node["op"]](
            node, *[values[source] for source in node["inputs"]]
        )
    logits, answers = values[spec["nodes"][-1]["name"]], _batch(block, "labels", labels)
    return _DISTANCES[spec.get("loss", LOSSES[0])](logits, answers)


def _cross_entropy(logits, labels):
    logits = fluid.layers.reshape(logits, [labels.shape[0], logits.shape[-1]])
    losses = fluid.layers.softmax_with_cross_entropy(logits, labels)
    return logits, fluid.layers.mean(losses)


def _mean_of(distance):
    return lambda outputs, targets: (outputs, fluid.layers.mean(distance(outputs, targets)))


def _evidence_bound(outputs, targets):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    decoded, code = targets.shape[1], (outputs.shape[1] - targets.shape[1]) // 2
    scores, mean, spread = fluid.layers.split(outputs, [decoded, code, code], 1)
    missed = fluid.layers.sigmoid_cross_entropy_with_logits(scores, targets)
    apart = fluid.layers.square(mean) + fluid.layers.exp(spread) - spread - 1.0
    total = fluid.layers.reduce_sum(missed) + 0.5 * fluid.layers.reduce_sum(apart)
    return outputs, total / float(np.prod(outputs.shape))


_DISTANCES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": _mean_of(fluid.layers.square_error_cost),
    "binary_cross_entropy": _mean_of(fluid.layers.sigmoid_cross_entropy_with_logits),
    "evidence_bound": _evidence_bound,
    "adversarial": _mean_of(fluid.layers.sigmoid_cross_entropy_with_logits),
    "mean_output": _mean_of(lambda outputs, targets: outputs),
}


def _batch(block, name, value):
    """A variable that the program finds in its scope."""
    return block.create_var(
        name=name, shape=value.shape, dtype=str(value.dtype), persistable=True, stop_gradient=True
    )


def _dense(node, value):
    leading = len(node["in_shape"])
    return fluid.layers.fc(value, node["units"], leading, at(node, "weight"), at(node, "bias"))


def _conv(node, value):
    sizes = (node["channels"], node["kernel"], node["stride"], node["padding"])
    return fluid.layers.conv2d(
        value, *sizes, param_attr=at(node, "weight"), bias_attr=at(node, "bias")
    )


def _batch_norm(node, value):
    own = {"param_attr": at(node, "gamma"), "bias_attr": at(node, "beta")}
    return fluid.layers.batch_norm(value, epsilon=specification.BATCH_NORM_EPSILON, **own)


def _embedding(node, value):
    return fluid.embedding(
        value, (node["vocabulary"], node["units"]), True, param_attr=at(node, "weight")
    )


def _lstm(node, value):
    """From primitives, unrolled over the steps.

    Paddle's own, `dynamic_lstm`, did not pass the proof: right outputs, wrong gradients (docs/adapters/paddle.md).
    """
    units, batch = node["units"], value.shape[1]
    products = fluid.layers.fc(value, 4 * units, 2, at(node, "input"), at(node, "bias"))
    weight = fluid.layers.create_parameter(
        [units, 4 * units], "float32", attr=at(node, "recurrent")
    )
    output = cell = fluid.layers.fill_constant([batch, units], "float32", 0.0)
    outputs = []
    for product in fluid.layers.unstack(products, 0):
        gates = fluid.layers.elementwise_add(product, fluid.layers.matmul(output, weight))
        i, f, g, o = fluid.layers.split(gates, 4, 1)
        i, f, o = fluid.layers.sigmoid(i), fluid.layers.sigmoid(f), fluid.layers.sigmoid(o)
        cell = f * cell + i * fluid.layers.tanh(g)
        output = o * fluid.layers.tanh(cell)
        outputs.append(output)
    return fluid.layers.stack(outputs, 0)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": lambda node, value: fluid.layers.pool2d(
        value, node["kernel"], "max", node["stride"], node["padding"]
    ),
    "global_average_pool": lambda node, value: fluid.layers.reduce_mean(value, [2, 3]),
    "flatten": lambda node, value: fluid.layers.flatten(value),
    "batch_norm": _batch_norm,
    "relu": lambda node, value: fluid.layers.relu(value),
    "dropout": lambda node, value: fluid.layers.dropout(
        value, node["rate"], dropout_implementation="upscale_in_train"
    ),
    "sigmoid": lambda node, value: fluid.layers.sigmoid(value),
    "add": lambda node, left, right: fluid.layers.elementwise_add(left, right),
    "embedding": _embedding,
    "lstm": _lstm,
    "dense_within": _dense,
    "grouped_conv": layers.grouped_conv,
    "conv_transpose": layers.conv_transpose,
    "avg_pool": layers.avg_pool,
    "adaptive_avg_pool": lambda node, value: fluid.layers.adaptive_pool2d(
        value, node["size"], "avg"
    ),
    "upsample": lambda node, value: fluid.layers.resize_nearest(
        value, scale=node["factor"], align_corners=False
    ),
    "channel_shuffle": layers.channel_shuffle,
    "local_response_norm": layers.local_response_norm,
    "group_norm": layers.group_norm,
    "concat": lambda node, *values: fluid.layers.concat(list(values), 1),
    "rnn": layers.rnn,
    "gru": layers.gru,
    "tanh": lambda node, value: fluid.layers.tanh(value),
    "gelu": lambda node, value: fluid.layers.gelu(value),
    "gelu_tanh": lambda node, value: fluid.layers.gelu(value, approximate=True),
    "silu": lambda node, value: fluid.layers.swish(value),
    "layer_norm": layers.layer_norm,
    "rms_norm": layers.rms_norm,
    "layer_scale": layers.layer_scale,
    "bias": layers.bias,
    "positions": layers.positions,
    "table": lambda node, value: layers.parameter(node, "weight", node["shape"]),
    "lookup": layers.lookup,
    "unembedding": layers.unembedding,
    "attention": layers.attention,
    "patches": layers.patches,
    "class_token": layers.class_token,
    "first_step": lambda node, value: fluid.layers.reshape(
        fluid.layers.slice(value, [0], [0], [1]), value.shape[1:]
    ),
    "mean_steps": lambda node, value: fluid.layers.reduce_mean(value, 0),
    "transpose": lambda node, value: fluid.layers.transpose(value, [2, 1, 0]),
    "part": lambda node, value: layers.columns(value, node["start"], node["start"] + node["size"]),
    "stack": lambda node, *values: fluid.layers.stack(list(values), 0),
    "unstack": layers.unstack,
    "reversal": lambda node, value: 2.0 * layers.constant(value) - value,
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
}
