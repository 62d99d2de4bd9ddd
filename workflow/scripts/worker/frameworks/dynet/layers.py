"""Layers of DyNet that are made of its primitives, and its losses without classes.

As in the adapter, arrays are column-major with the batch last, and a sequence is a list of its steps, or all of them
in one batch, steps first.
"""

import dynet
import numpy as np

from shared import specification


def whole(x):
    """The steps of a sequence as one batch, so that one product takes them all."""
    return dynet.concatenate_to_batch(x) if isinstance(x, list) else x


def steps_of(count, x):
    """The steps of a sequence as a list."""
    if isinstance(x, list):
        return x
    batch = x.dim()[1] // count
    starts = range(0, count * batch, batch)
    return [dynet.pick_batch_elems(x, list(range(start, start + batch))) for start in starts]


def each(function):
    """A layer of a function of each value."""
    return lambda node, own, x: function(whole(x))


def rnn(node, own, x):
    outputs = []
    for value in steps_of(node["in_shape"][0], x):
        before = [own["recurrent"], outputs[-1]] if outputs else []
        sums = dynet.affine_transform([own["bias"], own["input"], value] + before)
        outputs.append(dynet.tanh(sums))
    return outputs


def gru(node, own, x):
    """DyNet's own GRU multiplies what goes into the recurrent product by the reset gate, and not the product."""
    units = node["units"]
    steps = steps_of(node["in_shape"][0], x)
    output, outputs = dynet.zeros((units,), batch_size=steps[0].dim()[1]), []
    for value in steps:
        sums = dynet.affine_transform([own["bias"], own["input"], value])
        products = own["recurrent"] * output
        gates = dynet.logistic(
            dynet.pick_range(sums, 0, 2 * units) + dynet.pick_range(products, 0, 2 * units)
        )
        reset, update = (dynet.pick_range(gates, at, at + units) for at in (0, units))
        new = dynet.pick_range(products, 2 * units, 3 * units)
        new = dynet.tanh(dynet.pick_range(sums, 2 * units, 3 * units) + dynet.cmult(reset, new))
        output = new + dynet.cmult(update, output - new)
        outputs.append(output)
    return outputs


def avg_pool(node, x):
    """Mean of one strided part of the image for each place in a window: DyNet has no average pooling."""
    stride, kernel = node["stride"], node["kernel"]
    reach = [(extent - 1) * stride + 1 for extent in node["shape"][:0:-1]]
    parts = [
        dynet.strided_select(
            x, [stride, stride], [across, down], [across + reach[0], down + reach[1]]
        )
        for down in range(kernel)
        for across in range(kernel)
    ]
    return dynet.average(parts)


def upsample(node, own, x):
    factor, (channels, height, width) = node["factor"], node["in_shape"]
    batch = x.dim()[1]
    rows = dynet.reshape(x, (1, width, height * channels), batch_size=batch)
    rows = dynet.concatenate([rows] * factor, d=0)
    rows = dynet.reshape(rows, (factor * width, 1, height * channels), batch_size=batch)
    rows = dynet.concatenate([rows] * factor, d=1)
    return dynet.reshape(rows, (factor * width, factor * height, channels), batch_size=batch)


def local_response_norm(node, own, x):
    (channels, height, width), half = node["in_shape"], node["size"] // 2
    border = [dynet.zeros((width, height, half), batch_size=x.dim()[1])]
    squares = dynet.concatenate(border + [dynet.square(x)] + border, d=2)
    parts = [dynet.pick_range(squares, at, at + channels, 2) for at in range(node["size"])]
    sums = dynet.esum(parts) * (1 / (node["inverse_alpha"] * node["size"])) + 1.0
    return dynet.cmult(x, dynet.exp(dynet.log(sums) * -0.75))


