"""The golden run: training steps of a specification in float64 numpy, to hold every framework against.

Written from the mathematics of the layers and from nothing that an adapter uses. Each operation is one
function that takes its node, its parameters {role: array} and its input arrays (batch first, then the shapes
of `worker.networks`), and returns its output and a function from the gradient of the output to (gradients of
the inputs, {role: gradient}). `tests/unit/test_golden.py` holds the gradients against finite differences of
the loss.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from steptime.networks import BATCH_NORM_EPSILON
from steptime.prove import optimisers
from worker import data
from worker.tasks.proof import BATCH, CALLS, RECOVERY_RATE, at_rate

Arrays = dict[str, np.ndarray]
Backward = Callable[[np.ndarray], tuple[list, Arrays]]


@dataclass(frozen=True)
class Golden:
    """One training step: its loss, gradients and updated parameters under the specification's names."""

    loss: float
    gradients: Arrays
    updated: Arrays


@dataclass(frozen=True)
class Expected:
    """The start weights of a proof, and the step at `RECOVERY_RATE` from them."""

    start: Arrays
    first: Golden


def expect(spec: dict, batch: int = BATCH) -> Expected:
    """What the gradient of a specification's proof must be."""
    start = data.initial_weights(spec)
    return Expected(
        start, train_step(at_rate(spec, RECOVERY_RATE), start, *data.synthetic_batch(spec, batch))
    )


def follow(
    spec: dict, weights: Arrays, calls: list[Arrays], batch: int = BATCH
) -> Iterator[tuple[Arrays, Golden]]:
    """For each of `CALLS`: the weights before it, and its last step at the specification's rate.

    `calls` are a framework's own weights at the end of each, from which the next begins. A run of ours alone would
    leave a right one of theirs: where a unit in front of a ReLU is as near to zero as float32 is fine, its sign is
    chance, and on a narrow ResNet-50 one such unit makes a hundredth of the loss in three steps.
    """
    inputs, labels = data.synthetic_batch(spec, batch)
    state: optimisers.State = {}
    for steps, reached in zip(CALLS, calls, strict=True):
        before = weights
        for _ in range(steps):
            now = train_step(spec, weights, inputs, labels, state)
            weights = now.updated
        yield before, now
        weights = reached


def train_step(
    spec: dict,
    weights: Arrays,
    inputs: np.ndarray,
    labels: np.ndarray,
    state: optimisers.State | None = None,
) -> Golden:
    """Forward, mean softmax cross-entropy, backward and one update of the specification's optimiser.

    `inputs` is (batch, *shape) and `labels` (batch,) or (batch, steps). Everything is computed and returned
    in float64. `state` is what the optimiser carries from step to step.
    """
    weights = {name: np.asarray(values, np.float64) for name, values in weights.items()}
    logits, tape = forward(spec, weights, inputs)
    loss, flowing = cross_entropy(logits, labels)
    gradients = _backward(spec, tape, flowing)
    updated = optimisers.update(
        spec["optimiser"], weights, gradients, {} if state is None else state
    )
    return Golden(loss, gradients, updated)


