"""neon 2.6: its layers on its backend "cpu", which is NumPy.

neon's arrays have the batch last: images are (channels x height x width, batch), sequences (features, steps x batch).
What was chosen here, and why: docs/adapters/neon.md.
"""

import importlib
import itertools
import logging

from .. import openblas, specification
from . import Unsupported

KERNELS = openblas.find_kernels(lambda: importlib.import_module("numpy"))

import neon  # noqa: E402
import numpy as np  # noqa: E402
from neon import layers  # noqa: E402
from neon.backends import gen_backend  # noqa: E402
from neon.initializers import Constant  # noqa: E402
from neon.models import Model  # noqa: E402
from neon.optimizers.optimizer import get_param_list  # noqa: E402
from neon.transforms import CrossEntropyMulti, Logistic, Rectlin, Softmax, Tanh  # noqa: E402

MODES = ("graph",)

# neon's order of an LSTM's gates is i, f, o, g; that of the specification i, f, g, o. Each is the other's inverse.
_GATES = [0, 1, 3, 2]


def versions():
    """Versions of neon and of the BLAS below NumPy."""
    return {"framework_version": neon.__version__, "blas": openblas.describe()}


def build(spec, weights, inputs, labels, mode, threads, device):
    """See the contract in `adapters/__init__.py`. The BLAS reads its thread number from the environment."""
    if device != "cpu":
        raise Unsupported(
            "neon's GPU backend needs Maxwell assembler kernels that are not part of this environment"
        )
    for node in spec["nodes"]:
        if node["op"] not in _LAYERS:
            raise Unsupported("the neon adapter has no layer '{}'".format(node["op"]))
    logging.disable(logging.WARNING)
    backend = gen_backend(backend="cpu", batch_size=len(inputs), rng_seed=0, datatype=np.float32)
    return _Trainer(spec, weights, inputs, labels, backend)


class _Trainer(object):
    frozen_parameters = 0

    def __init__(self, spec, weights, inputs, labels, backend):
        steps = specification.count_labels(spec)
        self.nodes, plan = {node["name"]: node for node in spec["nodes"]}, _plan(spec["nodes"])
        self.model = Model(plan[0])
        # The errors come out as SGD's steps: the optimiser's own way takes five passes over memory for each parameter.
        scale = spec["optimiser"]["learning_rate"] / (steps * len(inputs))
        self.cost = layers.GeneralizedCost(CrossEntropyMulti(scale=scale))
        shape = spec["input"]["shape"]
        shape = tuple(shape[::-1]) if spec["input"]["kind"] == "one_hot" else tuple(shape)
        self.model.initialize(shape if len(shape) > 1 else shape[0], self.cost)
        self.homes = {entry["name"]: plan[1][entry["name"]]() for entry in spec["parameters"]}
        for name, home in self.homes.items():
            home.set(self._turned(name, weights.pop(name)).reshape(home.shape))
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        self.updates = [pair for pair, _ in get_param_list(self.model.layers_to_optimize)]
        self.inputs = backend.array(_batch_last(spec["input"]["kind"], inputs))
        answers = np.zeros((specification.count_classes(spec), labels.size), np.float32)
        answers[labels.T.reshape(-1), np.arange(labels.size)] = 1.0
        self.answers = backend.array(answers)
        self.parameters = sum(value.size for value, _ in self.updates)
        self.threads = openblas.count_threads()
        self.settings = {
            "backend": "cpu",
            "update": "w -= g, with the learning rate as the scale of the errors",
            "kernels": KERNELS,
        }

    def run(self, steps):
        for _ in range(steps):
            outputs = self.model.fprop(self.inputs)
            loss = self.cost.get_cost(outputs, self.answers)
            self.model.bprop(self.cost.get_errors(outputs, self.answers))
            for value, step in self.updates:
                value[:] = value - step
        return float(loss)

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self._turned(name, self.homes[name].get(), back=True) for name in names}

    def _turned(self, name, value, back=False):
        """From the neutral layout to neon's: dense matrices are (units, in), kernels (in x height x width, out)."""
        node, kind = self.nodes[name.split("/")[0]], self.nodes[name.split("/")[0]]["op"]
        if kind == "conv" and value.ndim > 1:
            return value.T.reshape(self.shapes[name]) if back else value.reshape(len(value), -1).T
        if kind == "lstm":
            rows = value if not back else value.T
            rows = rows.reshape(-1, 4, node["units"])[:, _GATES].reshape(-1, 4 * node["units"])
            return rows.reshape(self.shapes[name]) if back else rows.T
        if kind == "dense" and not name.endswith("/bias"):
            return value.T
        return value.reshape(self.shapes[name]) if back else value


