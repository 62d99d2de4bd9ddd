"""Layers of PlaidML 0.7 of images, which are (batch, channels, height, width).

Each takes a node, its parameters and its inputs. A node has whether pixels of its first input may repeat (`repeats`),
besides what the specification says. What `plaidml.op` has not is written in Tile, PlaidML's own language,
which finds the gradient itself.
"""

from plaidml import op

from . import layers


def max_pool(node, own, value):
    """Padding never is the largest."""
    if node["repeats"]:
        return _first_maxima(node, value)
    edges = {"pads": (node["padding"],) * 2}
    return op.max_pool(value, (node["kernel"],) * 2, (node["stride"],) * 2, **edges)


def _first_maxima(node, value):
    """The first of equal maxima has the whole gradient; of PlaidML's own pool, all of them have it.

    In the program, S is the largest number held `constant`, and T is greatest at its first place.
    """
    (_, height, width), (_, high, broad) = node["shape"], node["in_shape"]
    places = {"k": node["kernel"], "p": node["padding"], "s": node["stride"]}
    places.update(height=height, width=width)
    code = """function (I[N, C, H, W]) -> (O) {{
        E[n, c, y, x, i, j : N, C, {height}, {width}, {k}, {k}] = =(I[n, c, {s}*y + i - {p}, {s}*x + j - {p}]);
        Y = {s} * index(E, 2) + index(E, 4);
        X = {s} * index(E, 3) + index(E, 5);
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
    return layers.written(code, tuple(value.shape.dims[:2]) + (height, width), I=value)


def avg_pool(node, own, value):
    """Padding counts. Shares are added up: PlaidML gives a wrong loss for a sum that is divided (shufflenet)."""
    size, (channels, height, width) = node["kernel"], node["shape"]
    code = """function (I[N, C, H, W]) -> (O) {{
        S = I / {5}.0;
        O[n, c, y, x : N, C, {0}, {1}] = +(S[n, c, {2}*y + i - {3}, {2}*x + j - {3}]), i < {4}, j < {4};
    }}"""
    code = code.format(height, width, node["stride"], node["padding"], size, size * size)
    return layers.written(code, (value.shape.dims[0], channels, height, width), I=value)


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
    found = layers.written(code, (batch, groups, made, height, width), I=value, K=weight)
    return op.reshape(found, (batch, channels, height, width))


def channel_shuffle(node, own, value):
    """The first of each group, then the second of each."""
    (channels, height, width), groups = node["shape"], node["groups"]
    batch, each = value.shape.dims[0], channels // groups
    parts = op.reshape(value, (batch, groups, each, height * width))
    return op.reshape(layers.turned(parts, 0, 2, 1, 3), (batch, channels, height, width))


def local_response_norm(node, own, value):
    """Divided by the squares of neighbouring channels."""
    size = node["size"]
    code = """function (I[N, C, H, W]) -> (O) {{
        S = I * I;
        O[n, c, y, x : N, C, H, W] = +(S[n, c + i - {}, y, x]), i < {};
    }}""".format(size // 2, size)
    near = layers.written(code, value.shape.dims, I=value)
    scale = 1.0 + near * (1.0 / (node["inverse_alpha"] * size))
    return value * op.exp(-0.75 * op.log(scale))
