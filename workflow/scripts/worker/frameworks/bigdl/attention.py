"""Layers of BigDL that attention's networks have: attention, tables of words, positions, and the exact GELU.

As `bigdl_layers` says. What was chosen: docs/adapters/bigdl.md.

Plain Python that 3.6 can import: standard library, numpy and JPype.
"""

import math

import jpype
import numpy as np

from .layers import affine, java_integers, java_list, reshaped, turned, whole


def tensor(api, values):
    """BigDL's tensor of an array."""
    java = jpype.JClass("com.intel.analytics.bigdl.python.api.JTensor")
    floats = jpype.JArray(jpype.JFloat)(np.ascontiguousarray(values, np.float32).reshape(-1))
    return api.toTensor(java(floats, jpype.JArray(jpype.JInt)(list(values.shape)), "float", None))


def _single(name):
    """The one object of a class of Scala."""
    return getattr(jpype.JClass(name + "$"), "MODULE$")


def _own(name, kinds, *options):
    """A module that BigDL's interface for Python lacks, of so many kinds of numbers."""
    tag = _single("scala.reflect.ClassTag").Float()
    number = _single(
        "com.intel.analytics.bigdl.tensor.TensorNumericMath$TensorNumeric$NumericFloat"
    )
    options = list(options) + [tag, tag] + [number] * kinds
    return jpype.JClass("com.intel.analytics.bigdl.nn." + name)(*options)


def _viewed(api, *shape):
    """A module that gives all that it is given this shape, of which -1 is the rest."""
    return api.createInferReshape(java_integers(*shape), False)


def _column(api, put, x):
    """A one for each sample of a sequence."""
    size = put(api.createNarrow(2, 1, 1), put(api.createNarrow(3, 1, 1), x))
    return put(affine(api, 0.0, 1.0), put(reshaped(api, 1), size))


def _product(api, size):
    return api.createLinear(1, size, False, *[None] * 6)


def table(api, node):
    """A parameter that stands alone: what a linear layer makes of a single one."""
    rows, units = node["shape"]

    def describe(put, words):
        word = put(api.createNarrow(1, 1, 1), put(api.createNarrow(2, 1, 1), words))
        one = put(affine(api, 0.0, 1.0), word)
        weight = put(_product(api, rows * units), one)
        return put(reshaped(api, rows, units, batch=False), weight)

    return whole(api, describe)


def lookup(api, node):
    """Rows of a table, whose gradients are added up."""

    def describe(put, words, rows):
        found = put(api.createIndex(1), rows, put(_viewed(api, -1), words))
        return put(_viewed(api, -1, *node["shape"]), found)

    return whole(api, describe, inputs=2)


def unembedding(api, node):
    """One product of all steps."""
    steps, words = node["shape"]

    def describe(put, x, rows):
        flat = put(_viewed(api, -1, node["in_shape"][-1]), x)
        return put(_viewed(api, -1, steps, words), put(api.createMM(False, True), flat, rows))

    return whole(api, describe, inputs=2)


def positions(api, node):
    """What a linear layer makes of a one of each sample: so its gradient is summed by a product."""
    (steps, units), each = node["shape"], node["each"]
    used = -(-steps // each)

    def describe(put, x):
        rows = put(_product(api, node["rows"] * units), _column(api, put, x))
        rows = put(reshaped(api, node["rows"], units), rows)
        rows = put(api.createNarrow(2, 1, used), rows)
        if each > 1:
            rows = put(reshaped(api, used, 1, units), rows)
            rows = put(api.createJoinTable(3, 0), *[rows] * each)
            rows = put(reshaped(api, used * each, units), rows)
            rows = put(api.createNarrow(2, 1, steps), rows)
        return put(api.createCAddTable(False), x, rows)

    return whole(api, describe)


def class_token(api, node):
    """Made as positions are."""
    units = node["shape"][1]

    def describe(put, x):
        token = put(_product(api, units), _column(api, put, x))
        return put(api.createJoinTable(2, 0), put(reshaped(api, 1, units), token), x)

    return whole(api, describe)


def attention(api, node):
    """Two products for each head of each sample, and a softmax of rows: BigDL's own of a later axis is wrong."""
    (steps, units), heads = node["shape"], node["heads"]
    size = units // heads

    def describe(put, x):
        apart = put(turned(api, 2, 3), put(reshaped(api, steps, 3 * heads, size), x))
        q, k, v = (
            put(_viewed(api, -1, steps, size), put(api.createNarrow(2, first + 1, heads), apart))
            for first in (0, heads, 2 * heads)
        )
        q = put(api.createMulConstant(size**-0.5, False), q)
        scores = put(api.createMM(False, True), q, k)
        if node.get("causal"):
            hidden = np.triu(np.full((1, steps, steps), -1e30, np.float32), 1)
            mask = api.createNode(_own("tf.Const", 1, tensor(api, hidden)), java_list([]))
            scores = put(api.createCAddTable(False), scores, mask)
        shares = put(api.createSoftMax(1), put(_viewed(api, -1, steps), scores))
        found = put(api.createMM(False, False), put(_viewed(api, -1, steps, steps), shares), v)
        together = put(turned(api, 2, 3), put(_viewed(api, -1, heads, steps, size), found))
        return put(reshaped(api, steps, units), together)

    return whole(api, describe)


def gelu(api, node):
    """x P(x) with P held, and x D with D = x P'(x) held, less itself: it adds D to the gradient, and 0 to the value."""

    def describe(put, x):
        def held(source):
            return put(api.createGradientReversal(0.0), source)

        def times(share, source):
            return put(api.createMulConstant(share, False), source)

        def product(one, other):
            return put(api.createCMulTable(), one, other)

        error = _own("ops.Erf", 2).setName(node["name"] + "/error")
        below = held(put(affine(api, 0.5, 0.5), put(error, times(math.sqrt(0.5), x))))
        density = put(api.createExp(), times(-0.5, put(api.createSquare(), x)))
        density = times(1.0 / math.sqrt(2.0 * math.pi), density)
        slope = product(held(product(x, density)), x)
        nothing = put(api.createCSubTable(), slope, held(slope))
        return put(api.createCAddTable(False), product(x, below), nothing)

    made = whole(api, describe)
    # An operation has no backward pass: the graph's ends before it.
    made.stopGradient(jpype.JArray(jpype.JString)([node["name"] + "/error"]))
    return made
