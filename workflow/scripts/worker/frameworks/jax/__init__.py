"""JAX: plain functions of arrays and automatic differentiation; XLA compiles the whole step and gets the parameters."""

import functools
import os

import jax
import jaxlib
import numpy as np
from jax import lax
from jax import numpy as jnp

from shared import rotary, specification

from ...settings import jax as jax_settings

MODES = ("compiled",)
OPTIMISERS = ("sgd", "adadelta", "rmsprop", "momentum", "adam", "adamw")
TASKS = ("step", "training")
EXCHANGES = {"sync": "ranks"}
OPTIONS = {
    "conv": ("sides", "dilation"),
    "grouped_conv": ("sides", "dilation"),
    "max_pool": ("sides", "up"),
    "avg_pool": ("sides",),
    "upsample": ("bilinear",),
    "batch_norm": ("epsilon", "momentum"),
    "group_norm": ("epsilon",),
    "attention": ("kv_heads", "rotary", "dropout"),
    "lstm": ("bidirectional",),
    "gru": ("bidirectional",),
    "rnn": ("bidirectional",),
}
DEVICES = ("cpu", "gpu")
# By default, JAX rounds products and convolutions of float32 to TF32.
PRECISIONS = {"float32": {"matmul": "highest"}, "tf32": {"matmul": "default"}, "bfloat16": {}}
LAYOUT = {"images": "channels last", "sequences": "steps first"}


def versions():
    """Returns the versions of JAX, of the library with its compiler, and of the libraries of its plugin for GPUs."""
    found = {"framework_version": jax.__version__, "build": "jaxlib {}".format(jaxlib.__version__)}
    found.update(jax_settings.cuda_versions())
    return found


def build(job):
    place = place_of(job)
    # device_put may borrow numpy's memory, which must not be given away with the parameters.
    parameters = {
        name: jax.device_put(jnp.array(job.take(name), device=place), place)
        for name in job.layout.names
    }
    batch = jax.device_put(job.inputs, place)
    answers = jax.device_put(job.labels.reshape(-1), place)
    return Trainer(job, parameters, batch, answers)


def place_of(job):
    """Returns the device of this process that a job computes on, set up for its precision."""
    if job.device == "gpu":
        return jax_settings.first_gpu(job.precision, PRECISIONS[job.precision])
    return jax.local_devices(backend="cpu")[0]


class Trainer(object):
    def __init__(self, job, parameters, inputs, labels):
        self._layout, self._place = job.layout, next(iter(inputs.devices()))
        optimiser = job.spec["optimiser"]
        count, update = _UPDATES[optimiser["name"]]
        averages = [
            {name: jnp.zeros_like(value) for name, value in parameters.items()}
            for _ in range(count)
        ]
        if optimiser["name"] in ("adam", "adamw"):
            # The number of steps.
            averages.append(jnp.zeros(()))
        drops = any(specification.rate_of(node) for node in job.spec["nodes"])
        kept = {
            node["name"]: (jnp.zeros(node["in_shape"][:1]), jnp.ones(node["in_shape"][:1]))
            for node in job.spec["nodes"]
            if node["op"] == "batch_norm"
        }
        # The parameters, their running averages, the key from which the next step's masks are drawn, and running
        # averages of means and variances.
        self._state = parameters, averages, jax.random.key(job.seed) if drops else None, kept

        def train(state, batch, answers, rate):
            values, averages, key, kept = state
            key, drawn = (key, None) if key is None else jax.random.split(key)

            def aimed(values):
                fresh = {}
                given = jax_settings.narrowed(job.precision, (values, batch))
                return compute_loss(job.spec, drawn, *given, answers, fresh), fresh

            (loss, fresh), gradients = jax.value_and_grad(aimed, has_aux=True)(values)
            values, averages = update(optimiser, values, averages, gradients, rate)
            shares = {
                node["name"]: node.get("momentum", specification.BATCH_NORM_SHARE)
                for node in job.spec["nodes"]
            }
            kept = {
                name: jax.tree_util.tree_map(
                    lambda old, new, share=shares[name]: (1 - share) * old + share * new,
                    kept[name],
                    fresh[name],
                )
                for name in kept
            }
            return (values, averages, key, kept), loss

        self._fed_step = jax.jit(train, donate_argnums=0)
        # The rate is no constant: without its factor, an update at a rate of 1 takes longer.
        self._fed = inputs, labels, self._placed(np.float32(job.learning_rate))
        # Here and not in the first step: it takes seconds.
        self._step = self._fed_step.lower(self._state, *self._fed).compile()
        self._judge = jax.jit(functools.partial(logits, job.spec["nodes"], None))
        self.parameters = sum(value.size for value in parameters.values())
        # XLA does not tell the size of its pool; NPROC is where it reads it from.
        self.threads = int(os.environ["NPROC"])
        self.settings = {"layout": "channels last, time first"}
        self.settings.update(jax_settings.configure_cpu(job.precision))

    def run(self, steps):
        for _ in range(steps):
            self._state, loss = self._step(self._state, *self._fed)
        jax.block_until_ready((self._state, loss))
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            answers = self._placed(self._layout.labels(labels).reshape(-1))
            fed = self._placed(self._layout.inputs(inputs)), answers, np.float32(rate)
            self._state, loss = self._fed_step(self._state, *fed)
            total, steps = total + loss, steps + 1
        jax.block_until_ready((self._state, total))
        return float(total) / steps

    def scores(self, inputs):
        return np.asarray(self._judge(self._state[0], self._placed(self._layout.inputs(inputs))))

    def weights(self, names=None):
        values = self._state[0]
        # A copy: the next step writes over what is looked at.
        return {
            name: np.array(self._layout.leave(name, np.asarray(values[name])))
            for name in (values if names is None else names)
        }

    def statistics(self):
        return {
            "{}/{}".format(name, role): np.array(values)
            for name, both in self._state[3].items()
            for role, values in zip(("mean", "variance"), both)
        }

    def _placed(self, array):
        return jax.device_put(array, self._place)


