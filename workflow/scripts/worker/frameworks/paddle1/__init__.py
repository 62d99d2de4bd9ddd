"""PaddlePaddle 1: a static program of fluid's layers with its own gradients and SGD, run by its executor."""

import os

import numpy as np
import paddle
from paddle import fluid

from shared import specification

MODES = ("graph",)
# So that a step of all samples lies in one piece.
LAYOUT = {"sequences": "steps first"}
KERNELS = "mkl"
REASONS = {"gpu": "this build of PaddlePaddle is for CPUs only"}


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
        self.settings = {"lstm": "from primitives, unrolled"} if "lstm" in kinds else {}
        labels = job.labels.reshape(-1, 1).astype(np.int64)
        self._program, start = fluid.Program(), fluid.Program()
        with fluid.program_guard(self._program, start):
            block = self._program.global_block()
            self._loss = _add_network(block, job.spec, inputs, labels)
            fluid.optimizer.SGD(job.learning_rate).minimize(self._loss)
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
        fetched = self._executor.run(
            self._program, fetch_list=[self._loss], scope=self._scope, use_program_cache=True
        )
        return float(fetched[0].ravel()[0])

    def weights(self, names=None):
        wanted = self._names if names is None else names
        return {name: np.array(self._scope.find_var(name).get_tensor()) for name in wanted}

    def _set(self, name, value):
        self._scope.var(name).get_tensor().set(np.ascontiguousarray(value), self._place)


def _add_network(block, spec, inputs, labels):
    """Adds the layers and the loss to the program that is being written; returns the loss."""
    values = {"input": _batch(block, "input", inputs)}
    for node in spec["nodes"]:
        values[node["name"]] = LAYERS[node["op"]](
            node, *[values[source] for source in node["inputs"]]
        )
    logits, answers = values[spec["nodes"][-1]["name"]], _batch(block, "labels", labels)
    logits = fluid.layers.reshape(logits, [answers.shape[0], logits.shape[-1]])
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, answers))


def _batch(block, name, value):
    """A variable that the program finds in its scope."""
    return block.create_var(
        name=name, shape=value.shape, dtype=str(value.dtype), persistable=True, stop_gradient=True
    )


def _at(node, role):
    """The parameter of a layer, under its name in the specification; its random start values would take seconds."""
    if not node.get("bias", True) and role == "bias":
        return False
    return fluid.ParamAttr("{}/{}".format(node["name"], role), fluid.initializer.Constant(0.0))


def _dense(node, value):
    leading = len(node["in_shape"])
    return fluid.layers.fc(value, node["units"], leading, _at(node, "weight"), _at(node, "bias"))


def _conv(node, value):
    sizes = (node["channels"], node["kernel"], node["stride"], node["padding"])
    return fluid.layers.conv2d(
        value, *sizes, param_attr=_at(node, "weight"), bias_attr=_at(node, "bias")
    )


def _batch_norm(node, value):
    own = {"param_attr": _at(node, "gamma"), "bias_attr": _at(node, "beta")}
    return fluid.layers.batch_norm(value, epsilon=specification.BATCH_NORM_EPSILON, **own)


def _embedding(node, value):
    return fluid.embedding(
        value, (node["vocabulary"], node["units"]), True, param_attr=_at(node, "weight")
    )


def _lstm(node, value):
    """From primitives, unrolled: `dynamic_lstm` had wrong gradients (docs/adapters/paddle.md)."""
    units, batch = node["units"], value.shape[1]
    products = fluid.layers.fc(value, 4 * units, 2, _at(node, "input"), _at(node, "bias"))
    weight = fluid.layers.create_parameter(
        [units, 4 * units], "float32", attr=_at(node, "recurrent")
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
    "sigmoid": lambda node, value: fluid.layers.sigmoid(value),
    "add": lambda node, left, right: fluid.layers.elementwise_add(left, right),
    "embedding": _embedding,
    "lstm": _lstm,
}
