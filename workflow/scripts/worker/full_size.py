"""Proves a cell at its own size: compares its first steps with the network's reference (`prove.reference`).

The timed trainer shows its first losses and the first change of small parameters, at its own rate. Where the job asks
for `gradients`, two more trainers are built after the samples. The second trainer starts from the weights that the
timed trainer had before its last samples, takes the same steps one by one, and must reach the same weights. So a defect
that a trainer begins late, or that is only in blocks of several steps, is seen. The third trainer starts anew, and a
step at a higher rate shows every gradient, as `shared.narrow` explains. It comes last, so that a defect that the
process begins late is seen as well.
"""

import functools
import gc
import zlib

import numpy as np

from shared import data, masks, sketch
from shared.sketch import in_one_piece
from shared.specification import at_rate, without_dropout

from . import building
from .contract import NotEquivalent
from .holding import PLACE, Judge, copies, ends, nearness, places, sketched
from .masks import read as read_masks

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
# How many steps are compared at the end: an update that is left out in each second step is in one of them.
END_STEPS = 2
# The most steps of a block, since another trainer repeats it step by step.
MOST_STEPS = 64
# An optimiser other than SGD divides by averages that may be almost 0, and so do errors. A block that starts anew may
# be off by this share of its change and of the first loss.
CARRIED = 0.02
# A parameter of which a step changes less than this part of its last places shows nothing.
FAINT = 0.1
# So rarely drops what is to drop next to nothing, by the same code; a right framework that does may try again.
BARELY, TRIES = 2.0**-30, 4
# Masks that take a loss so many limits away do not give it back three times by chance.
SIGNIFICANT = 30.0
# Other masks may take the first gradients so many times as far as ours, or as near, in the median.
MASKED = 3.0
# Parameters that stand still are moved by this share of their largest value: if the loss changes, they have a gradient.
MOVED = 2.0**-6


def _counted(part):
    """Wraps a part of the proof so that its seconds count."""

    @functools.wraps(part)
    def counted(proof, *arguments):
        start = building.clock()
        try:
            return part(proof, *arguments)
        finally:
            proof.seconds += building.clock() - start

    return counted


def end_blocks(per_block):
    """Returns the steps of each block that other trainers repeat: a block as timed, or END_STEPS of one step."""
    return [per_block] if per_block > 1 else [1] * END_STEPS


