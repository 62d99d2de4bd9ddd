"""Layers of Paddle 1 that stand in none of the networks of the papers' first tables: of images, sequences, attention
and generative networks.

Each takes a node and its inputs, and adds fluid's operators to the program that is being written. Images are
(batch, channels, height, width), sequences (steps, batch, features). What was chosen here: docs/adapters/paddle.md.

Plain Python that 3.6 can import: standard library and Paddle.
"""

from paddle import fluid
from paddle.fluid import layers

from shared import specification


def at(node, role):
    """The parameter of a layer, under its name in the specification; its random start values would take seconds."""
    if not node.get("bias", True) and role == "bias":
        return False
    return fluid.ParamAttr("{}/{}".format(node["name"], role), fluid.initializer.Constant(0.0))


def parameter(node, role, shape):
    """A parameter of a layer that fluid has no layer for."""
    return layers.create_parameter(list(shape), "float32", attr=at(node, role))


def constant(value):
    """A copy that no gradient flows through."""
    value = layers.assign(value)
    value.stop_gradient = True
    return value


def flat(value):
    """Its rows of features, whatever stands before them."""
    return layers.reshape(value, [-1, value.shape[-1]])


def columns(value, begin, end):
    """Some of the features."""
    return layers.slice(value, [len(value.shape) - 1], [begin], [end])


def grouped_conv(node, value):
    """A convolution, of which groups are an option."""
    sizes = (node["channels"], node["kernel"], node["stride"], node["padding"])
    own = {"param_attr": at(node, "weight"), "bias_attr": at(node, "bias")}
    return layers.conv2d(value, *sizes, groups=node["groups"], **own)


def conv_transpose(node, value):
    """Weights come as (in, out, height, width)."""
    return layers.conv2d_transpose(
        value,
        node["channels"],
        filter_size=node["kernel"],
        padding=node["padding"],
        stride=node["stride"],
        param_attr=at(node, "weight"),
        bias_attr=at(node, "bias"),
    )


def avg_pool(node, value):
    """Padding counts."""
    return layers.pool2d(
        value, node["kernel"], "avg", node["stride"], node["padding"], exclusive=False
    )


