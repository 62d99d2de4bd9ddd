"""Layers of PlaidML 0.7 that stand in none of the networks of the papers' first tables: of images, sequences, attention
and generative networks.

Each takes a node, its parameters and its inputs. Images are (batch, channels, height, width), sequences (steps, batch,
features). What `plaidml.op` has not is written in Tile, PlaidML's own language, which finds the gradient itself. What
was chosen here: docs/adapters/plaidml.md.

Plain Python that 3.6 can import: standard library, numpy and PlaidML.
"""

import numpy as np
from plaidml import op, tile

from . import specification

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


def _written(code, shape, **given):
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


def max_pool(node, own, value):
    """Padding never is the largest."""
    if node["stride"] == 1:
        return _first_maxima(node, value)
    edges = {"pads": (node["padding"],) * 2}
    return op.max_pool(value, (node["kernel"],) * 2, (node["stride"],) * 2, **edges)


def _first_maxima(node, value):
    """The first of equal maxima has the whole gradient; of PlaidML's own pool, all of them have it.

    What has been pooled by overlapping windows has the same number in neighbouring places. In the program, S is the
    largest number held `constant`, and T is greatest at its first place.
    """
    (_, height, width), (_, high, broad) = node["shape"], node["in_shape"]
    places = {"k": node["kernel"], "p": node["padding"], "height": height, "width": width}
    code = """function (I[N, C, H, W]) -> (O) {{
        E[n, c, y, x, i, j : N, C, {height}, {width}, {k}, {k}] = =(I[n, c, y + i - {p}, x + j - {p}]);
        Y = index(E, 2) + index(E, 4);
        X = index(E, 3) + index(E, 5);
        R = (Y < {p} ? -3.0e38 : (Y > {bottom} ? -3.0e38 : E));
        V = (X < {p} ? -3.0e38 : (X > {right} ? -3.0e38 : R));
        M[n, c, y, x, 0, 0 : N, C, {height}, {width}, 1, 1] = >(V[n, c, y, x, i, j]);
        S = as_float(M, 32) + (M < -3.1e38 ? M : 0.0);
        T = (V == S ? {k}.0 * {k}.0 - {k}.0 * index(E, 4) - 1.0 * index(E, 5) : 0.0);
        F[n, c, y, x, 0, 0 : N, C, {height}, {width}, 1, 1] = >(T[n, c, y, x, i, j]);
        P = (T == F ? V : 0.0);
        O[n, c, y, x : N, C, {height}, {width}] = +(P[n, c, y, x, i, j]);
    }}"""
    code = code.format(
        bottom=high - 1 + node["padding"], right=broad - 1 + node["padding"], **places
    )
    return _written(code, tuple(value.shape.dims[:2]) + (height, width), I=value)


def avg_pool(node, own, value):
    """Padding counts."""
    size, (channels, height, width) = node["kernel"], node["shape"]
    code = """function (I[N, C, H, W]) -> (O) {{
        S[n, c, y, x : N, C, {0}, {1}] = +(I[n, c, {2}*y + i - {3}, {2}*x + j - {3}]), i < {4}, j < {4};
        O = S / {5}.0;
    }}"""
    code = code.format(height, width, node["stride"], node["padding"], size, size * size)
    return _written(code, (value.shape.dims[0], channels, height, width), I=value)


