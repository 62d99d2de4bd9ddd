"""Layers of PlaidML 0.7 of sequences, attention and generative networks, and what layers of images are made of, too.

Each takes a node, its parameters and its inputs. Sequences are (steps, batch, features). What `plaidml.op` has not is
written in Tile, PlaidML's own language, which finds the gradient itself. What was chosen here:
docs/adapters/plaidml.md.

Plain Python that 3.6 can import: standard library, numpy and PlaidML.
"""

import numpy as np
from plaidml import op, tile

# Of the rational function that Eigen has for the error function of float32: x P(x^2) / Q(x^2) up to 4.
_ABOVE = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_BELOW = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def written(code, shape, **given):
    """What a program of Tile makes of values, under the name O."""
    like = next(iter(given.values())).shape.dtype
    made = tile.Operation(code, list(given.items()), [("O", tile.Shape(like, tuple(shape)))])
    return made.sole_output()


def constant(value):
    """No gradient flows back: a conversion to what it is has none.

    The rest, which is 0, gives that 0 the extents of the value: PlaidML ends the process at a contraction without them.
    """
    return tile.unary_op(value, "as_float(I, 32) + (I < -3.0e38 ? I : 0.0)", "Constant")


def softplus(value):
    """log(1 + exp(x)), where neither power is large."""
    larger = op.relu(value)
    return larger + op.log(op.exp(-larger) + op.exp(value - larger))


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


def features(value):
    """The axis of the features: of images, the channels."""
    return 1 if len(value.shape.dims) == 4 else len(value.shape.dims) - 1


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


def layer_norm(node, own, value):
    """Of images, over the channels of each pixel."""
    value = normal(value, features(value), node["epsilon"]) * wide(own["weight"], value)
    return value + wide(own["bias"], value) if node["bias"] else value


def normal(value, axis, epsilon):
    centred = value - op.mean(value, axes=[axis], keepdims=True)
    variance = op.mean(centred * centred, axes=[axis], keepdims=True)
    return centred / op.sqrt(variance + epsilon)


def rms_norm(node, own, value):
    """Divided by the root of the mean of squares."""
    squares = op.mean(value * value, axes=[features(value)], keepdims=True)
    return value / op.sqrt(squares + node["epsilon"]) * own["weight"]


def layer_scale(node, own, value):
    """Of images, one number a channel."""
    return value * wide(own["weight"], value)


def gelu(node, own, value):
    """By the error function."""
    return 0.5 * value * (1.0 + _erf(0.5**0.5 * value))


def _erf(value):
    """PlaidML has no function of its own for it."""
    value = tile.unary_op(value, "(I < -4.0 ? -4.0 : (I > 4.0 ? 4.0 : I))", "Clip")
    square = value * value
    above, below = (_polynomial(square, factors) for factors in (_ABOVE, _BELOW))
    return value * above / below


def _polynomial(value, factors):
    found = factors[0] * value + factors[1]
    for factor in factors[2:]:
        found = found * value + factor
    return found


def gelu_tanh(node, own, value):
    """The approximation."""
    bent = op.tanh(0.7978845608028654 * (value + 0.044715 * value * value * value))
    return 0.5 * value * (1.0 + bent)


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


def gru(node, own, value):
    """Its reset gate multiplies the recurrent product."""
    units, given, outputs = node["units"], _given(own, value), []
    for step in range(value.shape.dims[0]):
        sums = given(step)
        reset, update, new = [cut(sums, 1, gate * units, units) for gate in range(3)]
        if outputs:
            before = op.matmul(outputs[-1], own["recurrent"])
            inner = [cut(before, 1, gate * units, units) for gate in range(3)]
            reset, update = op.sigmoid(reset + inner[0]), op.sigmoid(update + inner[1])
            new = op.tanh(new + reset * inner[2])
            outputs.append(new + update * (outputs[-1] - new))
        else:
            new = op.tanh(new)
            outputs.append(new - op.sigmoid(update) * new)
    return joined(outputs)


