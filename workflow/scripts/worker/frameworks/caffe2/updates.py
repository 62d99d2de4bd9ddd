"""Optimisers of Caffe2: its own operators, and in its operators the rules that it has otherwise or not at all.

Each adds the update of one parameter to a net, from its blob and its gradient's, and returns the blobs that it keeps
beside it, which begin at zero. "minus_rate" and "one" are blobs of one number. What was chosen here:
docs/adapters/caffe2.md.

Plain Python that 3.6 can import: standard library, numpy and Caffe2.
"""

import numpy as np
from caffe2.python import core, workspace


def add_updates(net, gradients, blobs, wanted):
    """Adds the update of each parameter, and gives what they keep its start: zeros of its shape."""
    name = wanted["name"]
    workspace.FeedBlob("one", np.ones(1, np.float32))
    if name in ("adam", "adamw"):
        _add_corrections(net, wanted)
    for blob in blobs:
        gradient = gradients[blob]
        if isinstance(gradient, core.GradientSlice) and name != "sgd":
            parts = [gradient.indices, gradient.values, blob]
            gradient = net.SparseToDense(parts, blob + "_whole_gradient")
        for kept in RULES[name](net, blob, gradient, wanted):
            workspace.FeedBlob(kept, np.zeros_like(workspace.FetchBlob(blob)))


def set_rate(rate):
    """Sets the learning rate of all rules."""
    workspace.FeedBlob("minus_rate", np.full(1, -rate, np.float32))


def _number(name, value):
    workspace.FeedBlob(name, np.full(1, value, np.float32))
    return name


def _sgd(net, blob, gradient, wanted):
    """As `caffe2.python.optimizer` does, less its counter of iterations."""
    if isinstance(gradient, core.GradientSlice):
        terms = [blob, "one", gradient.indices, gradient.values, "minus_rate"]
        net.ScatterWeightedSum(terms, blob)
    else:
        net.WeightedSum([blob, "one", gradient, "minus_rate"], blob)
    return []


def _adadelta(net, blob, gradient, wanted):
    kept = [blob + "_squares", blob + "_steps"]
    rule = {"decay": wanted["rho"], "epsilon": wanted["epsilon"]}
    net.Adadelta([blob] + kept + [gradient, "minus_rate"], [blob] + kept, **rule)
    return kept


def _rmsprop(net, blob, gradient, wanted):
    """Adam without a first average, and so late that it corrects nothing: the epsilon of RmsProp is in the root."""
    workspace.FeedBlob("late", np.full(1, 2**40, np.int64))
    kept = [blob + "_gradient", blob + "_squares"]
    rule = {"beta1": 0.0, "beta2": wanted["rho"], "epsilon": wanted["epsilon"]}
    net.Adam([blob] + kept + [gradient, "minus_rate", "late"], [blob] + kept, **rule)
    return kept


def _momentum(net, blob, gradient, wanted):
    """Caffe2's own keeps steps, in which the rate of each of them stays; this keeps gradients."""
    moves = blob + "_moves"
    share = _number("momentum", wanted["momentum"])
    net.WeightedSum([moves, share, gradient, "one"], moves)
    net.WeightedSum([blob, "one", moves, "minus_rate"], blob)
    return [moves]


def _add_corrections(net, wanted):
    """Once for all parameters: what the averages, which begin at zero, have of their weight after each step."""
    for beta in ("beta1", "beta2"):
        _number("kept by " + beta, wanted[beta])
        _number("new by " + beta, 1.0 - wanted[beta])
        weight = _number("weight by " + beta, 0.0)
        net.WeightedSum([weight, "kept by " + beta, "one", "new by " + beta], weight)
    net.Sqrt("weight by beta2", "root")
    net.Scale("root", "epsilon", scale=float(wanted["epsilon"]))
    net.Mul(["minus_rate", "root"], "raised rate")
    net.Div(["raised rate", "weight by beta1"], "corrected rate")
    decay = _number("decay", wanted.get("weight_decay", 0.0))
    net.WeightedSum(["one", "one", "minus_rate", decay], "kept weight")


def _adam(net, blob, gradient, wanted):
    """The epsilon of Caffe2's own is added to a root that is not corrected."""
    mean, squares, step = blob + "_mean", blob + "_squares", blob + "_step"
    net.WeightedSum([mean, "kept by beta1", gradient, "new by beta1"], mean)
    net.Sqr(gradient, step)
    net.WeightedSum([squares, "kept by beta2", step, "new by beta2"], squares)
    net.Add([net.Sqrt(squares, step), "epsilon"], step)
    # The gradient's blob is free by then.
    net.Div([mean, step], gradient)
    decays = "weight_decay" in wanted and workspace.FetchBlob(blob).ndim > 1
    net.WeightedSum([blob, "kept weight" if decays else "one", gradient, "corrected rate"], blob)
    return [mean, squares]


RULES = {
    "sgd": _sgd,
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adam,
}