def adaptive_avg_pool(node, own, value):
    """The mean of each share of rows, then of columns."""
    size = node["size"]
    for axis, extent in zip((2, 3), node["in_shape"][1:]):
        ends = [(at * extent // size, -(-(at + 1) * extent // size)) for at in range(size)]
        shares = [cut(value, axis, begin, end - begin) for begin, end in ends]
        means = [op.mean(share, axes=[axis], keepdims=True) for share in shares]
        value = op.concatenate(means, axis=axis)
    return value


def conv_transpose(node, own, value):
    """What a convolution does on its way back; weights come as (in, out, height, width)."""
    batch, (channels, height, width) = value.shape.dims[0], node["shape"]
    code = """function (I[N, CI, H, W], K[CI, CO, KH, KW]) -> (O) {{
        O[n, co, {2}*y + i - {3}, {2}*x + j - {3} : N, CO, {0}, {1}] = +(I[n, ci, y, x] * K[ci, co, i, j]);
    }}"""
    code = code.format(height, width, node["stride"], node["padding"])
    made = _written(code, (batch, channels, height, width), I=value, K=own["weight"])
    return made + wide(own["bias"], made) if node["bias"] else made


def grouped_conv(node, own, value):
    """Kernels come as (out, in / groups, height, width)."""
    groups, (channels, height, width) = node["groups"], node["shape"]
    seen, made = node["in_shape"][0] // groups, channels // groups
    batch, kernel = value.shape.dims[0], node["kernel"]
    value = op.reshape(value, (batch, groups, seen) + tuple(node["in_shape"][1:]))
    weight = op.reshape(own["weight"], (groups, made, seen, kernel, kernel))
    code = """function (I[N, G, CI, H, W], K[G, CO, CI, KH, KW]) -> (O) {{
        O[n, g, co, y, x : N, G, CO, {0}, {1}] =
            +(I[n, g, ci, {2}*y + i - {3}, {2}*x + j - {3}] * K[g, co, ci, i, j]);
    }}"""
    code = code.format(height, width, node["stride"], node["padding"])
    found = _written(code, (batch, groups, made, height, width), I=value, K=weight)
    found = op.reshape(found, (batch, channels, height, width))
    return found + wide(own["bias"], found) if node["bias"] else found


def upsample(node, own, value):
    """Each pixel as a square of its own value."""
    (channels, height, width), factor = node["shape"], node["factor"]
    code = """function (I[N, C, H, W]) -> (O) {{
        O[n, c, {2}*y + i, {2}*x + j : N, C, {0}, {1}] = +(I[n, c, y, x]), i < {2}, j < {2};
    }}""".format(height, width, factor)
    return _written(code, (value.shape.dims[0], channels, height, width), I=value)


def channel_shuffle(node, own, value):
    """The first of each group, then the second of each."""
    (channels, height, width), groups = node["shape"], node["groups"]
    batch, each = value.shape.dims[0], channels // groups
    parts = op.reshape(value, (batch, groups, each, height * width))
    return op.reshape(turned(parts, 0, 2, 1, 3), (batch, channels, height, width))


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
    return _written(code, [dims[axis] for axis in order], I=value)


def local_response_norm(node, own, value):
    """Divided by the squares of neighbouring channels."""
    size = node["size"]
    code = """function (I[N, C, H, W]) -> (O) {{
        S = I * I;
        O[n, c, y, x : N, C, H, W] = +(S[n, c + i - {}, y, x]), i < {};
    }}""".format(size // 2, size)
    near = _written(code, value.shape.dims, I=value)
    scale = 1.0 + near * (1.0 / (node["inverse_alpha"] * size))
    return value * op.exp(-0.75 * op.log(scale))


def group_norm(node, own, value):
    """Each group of channels of a sample by its own mean and variance."""
    dims = value.shape.dims
    parts = op.reshape(value, (dims[0], node["groups"], int(np.prod(dims[1:])) // node["groups"]))
    value = op.reshape(_normal(parts, 2, specification.BATCH_NORM_EPSILON), dims)
    return value * wide(own["gamma"], value) + wide(own["beta"], value)


def layer_norm(node, own, value):
    """Of images, over the channels of each pixel."""
    value = _normal(value, features(value), node["epsilon"]) * wide(own["weight"], value)
    return value + wide(own["bias"], value) if node["bias"] else value


def _normal(value, axis, epsilon):
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
    spread = _written(code.format(node["each"], steps), (steps, units), I=own["weight"])
    return value + op.reshape(spread, (steps, 1, units))


def unembedding(node, own, value, table):
    """By the weight that words are looked up in."""
    code = "function (I[R, U], T[V, U]) -> (O) { O[r, v : R, V] = +(I[r, u] * T[v, u]); }"
    steps, batch, _ = value.shape.dims
    words, flat = table.shape.dims[0], rows(value)
    scores = _written(code, (steps * batch, words), I=flat, T=table)
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
    scores = _written(code, (batch, heads, steps, steps), Q=queries, K=keys)
    shares = op.reshape(op.softmax(rows(scores)), (batch, heads, steps, steps))
    code = """function (P[B, H, I, J], V[J, B, H, D]) -> (O) {
        O[i, b, h, d : I, B, H, D] = +(P[b, h, i, j] * V[j, b, h, d]);
    }"""
    found = _written(code, (steps, batch, heads, size), P=shares, V=values)
    return op.reshape(found, (steps, batch, heads * size))


def patches(node, own, value):
    """Each pixel as a step."""
    batch, channels, height, width = value.shape.dims
    return turned(op.reshape(value, (batch, channels, height * width)), 2, 0, 1)


def class_token(node, own, value):
    """The same for each sample."""
    _, batch, units = value.shape.dims
    code = "function (W[U]) -> (O) {{ O[s, b, u : 1, {}, U] = +(W[u]); }}".format(batch)
    token = _written(code, (1, batch, units), W=op.reshape(own["weight"], (units,)))
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