def positions(node, own, value):
    """A row for each step, or for each of several."""
    steps, _, units = value.shape.dims
    code = "function (I[R, U]) -> (O) {{ O[{0}*r + i, u : {1}, U] = +(I[r, u]), i < {0}; }}"
    spread = written(code.format(node["each"], steps), (steps, units), I=own["weight"])
    return value + op.reshape(spread, (steps, 1, units))


def unembedding(node, own, value, table):
    """By the weight that words are looked up in."""
    code = "function (I[R, U], T[V, U]) -> (O) { O[r, v : R, V] = +(I[r, u] * T[v, u]); }"
    steps, batch, _ = value.shape.dims
    words, flat = table.shape.dims[0], rows(value)
    scores = written(code, (steps * batch, words), I=flat, T=table)
    return op.reshape(scores, (steps, batch, words))


def attention(node, own, value):
    """Two contractions over all heads of all samples, and a softmax between them."""
    steps, batch, wide = value.shape.dims
    heads = node["heads"]
    size = wide // (3 * heads)
    parts = [cut(value, 2, at * heads * size, heads * size) for at in range(3)]
    queries, keys, values = [op.reshape(part, (steps, batch, heads, size)) for part in parts]
    # What comes later is out of sight.
    seen = "(index(P, 3) > index(P, 2) ? -1.0e30 : P)" if node.get("causal") else "P"
    code = """function (Q[I, B, H, D], K[J, B, H, D]) -> (O) {{
        S[b, h, i, j : B, H, I, J] = +(Q[i, b, h, d] * K[j, b, h, d]);
        P = S * {!r};
        O = {};
    }}""".format(size**-0.5, seen)
    scores = written(code, (batch, heads, steps, steps), Q=queries, K=keys)
    shares = op.reshape(op.softmax(rows(scores)), (batch, heads, steps, steps))
    code = """function (P[B, H, I, J], V[J, B, H, D]) -> (O) {
        O[i, b, h, d : I, B, H, D] = +(P[b, h, i, j] * V[j, b, h, d]);
    }"""
    found = written(code, (steps, batch, heads, size), P=shares, V=values)
    return op.reshape(found, (steps, batch, heads * size))


def class_token(node, own, value):
    """The same for each sample."""
    _, batch, units = value.shape.dims
    code = "function (W[U]) -> (O) {{ O[s, b, u : 1, {}, U] = +(W[u]); }}".format(batch)
    token = written(code, (1, batch, units), W=op.reshape(own["weight"], (units,)))
    return op.concatenate([token, value], axis=0)


def first_step(node, own, value):
    """One step alone."""
    return op.reshape(cut(value, 0, 0, 1), value.shape.dims[1:])


def part(node, own, value):
    """Some of the features."""
    return cut(value, features(value), node["start"], node["size"])


def unstack(node, own, value):
    """The steps of a sample behind one another."""
    steps, batch, units = value.shape.dims
    return op.reshape(turned(value, 1, 0, 2), (batch, steps * units))


def reversal(node, own, value):
    """Its gradient is turned."""
    return 2.0 * constant(value) - value


def sampled_code(node, own, value, noise):
    """Means and logarithms of variances come behind one another."""
    code = node["shape"][-1]
    return cut(value, 1, 0, code) + op.exp(0.5 * cut(value, 1, code, code)) * noise


def rbm(node, own, visible, noise):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    visible = constant(visible)
    scores = op.matmul(visible, own["weight"]) + own["hidden"]
    chances = constant(op.sigmoid(scores))
    drawn = tile.binary_op(2.0 * chances - 1.0, noise, "(L > R ? 1.0 : 0.0)")
    end = op.matmul(constant(drawn), turned(own["weight"], 1, 0)) + own["visible"]
    end = constant(op.sigmoid(end))
    again = op.matmul(end, own["weight"]) + own["hidden"]
    energy = op.summation(softplus(again) - softplus(scores), axes=[1], keepdims=True)
    apart = op.summation((end - visible) * own["visible"], axes=[1], keepdims=True)
    return op.concatenate([energy + apart, chances], axis=1)
