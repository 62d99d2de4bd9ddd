"""A cell proves itself at its own size: its first steps are compared with the network's reference (`prove.reference`).

The trainer that is timed shows its first losses, and of small parameters the first change, at its own rate.
Where the job asks for `gradients`, two more trainers are built after the samples. The second trainer starts from the
weights that the timed trainer had before its last samples, takes the same steps one by one, and must reach the same
weights. So a defect that a trainer begins late, or that is only in blocks of several steps, is seen. The third trainer
starts anew, and a step at a higher rate shows every gradient, as `shared.narrow` explains. It comes last, so a defect
that the process begins late is seen as well.
"""

import functools
import gc
import zlib

import numpy as np

from shared import data, limits, masks, sketch
from shared.precisions import PRECISIONS
from shared.sketch import in_one_piece
from shared.specification import at_rate, without_dropout

from . import building
from .contract import NotEquivalent
from .masks import read as read_masks
from .reference import BLURS, Reference

# Optimisers whose first step is the gradient times the learning rate.
FIRST_STEP_PLAIN = ("sgd", "momentum")
# Read between two steps: parameters of so many values at most.
SMALL = 2**17
# A change of the loss that float32 shows for certain: four units in the last place.
SEEN = 2.0**-21
# With less than this part of the first one, a loss is gone: of a difference of scores, float32 shows no more.
GONE = 2.0**-14
# After the samples, steps one by one, in which small parameters must change, where a block has more than one.
SINGLE_STEPS = 20
# A parameter surely moves between two steps that change it by so many of its last places.
FIRM = 64.0
# So many steps are held at the end: what is left out of each second one is in one of them.
END_STEPS = 2
# So many has a block at most, since another trainer repeats it step by step.
MOST_STEPS = 64
# Another optimiser than SGD divides by averages that may be next to nothing, and noise by them. So far off a block may
# be that begins anew, as a part of its change and of the first loss.
CARRIED = 0.02
# The last place of a float32, as a part of it, at most.
PLACE = 2.0**-23
# A parameter of which a step changes less than this part of its last places shows nothing.
FAINT = 0.1
# So rarely drops what is to drop next to nothing, by the same code; a right framework that does may try again.
BARELY, TRIES = 2.0**-30, 4
# Masks that take a loss so many limits away do not give it back three times by chance.
SIGNIFICANT = 30.0
# So many times as far as our masks, or as near, may other ones take the first gradients in the median.
MASKED = 3.0
# What stands still is moved by this part of its largest value: where the loss changes with it, it has a gradient.
MOVED = 2.0**-6


def _counted(part):
    """Returns a part of the proof, whose seconds are told."""

    @functools.wraps(part)
    def counted(proof, *arguments):
        start = building.clock()
        try:
            return part(proof, *arguments)
        finally:
            proof.seconds += building.clock() - start

    return counted


def end_blocks(per_block):
    """Of how many steps each block is that other trainers repeat: one as it is timed, or END_STEPS of a step each."""
    return [per_block] if per_block > 1 else [1] * END_STEPS


