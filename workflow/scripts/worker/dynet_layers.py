"""Layers of DyNet that are made of its primitives, and its losses without classes.

As in the adapter, arrays are column-major with the batch last, and a sequence is a list of its steps, or all of them
in one batch, steps first.
"""

import dynet


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
