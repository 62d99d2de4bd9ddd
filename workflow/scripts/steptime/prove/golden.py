"""The golden run: training steps of a specification in float64 numpy, to hold every framework against.

Layers, loss and optimiser are those of the records in `steptime.networks`, written from their mathematics and from
nothing that an adapter uses. `tests/unit/test_golden.py` holds the gradients against finite differences of the loss.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from shared import data
from shared.limits import LOGARITHM
from shared.narrow import BATCH, CALLS, RECOVERY_RATE
from shared.precisions import PRECISIONS, USUAL
from shared.specification import at_rate, own_of
from steptime.networks import optimisers
from steptime.networks.layers import LAYERS, Arrays, Backward
from steptime.networks.losses import LOSSES

# Noise may turn a sign in front of a ReLU, or make another value of a window the largest. What follows then differs by
# more than any rounding. So a limit is at least so many times what a shorter significand does to the step
# (`shared.precisions`). How many bits are right in a layer's outputs in float32: all 24 of a single value, fewer of a
# sum.
RIGHT_BITS = (24, 22, 21, 21)
RIGHT_WAYS = 16
# A gradient that is fainter than this beside the longest is noise, and a number of one beside the others.
FAINT = 1e-6
# A fall of a loss that float32 shows for certain, as a part of it; and a rise by which a network does not learn.
SEEN, RISE = 2.0**-21, 2.0

# Where a framework adds alike numbers one by one, each addition is off by half of what rounding may take, all of a
# sample's to the same side, and half of the sum is there by then.
ADDITION = 0.25 * 2.0**-24
# Limits are no less than so many times what that does.
ADDITIONS = 8.0
# Layers that say what becomes of sums over an image's places, or over the steps of a sequence.
SUMMING = (
    *("conv", "grouped_conv", "conv_transpose", "dense", "bias", "layer_scale"),
    *("batch_norm", "group_norm", "layer_norm", "rms_norm"),
)


@dataclass(frozen=True)
class Golden:
    """One training step: its loss, gradients and updated parameters under the specification's names."""

    loss: float
    gradients: Arrays
    updated: Arrays


@dataclass(frozen=True)
class Expected:
    """The start weights of a proof, and the step at `RECOVERY_RATE` from them; the mini-batch, and its shares."""

    start: Arrays
    first: Golden
    batch: int
    shares: int


@dataclass(frozen=True)
class Followed:
    """The last step of a call, the weights before the call, and that step where layers' outputs are rounded."""

    before: Arrays
    step: Golden
    rounded: Callable[[Callable[[np.ndarray], np.ndarray]], Golden]
    # How far off each weight may be after the call by noise alone (`reach`).
    noise: Callable[[], dict[str, float]] = dict


def expect(spec: dict, batch: int = BATCH, shares: int = 1) -> Expected:
    """Says what the gradient of a specification's proof must be, where so many ranks share the mini-batch."""
    start = data.initial_weights(spec)
    inputs, labels = data.synthetic_batch(spec, batch)
    first = train_step(at_rate(spec, RECOVERY_RATE), start, inputs, labels, shares=shares)
    return Expected(start, first, batch, shares)


def follow(
    spec: dict, weights: Arrays, calls: list[Arrays], batch: int = BATCH, shares: int = 1
) -> Iterator[Followed]:
    """Yields each of `CALLS` at the specification's rate.

    `calls` are a framework's own weights at the end of each call. The next call begins from them, and not from ours:
    two right runs drift apart. Where a unit in front of a ReLU is within a rounding of zero, its sign is chance. On a
    narrow ResNet-50, one such unit changes the loss by a hundredth within three steps.
    """
    inputs, labels = data.synthetic_batch(spec, batch)
    state: optimisers.State = {}

    def last(
        steps: int,
        weights: Arrays,
        state: optimisers.State,
        rounded: Callable[[np.ndarray], np.ndarray] | None = None,
        goes_on: bool = False,
    ) -> Golden:
        state = state if goes_on else copy.deepcopy(state)
        for _ in range(steps):
            now = train_step(spec, weights, inputs, labels, state, shares, rounded)
            weights = now.updated
        return now

    for steps, reached in zip(CALLS, calls, strict=True):
        again = partial(last, steps, weights, copy.deepcopy(state))
        noise = partial(_noise, spec, weights, batch, shares, steps, copy.deepcopy(state))
        yield Followed(weights, last(steps, weights, state, goes_on=True), again, noise)
        weights = reached


