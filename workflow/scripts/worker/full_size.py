"""A cell proves itself at its own size: its first steps are held against the network's reference (`prove.reference`).

The trainer that is timed shows its first losses, and of small parameters the first change, at its own rate.
Where the job asks for `gradients`, a second one is built when the samples are taken: a step at a higher rate shows
every gradient, as `worker.tasks.proof` explains. Plain Python that 3.6 can import: standard library and numpy.
"""

import gc

import numpy as np

from . import building, data, sketch
from .contract import NotEquivalent
from .specification import at_rate, without_dropout

# Right frameworks' losses are within 2.1e-7 of the reference; the fall of the loss is as exact as what made it.
LOSS = 6e-7
FALL = 1e-3
# Read between two steps: parameters of so many values at most.
SMALL = 2**17
# How often what float32 weights take from a change at the specification's own rate it may be off.
BLURS = 3.0
# A parameter moves for certain whose change float32 weights tell to this part.
SURE = 0.1
# A change of the loss that float32 shows for certain: four units in the last place.
SEEN = 2.0**-21
# After the samples, steps one by one, in which small parameters must change, where a block has more than one.
SINGLE_STEPS = 20


class Reference(object):
    """What `prove.reference.compute` wrote; raises KeyError where its file has a reason in place of numbers."""

    def __init__(self, path, spec):
        with np.load(str(path)) as content:
            self.reason = str(content["reason"])
            if self.reason:
                return
            for name in (
                "losses",
                "spreads",
                "rate",
                "middle",
                "next_loss",
                "next_spread",
                "dropout",
            ):
                setattr(self, name, content[name])
            tables = [content[name] for name in ("norms", "projections", "limits", "blurs")]
            entries, start = content["entries"].astype(np.float64), 0
        self.parameters = {}
        for parameter, norm, projections, limit, blur in zip(spec["parameters"], *tables):
            count, share = sketch.count_entries(parameter["shape"])
            true = sketch.Sketch(
                norm, projections.astype(np.float64), entries[start : start + count]
            )
            self.parameters[parameter["name"]] = (true, share, float(limit), float(blur))
            start += count

    def off(self, name, before, after, rate):
        """How far a parameter's change at a rate is from its gradient, as a share of that; and the limit."""
        true, share, limit, blur = self.parameters[name]
        parts = sketch.pieces(before, after, 1.0 / rate)
        found = sketch.take(name, before.shape, parts)
        return sketch.distance(found, true, share), limit + BLURS * blur / rate

    def moving(self, names, rate):
        """Those of these parameters that a step at this rate changes for certain."""
        return [
            name
            for name in names
            if self.parameters[name][2] < np.inf and self.parameters[name][3] < SURE * rate
        ]