def _plan(nodes):
    """The network as neon's list of layers, in which branches are lists of layers, and the places of its parameters."""
    chains, places = {"input": []}, {}
    for node in nodes:
        first, *others = [chains[name] for name in node["inputs"]]
        if others:
            pairs = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(first, others[0]))
            common = len(list(pairs))
            paths = [path[common:] or [layers.SkipNode()] for path in [first] + others]
            chains[node["name"]] = first[:common] + [layers.MergeSum(paths)]
        else:
            made, own = _LAYERS[node["op"]](node)
            places.update({node["name"] + "/" + role: place for role, place in own.items()})
            chains[node["name"]] = first + made
    return chains[node["name"]] + [layers.Activation(Softmax())], places


def _batch_last(kind, inputs):
    if kind == "tokens":
        return np.ascontiguousarray(inputs.T)
    if kind == "one_hot":
        return np.ascontiguousarray(inputs.transpose(2, 1, 0).reshape(inputs.shape[2], -1))
    return np.ascontiguousarray(inputs.reshape(len(inputs), -1).T)


def _weighted(layer, node):
    """A layer with weights, and one that adds the bias behind it."""
    made, places = [layer], {"weight": lambda: layer.W}
    if node.get("bias"):
        bias = layers.Bias(Constant(0.0))
        made, places["bias"] = [layer, bias], lambda: bias.W
    return made, places


def _dense(node):
    return _weighted(layers.Linear(node["units"], init=Constant(0.0)), node)


def _conv(node):
    shape = (node["kernel"], node["kernel"], node["channels"])
    options = {"strides": node["stride"], "padding": node["padding"]}
    return _weighted(layers.Convolution(shape, init=Constant(0.0), **options), node)


def _max_pool(node):
    return [
        layers.Pooling(node["kernel"], op="max", strides=node["stride"], padding=node["padding"])
    ], {}


def _batch_norm(node):
    layer = layers.BatchNorm(eps=specification.BATCH_NORM_EPSILON)
    return [layer], {"gamma": lambda: layer.gamma, "beta": lambda: layer.beta}


def _embedding(node):
    layer = layers.LookupTable(node["vocabulary"], node["units"], init=Constant(0.0))
    return [layer], {"weight": lambda: layer.W}


def _lstm(node):
    options = {"activation": Tanh(), "gate_activation": Logistic(), "reset_cells": True}
    layer = layers.LSTM(node["units"], init=Constant(0.0), **options)
    return [layer], {
        "input": lambda: layer.W_input,
        "recurrent": lambda: layer.W_recur,
        "bias": lambda: layer.b,
    }


_LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": lambda node: ([layers.Pooling("all", op="avg")], {}),
    # A matrix as it is: neon has the channels first too.
    "flatten": lambda node: ([], {}),
    "batch_norm": _batch_norm,
    "relu": lambda node: ([layers.Activation(Rectlin())], {}),
    "sigmoid": lambda node: ([layers.Activation(Logistic())], {}),
    # `_plan` joins the paths.
    "add": None,
    "embedding": _embedding,
    "lstm": _lstm,
}