class Proof(object):
    """What one worker shows. `held` has (kind, what, distance, limit) of all that was looked at, as shares.

    Without a reference nothing is shown and nothing held.
    """

    def __init__(self, job):
        self.job, self.spec = job, job["spec"]
        self.precision = PRECISIONS[job["precision"]]
        self.held, self.first, self.seconds, self.lacking = [], {}, 0.0, ""
        self.end, self.still, self.shown, self.per_block = None, None, False, 1
        self.small = [
            parameter["name"]
            for parameter in self.spec["parameters"]
            if np.prod(parameter["shape"], dtype=np.int64) <= SMALL
        ]
        found = Reference(job["reference"], self.spec) if job.get("reference") else None
        self.reference = found if found and not found.reason else None
        # What drops at random has no losses of its own; without it, a network has.
        self.alike = bool(self.reference) and not self.reference.dropout
        optimiser = self.spec["optimiser"]["name"]
        self.begins_plain = bool(self.reference) and optimiser in FIRST_STEP_PLAIN
        # A trainer that begins behind the first step would know nothing of what another optimiser carries.
        self.plain = self.alike and optimiser == "sgd"
        rate = self.spec["optimiser"]["learning_rate"]
        self.sure = self.reference.moving(rate) if self.reference else []
        self.moving = [name for name in self.small if name in self.sure]

    @_counted
    def look(self, trainer):
        """Call it after the first step of the trainer that is timed: holds the change of its small parameters."""
        shown = self.job["ranks"] == 1 and hasattr(trainer, "statistics")
        known = trainer.statistics() if shown else None
        for node in self.spec["nodes"]:
            if known is None or node["op"] != "batch_norm":
                continue
            if not np.any(known.get(node["name"] + "/mean", 0)):
                words = "at full size, {} keeps no running averages"
                self.refuse(words.format(node["name"]))
        if not self.begins_plain:
            return
        found = self.first = self._read(trainer, self.small)
        start = data.start_values(self.spec, self.spec.get("seed", data.SEED), found)
        pairs = ((name, values, found[name]) for name, values in start)
        rate = self.spec["optimiser"]["learning_rate"]
        if self.alike:
            self._hold_changes("the first change of ", self.reference.parameters, pairs, rate)
        else:
            self._hold_masked_changes(pairs, rate)

    def _hold_masked_changes(self, pairs, rate):
        """Masks take gradients as far as ours do in the median: not much less, as where none drop, nor much more."""
        shares = []
        for name, before, after in pairs:
            off, limit = self.reference.off(self.reference.parameters, name, before, after, rate)
            if self.reference.masked[name] > MASKED * limit:
                shares.append(off / self.reference.masked[name])
        middle = float(np.median(shares or [1.0]))
        if not 1 / MASKED <= middle <= MASKED:
            words = (
                "at full size, its dropout takes the first changes {:.2g} times as far as masks do"
            )
            self.refuse(words.format(middle))

    def hold_losses(self, losses):
        """Of the first steps of the trainer that is timed."""
        if not self.reference:
            return
        true, labels = self.reference.losses, self.reference.labels
        if not self.alike:
            each = list(zip(losses, true, self.reference.spreads))
            most = [self._of_loss(wanted, true[0], labels) + spread for _, wanted, spread in each]
            same = all(abs(loss - wanted) <= off for (loss, wanted, _), off in zip(each, most))
            if same and self.reference.masked_loss > SIGNIFICANT * max(most):
                self.refuse(
                    "at full size, the first losses are those without dropout: it is left out"
                )
            return
        for step, (loss, wanted, spread) in enumerate(zip(losses, true, self.reference.spreads), 1):
            limit = self._of_loss(wanted, true[0], labels) + spread
            self._hold_loss("loss", "the loss of step {}".format(step), loss, wanted, limit)

    @_counted
    def hold_steps(self, trainer, losses, per_block):
        """Call it after the samples: no update is left out in the steps that were timed, or in some more.

        Of a step that is a block of its own, every loss was told. Of others, some more are taken one by one.
        """
        self.per_block = per_block
        if not self.reference:
            return
        before = self._read(trainer, self.small)
        if per_block == 1:
            self._hold_falls(losses)
        else:
            moves = []
            for _ in range(SINGLE_STEPS):
                loss = trainer.run(1)
                after = self._read(trainer, self.small)
                if all(np.array_equal(before[name], after[name]) for name in self.moving):
                    self._refuse_still(loss)
                moves.append({name: _places(before[name], after[name]) for name in self.moving})
                before = after
            if self.alike:
                self._hold_each_moves(moves)
        still = [
            name
            for name in self.moving
            if self.first and np.array_equal(self.first[name], before[name])
        ]
        if still:
            words = "{} has not changed since the first step, nor have {} more"
            self.refuse(words.format(still[0], len(still) - 1))
        if not self.plain:
            self._keep_still(trainer)

    def _keep_still(self, trainer):
        """Steps on, and keeps the weights where parameters stand still that once surely moved."""
        before = {name: _mark(trainer, name) for name in self.sure}
        for _ in range(SINGLE_STEPS if self.per_block > 1 else END_STEPS):
            trainer.run(1)
        still = [name for name, mark in before.items() if mark == _mark(trainer, name)]
        if still:
            self.still = still, self._read(trainer, self.reference.parameters)

    def _hold_still(self, adapter):
        """Of what stands still, the loss must not hang on it: by the way forward alone, as the way back let it stand.

        By gradients whose steps float32 rounds away, each at random, a loss changes by less than `least`.
        """
        (names, begun), self.still = self.still, None
        for seed in range(TRIES):
            random, squares, moves = np.random.RandomState(seed), 0.0, {}
            for name in names:
                most = MOVED * np.abs(begun[name]).max()
                moves[name] = most * random.uniform(-1, 1, begun[name].shape)
                squares += float(np.square(begun[name] * moves[name]).sum())
            rate = self.spec["optimiser"]["learning_rate"] if self.begins_plain else np.inf
            least = SEEN * abs(self.reference.losses[0]) + 2 * PLACE * np.sqrt(squares) / rate
            losses = []
            for sign in (-1, 1):
                gc.collect()
                moved = {name: np.float32(begun[name] + sign * moves[name]) for name in names}
                losses.append(self._another(adapter, dict(begun, **moved)).run(1))
            if abs(losses[1] - losses[0]) / 2 > least:
                words = "after the samples, {} stands still, and so do {} more, though the loss hangs on it"
                self.refuse(words.format(names[0], len(names) - 1))
                return

    @_counted
    def keep_start(self, trainer):
        """Call it before the last samples, where `plain`: keeps where the weights are."""
        self.end = self._read(trainer, self.reference.parameters)

    @_counted
    def keep_end(self, trainer, losses):
        """Call it after them, with [(steps, loss)] of the blocks: keeps what the trainer that was timed made of it."""
        ends = _ends(trainer, self.end.items())
        if not any(ends[name][1] for name in self.moving):
            self._refuse_still(losses[-1][1])
        still = [name for name in self.sure if not ends[name][1]]
        if still:
            self.still = still, dict(self.end)
        self.end = self.end, losses, ends

    @_counted
    def hold_end(self, adapter):
        """Builds a trainer that begins where the timed one ended: step by step it must come to the same.

        Where rounding to float32 hides most of a step, a small error of the gradient turns the rounding of few of its
        values, each by a last place: so the limit grows with the root.
        """
        if self.still:
            self._hold_still(adapter)
        if self.reference and not self.plain and self.per_block > 1:
            self.end = self._block_of_another(adapter)
        if not self.end:
            return
        gc.collect()
        (before, losses, ends), self.end = self.end, None
        trainer = self._another(adapter, before)
        least = 0.0 if self.plain else CARRIED
        for steps, loss in losses:
            wanted = [trainer.run(1) for _ in range(steps)][-1]
            # A logarithm or a sum of the framework's own is as far off in both.
            size = max(abs(wanted), float(self.reference.losses[0]))
            limit = max(self.precision.loss, least) * size + float(self.reference.spreads[0])
            self._hold_loss(
                "end loss", "the loss after the samples", loss, wanted, limit, "a new trainer"
            )
        held = []
        for name, (after, length, size) in ends.items():
            apart = sketch.apart(_sketch(name, trainer.weights([name])[name]), after)
            # Of a parameter that stands still, all that the other trainer makes of it.
            length, places = max(length, apart), PLACE * size
            limit = max(self.reference.parameters[name][2], least)
            if not length <= FAINT * places and limit < np.inf:
                limit += np.sqrt(limit * places / length)
                held.append(_nearness(name, apart / length, limit))
        self._hold_nearest("end", "after the samples, the change of ", held)

    def _block_of_another(self, adapter):
        """Says what `keep_end` keeps, of a new trainer that takes a block from the start values.

        It cannot begin where the timed one ended: what a trainer carries from step to step, besides weights, is its
        own.
        """
        gc.collect()
        trainer = self._another(adapter, dict(data.start_values(self.spec)))
        losses = [(self.per_block, trainer.run(self.per_block))]
        ends = _ends(trainer, data.start_values(self.spec))
        return dict(data.start_values(self.spec)), losses, ends

    def _another(self, adapter, begun, spec=None):
        """Returns a new trainer from these weights, in which nothing is dropped at random."""
        spec = without_dropout(spec or self.spec)
        inputs, labels = data.synthetic_batch(spec, self.job["batch"])
        return building.make(adapter, self.job, spec, begun, inputs, labels)

    @_counted
    def hold_masks(self, adapter):
        """Builds small networks for the mini-batch that is timed, which show what is dropped of it."""
        for _, spec in sorted(self.job.get("masks", {}).items()):
            gc.collect()
            wrong = masks.fault(read_masks(adapter, self.job, spec), spec)
            if wrong:
                self.refuse("at full size, " + wrong)

    @_counted
    def hold_gradients(self, adapter):
        """Builds another trainer, which takes a step at a rate that shows each gradient.

        Where there is dropout, this trainer drops as the timed one does, and next to nothing.
        """
        if not self.reference:
            return
        held = list(self.held)
        for seed in reversed(range(1 if self.alike else TRIES)):
            try:
                self._hold_gradients(adapter, seed)
                break
            except NotEquivalent:
                if not seed:
                    raise
                self.held = list(held)
        self.shown = True

    def _hold_gradients(self, adapter, seed):
        gc.collect()
        job, rate = self.job, float(self.reference.rate)
        # A seed of the cell's own is of no use here: the reference has start values of its own.
        spec = dict(at_rate(without_dropout(self.spec, rate=BARELY), rate), seed=seed)
        inputs, labels = data.synthetic_batch(spec, job["batch"])
        begun = dict(self.reference.start_values(spec))
        trainer = building.make(adapter, job, spec, begun, inputs, labels)
        del begun
        loss = trainer.run(1)
        first, spread = float(self.reference.loss), float(self.reference.spread)
        limit = self._of_loss(first, labels=self.reference.labels) + spread
        self._hold_loss("loss", "the first loss", loss, first, limit)
        pairs = (
            (name, values, trainer.weights([name])[name])
            for name, values in self.reference.start_values(spec)
        )
        middle = float(self.reference.middle)
        self._hold_changes("the gradient of ", self.reference.shown, pairs, rate, middle)

    def _of_loss(self, *of, **named):
        return limits.of_loss(*of, precision=self.job["precision"], **named)

    def _read(self, trainer, names):
        # Copies: some frameworks hand out a view that the next step writes to. One by one, so that what is handed out
        # takes the same pages each time: fresh ones cost more than the copy.
        return {name: _copied(trainer.weights([name])[name]) for name in names}

    def _refuse_still(self, loss):
        # Of a loss that is gone there is no gradient left.
        gone = abs(loss) <= GONE * abs(self.reference.losses[0])
        if self.moving and not gone:
            self.refuse("after the samples, no small parameter changes in a step")

    def _hold_each_moves(self, moves):
        """No small parameter stands still in a step between two that change it, by its last places, for certain."""
        for one, step, other in zip(moves, moves[1:], moves[2:]):
            still = [name for name in step if not step[name] and min(one[name], other[name]) > FIRM]
            if still:
                words = "after the samples, {} stands still in a step between two that change it, and so do {} more"
                self.refuse(words.format(still[0], len(still) - 1))

    def _hold_falls(self, losses):
        """No loss is that of the step before where the steps around it change it, nor are the last ones the same.

        A loss that is gone may stay so.
        """
        falls = [abs(one - other) for one, other in zip(losses, losses[1:])]
        least, gone = SEEN * abs(losses[0]), GONE * abs(losses[0])
        left = [
            number
            for number, (before, fall, after) in enumerate(zip(falls, falls[1:], falls[2:]), 2)
            if fall == 0 and before > least and after > least and abs(losses[number]) > gone
        ]
        last = max((number for number, fall in enumerate(falls) if fall), default=0)
        if last + 1 < len(falls) and falls[last] > least and abs(losses[-1]) > gone:
            left.append(last + 2)
        if left:
            words = "an update is left out: step {} has the loss of the step before, {:.9g}, and {} more steps have"
            self.refuse(words.format(left[0] + 1, losses[left[0]], len(left) - 1))

    def facts(self):
        """For the supervisor: `loss` and `change`, the largest distances, None where none was held.

        `gradients`: whether each gradient was shown. `seconds` is what all of this took, `lacking` why there were no
        other trainers.
        """
        # Without a limit nothing was held.
        losses = [off for kind, _, off, limit in self.held if kind == "loss" and limit < np.inf]
        # The gradients come last, and tell more than what weights of float32 leave of a change.
        changes = [off for kind, _, off, _ in self.held if kind == "change"]
        return {
            "loss": max(losses or [None]),
            "change": changes[-1] if changes else None,
            "gradients": self.shown,
            "seconds": self.seconds,
            "lacking": self.lacking,
        }

    def refuse(self, words):
        """Ends the proof."""
        raise NotEquivalent(words)

    def _hold_loss(self, kind, what, loss, wanted, limit, whose="the reference"):
        off, size = abs(loss - wanted), max(abs(wanted), limits.LOGARITHM)
        self.held.append((kind, what, float(off / size), float(limit / size)))
        if not off <= limit:
            words = "at full size, {} is {:.9g} in the framework and {:.9g} in {}"
            self.refuse(words.format(what, loss, wanted, whose))

    def _hold_changes(self, what, parameters, pairs, rate, middle=None):
        """Of (name, before, after) of parameters; `middle` is how far off the median of the counted ones may be."""
        held = []
        for name, before, after in pairs:
            off, limit = self.reference.off(parameters, name, before, after, rate)
            if limit < np.inf:
                held.append(_nearness(name, off, limit))
        self._hold_nearest("change", what, held)
        counted = [off for _, name, off, _ in held if name in self.reference.counted]
        if counted and middle is not None:
            off = float(np.median(counted))
            limit = middle + BLURS * sketch.READING
            self.held.append(("middle", "the median gradient", off, limit))
            if off < self.precision.least:
                words = (
                    "at full size, the gradients are off by {:.2g} of their length in the median: "
                )
                words += "products keep more bits than those of {}"
                self.refuse(words.format(off, self.job["precision"]))
            if not off <= limit:
                words = "at full size, the gradients are off by {:.2g} of their length in the median (limit {:.2g})"
                self.refuse(words.format(off, limit))

    def _hold_nearest(self, kind, what, held):
        """Remembers of parameters the one that is nearest to its limit."""
        if not held:
            return
        share, name, off, limit = max(held)
        self.held.append((kind, what + name, float(off), float(limit)))
        if not share <= 1:
            others = sum(not each[0] <= 1 for each in held) - 1
            more = ", and of {} more of {}".format(others, len(held)) if others else ""
            words = "at full size, {}{} is off by {:.2g} of its length (limit {:.2g}){}"
            self.refuse(words.format(what, name, off, limit, more))


