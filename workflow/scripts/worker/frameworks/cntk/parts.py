"""Matrix products and convolutions of CNTK 2, each a function that is evaluated by itself (see `worker.parts`)."""

import cntk
import numpy as np
from cntk.internal.sanitize import sanitize_batch

from shared.operations import repeated

from ...contract import Unsupported
from . import LAYERS

TASKS = ("products", "convolutions")


def start(job):
    """Sets the threads."""
    cntk.device.try_set_default_device(cntk.device.cpu())
    cntk.cntk_py.set_max_num_cputhreads(job["threads"])
    return {
        "threads": cntk.cntk_py.get_max_num_cputhreads(),
        "settings": {"called": "one function each, which copies its input first"},
    }


def build(part):
    if part.kind == "convolution":
        if part.way != "own choice":
            raise Unsupported("CNTK asks MKL for a convolution, which lets nobody choose")
        images = cntk.input_variable(part.inputs.shape[1:])
        weights = {"weight": cntk.parameter(init=part.weights)}
        return _operation(LAYERS["conv"](part.node, weights, images), images, part.inputs)
    if part.turned[0]:
        raise Unsupported("CNTK multiplies the gradient of weights inside of its backward pass")
    rows = cntk.input_variable(part.left.shape[1])
    right = cntk.parameter(init=part.right)
    multiply = cntk.times_transpose if part.turned[1] else cntk.times
    return _operation(multiply(rows, right), rows, part.left)


def _operation(function, variable, values):
    given = {variable: sanitize_batch(variable, values)}
    return repeated(
        lambda: function.eval(given, as_numpy=False), lambda: np.array(function.eval(given))
    )