class Proof(object):
    """What one worker shows. `held` has (kind, what, distance, limit) of all that was looked at, as shares.

    Without a reference nothing is shown and nothing held.
    """

    def __init__(self, job):
        self.job, self.spec = job, job["spec"]
        self.held, self.first, self.seconds, self.lacking = [], {}, 0.0, ""
        self.small = [
            parameter["name"]
            for parameter in self.spec["parameters"]
            if np.prod(parameter["shape"], dtype=np.int64) <= SMALL
        ]
        found = Reference(job["reference"], self.spec) if job.get("reference") else None
        self.reference = found if found and not found.reason else None
        # What drops at random has no losses of its own; without it, a network has.
        self.alike = bool(self.reference) and not self.reference.dropout

    def look(self, trainer):
        """Call it after the first step of the trainer that is timed: holds the change of its small parameters."""
        optimiser = self.spec["optimiser"]
        if not self.alike or optimiser["name"] != "sgd":
            return
        found = self.first = self._read(trainer)
        start = data.start_values(self.spec, self.spec.get("seed", data.SEED))
        pairs = ((name, values, found[name]) for name, values in start if name in found)
        self._hold_changes("the first change of ", pairs, optimiser["learning_rate"])

    def hold_losses(self, losses):
        """Of the first steps of the trainer that is timed."""
        if not self.alike:
            return
        true = self.reference.losses
        for step, (loss, wanted, spread) in enumerate(zip(losses, true, self.reference.spreads), 1):
            limit = LOSS * abs(wanted) + FALL * abs(wanted - true[0]) + spread
            self._hold_loss("loss", "the loss of step {}".format(step), loss, wanted, limit)

    def hold_steps(self, trainer, losses, per_block):
        """Call it after the samples: no update is left out in the steps that were timed, or in some more.

        Of a step that is a block of its own, every loss was told. Of others, some more are taken one by one.
        """
        if not self.alike:
            return
        if per_block == 1:
            self._hold_falls(losses)
        moving = self.reference.moving(self.small, self.spec["optimiser"]["learning_rate"])
        before = self._read(trainer)
        for _ in range(1 if per_block == 1 else SINGLE_STEPS):
            trainer.run(1)
            after = self._read(trainer)
            if moving and all(np.array_equal(before[name], after[name]) for name in moving):
                self.refuse("after the samples, no small parameter changes in a step")
            before = after
        still = [
            name for name in moving if self.first and np.array_equal(self.first[name], before[name])
        ]
        if still:
            self.refuse(
                "{} has not changed since the first step, nor have {} more".format(
                    still[0], len(still) - 1
                )
            )

    def hold_gradients(self, adapter):
        """Builds another trainer, which takes a step at a rate that shows each gradient, and one more."""
        if not self.reference:
            return
        gc.collect()
        start = building.clock()
        job, rate = self.job, float(self.reference.rate)
        # A seed of the cell's own is of no use here: the reference has the usual start values.
        spec = at_rate(without_dropout(self.spec), rate)
        inputs, labels = data.synthetic_batch(spec, job["batch"])
        trainer = building.make(adapter, job, spec, data.initial_weights(spec), inputs, labels)
        loss = trainer.run(1)
        first, spread = self.reference.losses[0], self.reference.spreads[0]
        self._hold_loss("loss", "the first loss", loss, first, LOSS * abs(first) + spread)
        pairs = (
            (name, values, trainer.weights([name])[name])
            for name, values in data.start_values(spec)
        )
        self._hold_changes("the gradient of ", pairs, rate, float(self.reference.middle))
        wanted = float(self.reference.next_loss)
        if np.isfinite(wanted):
            limit = LOSS * abs(wanted) + FALL * abs(wanted - first) + self.reference.next_spread
            what = "the loss after a step at a learning rate of {:g}".format(rate)
            self._hold_loss("next loss", what, trainer.run(1), wanted, limit)
        self.seconds = building.clock() - start

    def _read(self, trainer):
        # A copy: some frameworks hand out a view that the next step writes to.
        found = trainer.weights(self.small)
        return {name: np.array(found[name]) for name in self.small}

    def _hold_falls(self, losses):
        """No loss is that of the step before where the steps around it change it."""
        falls = [abs(one - other) for one, other in zip(losses, losses[1:])]
        least = SEEN * abs(losses[0])
        left = [
            number
            for number, (before, fall, after) in enumerate(zip(falls, falls[1:], falls[2:]), 2)
            if fall == 0 and before > least and after > least
        ]
        if left:
            self.refuse(
                "an update is left out: step {} has the loss of the step before, {:.9g}, and {} more steps have".format(
                    left[0] + 1, losses[left[0]], len(left) - 1
                )
            )

    def facts(self):
        """For the supervisor: `loss` and `change`, the largest distances, None where none was held.

        `seconds` is what the other trainer took, `lacking` why there was none.
        """
        losses = [off for kind, _, off, _ in self.held if kind == "loss"]
        # The gradients come last, and tell more than what weights of float32 leave of a change.
        changes = [off for kind, _, off, _ in self.held if kind == "change"]
        return {
            "loss": max(losses or [None]),
            "change": changes[-1] if changes else None,
            "seconds": self.seconds,
            "lacking": self.lacking,
        }

    def refuse(self, words):
        """Ends the proof."""
        raise NotEquivalent(words)

    def _hold_loss(self, kind, what, loss, wanted, limit):
        off = abs(loss - wanted)
        self.held.append((kind, what, float(off / abs(wanted)), float(limit / abs(wanted))))
        if not off <= limit:
            self.refuse(
                "at full size, {} is {:.9g} in the framework and {:.9g} in the reference".format(
                    what, loss, wanted
                )
            )

    def _hold_changes(self, what, pairs, rate, middle=None):
        """Of (name, before, after) of parameters; remembers the one that is nearest to its limit."""
        held = []
        for name, before, after in pairs:
            off, limit = self.reference.off(name, before, after, rate)
            if limit < np.inf:
                # NaN is the worst.
                held.append((off / limit if off == off else np.inf, name, off, limit))
        if not held:
            return
        share, name, off, limit = max(held)
        self.held.append(("change", what + name, off, limit))
        if not share <= 1:
            others = sum(not each[0] <= 1 for each in held) - 1
            self.refuse(
                "at full size, {}{} is off by {:.2g} of its length (limit {:.2g}), and of {} more of {}".format(
                    what, name, off, limit, others, len(held)
                )
            )
        if middle is not None:
            off = float(np.median([each[2] for each in held]))
            limit = middle + BLURS * sketch.READING
            self.held.append(("middle", "the median gradient", off, limit))
            if not off <= limit:
                self.refuse(
                    "at full size, the gradients are off by {:.2g} of their length in the median (limit {:.2g})".format(
                        off, limit
                    )
                )