def _nearness(name, off, limit):
    """Says what of several is largest for the one that is nearest to its limit; NaN is the worst."""
    return (off / limit if off == off else np.inf, name, off, limit)


def _places(before, after):
    """Returns the largest change of a value, in last places of the largest value."""
    largest = float(np.abs(after).max()) or 1.0
    return float(np.abs(after - before).max()) / (PLACE * largest)


def _mark(trainer, name):
    """Returns a number that changes with the values of a parameter."""
    return zlib.crc32(in_one_piece(trainer.weights([name])[name]))


def _copied(values):
    if values.flags.c_contiguous:
        return np.array(values, np.float32)
    return in_one_piece(values).astype(np.float32, copy=False)


def _sketch(name, values):
    return sketch.take(name, values.shape, sketch.pieces(values))


def _ends(trainer, start):
    """{name: (sketch, length of the change, length before)} of the weights, by (name, values) of those before."""
    ends = {}
    for name, values in start:
        after = in_one_piece(trainer.weights([name])[name])
        ends[name] = (_sketch(name, after), _apart(after, values), _apart(values))
    return ends


def _apart(values, others=None):
    """Returns the length of an array, or of its difference from another one."""
    values, squares = values.ravel(), 0.0
    others = None if others is None else others.ravel()
    for start in range(0, values.size, sketch.PART):
        part = values[start : start + sketch.PART]
        part = part if others is None else part - others[start : start + sketch.PART]
        squares += float(np.einsum("i,i->", part, part))
    return np.sqrt(squares)