def channel_shuffle(node, value):
    """From primitives: fluid's own shuffles its gradient once more the same way, and not back."""
    (channels, height, width), groups = node["shape"], node["groups"]
    value = layers.reshape(value, [-1, groups, channels // groups, height * width])
    return layers.reshape(layers.transpose(value, [0, 2, 1, 3]), [-1, channels, height, width])


def local_response_norm(node, value):
    """Fluid does not divide its alpha by the number of neighbours."""
    alpha = 1 / (node["inverse_alpha"] * node["size"])
    return layers.lrn(value, node["size"], 1.0, alpha, 0.75)


def group_norm(node, value):
    """Fluid's own."""
    own = {"param_attr": at(node, "gamma"), "bias_attr": at(node, "beta")}
    return layers.group_norm(value, node["groups"], specification.BATCH_NORM_EPSILON, **own)


def layer_norm(node, value):
    """Fluid's own, over the channels of images too."""
    image = len(node["shape"]) == 3
    value = layers.transpose(value, [0, 2, 3, 1]) if image else value
    value = layers.layer_norm(
        value,
        shift=bool(node["bias"]),
        begin_norm_axis=len(value.shape) - 1,
        epsilon=node["epsilon"],
        param_attr=at(node, "weight"),
        bias_attr=at(node, "bias"),
    )
    return layers.transpose(value, [0, 3, 1, 2]) if image else value


def rms_norm(node, value):
    """From primitives."""
    squares = layers.reduce_mean(layers.square(value), -1, keep_dim=True)
    normal = value * layers.rsqrt(squares + node["epsilon"])
    return normal * parameter(node, "weight", node["shape"][-1:])


def layer_scale(node, value):
    """Of images, one number a channel."""
    axis, features = (1, 0) if len(node["shape"]) == 3 else (-1, -1)
    weight = parameter(node, "weight", [node["shape"][features]])
    return layers.elementwise_mul(value, weight, axis)


def bias(node, value):
    """One number a feature."""
    return layers.elementwise_add(value, parameter(node, "bias", node["shape"][-1:]))


def rnn(node, value):
    """Unrolled over the steps, as the LSTM is."""
    products, weight, output = _products(node, value, 1)
    outputs = []
    for given in layers.unstack(products, 0):
        output = layers.tanh(given + layers.matmul(output, weight))
        outputs.append(output)
    return layers.stack(outputs, 0)


def gru(node, value):
    """Unrolled over the steps: fluid's own multiplies by the reset gate before the product."""
    products, weight, output = _products(node, value, 3)
    outputs = []
    for given in layers.unstack(products, 0):
        inner = layers.matmul(output, weight)
        reset, update, new = layers.split(given, 3, 1)
        of_reset, of_update, of_new = layers.split(inner, 3, 1)
        update = layers.sigmoid(update + of_update)
        new = layers.tanh(new + layers.sigmoid(reset + of_reset) * of_new)
        output = new + update * (output - new)
        outputs.append(output)
    return layers.stack(outputs, 0)


def _products(node, value, gates):
    """Of each step with the inputs, by one large product; the weight of the recurrent one, and what it begins with."""
    units, batch = node["units"], value.shape[1]
    products = layers.fc(value, gates * units, 2, at(node, "input"), at(node, "bias"))
    weight = parameter(node, "recurrent", [units, gates * units])
    return products, weight, layers.fill_constant([batch, units], "float32", 0.0)


def positions(node, value):
    """A row for each step, or for each of several."""
    (steps, units), each = node["shape"], node["each"]
    weight = parameter(node, "weight", [node["rows"], units])
    if each > 1:
        rows = layers.expand(layers.reshape(weight, [-1, 1, units]), [1, each, 1])
        weight = layers.reshape(rows, [-1, units])
    rows = layers.slice(weight, [0], [0], [steps])
    return layers.elementwise_add(value, layers.reshape(rows, [steps, 1, units]))


def class_token(node, value):
    """The same for each sample."""
    token = layers.reshape(parameter(node, "weight", node["shape"][-1:]), [1, 1, -1])
    return layers.concat([layers.expand(token, [1, value.shape[1], 1]), value], 0)


def lookup(node, words, table):
    """The parameter of a table by its name."""
    return fluid.embedding(words, table.shape, param_attr=fluid.ParamAttr(table.name))


def unembedding(node, value, table):
    """One product of all rows."""
    scores = layers.matmul(flat(value), table, transpose_y=True)
    return layers.reshape(scores, list(value.shape[:2]) + [table.shape[0]])


def attention(node, value):
    """From products and a softmax, as in PaddlePaddle's own models of that time."""
    steps, batch, features = value.shape
    heads = node["heads"]
    size = features // (3 * heads)
    value = layers.reshape(value, [steps, batch, 3, heads, size])
    q, k, v = layers.unstack(layers.transpose(value, [2, 1, 3, 0, 4]), 0)
    scores = layers.matmul(q, k, transpose_y=True, alpha=size**-0.5)
    if node.get("causal"):
        unseen = layers.triu(layers.fill_constant([steps, steps], "float32", -1e30), 1)
        scores = layers.elementwise_add(scores, constant(unseen))
    found = layers.matmul(layers.softmax(scores), v)
    return layers.reshape(layers.transpose(found, [2, 0, 1, 3]), [steps, batch, heads * size])


def patches(node, value):
    """Each pixel as a step."""
    batch, channels, height, width = value.shape
    value = layers.reshape(value, [batch, channels, height * width])
    return layers.transpose(value, [2, 0, 1])


def unstack(node, value):
    """Steps as features."""
    return layers.reshape(layers.transpose(value, [1, 0, 2]), [value.shape[1]] + node["shape"])


def sampled_code(node, value, noise):
    """Means and logarithms of variances come behind one another."""
    mean, spread = layers.split(value, 2, 1)
    return mean + layers.exp(0.5 * spread) * noise


def rbm(node, visible, noise):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    units, visible = node["units"], constant(visible)
    weight = parameter(node, "weight", [visible.shape[1], units])
    seen = parameter(node, "visible", [visible.shape[1]])
    hidden = parameter(node, "hidden", [units])
    scores = layers.matmul(visible, weight) + hidden
    chances = constant(layers.sigmoid(scores))
    drawn = layers.cast(layers.greater_than(2 * chances - 1, noise), "float32")
    end = constant(layers.sigmoid(layers.matmul(drawn, weight, transpose_y=True) + seen))
    again = layers.matmul(end, weight) + hidden
    energy = layers.reduce_sum(layers.softplus(again) - layers.softplus(scores), 1, keep_dim=True)
    energy = energy + layers.reduce_sum((end - visible) * seen, 1, keep_dim=True)
    return layers.concat([energy, chances], 1)
