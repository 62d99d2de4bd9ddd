"""Losses and optimisers of BigDL: its own criterions and methods, and graphs of its modules.

A loss has `forward` and `backward` of outputs and targets, as BigDL's criterions have. What was chosen:
docs/adapters/bigdl.md.

Plain Python that 3.6 can import: standard library and JPype.
"""

import math

import jpype

from ...contract import Unsupported
from .layers import affine, whole


class Terms(object):
    """A loss that is the mean of what a module makes of outputs and targets."""

    def __init__(self, api, describe, spec):
        self.module = whole(api, lambda put, y, t: describe(api, put, y, t, spec), inputs=2)
        self.flowing = None

    def forward(self, outputs, targets):
        terms = self.module.forward(_table(outputs, targets))
        if self.flowing is None:
            share = jpype.JClass("java.lang.Float")(1.0 / int(terms.nElement()))
            self.flowing = terms.clone().fill(share)
        # Its own mean adds up in float32, one number after the other: off by 3e-5 of 400,000 terms.
        return terms.dot(self.flowing)

    def backward(self, outputs, targets):
        return self.module.backward(_table(outputs, targets), self.flowing).apply(
            jpype.JClass("java.lang.Integer")(1)
        )


def _table(*tensors):
    return jpype.JClass("com.intel.analytics.bigdl.utils.Table")(
        jpype.JArray(jpype.JObject)(tensors)
    )


def _entropy(api, put, outputs, targets):
    """log(1 + exp(y)) - t y, which no large output spoils."""
    softened = put(api.createSoftPlus(1.0), outputs)
    return put(api.createCSubTable(), softened, put(api.createCMulTable(), outputs, targets))


def _binary_cross_entropy(api, put, outputs, targets, spec):
    return _entropy(api, put, outputs, targets)


def _evidence_bound(api, put, outputs, targets, spec):
    (width,), code = spec["nodes"][-1]["shape"], _code(spec)
    decoded, mean, spread = (
        put(api.createNarrow(2, start + 1, size), outputs)
        for start, size in ((0, width - 2 * code), (width - 2 * code, code), (width - code, code))
    )
    half = put(api.createMulConstant(0.5, False), put(api.createSquare(), mean))
    above = put(api.createCSubTable(), put(api.createExp(), spread), spread)
    above = put(affine(api, 0.5, -0.5), above)
    return put(api.createJoinTable(2, 0), _entropy(api, put, decoded, targets), half, above)


def _code(spec):
    return next(node["shape"][0] for node in spec["nodes"] if node["op"] == "sampled_code")


def _mean_output(api, put, outputs, targets, spec):
    """Targets count for nothing, and a graph must read them."""
    nothing = put(api.createMulConstant(0.0, False), targets)
    return put(api.createCAddTable(False), outputs, nothing)


_TERMS = {
    "binary_cross_entropy": _binary_cross_entropy,
    "adversarial": _binary_cross_entropy,
    "evidence_bound": _evidence_bound,
    "mean_output": _mean_output,
}


def criterion(api, spec):
    """The loss of a specification."""
    name = spec.get("loss", "softmax_cross_entropy")
    if name == "softmax_cross_entropy":
        return api.createCrossEntropyCriterion(None, True)
    return api.createMSECriterion() if name == "mean_squares" else Terms(api, _TERMS[name], spec)


class Descent(object):
    """One call of MKL for all parameters."""

    said = "add(-rate, gradients)"

    def __init__(self, api, wanted, values, gradients):
        self.values, self.gradients = values, gradients
        self.set_rate(wanted["learning_rate"])

    def set_rate(self, rate):
        self.rate = jpype.JClass("java.lang.Float")(-rate)

    def update(self):
        self.values.add(self.rate, self.gradients)


class OwnMethod(object):
    """An optimisation method of BigDL's, on all parameters as one tensor."""

    def __init__(self, api, wanted, values, gradients, matrices):
        self.wanted, self.values, self.steps = wanted, values, 0
        self.matrices = matrices if "weight_decay" in wanted else ()
        self.method = _METHODS[wanted["name"]](api, wanted)
        self.set_rate(wanted["learning_rate"])
        self.said = "BigDL's " + str(self.method.getClass().getSimpleName())
        pair = jpype.JClass("scala.Tuple2")(jpype.JClass("java.lang.Float")(0.0), gradients)
        given = type("Given", (object,), {"apply": lambda self, values: pair})
        self.given = jpype.JProxy("scala.Function1", inst=given())

    def set_rate(self, rate):
        kept = 1.0 - rate * self.wanted.get("weight_decay", 0.0)
        self.kept = jpype.JClass("java.lang.Float")(kept)
        if self.wanted["name"] != "adadelta":
            getattr(self.method, "learningRate_$eq")(rate)
        elif rate != 1.0:
            raise Unsupported("BigDL's Adadelta has no learning rate: it is always 1")

    def update(self):
        self.steps += 1
        for matrix in self.matrices:
            matrix.mul(self.kept)
        if "beta2" in self.wanted:
            # BigDL adds it to a root that is not corrected for the start.
            share = math.sqrt(1.0 - self.wanted["beta2"] ** self.steps)
            getattr(self.method, "Epsilon_$eq")(self.wanted["epsilon"] * share)
        self.method.optimize(self.given, self.values)


def _momentum(api, wanted):
    rate, momentum = wanted["learning_rate"], wanted["momentum"]
    still = api.createDefault()
    return api.createSGD(rate, 0.0, 0.0, momentum, 0.0, False, still, None, None)


def _adam(api, wanted):
    betas = wanted["beta1"], wanted["beta2"]
    return api.createAdam(wanted["learning_rate"], 0.0, betas[0], betas[1], wanted["epsilon"])


_METHODS = {
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adam,
    "rmsprop": lambda api, wanted: api.createRMSprop(
        wanted["learning_rate"], 0.0, wanted["rho"], wanted["epsilon"]
    ),
    "adadelta": lambda api, wanted: api.createAdadelta(wanted["rho"], wanted["epsilon"]),
}


def optimiser(api, wanted, values, gradients, matrices):
    """What updates `values`, all parameters, by `gradients`. Of them `matrices` may decay."""
    if wanted["name"] == "sgd":
        return Descent(api, wanted, values, gradients)
    return OwnMethod(api, wanted, values, gradients, matrices)
