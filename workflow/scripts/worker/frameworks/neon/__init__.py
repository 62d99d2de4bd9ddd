"""neon 2.6: its layers on its backend "cpu", which is NumPy.

neon's arrays have the batch last: images are (channels x height x width, batch), sequences (features, steps x batch).
"""

import itertools
import logging

import neon
import numpy as np
from neon import layers
from neon.backends import gen_backend
from neon.initializers import Constant
from neon.models import Model
from neon.optimizers.optimizer import get_param_list
from neon.transforms import CrossEntropyMulti, Logistic, Rectlin, Softmax, Tanh

from shared import specification

from ... import kernels

MODES = ("graph",)
LAYOUT = {"dense": "units first", "lstm": "units first", "gates": "ifog"}
KERNELS = "openblas:numpy"
REASONS = {
    "gpu": "neon's GPU backend needs Maxwell assembler kernels that are not part of this environment",
    "layer": "the adapter of neon has the layers of Shi et al.'s networks alone",
}


def versions():
    """Returns the versions of neon and of the BLAS of NumPy."""
    return {"framework_version": neon.__version__, "blas": kernels.describe_openblas()}


def build(job):
    """Returns a trainer of the specification. The BLAS reads its thread number from the environment."""
    logging.disable(logging.WARNING)
    count = len(job.inputs)
    backend = gen_backend(backend="cpu", batch_size=count, rng_seed=0, datatype=np.float32)
    return _Trainer(job, backend)


class _Trainer(object):
    def __init__(self, job, backend):
        spec, inputs, labels = job.spec, job.inputs, job.labels
        self.layout, plan = job.layout, _plan(spec["nodes"])
        steps = specification.count_labels(spec)
        self.model = Model(plan[0])
        # The errors come out as SGD's steps: the optimiser's own way takes five passes over memory for each parameter.
        scale = job.learning_rate / (steps * len(inputs))
        self.cost = layers.GeneralizedCost(CrossEntropyMulti(scale=scale))
        shape = spec["input"]["shape"]
        shape = tuple(shape[::-1]) if spec["input"]["kind"] == "one_hot" else tuple(shape)
        self.model.initialize(shape if len(shape) > 1 else shape[0], self.cost)
        self.homes = {entry["name"]: plan[1][entry["name"]]() for entry in spec["parameters"]}
        for name, home in self.homes.items():
            value = job.take(name)
            # Kernels are (in x height x width, out).
            value = value.reshape(len(value), -1).T if value.ndim == 4 else value
            home.set(value.reshape(home.shape))
        self.kernels = {entry["name"] for entry in spec["parameters"] if len(entry["shape"]) == 4}
        self.updates = [pair for pair, _ in get_param_list(self.model.layers_to_optimize)]
        self.inputs = backend.array(_batch_last(spec["input"]["kind"], inputs))
        answers = np.zeros((specification.count_classes(spec), labels.size), np.float32)
        answers[labels.T.reshape(-1), np.arange(labels.size)] = 1.0
        self.answers = backend.array(answers)
        self.parameters = sum(value.size for value, _ in self.updates)
        self.threads = kernels.count_threads()
        self.settings = {
            "backend": "cpu",
            "update": "w -= g, with the learning rate as the scale of the errors",
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
        found = {}
        for name in names:
            value = self.homes[name].get()
            found[name] = self.layout.leave(name, value.T if name in self.kernels else value)
        return found


def _plan(nodes):
    """Returns neon's list of layers, in which branches are lists of layers, and the places of the parameters."""
    chains, places = {"input": []}, {}
    for node in nodes:
        first, *others = [chains[name] for name in node["inputs"]]
        if others:
            pairs = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(first, others[0]))
            common = len(list(pairs))
            paths = [path[common:] or [layers.SkipNode()] for path in [first] + others]
            chains[node["name"]] = first[:common] + [layers.MergeSum(paths)]
        else:
            made, own = LAYERS[node["op"]](node)
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
    """Returns a layer with weights, and one after it that adds the bias."""
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


LAYERS = {
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