class Proof(Judge):
    """What one worker shows, in the order in which `worker.tasks.step` asks: before the samples, after them, and by
    other trainers. Without a reference nothing is shown.
    """

    def __init__(self, job):
        Judge.__init__(self, job)
        self.seconds, self.lacking, self.shows_gradients = 0.0, "", False
        # How many steps a block of samples has; the small parameters behind the first step.
        self.per_block, self.first = 1, {}
        # For the last samples: the weights before them, [(steps, loss)] of blocks, and what they made of each weight.
        self.end = None
        # What stands still after the samples, and the weights with which it does.
        self.still = None
        self.small = [
            parameter["name"]
            for parameter in self.spec["parameters"]
            if np.prod(parameter["shape"], dtype=np.int64) <= SMALL
        ]
        # What drops at random has no losses of its own; without it, a network has.
        self.alike = bool(self.reference) and not self.reference.dropout
        optimiser = self.spec["optimiser"]["name"]
        self.rate = self.spec["optimiser"]["learning_rate"]
        self.begins_plain = bool(self.reference) and optimiser in FIRST_STEP_PLAIN
        # A trainer that begins behind the first step would know nothing of what another optimiser carries.
        self.plain = self.alike and optimiser == "sgd"
        self.sure = self.reference.moving(self.rate) if self.reference else []
        self.moving = [name for name in self.small if name in self.sure]

    def facts(self):
        """Returns the facts for the supervisor: `loss` and `change` are the largest distances, None where none was
        compared.

        `gradients` tells whether each gradient was shown, `seconds` is what all of this took, and `lacking` says why
        there were no other trainers.
        """
        return {
            "loss": self.largest("loss"),
            # The gradients come last, and tell more than what weights of float32 leave of a change.
            "change": self.last("change"),
            "gradients": self.shows_gradients,
            "seconds": self.seconds,
            "lacking": self.lacking,
        }

    # Before the samples, by the trainer that is timed.

    @_counted
    def look(self, trainer):
        """Checks the change of small parameters. Call it after the first step of the timed trainer."""
        self._look_for_averages(trainer)
        if not self.begins_plain:
            return
        self.first = copies(trainer, self.small)
        start = data.start_values(self.spec, self.spec.get("seed", data.SEED), self.first)
        changes = ((name, values, self.first[name]) for name, values in start)
        if self.alike:
            self.hold_changes("the first change of ", self.reference.parameters, changes, self.rate)
        else:
            self._hold_masked_changes(changes)

    def _look_for_averages(self, trainer):
        """Refuses batch normalisation that keeps no running averages, where a framework shows them."""
        shown = self.job["ranks"] == 1 and hasattr(trainer, "statistics")
        known = trainer.statistics() if shown else None
        for node in self.spec["nodes"]:
            if known is None or node["op"] != "batch_norm":
                continue
            if not np.any(known.get(node["name"] + "/mean", 0)):
                words = "at full size, {} keeps no running averages"
                self.refuse(words.format(node["name"]))

    def _hold_masked_changes(self, changes):
        """Refuses masks that take gradients, in the median, much less far than ours, or much farther."""
        shares = []
        for name, before, after in changes:
            distance, limit = self.reference.off(
                self.reference.parameters, name, before, after, self.rate
            )
            if self.reference.masked[name] > MASKED * limit:
                shares.append(distance / self.reference.masked[name])
        middle = float(np.median(shares or [1.0]))
        if not 1 / MASKED <= middle <= MASKED:
            words = (
                "at full size, its dropout takes the first changes {:.2g} times as far as masks do"
            )
            self.refuse(words.format(middle))

    def hold_losses(self, losses):
        """Compares the first losses of the timed trainer with the reference's."""
        if not self.reference:
            return
        first, labels = self.reference.losses[0], self.reference.labels
        wanted = list(zip(losses, self.reference.losses, self.reference.spreads))
        allowed = [self.limit_of_loss(true, first, labels) + spread for _, true, spread in wanted]
        if self.alike:
            for step, ((loss, true, _), limit) in enumerate(zip(wanted, allowed), 1):
                self.hold_loss("loss", "the loss of step {}".format(step), loss, true, limit)
            return
        same = all(abs(loss - true) <= limit for (loss, true, _), limit in zip(wanted, allowed))
        if same and self.reference.masked_loss > SIGNIFICANT * max(allowed):
            self.refuse("at full size, the first losses are those without dropout: it is left out")

    # After the samples, by the trainer that was timed.

    @_counted
    def hold_steps(self, trainer, losses, per_block):
        """Checks that no update is left out in the timed steps, or in some more. Call it after the samples.

        Where each block is one step, its losses are known. Otherwise, some more steps are taken one by one.
        """
        self.per_block = per_block
        if not self.reference:
            return
        if per_block == 1:
            self._hold_falls(losses)
            reached = copies(trainer, self.small)
        else:
            reached = self._hold_single_steps(trainer)
        still = [
            name
            for name in self.moving
            if self.first and np.array_equal(self.first[name], reached[name])
        ]
        if still:
            words = "{} has not changed since the first step, nor have {} more"
            self.refuse(words.format(still[0], len(still) - 1))
        if not self.plain:
            self._keep_still(trainer)

    def _hold_falls(self, losses):
        """Refuses a loss that equals the last one though the steps around it change it, and equal losses at the end.

        A loss that is almost 0 may stay the same.
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

    def _hold_single_steps(self, trainer):
        """Takes steps one by one, each of which must change small parameters; returns these after the last step."""
        before = copies(trainer, self.small)
        moves = []
        for _ in range(SINGLE_STEPS):
            loss = trainer.run(1)
            after = copies(trainer, self.small)
            if all(np.array_equal(before[name], after[name]) for name in self.moving):
                self._refuse_still(loss)
            moves.append({name: places(before[name], after[name]) for name in self.moving})
            before = after
        if self.alike:
            self._hold_each_moves(moves)
        return before

    def _hold_each_moves(self, moves):
        """Refuses a small parameter that stands still in a step, between two that surely change its last places."""
        for one, step, other in zip(moves, moves[1:], moves[2:]):
            still = [name for name in step if not step[name] and min(one[name], other[name]) > FIRM]
            if still:
                words = "after the samples, {} stands still in a step between two that change it, and so do {} more"
                self.refuse(words.format(still[0], len(still) - 1))

    def _refuse_still(self, loss):
        # A loss that is almost 0 has no gradient left.
        gone = abs(loss) <= GONE * abs(self.reference.losses[0])
        if self.moving and not gone:
            self.refuse("after the samples, no small parameter changes in a step")

    def _keep_still(self, trainer):
        """Takes more steps, and keeps the weights where parameters do not change that have surely changed before."""
        before = {name: _mark(trainer, name) for name in self.sure}
        for _ in range(SINGLE_STEPS if self.per_block > 1 else END_STEPS):
            trainer.run(1)
        still = [name for name, mark in before.items() if mark == _mark(trainer, name)]
        if still:
            self.still = still, copies(trainer, self.reference.parameters)

    @_counted
    def keep_start(self, trainer):
        """Keeps the weights. Call it before the last samples, where `plain`."""
        self.end = copies(trainer, self.reference.parameters)

    @_counted
    def keep_end(self, trainer, losses):
        """Keeps what the timed trainer made of the weights; call it after those, with [(steps, loss)] of the blocks."""
        start, reached = self.end, ends(trainer, self.end.items())
        lengths = {name: length for name, (_, length, _) in reached.items()}
        if not any(lengths[name] for name in self.moving):
            self._refuse_still(losses[-1][1])
        still = [name for name in self.sure if not lengths[name]]
        if still:
            self.still = still, dict(start)
        self.end = start, losses, reached

    # By other trainers, of which one is built after the other.

    @_counted
    def hold_end(self, adapter):
        """Builds a trainer that begins at the kept weights, and must come to the same ones step by step.

        Where rounding to float32 hides most of a step, a small error of the gradient changes the rounding of a few
        values, each by a last place: so the limit grows with the root.
        """
        if self.still:
            self._hold_still(adapter)
        if self.reference and not self.plain and self.per_block > 1:
            self.end = self._block_of_another(adapter)
        if not self.end:
            return
        gc.collect()
        (start, losses, reached), self.end = self.end, None
        trainer = self._another(adapter, start)
        least = 0.0 if self.plain else CARRIED
        for steps, loss in losses:
            wanted = [trainer.run(1) for _ in range(steps)][-1]
            # A logarithm or a sum of the framework's own is as far off in both.
            size = max(abs(wanted), float(self.reference.losses[0]))
            limit = max(self.precision.loss, least) * size + float(self.reference.spreads[0])
            self.hold_loss(
                "end loss", "the loss after the samples", loss, wanted, limit, "a new trainer"
            )
        found = []
        for name, (after, length, size) in reached.items():
            apart = sketch.apart(sketched(name, trainer.weights([name])[name]), after)
            # For a parameter that stands still, all that the other trainer makes of it.
            length, hidden = max(length, apart), PLACE * size
            limit = max(self.reference.parameters[name][2], least)
            if not length <= FAINT * hidden and limit < np.inf:
                limit += np.sqrt(limit * hidden / length)
                found.append(nearness(name, apart / length, limit))
        self.hold_nearest("end", "after the samples, the change of ", found)

    def _block_of_another(self, adapter):
        """Returns what `keep_end` keeps, of a new trainer that takes a block from the start values.

        It cannot begin where the timed trainer ended, since it does not know what that one's optimiser carries from
        step to step.
        """
        gc.collect()
        trainer = self._another(adapter, dict(data.start_values(self.spec)))
        losses = [(self.per_block, trainer.run(self.per_block))]
        reached = ends(trainer, data.start_values(self.spec))
        return dict(data.start_values(self.spec)), losses, reached

    def _hold_still(self, adapter):
        """Refuses parameters that do not change although the loss depends on them.

        Only forward passes show this, since the backward pass left the parameters as they are. Gradients whose steps
        float32 rounds away, each at random, change a loss by less than `least`.
        """
        (names, start), self.still = self.still, None
        for seed in range(TRIES):
            random = np.random.RandomState(seed)
            squares = 0.0
            moves = {}
            for name in names:
                most = MOVED * np.abs(start[name]).max()
                moves[name] = most * random.uniform(-1, 1, start[name].shape)
                squares += float(np.square(start[name] * moves[name]).sum())
            rate = self.rate if self.begins_plain else np.inf
            least = SEEN * abs(self.reference.losses[0]) + 2 * PLACE * np.sqrt(squares) / rate
            losses = []
            for sign in (-1, 1):
                gc.collect()
                moved = {name: np.float32(start[name] + sign * moves[name]) for name in names}
                losses.append(self._another(adapter, dict(start, **moved)).run(1))
            if abs(losses[1] - losses[0]) / 2 > least:
                words = "after the samples, {} stands still, and so do {} more, though the loss hangs on it"
                self.refuse(words.format(names[0], len(names) - 1))
                return

    @_counted
    def hold_gradients(self, adapter):
        """Builds another trainer, which takes a step at a rate that shows each gradient.

        Where there is dropout, this trainer drops as the timed one does, but almost nothing.
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
        self.shows_gradients = True

    def _hold_gradients(self, adapter, seed):
        gc.collect()
        rate = float(self.reference.rate)
        # A seed of the cell's own is of no use here: the reference has start values of its own.
        spec = dict(at_rate(without_dropout(self.spec, rate=BARELY), rate), seed=seed)
        inputs, labels = data.synthetic_batch(spec, self.job["batch"])
        start = dict(self.reference.start_values(spec))
        trainer = building.make(adapter, self.job, spec, start, inputs, labels)
        del start
        loss = trainer.run(1)
        first, spread = float(self.reference.loss), float(self.reference.spread)
        limit = self.limit_of_loss(first, labels=self.reference.labels) + spread
        self.hold_loss("loss", "the first loss", loss, first, limit)
        changes = (
            (name, values, trainer.weights([name])[name])
            for name, values in self.reference.start_values(spec)
        )
        distances = self.hold_changes("the gradient of ", self.reference.shown, changes, rate)
        self.hold_median(distances, float(self.reference.middle))

    @_counted
    def hold_masks(self, adapter):
        """Builds small networks, for the timed mini-batch, that show what dropout drops."""
        for _, spec in sorted(self.job.get("masks", {}).items()):
            gc.collect()
            wrong = masks.fault(read_masks(adapter, self.job, spec), spec)
            if wrong:
                self.refuse("at full size, " + wrong)

    def _another(self, adapter, start):
        """Returns a new trainer from these weights, in which nothing is dropped at random."""
        spec = without_dropout(self.spec)
        inputs, labels = data.synthetic_batch(spec, self.job["batch"])
        return building.make(adapter, self.job, spec, start, inputs, labels)


def _mark(trainer, name):
    """Returns a number that changes with the values of a parameter."""
    return zlib.crc32(in_one_piece(trainer.weights([name])[name]))
