"""Judges ranks that do not wait for one another: each gradient must belong to the weights at which it was taken, and
each must be applied once.

A step is taken by one rank, or by a group of ranks whose gradients are averaged. A framework's numbers come from
`worker.tasks.turns.collect`. That the network is the specified one was proven before, with one rank or group.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from shared import data
from shared.narrow import RECOVERY_RATE, SLOW, TOGETHER, TRIALS, TURNS
from shared.specification import at_rate
from steptime.prove import golden
from steptime.prove.compare import TOLERANCES, Proof, driven_by, hold
from steptime.prove.training import FED_LOSS, FED_UPDATE, farthest

# How many of a group's TOGETHER updates may be lacking or too many: less than one.
HALF = 0.5


def judge(spec: dict, batch: int, groups: Sequence[Sequence[int]], measured: dict) -> Proof:
    """Compares the weights that groups of ranks reach with golden steps. The first fault gives the reason."""
    shares = _Shares(spec, batch, groups, measured)
    details: dict[str, object] = {"ranks": sum(map(len, groups))}
    if np.isfinite(measured["staleness"]):
        details["staleness"] = float(measured["staleness"])
    for name, check in CHECKS.items():
        reason = check(shares, details)
        if reason:
            return Proof(False, name, reason, details)
    return Proof(True, "", "", details)


class _Shares:
    """Each group's share of the mini-batch, and the golden steps of it."""

    def __init__(
        self, spec: dict, batch: int, groups: Sequence[Sequence[int]], measured: dict
    ) -> None:
        self.spec, self.batch, self.measured = spec, batch, measured
        self.groups, self._ranks = range(len(groups)), len(groups[0])
        self.start = data.initial_weights(spec)
        self._parts = list(zip(*map(self._split, data.synthetic_batch(spec, batch)), strict=True))

    def named(self, group: int) -> str:
        return f"rank {group}" if self._ranks == 1 else f"group {group}"

    def step(self, group, weights, rate=None, rounded=None) -> golden.Golden:
        """Computes a golden step of a group's share, at the specification's learning rate or at another."""
        spec = self.spec if rate is None else at_rate(self.spec, rate)
        inputs, labels = self._parts[group]
        return self._step(spec, weights, inputs, labels, rounded)

    def steps(self, group, weights, count, rounded=None) -> golden.Golden:
        for _ in range(count):
            taken = self.step(group, weights, rounded=rounded)
            weights = taken.updated
        return taken

    def fed(self, group, weights) -> tuple[float, dict[str, np.ndarray]]:
        """Returns mean loss and weights after the group's share of each mini-batch that a proof feeds."""
        losses = []
        for inputs, labels, rate in data.fed_batches(self.spec, self.batch):
            inputs, labels = (self._split(each)[group] for each in (inputs, labels))
            taken = self._step(at_rate(self.spec, rate), weights, inputs, labels)
            weights = taken.updated
            losses.append(taken.loss)
        return float(np.mean(losses)), weights

    def reached(self, when: str) -> dict[str, np.ndarray]:
        return {name: self.measured[f"{when}/{name}"].astype(np.float64) for name in self.start}

    def _split(self, values):
        return np.split(values, len(self.groups))

    def _step(self, spec, weights, inputs, labels, rounded=None) -> golden.Golden:
        return golden.train_step(spec, weights, inputs, labels, shares=self._ranks, rounded=rounded)


def _check_alone(shares, details):
    """Checks the gradient of each group's share, from the step that it took at `RECOVERY_RATE`."""
    for group in shares.groups:
        taken, reached = (
            shares.step(group, shares.start, RECOVERY_RATE),
            shares.reached(f"alone{group}"),
        )
        true, who = taken.gradients, f"in the turn of {shares.named(group)}"
        driven = driven_by(true)
        found = {
            name: (start - reached[name]) / RECOVERY_RATE for name, start in shares.start.items()
        }
        lengths = [np.linalg.norm(found[name]) / np.linalg.norm(true[name]) for name in driven]
        factor = float(np.median(lengths))
        if factor == 0:
            return f"{who} no weight changes: its gradients do not arrive"
        if abs(factor - 1) > 1e-2 and np.ptp(lengths) < 0.2 * factor:
            return (
                f"{who} every update is {factor:.4g} times what it must be: a gradient is not taken once, at the rate "
                "that was asked for"
            )
        off, worst = farthest(
            found, {name: true[name] for name in driven}, dict.fromkeys(true, 0.0)
        )
        details[f"alone{group}"] = off
        if not off <= TOLERANCES["update"]:
            return f"{who} the update of {worst} is off by {off:.2g} of its length"
        loss = shares.measured["alone_losses"][group]
        if not abs(loss - taken.loss) <= TOLERANCES["loss"] * abs(taken.loss):
            return (
                f"{who} the loss is {loss:.6g} in the framework and {taken.loss:.6g} of its share"
            )
    return None


