"""Layers of PlaidML 0.7 of sequences, and what layers of images are made of, too.

Each takes a node, its parameters and its inputs. Sequences are (steps, batch, features). What `plaidml.op` has not is
written in Tile, PlaidML's own language, which finds the gradient itself.
"""

import numpy as np
from plaidml import op, tile


def written(code, shape, **given):
    """What a program of Tile makes of values, under the name O."""
    like = next(iter(given.values())).shape.dtype
    made = tile.Operation(code, list(given.items()), [("O", tile.Shape(like, tuple(shape)))])
    return made.sole_output()


def rows(value):
    """Of features, whatever stands before them."""
    dims = value.shape.dims
    return value if len(dims) == 2 else op.reshape(value, (int(np.prod(dims[:-1])), dims[-1]))


def product(value, weight):
    """Of the features of each step."""
    made = op.matmul(rows(value), weight)
    return op.reshape(made, tuple(value.shape.dims[:-1]) + (weight.shape.dims[-1],))


def cut(value, axis, start, length):
    """Some of the places of an axis."""
    return op.slice_tensor(value, axes=[axis], starts=[start], ends=[start + length])


def wide(weight, value):
    """One number a feature, to stand beside a value."""
    image = len(value.shape.dims) == 4
    return op.reshape(weight, tuple(weight.shape.dims) + (1, 1)) if image else weight


def turned(value, *order):
    """Its axes in another order."""
    dims = value.shape.dims
    places = ["a{}".format(axis) for axis in range(len(dims))]
    extents = [place.upper() for place in places]
    code = "function (I[{}]) -> (O) {{ O[{} : {}] = =(I[{}]); }}".format(
        ", ".join(extents),
        ", ".join(places[axis] for axis in order),
        ", ".join(extents[axis] for axis in order),
        ", ".join(places),
    )
    return written(code, [dims[axis] for axis in order], I=value)


def _given(own, value):
    """Products of all steps with the inputs as one, and what takes a step's."""
    products = product(value, own["input"]) + own["bias"]
    _, batch, units = products.shape.dims
    return lambda step: op.reshape(cut(products, 0, step, 1), (batch, units))


def joined(outputs):
    """Of each step, as a sequence."""
    dims = outputs[0].shape.dims
    return op.concatenate([op.reshape(output, (1,) + tuple(dims)) for output in outputs], axis=0)


def lstm(node, own, value):
    """Unrolled, as all that recurs."""
    units, given = node["units"], _given(own, value)
    output = cell = None
    outputs = []
    for step in range(value.shape.dims[0]):
        gates = given(step)
        if outputs:
            gates = gates + op.matmul(output, own["recurrent"])
        i, f, g, o = [cut(gates, 1, gate * units, units) for gate in range(4)]
        new = op.sigmoid(i) * op.tanh(g)
        cell = op.sigmoid(f) * cell + new if outputs else new
        output = op.sigmoid(o) * op.tanh(cell)
        outputs.append(output)
    return joined(outputs)


def rnn(node, own, value):
    """A product and a hyperbolic tangent."""
    given, outputs = _given(own, value), []
    for step in range(value.shape.dims[0]):
        sums = given(step)
        sums = sums + op.matmul(outputs[-1], own["recurrent"]) if outputs else sums
        outputs.append(op.tanh(sums))
    return joined(outputs)