def channel_shuffle(node, own, x):
    groups, (channels, height, width) = node["groups"], node["in_shape"]
    batch = x.dim()[1]
    parts = dynet.reshape(x, (width * height, channels // groups, groups), batch_size=batch)
    parts = dynet.transpose(parts, [0, 2, 1])
    return dynet.reshape(parts, (width, height, channels), batch_size=batch)


def concat(node, own, *values):
    """Images by their channels, rows by their features."""
    return dynet.concatenate(list(values), d=len(node["shape"]) - 1)


def part(node, own, x):
    return dynet.pick_range(whole(x), node["start"], node["start"] + node["size"])


def unstack(node, own, x):
    return dynet.concatenate(steps_of(node["in_shape"][0], x))


def sampled_code(node, own, x, noise):
    mean = dynet.pick_range(x, 0, node["shape"][0])
    spread = dynet.pick_range(x, node["shape"][0], node["in_shape"][0])
    return mean + dynet.cmult(dynet.exp(spread * 0.5), noise)


def rbm(node, own, visible, noise):
    weight, visible = own["weight"], dynet.nobackprop(visible)
    scores = dynet.affine_transform([own["hidden"], dynet.transpose(weight), visible])
    chances = dynet.nobackprop(dynet.logistic(scores))
    # One where the chance is above the noise: between -1 and 1 there is no other whole number to round up to.
    drawn = dynet.nobackprop(dynet.ceil((chances * 2.0 - 1.0 - noise) * 0.5, "zero_gradient"))
    end = dynet.logistic(dynet.affine_transform([own["visible"], weight, drawn]))
    end = dynet.nobackprop(end)
    again = dynet.affine_transform([own["hidden"], dynet.transpose(weight), end])
    energy = dynet.sum_elems(softplus(again)) - dynet.sum_elems(softplus(scores))
    energy = energy + dynet.dot_product(end - visible, own["visible"])
    return dynet.concatenate([energy, chances])


def bias(node, own, x):
    return whole(x) + own["bias"]


def gelu(node, own, x):
    x = whole(x)
    return dynet.cmult(x * 0.5, dynet.erf(x * 0.5**0.5) + 1.0)


def gelu_tanh(node, own, x):
    x = whole(x)
    inner = (x + dynet.cube(x) * 0.044715) * (2 / np.pi) ** 0.5
    return dynet.cmult(x * 0.5, dynet.tanh(inner) + 1.0)


def silu(node, own, x):
    """DyNet's own takes five times as long."""
    x = whole(x)
    return dynet.cmult(x, dynet.logistic(x))


def adaptive_avg_pool(node, own, x):
    """The mean of each share of the columns, and then of the rows: shares overlap where they are not alike."""
    size, shape = node["size"], node["in_shape"][::-1]
    for axis in (0, 1):
        extent, shape[axis], found = shape[axis], 1, []
        for share in range(size):
            first, end = share * extent // size, -(-(share + 1) * extent // size)
            mean = dynet.mean_dim(dynet.pick_range(x, first, end, axis), [axis], False)
            found.append(dynet.reshape(mean, tuple(shape), batch_size=x.dim()[1]))
        x, shape[axis] = dynet.concatenate(found, d=axis), size
    return x


def batch_norm(node, own, x):
    """From primitives, as all normalisation is: DyNet has none by the batch."""
    mean, _ = _of_columns(node["shape"][1] * node["shape"][2])
    centred = x - wide(node, _of_channels(x, mean))
    variance = _of_channels(dynet.square(centred), mean)
    scale = dynet.cdiv(own["gamma"], dynet.sqrt(variance + specification.BATCH_NORM_EPSILON))
    return dynet.cmult(centred, wide(node, scale)) + wide(node, own["beta"])


def _of_channels(x, mean):
    """Mean of each channel: first of each image, since one long sum in float32 is less exact."""
    (width, height, channels), batch = x.dim()
    columns = dynet.reshape(x, (width * height, channels), batch_size=batch)
    return dynet.mean_batches(dynet.reshape(mean(columns), (channels,), batch_size=batch))


def group_norm(node, own, x):
    """The mean and variance of each group are those of a column."""
    (channels, height, width), groups = node["shape"], node["groups"]
    size = width * height * channels // groups
    parts = dynet.reshape(x, (size, groups), batch_size=x.dim()[1])
    normal = _normal(parts, specification.BATCH_NORM_EPSILON, *_of_columns(size))
    normal = dynet.reshape(normal, (width, height, channels), batch_size=x.dim()[1])
    return dynet.cmult(normal, wide(node, own["gamma"])) + wide(node, own["beta"])


def layer_norm(node, own, x):
    """Of images, over the channels of each pixel. DyNet's own takes no epsilon."""
    x, features = whole(x), node["shape"][0 if len(node["shape"]) == 3 else -1]
    if len(node["shape"]) == 3:
        shape, batch = x.dim()
        pixels = dynet.reshape(x, (shape[0] * shape[1], features), batch_size=batch)
        normal = _normal(pixels, node["epsilon"], *_of_rows(features))
        normal = dynet.reshape(normal, shape, batch_size=batch)
    else:
        normal = _normal(x, node["epsilon"], *_of_columns(features))
    normal = dynet.cmult(normal, wide(node, own["weight"]))
    return normal + wide(node, own["bias"]) if node["bias"] else normal


def rms_norm(node, own, x):
    x = whole(x)
    mean, spread = _of_columns(node["shape"][-1])
    root = dynet.sqrt(mean(dynet.square(x)) + node["epsilon"])
    return dynet.cmult(dynet.cdiv(x, spread(root)), own["weight"])


def _normal(x, epsilon, mean, spread):
    centred = x - spread(mean(x))
    return dynet.cdiv(centred, spread(dynet.sqrt(mean(dynet.square(centred)) + epsilon)))


def _of_columns(size):
    """The mean of each column, and a row as columns of equal values: products, since what DyNet repeats for itself
    takes five times as long.
    """
    shares, ones = dynet.constant((1, size), 1.0 / size), dynet.ones((size, 1))
    return lambda x: shares * x, lambda x: ones * x


def _of_rows(size):
    """The same of each row."""
    shares, ones = dynet.constant((size, 1), 1.0 / size), dynet.ones((1, size))
    return lambda x: x * shares, lambda x: x * ones


def wide(node, values):
    """One number a feature, to stand beside a value: the features of an image are its channels."""
    if len(node["shape"]) != 3:
        return values
    channels, height, width = node["shape"]
    rows = dynet.ones((width * height, 1)) * dynet.reshape(values, (1, channels))
    return dynet.reshape(rows, (width, height, channels))


def layer_scale(node, own, x):
    return dynet.cmult(whole(x), wide(node, own["weight"]))


def lookup(node, own, words, table):
    """All steps at once. A table has its words as rows, so that the scores of words need no turned one."""
    rows = dynet.select_rows(table, [word for step in words for word in step])
    (count, units), _ = rows.dim()
    return dynet.reshape(dynet.transpose(rows), (units,), batch_size=count)


def unembedding(node, own, x, table):
    return table * whole(x)


def positions(node, own, x):
    """A row for each step, or for each of several, beside each sample."""
    (steps, units), x = node["shape"], whole(x)
    numbers = [step // node["each"] for step in range(steps)]
    rows = dynet.reshape(dynet.select_cols(own["weight"], numbers), (units, 1, steps))
    return _batched(_unbatched(x, steps) + rows)


def _unbatched(x, steps):
    """A sequence as one array (features, samples, steps)."""
    (features,), count = x.dim()
    return dynet.reshape(x, (features, count // steps, steps))


def _batched(x):
    """The way back: the first axis has the features."""
    (features, samples, steps), _ = x.dim()
    return dynet.reshape(x, (features,), batch_size=samples * steps)


def constants(node):
    """{role: array} of what a layer has beside its parameters: a causal mask hides later steps."""
    if not node.get("causal"):
        return {}
    steps, _ = node["shape"]
    return {"mask": np.tril(np.full((steps, steps), -1e30, np.float32), -1)}


def attention(node, own, x):
    """Two products for each head of each sample, which are a batch, and a softmax between them."""
    (steps, units), heads, x = node["shape"], node["heads"], whole(x)
    size, batch = units // heads, heads * x.dim()[1] // steps
    q, k, v = [
        dynet.reshape(dynet.pick_range(x, at, at + units), (size, batch, steps))
        for at in (0, units, 2 * units)
    ]
    q, v = [_heads(part, [0, 2, 1]) for part in (q * size**-0.5, v)]
    scores = _heads(k, [2, 0, 1]) * q
    if node.get("causal"):
        scores = scores + dynet.const_parameter(own["mask"])
    found = dynet.reshape(v * dynet.softmax(scores), (size, steps, batch))
    found = dynet.transpose(found, [0, 2, 1])
    return dynet.reshape(found, (units,), batch_size=batch // heads * steps)


def _heads(x, axes):
    """A matrix of each head of each sample."""
    x = dynet.transpose(x, axes)
    shape, _ = x.dim()
    return dynet.reshape(x, shape[:2], batch_size=shape[2])


def patches(node, own, x):
    """Each pixel as a step."""
    steps, features = node["shape"]
    return _batched(dynet.transpose(dynet.reshape(x, (steps, features, x.dim()[1])), [1, 2, 0]))


def transpose(node, own, x):
    return _batched(dynet.transpose(_unbatched(whole(x), node["in_shape"][0]), [2, 1, 0]))


def class_token(node, own, x):
    x = whole(x)
    samples = x.dim()[1] // node["in_shape"][0]
    return dynet.concatenate_to_batch([own["weight"]] * samples + [x])


def first_step(node, own, x):
    x = whole(x)
    return dynet.pick_batch_elems(x, list(range(x.dim()[1] // node["in_shape"][0])))


def mean_steps(node, own, x):
    mean = dynet.mean_dim(_unbatched(whole(x), node["in_shape"][0]), [2], False)
    (features, samples), _ = mean.dim()
    return dynet.reshape(mean, (features,), batch_size=samples)


def softplus(x):
    return -dynet.log_sigmoid(-x)


def _missed(outputs, targets):
    """The binary cross entropy of each."""
    return softplus(outputs) - dynet.cmult(outputs, targets)


def _evidence_bound(outputs, targets):
    """Of the outputs of a decoder, and behind them the means and logarithms of variances of a code."""
    (size,), (pixels,) = outputs.dim()[0], targets.dim()[0]
    middle = (size + pixels) // 2
    mean = dynet.pick_range(outputs, pixels, middle)
    spread = dynet.pick_range(outputs, middle, size)
    apart = dynet.sum_elems(dynet.square(mean) + dynet.exp(spread) - spread - 1.0) * 0.5
    missed = dynet.sum_elems(_missed(dynet.pick_range(outputs, 0, pixels), targets))
    return (missed + apart) * (1.0 / size)


def _cross_entropy(outputs, targets):
    return dynet.mean_elems(_missed(outputs, targets))


# Of each sample, of outputs and targets.
DISTANCES = {
    "mean_squares": lambda outputs, targets: dynet.mean_elems(dynet.square(outputs - targets)),
    "binary_cross_entropy": _cross_entropy,
    "evidence_bound": _evidence_bound,
    "adversarial": _cross_entropy,
    "mean_output": lambda outputs, targets: dynet.mean_elems(outputs),
}