def _check_turns(shares, details):
    """Checks that a group whose turn it is begins at the weights that the others have left, and then at its own."""
    before = shares.start
    for number, steps in enumerate(TURNS):
        for group in shares.groups:
            reached = shares.reached(f"turn{number}.{group}")
            again = partial(shares.steps, group, before, steps)
            taken, loss = again(), shares.measured["turn_losses"][number, group]
            call = golden.Followed(before, taken, again)
            exactly, off = hold(driven_by(taken.gradients), steps, reached, loss, call)
            details[f"turn{number}.{group}"] = off.update[0]
            if exactly.reason:
                details[f"turn{number}.{group}_exactly"] = exactly.update[0]
            if off.reason:
                when = f"step {steps} from the weights as they were then"
                return f"in turn {number + 1} of {shares.named(group)}, " + off.reason.format(
                    when=when, step=steps
                )
            before = reached
    return None


def _check_fed(shares, details):
    """Checks that a group that is fed in its turn takes its share of each mini-batch, at that mini-batch's rate."""
    before = shares.start
    for group in shares.groups if "dataset" in shares.spec else ():
        wanted, after = shares.fed(group, before)
        reached, loss = shares.reached(f"fed{group}"), shares.measured["fed_losses"][group]
        if not abs(loss - wanted) <= FED_LOSS * wanted:
            return (
                f"the mean loss of what {shares.named(group)} is fed in its turn is {loss:.6g} in the framework and "
                f"{wanted:.6g} of its share"
            )
        off, worst = farthest(reached, after, before)
        details[f"fed{group}"] = off
        if not off <= FED_UPDATE:
            who = f"{shares.named(group)} was fed in its turn"
            return f"{worst} is wrong after {who}: off by {off:.2g} of its way"
        before = reached
    return None


def _check_together(shares, details):
    """Checks that as many updates of each group arrive as it makes, when all groups step at once.

    Where two updates meet by chance, some of the weights lose one, and in another trial it is other weights. So each
    weight counts in the trial in which it is nearest to where all updates lead. An update that is left out on purpose
    is missing in every trial.
    """
    found = []
    mean = None
    nearest = None
    before = shares.start
    for trial in range(TRIALS):
        after = shares.reached(f"together{trial}")
        updates, lacking = _lacking(shares, before, after)
        found.append(TOGETHER - _counted(updates, lacking))
        mean = updates / TRIALS if mean is None else mean + updates / TRIALS
        if nearest is None:
            nearest = lacking
        nearest = np.where(np.abs(lacking) < np.abs(nearest), lacking, nearest)
        before = after
    counts = TOGETHER - _counted(mean, nearest)
    details["arrived"] = [float(count) for count in counts]
    details["arrived_mostly"] = [float(count) for count in np.median(found, axis=0)]
    for group, count in enumerate(counts):
        if not abs(count - TOGETHER) <= HALF:
            return (
                f"of {TOGETHER} updates that {shares.named(group)} makes when all step at once, {count:.2g} arrive: "
                "some are lost or taken twice"
            )
    return None


def _lacking(shares, before, after):
    """Returns one update of each group, and how far each weight is from where all updates lead."""
    rate = shares.spec["optimiser"]["learning_rate"] * SLOW
    gradients = []
    for group in shares.groups:
        first, last = (shares.step(group, weights).gradients for weights in (before, after))
        # They change little on the way, and by as much in each step.
        gradients.append(_flat({name: (first[name] + last[name]) / 2 for name in first}))
    updates = rate * np.array(gradients)
    moved = _flat({name: start - after[name] for name, start in before.items()})
    return updates, TOGETHER * updates.sum(axis=0) - moved


def _counted(updates, way):
    """Returns how many updates of each group add up to this way, by least squares."""
    return np.linalg.lstsq(updates.T, way, rcond=None)[0]


CHECKS = {
    "alone": _check_alone,
    "turns": _check_turns,
    "fed": _check_fed,
    "together": _check_together,
}


def _flat(arrays):
    return np.concatenate([values.ravel() for values in arrays.values()])
