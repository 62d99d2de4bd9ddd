"""Layers of BigDL that stand in no network of the papers' six: of its own modules, and of small graphs of them.

Each takes BigDL's interface for Python and a node. Images are (batch, channels, height, width), sequences (batch,
steps, features); axes are counted from one, the batch being the first. What was chosen: docs/adapters/bigdl.md.

Plain Python that 3.6 can import: standard library and JPype.
"""

import math

import jpype

from shared import specification

# A ReLU behind one of these may overwrite what it reads: none of them is a view, or reads its output again.
OWN_MEMORY = (
    "conv",
    "grouped_conv",
    "conv_transpose",
    "batch_norm",
    "group_norm",
    "dense",
    "add",
    "concat",
)


# Of all axes, where a module asks how many a sample has.
_ANY = 2**31 - 1


def java_list(items):
    """A list of Java."""
    made = jpype.JClass("java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


def java_integers(*values):
    """A list of Java, of its integers."""
    return java_list(jpype.JClass("java.lang.Integer")(int(value)) for value in values)


def whole(api, describe, inputs=1):
    """A module that is a graph: what `describe(put, *sources)` puts together."""

    def put(module, *sources):
        return api.createNode(module, java_list(sources))

    starts = [api.createInput() for _ in range(inputs)]
    made = describe(put, *starts)
    ends = made if isinstance(made, list) else [made]
    return api.createModel(java_list(starts), java_list(ends))


def reshaped(api, *shape, **asked):
    """A module that gives each sample this shape; with `batch` false, all that it is given."""
    each = jpype.JClass("java.lang.Boolean")(asked.get("batch", True))
    return api.createReshape(java_integers(*shape), each)


def turned(api, first, second):
    """A module that exchanges two axes."""
    return api.createTranspose(java_list([java_integers(first, second)]))


def in_turn(api, *modules):
    """Modules behind one another."""
    made = api.createSequential()
    for module in modules:
        made.add(module)
    return made


def plain(name, *options):
    """A layer that is a module of BigDL's with these options."""
    return lambda api, node: getattr(api, "create" + name)(*options)


def window(node):
    """Its extents in rows and columns."""
    return [node[key] for key in ("kernel", "stride", "padding") for _ in range(2)]


def relu(api, node):
    """In place where nothing else reads what it overwrites."""
    return api.createReLU(node["alone"])


def conv(api, node):
    """A convolution, in groups where it has them. The first layer makes no gradient of the data."""
    channels = node["in_shape"][0], node["channels"]
    options = [node.get("groups", 1), not node["first"]] + [None] * 6 + [node["bias"], "NCHW"]
    return api.createSpatialConvolution(*(list(channels) + window(node) + options))


def conv_transpose(api, node):
    """Its weights come as (in, out, height, width). BigDL adds up the gradients of its own bias from step to step."""
    options = [node["in_shape"][0], node["channels"]] + window(node) + [0, 0, 1, True, None, None]

    def describe(put, x):
        x = put(api.createSpatialFullConvolution(*options), x)
        return _raised(api, put, x, _spread(2, node["shape"])) if node["bias"] else x

    return whole(api, describe)


def local_response_norm(api, node):
    """In the terms of Caffe, as the specification."""
    options = [node["size"], 1.0 / node["inverse_alpha"], 0.75, 1.0]
    return api.createSpatialCrossMapLRN(*(options + ["NCHW"]))


def adaptive_avg_pool(api, node):
    """The mean of each share of rows, then of columns."""
    size = node["size"]

    def describe(put, x):
        for axis, extent in ((3, node["in_shape"][1]), (4, node["in_shape"][2])):
            shares = []
            for share in range(size):
                first, end = share * extent // size, -(-(share + 1) * extent // size)
                lines = put(api.createNarrow(axis, first + 1, end - first), x)
                mean = put(api.createMean(axis, -1, True), lines)
                shares.append(put(api.createReplicate(1, axis, _ANY), mean))
            x = put(api.createJoinTable(axis, 0), *shares)
        return x

    return whole(api, describe)


def upsample(api, node):
    """Each pixel as a square of its own value."""
    return api.createUpSampling2D(java_integers(*[node["factor"]] * 2), "NCHW")


def channel_shuffle(api, node):
    """Groups of channels, one channel of each in turn."""
    (channels, height, width), groups = node["shape"], node["groups"]
    apart = reshaped(api, groups, channels // groups, height * width)
    return in_turn(api, apart, turned(api, 2, 3), reshaped(api, channels, height, width))


def dropout(api, node):
    """What is kept is scaled in training."""
    return api.createDropout(node["rate"], False, True)


def part(api, node):
    """Some of the features."""
    return api.createNarrow(len(node["in_shape"]) + 1, node["start"] + 1, node["size"])


def sampled_code(api, node):
    """Means and logarithms of variances come behind one another."""
    size = node["shape"][0]

    def describe(put, code, noise):
        mean = put(api.createNarrow(2, 1, size), code)
        spread = put(api.createNarrow(2, size + 1, size), code)
        deviation = put(api.createExp(), put(api.createMulConstant(0.5, False), spread))
        return put(api.createCAddTable(False), mean, put(api.createCMulTable(), deviation, noise))

    return whole(api, describe, inputs=2)


def rbm(api, node):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    seen, units = node["in_shape"][0], node["units"]

    def describe(put, visible, noise):
        def held(x):
            return put(api.createGradientReversal(0.0), x)

        def added(*sources):
            return put(api.createCAddTable(False), *sources)

        def times(x, y, turned=False):
            return put(api.createMM(False, turned), x, y)

        def ones(x):
            return put(affine(api, 0.0, 1.0), x)

        def own(role, rows, columns):
            """A parameter that stands alone: what a module of its name makes of a single one."""
            module = api.createLinear(1, rows * columns, False, *[None] * 6)
            made = put(module.setName(node["name"] + "/" + role), single)
            return put(reshaped(api, rows, columns, batch=False), made)

        def softened(x):
            sums = put(api.createSum(2, -1, False, True), put(api.createSoftPlus(1.0), x))
            return put(reshaped(api, 1), sums)

        visible, noise = held(visible), held(noise)
        column = ones(put(api.createNarrow(2, 1, 1), visible))
        single = put(api.createNarrow(1, 1, 1), column)
        weight = own("weight", seen, units)
        down, up = own("visible", 1, seen), own("hidden", 1, units)
        above, below = times(column, up), times(column, held(down))
        scores = added(times(visible, weight), above)
        chances = put(api.createSigmoid(), held(scores))
        over = put(api.createCSubTable(), put(affine(api, 2.0, -1.0), chances), noise)
        drawn = put(api.createBinaryThreshold(0.0, False), over)
        made = added(times(drawn, held(weight), True), below)
        end = held(put(api.createSigmoid(), made))
        dreamt = softened(added(times(end, weight), above))
        moved = put(api.createCSubTable(), end, visible)
        pulled = times(moved, down, True)
        energy = put(api.createCSubTable(), added(dreamt, pulled), softened(scores))
        return put(api.createJoinTable(2, 0), energy, held(chances))

    return whole(api, describe, inputs=2)


def rnn(api, node):
    """BigDL's own cell, whose product of the inputs of all steps is one."""
    cell = api.createRnnCell(
        node["in_shape"][-1], node["units"], api.createTanh(), True, False, None, None, None
    )
    return api.createRecurrent().add(cell)


def gru(api, node):
    """BigDL's own, with a graph of our own inside: its reset gate multiplies what goes into the recurrent product."""
    units = node["units"]
    unit = api.createGRU(node["in_shape"][-1], units, 0.0, *[None] * 5)

    def describe(put, given, output):
        inner = put(api.createLinear(units, 3 * units, False, *[None] * 6), output)
        (gates, fresh), (opened, kept) = (
            [
                put(api.createNarrow(2, 1, 2 * units), source),
                put(api.createNarrow(2, 2 * units + 1, units), source),
            ]
            for source in (given, inner)
        )
        gates = put(api.createSigmoid(), put(api.createCAddTable(False), gates, opened))
        reset = put(api.createNarrow(2, 1, units), gates)
        update = put(api.createNarrow(2, units + 1, units), gates)
        kept = put(api.createCMulTable(), reset, kept)
        new = put(api.createTanh(), put(api.createCAddTable(False), fresh, kept))
        apart = put(api.createCSubTable(), output, new)
        moved = put(api.createCMulTable(), update, apart)
        made = put(api.createCAddTable(False), new, moved)
        return [put(api.createIdentity(), made), put(api.createIdentity(), made)]

    getattr(unit, "cell_$eq")(whole(api, describe, inputs=2))
    return api.createRecurrent().add(unit)


def silu(api, node):
    """x s(x), of a sigmoid and a product."""

    def describe(put, x):
        return put(api.createCMulTable(), x, put(api.createSigmoid(), x))

    return whole(api, describe)


def gelu_tanh(api, node):
    """0.5 x (1 + tanh(a (x + b x^3)))."""
    inner = math.sqrt(2.0 / math.pi)

    def describe(put, x):
        cubic = put(
            api.createMulConstant(0.044715 * inner, False),
            put(api.createCMulTable(), x, put(api.createSquare(), x)),
        )
        linear = put(api.createMulConstant(inner, False), x)
        bent = put(api.createTanh(), put(api.createCAddTable(False), linear, cubic))
        return put(api.createCMulTable(), x, put(affine(api, 0.5, 0.5), bent))

    return whole(api, describe)


def affine(api, scale, shift):
    """scale x + shift. The gradient of BigDL's `Power` is 0/0 where that is 0."""
    return in_turn(api, api.createMulConstant(scale, False), api.createAddConstant(shift, False))


def _normal(api, put, x, axis, size, epsilon, centred=True):
    """Values less their mean along an axis, divided by the root of the mean of their squares plus epsilon."""

    def spread(source):
        mean = put(api.createMean(axis, -1, True), source)
        return mean, lambda each: put(api.createReplicate(size, axis, _ANY), each)

    if centred:
        mean, widen = spread(x)
        x = put(api.createCSubTable(), x, widen(mean))
    squares, widen = spread(put(api.createSquare(), x))
    return put(api.createCMulTable(), x, widen(put(api.createPower(-0.5, 1.0, epsilon), squares)))


def _raised(api, put, x, wide):
    """A number added to each feature: as a product with ones, for `CAdd` puts its gradient in the wrong place."""
    ones = put(affine(api, 0.0, 1.0), x)
    return put(api.createCAddTable(False), x, put(api.createCMul(wide, None), ones))


def _features(node):
    """The axis of the features: of an image its channels."""
    return 2 if len(node["in_shape"]) == 3 else len(node["in_shape"]) + 1


def _spread(axis, shape):
    """The shape of a vector along an axis as it is spread over samples of a shape."""
    whole_shape = [1] + list(shape)
    return java_integers(
        *[extent if at + 1 == axis else 1 for at, extent in enumerate(whole_shape)]
    )


def layer_norm(api, node):
    """Of BigDL's primitives: its own has an epsilon of 1e-6 that stays."""
    axis = _features(node)
    size, wide = node["in_shape"][axis - 2], _spread(axis, node["in_shape"])

    def describe(put, x):
        x = _normal(api, put, x, axis, size, node["epsilon"], node["op"] == "layer_norm")
        x = put(api.createCMul(wide, None), x)
        return _raised(api, put, x, wide) if node.get("bias") else x

    return whole(api, describe)


def group_norm(api, node):
    """Of BigDL's primitives, each group a row."""
    shape, groups = node["shape"], node["groups"]
    size, wide = shape[0] * shape[1] * shape[2] // groups, _spread(2, shape)

    def describe(put, x):
        rows = put(reshaped(api, groups, size), x)
        normal = _normal(api, put, rows, 3, size, specification.BATCH_NORM_EPSILON)
        back = put(reshaped(api, *shape), normal)
        return _raised(api, put, put(api.createCMul(wide, None), back), wide)

    return whole(api, describe)


def layer_scale(api, node):
    """Each feature times its weight."""
    return api.createCMul(_spread(_features(node), node["in_shape"]), None)


def bias(api, node):
    """A number added to each feature of the last axis."""
    wide = _spread(len(node["in_shape"]) + 1, node["in_shape"])
    return whole(api, lambda put, x: _raised(api, put, x, wide))


def patches(api, node):
    """Pixels as a sequence."""
    return in_turn(api, reshaped(api, *node["shape"][::-1]), turned(api, 2, 3))


def transpose(api, node):
    """Steps and features exchanged."""
    return turned(api, 2, 3)


def unstack(api, node):
    """Steps behind one another as features."""
    return reshaped(api, *node["shape"])