def forward(
    spec: dict, weights: Arrays, inputs: np.ndarray
) -> tuple[np.ndarray, dict[str, Backward]]:
    """Logits (batch, ..., classes), and for each node the function that carries the gradient back."""
    values = {
        "input": inputs if spec["input"]["kind"] == "tokens" else np.asarray(inputs, np.float64)
    }
    tape = {}
    for node in spec["nodes"]:
        prefix = node["name"] + "/"
        own = {
            name[len(prefix) :]: array for name, array in weights.items() if name.startswith(prefix)
        }
        sources = [values[name] for name in node["inputs"]]
        values[node["name"]], tape[node["name"]] = OPERATIONS[node["op"]](node, own, *sources)
    return values[spec["nodes"][-1]["name"]], tape


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean over all labels of -log softmax(logits)[label], and its gradient for the logits."""
    shifted = logits - logits.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    hot = np.arange(logits.shape[-1]) == labels[..., None]
    return -logs[hot].mean(), (np.exp(logs) - hot) / labels.size


def _backward(spec: dict, tape: dict[str, Backward], flowing: np.ndarray) -> Arrays:
    pending = {spec["nodes"][-1]["name"]: flowing}
    gradients = {}
    for node in reversed(spec["nodes"]):
        to_inputs, to_own = tape[node["name"]](pending.pop(node["name"]))
        gradients.update({f"{node['name']}/{role}": gradient for role, gradient in to_own.items()})
        for name, gradient in zip(node["inputs"], to_inputs, strict=True):
            pending[name] = pending[name] + gradient if name in pending else gradient
    return {parameter["name"]: gradients[parameter["name"]] for parameter in spec["parameters"]}


def _dense(node, own, x):
    y = x @ own["weight"] + own.get("bias", 0.0)

    def backward(dy):
        rows = dy.reshape(-1, dy.shape[-1])
        gradients = {"weight": x.reshape(-1, x.shape[-1]).T @ rows, "bias": rows.sum(0)}
        return [dy @ own["weight"].T], {role: gradients[role] for role in own}

    return y, backward


def _conv(node, own, x):
    """A matrix product of all windows, one a row, with all filters."""
    padded = _pad(x, node, 0.0)
    windows = _windows(padded, node)
    batch, channels, height, width = windows.shape[:4]
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, -1)
    filters = own["weight"].reshape(len(own["weight"]), -1)
    y = columns @ filters.T + own.get("bias", 0.0)

    def backward(dy):
        rows = np.moveaxis(dy, 1, -1).reshape(-1, len(filters))
        gradients = {"weight": (rows.T @ columns).reshape(own["weight"].shape), "bias": rows.sum(0)}
        gradients = {role: gradients[role] for role in own}
        if node["inputs"] == ["input"]:
            # Nobody asks how the loss depends on the images, and the first windows are the largest.
            return [0.0], gradients
        pieces = (rows @ filters).reshape(batch, height, width, channels, -1)
        return [_fold(np.moveaxis(pieces, 3, 1), padded.shape, node)], gradients

    return np.moveaxis(y.reshape(batch, height, width, -1), -1, 1), backward


def _max_pool(node, own, x):
    padded = _pad(x, node, -np.inf)
    windows = _windows(padded, node)
    windows = windows.reshape(*windows.shape[:4], -1)
    chosen = windows.argmax(-1)

    def backward(dy):
        pieces = dy[..., None] * (np.arange(windows.shape[-1]) == chosen[..., None])
        return [_fold(pieces, padded.shape, node)], {}

    return windows.max(-1), backward


def _pad(x, node, value):
    edge = (node["padding"], node["padding"])
    return np.pad(x, ((0, 0), (0, 0), edge, edge), constant_values=value)


def _windows(padded, node):
    """Every window of an image: (batch, channels, height, width, kernel, kernel)."""
    step = node["stride"]
    return sliding_window_view(padded, (node["kernel"], node["kernel"]), (2, 3))[
        :, :, ::step, ::step
    ]


def _fold(pieces, shape, node):
    """The transpose of `_pad` and `_windows`: sums (batch, channels, height, width, kernel**2) in place."""
    step, padding, (height, width) = node["stride"], node["padding"], pieces.shape[2:4]
    total = np.zeros(shape)
    for index in range(pieces.shape[-1]):
        row, column = divmod(index, node["kernel"])
        rows, columns = (
            slice(row, row + step * height, step),
            slice(column, column + step * width, step),
        )
        total[:, :, rows, columns] += pieces[..., index]
    return total[:, :, padding : shape[2] - padding, padding : shape[3] - padding]


def _global_average_pool(node, own, x):
    return x.mean((2, 3)), lambda dy: (
        [np.broadcast_to(dy[:, :, None, None], x.shape) / x[0, 0].size],
        {},
    )


def _flatten(node, own, x):
    return x.reshape(len(x), -1), lambda dy: ([dy.reshape(x.shape)], {})


def _batch_norm(node, own, x):
    """Statistics of the batch, biased variance (Ioffe and Szegedy 2015, algorithm 1)."""
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    wide = [-1] + [1] * (x.ndim - 2)
    scale = 1.0 / np.sqrt(x.var(axes, keepdims=True) + BATCH_NORM_EPSILON)
    normal = (x - x.mean(axes, keepdims=True)) * scale
    gamma, beta = (own[role].reshape(wide) for role in ("gamma", "beta"))

    def backward(dy):
        flowing = dy * gamma
        centred = flowing - flowing.mean(axes, keepdims=True)
        dx = scale * (centred - normal * (flowing * normal).mean(axes, keepdims=True))
        return [dx], {"gamma": (dy * normal).sum(axes), "beta": dy.sum(axes)}

    return gamma * normal + beta, backward


def _dropout(node, own, x):
    """Nothing: masks are random, so dropout is off wherever numbers are compared."""
    return x, lambda dy: ([dy], {})


def _relu(node, own, x):
    return np.maximum(x, 0.0), lambda dy: ([dy * (x > 0.0)], {})


def _sigmoid(node, own, x):
    y = _logistic(x)
    return y, lambda dy: ([dy * y * (1.0 - y)], {})


def _logistic(x):
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _add(node, own, *terms):
    return sum(terms), lambda dy: ([dy] * len(terms), {})


def _embedding(node, own, tokens):
    def backward(dy):
        gradient = np.zeros_like(own["weight"])
        np.add.at(gradient, tokens, dy)
        # The tokens are the network's input: nothing flows to them.
        return [0.0], {"weight": gradient}

    return own["weight"][tokens], backward


def _lstm(node, own, x):
    """Gates i, f, g, o; both states start at zero (Hochreiter and Schmidhuber 1997, Gers et al. 2000)."""
    samples, steps, units = len(x), x.shape[1], node["units"]
    hidden, cell = np.zeros((samples, units)), np.zeros((samples, units))
    memory, outputs = [], []
    for step in range(steps):
        sums = x[:, step] @ own["input"] + hidden @ own["recurrent"] + own["bias"]
        i, f, g, o = np.split(sums, 4, axis=1)
        i, f, g, o = _logistic(i), _logistic(f), np.tanh(g), _logistic(o)
        memory.append((hidden, cell, i, f, g, o))
        cell = f * cell + i * g
        hidden = o * np.tanh(cell)
        outputs.append((hidden, np.tanh(cell)))

    def backward(dy):
        dx, d_hidden, d_cell = np.zeros_like(x), 0.0, 0.0
        gradients = {role: np.zeros_like(values) for role, values in own.items()}
        for step in reversed(range(steps)):
            before, cell_before, i, f, g, o = memory[step]
            squashed = outputs[step][1]
            d_hidden = dy[:, step] + d_hidden
            d_cell = d_cell + d_hidden * o * (1.0 - squashed**2)
            d_sums = np.concatenate(
                [
                    d_cell * g * i * (1.0 - i),
                    d_cell * cell_before * f * (1.0 - f),
                    d_cell * i * (1.0 - g**2),
                    d_hidden * squashed * o * (1.0 - o),
                ],
                axis=1,
            )
            gradients["input"] += x[:, step].T @ d_sums
            gradients["recurrent"] += before.T @ d_sums
            gradients["bias"] += d_sums.sum(0)
            dx[:, step] = d_sums @ own["input"].T
            d_hidden, d_cell = d_sums @ own["recurrent"].T, d_cell * f
        return [dx], gradients

    return np.stack([hidden for hidden, _ in outputs], axis=1), backward


OPERATIONS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": _global_average_pool,
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "relu": _relu,
    "sigmoid": _sigmoid,
    "dropout": _dropout,
    "add": _add,
    "embedding": _embedding,
    "lstm": _lstm,
}