def _noise(spec, weights, batch, shares, steps, state):
    """Says how far off steps may take each weight whose gradient is as far off as noise takes it.

    Where that is all that a weight's gradient is, an optimiser that divides by the gradient's length may go either way.
    """
    exact = {name: np.asarray(values, np.float64) for name, values in weights.items()}
    inputs, labels = data.synthetic_batch(spec, batch)
    gradients = train_step(at_rate(spec, 0.0), exact, inputs, labels, shares=shares).gradients
    longest = max(map(np.linalg.norm, gradients.values()))
    noise = {}
    for name, values in gradients.items():
        like = longest if is_faint(values, longest) else np.sqrt(np.mean(values**2))
        # What is 0, as the gradient of a word that does not occur, is so in float32.
        noise[name] = np.where(values == 0, 0.0, FAINT * like)
    for way in _ways(spec, exact, batch // shares):
        for name, values in way.items():
            noise[name] = np.maximum(noise[name], 2.0 * np.abs(values))

    def farthest(own, averages):
        """Says how far off the step may be by such noise beside these gradients."""
        ours, *others = (
            optimisers.update(
                spec["optimiser"],
                exact,
                {name: own[name] + sign * noise[name] for name in own},
                copy.deepcopy(averages),
            )
            for sign in (0, -1, 1)
        )
        return {
            name: np.maximum(*(np.abs(each[name] - values) for each in others))
            for name, values in ours.items()
        }

    off = farthest(gradients, state)
    # Where there is nothing but noise, a framework carries its own.
    alone = farthest({name: np.zeros_like(values) for name, values in noise.items()}, {})
    for name, values in gradients.items():
        off[name] = np.where(
            np.abs(values) < noise[name], np.maximum(off[name], alone[name]), off[name]
        )
    return {name: steps * float(np.linalg.norm(values)) for name, values in off.items()}


def is_faint(gradient: np.ndarray, longest: "float | np.floating") -> bool:
    """Whether a gradient is noise beside one of this length, as that of a bias before a batch normalisation is."""
    return bool(np.linalg.norm(gradient) <= FAINT * longest)


def reach(spec: dict, weights: Arrays, batch: int, shares: int = 1) -> dict[str, float]:
    """Says how far each gradient moves where a right framework's chances of classes, and its sums, are off by noise."""
    found = dict.fromkeys(weights, 0.0)
    for way in _ways(spec, weights, batch // shares):
        for name, gradient in way.items():
            found[name] = max(found[name], 2.0 * float(np.linalg.norm(gradient)))
    return found


def _summed(parts, places, random):
    """Sums parts of samples, each of so many numbers, and is as far off as float32 may be that adds them one by one."""
    total = squares = 0.0
    for part in parts:
        total = total + part
        squares = squares + total**2
    return total + ADDITION * places * np.sqrt(squares) * random.choice([-1.0, 1.0], total.shape)


def summing(spec: dict) -> dict:
    """Returns the specification with noise in the sums over places."""
    noisy = partial(_summed, random=np.random.RandomState(0))
    nodes = [
        dict(node, summed=noisy) if node["op"] in SUMMING and len(node["in_shape"]) > 1 else node
        for node in spec["nodes"]
    ]
    return dict(spec, nodes=nodes)


def _ways(spec, weights, batch):
    """Says what such noise makes of gradients, in several ways, and that of sums in one."""
    random = np.random.default_rng(0)
    inputs, labels = data.synthetic_batch(spec, batch)
    weights = {name: np.asarray(values, np.float64) for name, values in weights.items()}
    for _ in range(RIGHT_WAYS):
        logits, tape = forward(spec, weights, inputs)
        flowing = loss_of(spec)(logits, labels)[1]
        # The way back is linear: what goes in as noise comes out as noise.
        noise = flowing * random.uniform(-LOGARITHM, LOGARITHM, flowing.shape)
        yield backward(spec, tape, noise)
    gradients, noisy = (
        train_step(at_rate(each, 0.0), weights, inputs, labels).gradients
        for each in (spec, summing(spec))
    )
    yield {name: ADDITIONS / 2 * (noisy[name] - values) for name, values in gradients.items()}


def untrainable(spec: dict, batch: int = BATCH, shares: int = 1) -> str:
    """Why the golden run itself does not learn at the specification's rate in a proof's steps; '' where it does."""
    start = weights = data.initial_weights(spec)
    inputs, labels = data.synthetic_batch(spec, batch)
    losses: list[float] = []
    state: optimisers.State = {}
    with np.errstate(all="ignore"):
        for _ in range(sum(CALLS)):
            taken = train_step(spec, weights, inputs, labels, state, shares)
            losses.append(taken.loss)
            if len(losses) == 1:
                after = {name: np.float32(values) for name, values in taken.updated.items()}
                still = all(np.array_equal(after[name], start[name]) for name in start)
            weights = taken.updated
    first, rate = losses[0], f"at a learning rate of {spec['optimiser']['learning_rate']:g}"
    if still:
        return f"{rate} no weight of the network changes"
    worst = losses[-1] if losses[-1] >= first else np.max(losses)
    if not worst < RISE * first or losses[-1] >= first:
        return f"{rate} the network's loss goes from {first:.4g} to {worst:.4g}"
    if first - losses[-1] <= SEEN * abs(first):
        return f"{rate} the network's loss stays at {first:.6g}, as float32 shows it"
    return ""


def train_step(
    spec: dict,
    weights: Arrays,
    inputs: np.ndarray,
    labels: np.ndarray,
    state: optimisers.State | None = None,
    shares: int = 1,
    rounded: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Golden:
    """Forward, loss, backward and one update of the specification's optimiser.

    `inputs` is (batch, *shape) and `labels` (batch,) or (batch, steps). Everything is computed and
    returned in float64. `state` is what the optimiser carries from step to step.

    Of several `shares` of the mini-batch, which are equal, the losses and gradients are averaged: as of the whole, but
    that batch normalisation takes the statistics of each share. `rounded` is what becomes of each output of a layer.
    """
    weights = {name: np.asarray(values, np.float64) for name, values in weights.items()}
    losses, of_shares = [], []
    for own_inputs, own_labels in zip(
        np.split(inputs, shares), np.split(labels, shares), strict=True
    ):
        logits, tape = forward(spec, weights, own_inputs, rounded or exact)
        loss, flowing = loss_of(spec)(logits, own_labels)
        losses.append(loss)
        of_shares.append(backward(spec, tape, flowing, rounded or exact))
    loss = float(np.mean(losses))
    gradients = {name: np.mean([each[name] for each in of_shares], axis=0) for name in of_shares[0]}
    updated = optimisers.update(
        spec["optimiser"], weights, gradients, {} if state is None else state
    )
    return Golden(loss, gradients, updated)


def exact(values: np.ndarray) -> np.ndarray:
    return values


def coarse(values: np.ndarray, bits: int = PRECISIONS[USUAL].significand) -> np.ndarray:
    """Rounded to so many bits: in a float64's own, half of the last place that stays is added, and the rest cut off."""
    own = np.asarray(values, np.float64).view(np.int64) + (1 << (52 - bits))
    own &= -1 << (53 - bits)
    return own.view(np.float64)


def right_in_float32(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """One of many ways in which a right framework may round outputs of a layer: each by chance, in its last bits."""
    random = np.random.default_rng(number)
    size = 2.0 ** -RIGHT_BITS[number % len(RIGHT_BITS)]
    return lambda values: values * (1 + size * random.uniform(-1, 1, np.shape(values)))


def forward(
    spec: dict,
    weights: Mapping[str, np.ndarray],
    inputs: np.ndarray,
    rounded: Callable[[np.ndarray], np.ndarray] = exact,
    taped: bool = True,
    moved: Callable[[dict, list], list] = lambda node, sources: sources,
) -> tuple[np.ndarray, dict[str, Backward]]:
    """Logits (batch, ..., classes), and for each node what carries the gradient back, where it is `taped`.

    What no later node reads is let go, but for what that keeps. `rounded` is what becomes of each output, `moved` of a
    node and its inputs before it computes.
    """
    values = {
        "input": inputs if spec["input"]["kind"] == "tokens" else np.asarray(inputs, np.float64)
    }
    tape, last = {}, {name: node["name"] for node in spec["nodes"] for name in node["inputs"]}
    for node in spec["nodes"]:
        own = own_of(node, weights)
        sources = moved(node, [values[name] for name in node["inputs"]])
        for name in set(node["inputs"]):
            if last[name] == node["name"]:
                del values[name]
        result, back = forward_of(node["op"])(node, own, *sources)
        values[node["name"]] = rounded(result)
        if taped:
            tape[node["name"]] = back
    return values[spec["nodes"][-1]["name"]], tape


def statistics(spec: dict, expected: Expected) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Name, means and variances of each batch normalisation of the first step, and of how many values these are."""
    outputs: list[np.ndarray] = []

    def kept(values: np.ndarray) -> np.ndarray:
        outputs.append(values)
        return values

    inputs, _ = data.synthetic_batch(spec, expected.batch)
    start = {name: values.astype(np.float64) for name, values in expected.start.items()}
    forward(spec, start, inputs, kept, taped=False)
    given = dict(zip((node["name"] for node in spec["nodes"]), outputs, strict=True))
    for node in spec["nodes"]:
        if node["op"] == "batch_norm":
            x = np.asarray((given | {"input": inputs})[node["inputs"][0]], np.float64)
            axes = (0, *range(2, x.ndim))
            yield node["name"], x.mean(axes), x.var(axes), x.size // x.shape[1]


def forward_of(op: str) -> Callable[..., tuple[np.ndarray, Backward]]:
    return LAYERS[op].forward


def loss_of(spec: dict) -> Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]:
    """Returns the loss of a specification: from logits and labels, its value and its gradient for the logits."""
    return LOSSES[spec["loss"]].value


def backward(
    spec: dict,
    tape: dict[str, Backward],
    flowing: np.ndarray,
    rounded: Callable[[np.ndarray], np.ndarray] = exact,
) -> Arrays:
    """Returns the gradient of every parameter from that of the logits; empties the tape of `forward` as it goes."""
    pending = {spec["nodes"][-1]["name"]: flowing}
    gradients = {}
    for node in reversed(spec["nodes"]):
        to_inputs, to_own = tape.pop(node["name"])(pending.pop(node["name"]))
        gradients.update({f"{node['name']}/{role}": gradient for role, gradient in to_own.items()})
        for name, gradient in zip(node["inputs"], map(rounded, to_inputs), strict=True):
            pending[name] = pending[name] + gradient if name in pending else gradient
    return {parameter["name"]: gradients[parameter["name"]] for parameter in spec["parameters"]}