def compute_loss(spec, key, parameters, inputs, answers, fresh=None):
    """Returns the mean loss of a specification; without a key nothing is dropped. For `fresh` see `logits`."""
    outputs = logits(spec["nodes"], key, parameters, inputs, fresh)
    return jnp.mean(LOSSES[spec["loss"]](outputs, answers))


def _missed(distance):
    """Returns a loss that compares outputs with targets, one row a sample, by `distance`."""
    return lambda outputs, targets: distance(outputs, targets.reshape(len(outputs), -1))


def _cross_entropy(outputs, labels):
    if outputs.size < 1 << 20:
        # What the labels alone decide of the gradient need not wait for the scores.
        return -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], 1)[:, 0]
    # Fewer passes over many scores.
    chosen = jnp.take_along_axis(outputs, labels[:, None], 1)[:, 0]
    return jax.nn.logsumexp(outputs, 1) - chosen


def _entropy(outputs, targets):
    return jax.nn.softplus(outputs) - outputs * targets


def _evidence_bound(outputs, targets):
    count = targets.shape[1]
    # One split, whose gradient is joined as the outputs were: that of slices is added up.
    decoded, mean, spread = jnp.split(outputs, [count, (count + outputs.shape[1]) // 2], 1)
    missed = jnp.sum(_entropy(decoded, targets))
    return (missed + 0.5 * jnp.sum(mean**2 + jnp.exp(spread) - spread - 1)) / outputs.size


LOSSES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": _missed(lambda outputs, targets: (outputs - targets) ** 2),
    "binary_cross_entropy": _missed(_entropy),
    "evidence_bound": _missed(_evidence_bound),
    "adversarial": _missed(_entropy),
    "mean_output": _missed(lambda outputs, targets: outputs),
}


def _descend(optimiser, values, averages, gradients, rate):
    return {name: values[name] - rate * gradients[name] for name in values}, averages


def _adadelta(optimiser, values, averages, gradients, rate):
    rho, epsilon = optimiser["rho"], optimiser["epsilon"]
    squares = _averaged(rho, averages[0], gradients)
    steps = {
        name: gradient * jnp.sqrt(averages[1][name] + epsilon) / jnp.sqrt(squares[name] + epsilon)
        for name, gradient in gradients.items()
    }
    values, _ = _descend(optimiser, values, averages, steps, rate)
    return values, [squares, _averaged(rho, averages[1], steps)]


def _rmsprop(optimiser, values, averages, gradients, rate):
    squares = _averaged(optimiser["rho"], averages[0], gradients)
    steps = {
        name: gradient / (jnp.sqrt(squares[name]) + optimiser["epsilon"])
        for name, gradient in gradients.items()
    }
    return _descend(optimiser, values, averages, steps, rate)[0], [squares]


def _averaged(rho, average, fresh):
    """Returns a running average of squares that includes those of `fresh`."""
    return {name: rho * average[name] + (1 - rho) * fresh[name] ** 2 for name in average}


def _momentum(optimiser, values, averages, gradients, rate):
    kept = {name: optimiser["momentum"] * averages[0][name] + gradients[name] for name in values}
    return _descend(optimiser, values, averages, kept, rate)[0], [kept]


def _adam(optimiser, values, averages, gradients, rate):
    beta1, beta2 = optimiser["beta1"], optimiser["beta2"]
    means, squares, taken = averages
    means = {name: beta1 * means[name] + (1 - beta1) * gradients[name] for name in means}
    squares, taken = _averaged(beta2, squares, gradients), taken + 1
    # The averages begin at zero.
    of_mean, of_square = 1 - beta1**taken, 1 - beta2**taken
    steps = {
        name: means[name] / of_mean / (jnp.sqrt(squares[name] / of_square) + optimiser["epsilon"])
        for name in means
    }
    return _descend(optimiser, values, averages, steps, rate)[0], [means, squares, taken]


def _adamw(optimiser, values, averages, gradients, rate):
    kept = 1 - rate * optimiser["weight_decay"]
    values = {name: value * kept if value.ndim > 1 else value for name, value in values.items()}
    return _adam(optimiser, values, averages, gradients, rate)


# From each optimiser to its number of running averages and its update, which JAX itself has not.
_UPDATES = {
    "sgd": (0, _descend),
    "adadelta": (2, _adadelta),
    "rmsprop": (1, _rmsprop),
    "momentum": (1, _momentum),
    "adam": (2, _adam),
    "adamw": (2, _adamw),
}


def logits(nodes, key, parameters, inputs, fresh=None):
    """Returns scores (labels, classes), those of sequences by step, then sample; without a key nothing is dropped."""
    values = {"input": inputs}
    mixed = any(value.dtype == jnp.bfloat16 for value in parameters.values())
    for node in nodes:
        own = specification.own_of(node, parameters)
        if specification.rate_of(node) is not None:
            own["key"] = None if key is None else jax.random.fold_in(key, len(values))
        if node["op"] == "batch_norm":
            own["fresh"] = {} if fresh is None else fresh
        found = LAYERS[node["op"]](node, own, *[values[name] for name in node["inputs"]])
        values[node["name"]] = found.astype(jnp.bfloat16) if mixed else found
    outputs = values[nodes[-1]["name"]]
    return outputs.reshape(-1, outputs.shape[-1]).astype(jnp.float32)


def _product(value, weight):
    """Multiplies rows: on CPUs, XLA takes up to twice as long for more dimensions, or for a 1 x 1 convolution."""
    return jnp.matmul(value.reshape(-1, value.shape[-1]), weight).reshape(*value.shape[:-1], -1)


def _dense(node, own, value):
    value = _product(value, own["weight"])
    return value + own["bias"] if node["bias"] else value


def _conv(node, own, value):
    strides, around = specification.pair(node["stride"]), specification.edges(node)
    if node["kernel"] == 1 and not node["padding"]:
        value = _product(value[:, :: strides[0], :: strides[1]], own["weight"][0, 0])
    else:
        orders = ("NHWC", "HWIO", "NHWC")
        value = lax.conv_general_dilated(
            value,
            own["weight"],
            strides,
            around,
            rhs_dilation=specification.pair(node.get("dilation", 1)),
            dimension_numbers=orders,
        )
    return value + own["bias"] if node["bias"] else value


def _grouped_conv(node, own, value):
    """Convolves in groups; weights are (out, in / groups, height, width)."""
    groups = node["groups"]
    if jax.default_backend() != "cpu":
        value = lax.conv_general_dilated(
            value,
            own["weight"],
            specification.pair(node["stride"]),
            specification.edges(node),
            rhs_dilation=specification.pair(node.get("dilation", 1)),
            dimension_numbers=("NHWC", "OIHW", "NHWC"),
            feature_group_count=groups,
        )
    elif groups == node["in_shape"][0] == node["channels"]:
        value = _depthwise_conv(node, value, own["weight"][:, 0].transpose(1, 2, 0))
    else:
        parts = zip(
            jnp.split(value, groups, 3), jnp.split(own["weight"].transpose(2, 3, 1, 0), groups, 3)
        )
        plain = dict(node, bias=False)
        value = jnp.concatenate([_conv(plain, {"weight": own}, part) for part, own in parts], 3)
    return value + own["bias"] if node["bias"] else value


def _depthwise_conv(node, value, weight):
    """Adds up shifted views, several times as fast on CPUs as XLA's own; weights are (height, width, channels)."""
    down, along = specification.pair(node["stride"])
    lower, further = specification.pair(node.get("dilation", 1))
    value = jnp.pad(value, [(0, 0), *specification.edges(node), (0, 0)])
    _, height, width = node["shape"]
    rows, columns = down * (height - 1) + 1, along * (width - 1) + 1
    views = (
        (row * lower, column * further, weight[row, column])
        for row, column in np.ndindex(*weight.shape[:2])
    )
    return sum(
        value[:, row : row + rows : down, column : column + columns : along] * filters
        for row, column, filters in views
    )


def _conv_transpose(node, own, value):
    """Convolves, transposed; weights are (in, out, height, width)."""
    if jax.default_backend() == "cpu":
        value = _transposed_product(node, own["weight"], value)
    else:
        around = (node["kernel"] - 1 - node["padding"],) * 2
        value = lax.conv_general_dilated(
            value,
            jnp.flip(own["weight"], (2, 3)),
            (1, 1),
            [around, around],
            lhs_dilation=(node["stride"],) * 2,
            dimension_numbers=("NHWC", "IOHW", "NHWC"),
        )
    return value + own["bias"] if node["bias"] else value


def _transposed_product(node, weight, value):
    """Computes a transposed convolution by a product with added overlaps: ten times as fast on CPUs as XLA's own."""
    kernel, stride, padding = node["kernel"], node["stride"], node["padding"]
    (channels, height, width), count = node["shape"], -(-kernel // stride)
    batch, rows, columns = value.shape[:3]
    products = jnp.matmul(value.reshape(-1, value.shape[3]), weight.reshape(value.shape[3], -1))
    if rows == columns == 1:
        # Nothing overlaps.
        value = products.reshape(batch, channels, kernel, kernel).transpose(0, 2, 3, 1)
    else:
        products = products.reshape(batch, rows, columns, channels, kernel, kernel)
        # For each place and channel, `count` squares of one output for each step of the stride.
        wide = [(0, count * stride - kernel)] * 2
        products = jnp.pad(products, [(0, 0)] * 4 + wide)
        products = products.reshape(batch, rows, columns, channels, count, stride, count, stride)
        value = sum(
            jnp.pad(
                products[:, :, :, :, row, :, column],
                [(0, 0), (row, count - 1 - row), (column, count - 1 - column)] + [(0, 0)] * 3,
            )
            for row in range(count)
            for column in range(count)
        )
        rows, columns = ((extent + count - 1) * stride for extent in (rows, columns))
        value = value.transpose(0, 1, 4, 2, 5, 3).reshape(batch, rows, columns, channels)
    return value[:, padding : padding + height, padding : padding + width]


def _avg_pool(node, own, value):
    """Returns the mean of shifted views, as in `_max_pool`."""
    views = _views(node, value, 0.0)
    return sum(views) / len(views)


def _adaptive_avg_pool(node, own, value):
    rows, columns = (
        _shares(node["size"], extent).astype(value.dtype) for extent in node["in_shape"][1:]
    )
    return jnp.einsum("ih,bhwc,jw->bijc", rows, value, columns)


def _shares(size, extent):
    """Returns the weight of each of `extent` rows in each of `size` means."""
    starts = np.arange(size) * extent // size
    ends = -(-np.arange(1, size + 1) * extent // size)
    inside = (np.arange(extent) >= starts[:, None]) & (np.arange(extent) < ends[:, None])
    return (inside / (ends - starts)[:, None]).astype(np.float32)


def _upsample(node, own, value):
    if node.get("bilinear"):
        return _between(_between(value, 1, node["factor"]), 2, node["factor"])
    return jnp.repeat(jnp.repeat(value, node["factor"], 1), node["factor"], 2)


def _between(value, axis, factor):
    """Returns `factor` pixels for each pixel of an axis, between it and its neighbours.

    `jax.image.resize` multiplies by a matrix instead, which takes half as long again on CPUs.
    """
    extent, around = value.shape[axis], [(0, 0)] * 4
    around[axis] = (1, 1)
    wide = jnp.pad(value, around, "edge")
    before = lax.slice_in_dim(wide, 0, extent, axis=axis)
    behind = lax.slice_in_dim(wide, 2, extent + 2, axis=axis)
    shares = [(place + 0.5) / factor - 0.5 for place in range(factor)]
    parts = [value + abs(share) * ((behind if share > 0 else before) - value) for share in shares]
    return jnp.stack(parts, axis + 1).reshape(*value.shape[:axis], -1, *value.shape[axis + 1 :])


def _channel_shuffle(node, own, value):
    parts = value.reshape(*value.shape[:3], node["groups"], -1)
    return parts.swapaxes(3, 4).reshape(value.shape)


def _local_response_norm(node, own, value):
    size = node["size"]
    squares = jnp.pad(value**2, [(0, 0)] * 3 + [(size // 2, size // 2)])
    near = sum(squares[..., first : first + value.shape[-1]] for first in range(size))
    return value * (1 + near / (node["inverse_alpha"] * size)) ** -0.75


def _group_norm(node, own, value):
    parts = value.reshape(*value.shape[:3], node["groups"], -1)
    axes = (1, 2, 4)
    centred = parts - jnp.mean(parts, axes, keepdims=True)
    variance = jnp.var(parts, axes, keepdims=True)
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    normal = centred * lax.rsqrt(variance + epsilon)
    return normal.reshape(value.shape) * own["gamma"] + own["beta"]


def _max_pool(node, own, value):
    """Returns the greatest of shifted views: XLA's own way back through a window takes longer."""
    return functools.reduce(jnp.maximum, _views(node, value, -jnp.inf))


def _views(node, value, filling):
    """Yields, for each place in a window, all windows' values there."""
    around = [(0, 0), *specification.edges(node), (0, 0)]
    value = jnp.pad(value, around, constant_values=filling)
    sides = (
        specification.pair(node["kernel"]),
        specification.pair(node["stride"]),
        node["shape"][1:],
    )
    rows, columns = (
        [slice(start, start + stride * (extent - 1) + 1, stride) for start in range(kernel)]
        for kernel, stride, extent in zip(*sides)
    )
    return [value[:, row, column] for row in rows for column in columns]


def _batch_norm(node, own, value):
    mean, variance = own["fresh"][node["name"]] = (
        jnp.mean(value, (0, 1, 2)),
        jnp.var(value, (0, 1, 2)),
    )
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    scale = own["gamma"] * lax.rsqrt(variance + epsilon)
    return (value - mean) * scale + own["beta"]


def _in_float32(layer):
    """Returns a layer that computes its means in float32, whatever the type of its values."""
    return lambda node, own, value: layer(node, own, value.astype(jnp.float32))


def _stochastic_depth(node, own, value):
    # Sequences have the steps first.
    samples = 1 if value.ndim == 3 else 0
    shape = [size if axis == samples else 1 for axis, size in enumerate(value.shape)]
    return _dropout(node, own, value, shape)


def _dropout(node, own, value, shape=None):
    rate = specification.rate_of(node)
    if own.get("key") is None or not rate:
        return value
    kept = jax.random.bernoulli(own["key"], 1 - rate, shape or value.shape)
    return jnp.where(kept, value / (1 - rate), 0)


def _both_ways(recur):
    """Extends a recurrent layer to nodes that are `bidirectional`."""

    def layer(node, own, value):
        found = recur(node, own, value)
        if node.get("bidirectional"):
            back = {role: own["back_" + role] for role in ("input", "recurrent", "bias")}
            found = jnp.concatenate([found, recur(node, back, value, reverse=True)], -1)
        return found

    return layer


def _lstm(node, own, value, reverse=False):
    def step(state, product):
        output, cell = state
        i, f, g, o = jnp.split(product + jnp.matmul(output, own["recurrent"]), 4, 1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        output = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (output, cell), output

    # The product with the inputs needs no loop: one large product in place of one for each step.
    products = (_product(value, own["input"]) + own["bias"]).astype(value.dtype)
    start = jnp.zeros((value.shape[1], node["units"]), value.dtype)
    return lax.scan(step, (start, start), products, reverse=reverse)[1]


def _rnn(node, own, value, reverse=False):
    def step(output, product):
        output = jnp.tanh(product + jnp.matmul(output, own["recurrent"]))
        return output, output

    start = jnp.zeros((value.shape[1], node["units"]), value.dtype)
    products = _product(value, own["input"]) + own["bias"]
    return lax.scan(step, start, products.astype(value.dtype), reverse=reverse)[1]


def _gru(node, own, value, reverse=False):
    def step(output, product):
        r, z, n = jnp.split(product, 3, 1)
        own_r, own_z, own_n = jnp.split(jnp.matmul(output, own["recurrent"]), 3, 1)
        r, z = jax.nn.sigmoid(r + own_r), jax.nn.sigmoid(z + own_z)
        n = jnp.tanh(n + r * own_n)
        output = n + z * (output - n)
        return output, output

    start = jnp.zeros((value.shape[1], node["units"]), value.dtype)
    products = _product(value, own["input"]) + own["bias"]
    return lax.scan(step, start, products.astype(value.dtype), reverse=reverse)[1]


def _layer_norm(node, own, value):
    scale = lax.rsqrt(jnp.var(value, -1, keepdims=True) + node["epsilon"]) * own["weight"]
    value = (value - jnp.mean(value, -1, keepdims=True)) * scale
    return value + own["bias"] if node["bias"] else value


def _rms_norm(node, own, value):
    square = jnp.mean(value**2, -1, keepdims=True)
    return value * lax.rsqrt(square + node["epsilon"]) * own["weight"]


def _positions(node, own, value):
    rows = jnp.arange(node["shape"][0]) // node["each"]
    return value + own["weight"][rows][:, None]


def _attention(node, own, value):
    steps, batch, _ = value.shape
    heads, size = node["heads"], node["shape"][-1] // node["heads"]
    shared = node.get("kv_heads", heads)
    parts = jnp.split(value.reshape(steps, batch, -1, size), [heads, heads + shared], 2)
    # Each (batch, steps, heads, size), as JAX's own function wants them.
    q, k, v = (part.swapaxes(0, 1) for part in parts)
    if "rotary" in node:
        q, k = (_turned(node, each).astype(v.dtype) for each in (q, k))
    if "dropout" in node:
        found = _dropping_attention(node, own, q, k, v)
    else:
        found = jax.nn.dot_product_attention(q, k, v, is_causal=bool(node.get("causal")))
    return found.transpose(1, 0, 2, 3).reshape(steps, batch, -1)


def _dropping_attention(node, own, q, k, v):
    """Computes what JAX's own function does on CPUs, and drops shares, which that function cannot do."""
    batch, steps, _, size = q.shape
    q = q.reshape(batch, steps, k.shape[2], -1, size)
    exact = {"preferred_element_type": jnp.float32}
    scores = jnp.einsum("btkgs,buks->bkgtu", q, k, **exact) * size**-0.5
    if node.get("causal"):
        scores = jnp.where(jnp.tri(steps, dtype=bool), scores, jnp.finfo(scores.dtype).min)
    shares = _dropout(node, own, jax.nn.softmax(scores).astype(v.dtype))
    return jnp.einsum("bkgtu,bukd->btkgd", shares, v).reshape(batch, steps, -1, size)


def _flatten(node, own, value):
    value = value.transpose(0, 3, 1, 2) if node["turned"] else value
    return value.reshape(len(value), -1)


def _turned(node, value):
    steps, size = value.shape[1], value.shape[3]
    cosine, sine = (each[:, None] for each in rotary.turns(steps, size, node["rotary"]))
    first, second = jnp.split(value, 2, -1)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def _patches(node, own, value):
    return value.reshape(len(value), -1, value.shape[-1]).transpose(1, 0, 2)


def _class_token(node, own, value):
    first = jnp.broadcast_to(own["weight"], (1,) + value.shape[1:])
    return jnp.concatenate([first, value])


def _sampled_code(node, own, value, noise):
    mean, spread = jnp.split(value, 2, 1)
    return mean + jnp.exp(0.5 * spread) * noise


def _rbm(node, own, visible, noise):
    visible = lax.stop_gradient(visible)
    scores = jnp.matmul(visible, own["weight"]) + own["hidden"]
    chances = lax.stop_gradient(jax.nn.sigmoid(scores))
    drawn = (2 * chances - 1 > noise).astype(chances.dtype)
    end = jnp.matmul(drawn, own["weight"].T) + own["visible"]
    end = lax.stop_gradient(jax.nn.sigmoid(end))
    again = jnp.matmul(end, own["weight"]) + own["hidden"]
    energy = jnp.sum(jax.nn.softplus(again) - jax.nn.softplus(scores), 1)
    energy += jnp.matmul(end - visible, own["visible"])
    return jnp.concatenate([energy[:, None], chances], 1)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "grouped_conv": _grouped_conv,
    "upsample": _upsample,
    "avg_pool": _avg_pool,
    "adaptive_avg_pool": _adaptive_avg_pool,
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": _local_response_norm,
    "group_norm": _in_float32(_group_norm),
    "concat": lambda node, own, *values: jnp.concatenate(values, -1),
    "max_pool": _max_pool,
    "global_average_pool": lambda node, own, value: jnp.mean(value, (1, 2)),
    "flatten": _flatten,
    "batch_norm": _in_float32(_batch_norm),
    "relu": lambda node, own, value: jax.nn.relu(value),
    "dropout": _dropout,
    "sigmoid": lambda node, own, value: jax.nn.sigmoid(value),
    "add": lambda node, own, left, right: left + right,
    "embedding": lambda node, own, value: own["weight"][value],
    "lstm": _both_ways(_lstm),
    "rnn": _both_ways(_rnn),
    "gru": _both_ways(_gru),
    "tanh": lambda node, own, value: jnp.tanh(value),
    "gelu": lambda node, own, value: jax.nn.gelu(value, approximate=False),
    "gelu_tanh": lambda node, own, value: jax.nn.gelu(value, approximate=True),
    "silu": lambda node, own, value: jax.nn.silu(value),
    "layer_norm": _in_float32(_layer_norm),
    "rms_norm": _in_float32(_rms_norm),
    "layer_scale": lambda node, own, value: value * own["weight"],
    "bias": lambda node, own, value: value + own["bias"],
    "positions": _positions,
    "table": lambda node, own, value: own["weight"],
    "lookup": lambda node, own, value, table: table[value],
    "unembedding": lambda node, own, value, table: _product(value, table.T),
    "attention": _attention,
    "patches": _patches,
    "class_token": _class_token,
    "first_step": lambda node, own, value: value[0],
    "last_step": lambda node, own, value: value[-1],
    "leaky_relu": lambda node, own, value: jax.nn.leaky_relu(value, node["slope"]),
    "stochastic_depth": _stochastic_depth,
    "relu6": lambda node, own, value: jax.nn.relu6(value),
    "hard_swish": lambda node, own, value: jax.nn.hard_swish(value),
    "hard_sigmoid": lambda node, own, value: jax.nn.hard_sigmoid(value),
    "elu": lambda node, own, value: jax.nn.elu(value),
    "softplus": lambda node, own, value: jax.nn.softplus(value),
    "scale_channels": lambda node, own, value, factors: value * factors[:, None, None],
    "pad": lambda node, own, value: jnp.pad(value, [(0, 0), node["rows"], node["columns"], (0, 0)]),
    "channel_part": lambda node, own, value: value[
        ..., node["start"] : node["start"] + node["size"]
    ],
    "multiply": lambda node, own, left, right: left * right,
    "mean_steps": lambda node, own, value: jnp.mean(value, 0),
    "transpose": lambda node, own, value: value.transpose(2, 1, 0),
    "dense_within": _dense,
    "part": lambda node, own, value: value[..., node["start"] : node["start"] + node["size"]],
    "stack": lambda node, own, *values: jnp.stack(values),
    "unstack": lambda node, own, value: jnp.concatenate(list(value), 1),
    "reversal": lambda node, own, value: 2 * lax.stop_gradient(value) - value,
    "sampled_code": _sampled_code,
    "rbm": _rbm,
}
