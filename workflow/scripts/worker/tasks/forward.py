"""Times forward passes on one mini-batch, without training.

Nothing is dropped, and batch normalisation takes the statistics of `shared.evaluation`. A framework's module `forward`
declares what an adapter does (`worker.contract`). Its `build(job)` returns, in place of a trainer, an object with
`parameters`, `threads` and `settings`, and

`infer(passes)`
    Computes the outputs of the mini-batch so many times, and waits until the last is done.
`give(inputs)`
    Puts another mini-batch, in the neutral layout, in the place of the first one.
`outputs()` -> array
    Returns the outputs of the last pass, float32, in the module's own order of samples and steps.

Before and after the samples, outputs of the mini-batch and of another one are compared with the network's reference
(`prove.reference`): so a result that is kept is seen. A block in which passes are left out would be too short. Events
are those of `step`; `change` of `proven` is how far off outputs are.
"""

import numpy as np

from shared import evaluation
from shared.statistics import median

from .. import building, timing, undisturbed
from ..contract import NotEquivalent
from ..usage import kernel_counters, peak_memory
from . import outputs

OFFERED = ("parameters", "threads", "settings", "infer", "give", "outputs")
# What may be left to do when a block has returned, as of `step`; a first copy into fresh memory takes time too.
LATE_SECONDS, LATE_SHARE, FRESH_BYTES_PER_SECOND = 0.005, 0.05, 1e9
# Blocks are of one pass at a mini-batch of 1, since its latency is asked for: for so many seconds at most.
LATENCY_SECONDS = 5.0
HUNDREDTHS = 100
# SINGLES passes are timed by themselves. If only one pass of a block is computed, a pass takes the share 1 / passes of
# that time; if all are, nearly all of it. The limit is between both: that time divided by passes ** ROOT.
SINGLES, ROOT = 5, 0.5


def run(loaded, job, emit):
    """Takes samples of passes, and compares outputs before and after them."""
    outputs.refuse_drawn(job["spec"])
    predictor = building.build(loaded, job, job["spec"], emit)
    proof = Proof(job, predictor, loaded.adapter)
    proof.hold()
    done = _time(predictor, job, emit)
    proof.hold()
    emit("proven", change=proof.farthest, seconds=proof.seconds)
    emit("done", **done)


class Proof(object):
    """What one worker shows of its outputs at full size; nothing without a reference."""

    def __init__(self, job, predictor, adapter):
        self._job, self._predictor, self._adapter = job, predictor, adapter
        self.farthest, self.seconds, self._wanted = None, 0.0, None
        if job.get("reference"):
            with np.load(job["reference"], allow_pickle=False) as content:
                if not str(content["reason"]):
                    self._wanted, self._limit = content["outputs"], float(content["outputs_limit"])
                    self._spread = float(content["outputs_spread"])

    def hold(self):
        """Compares the outputs of the last pass, of another mini-batch, and of the first one again."""
        if self._wanted is None:
            return
        start = building.clock()
        first, other = evaluation.mini_batches(self._job["spec"], self._job["batch"])
        if self.farthest is None:
            self._predictor.infer(1)
        self._compare(self._wanted[:-1])
        for inputs, wanted in ((other, self._wanted[1:]), (first, self._wanted[:-1])):
            self._predictor.give(inputs)
            self._predictor.infer(1)
            self._compare(wanted)
        self.seconds += building.clock() - start

    def _compare(self, wanted):
        seen = outputs.neutral(self._predictor.outputs(), self._adapter, self._job)
        off = evaluation.distance(evaluation.projected(seen), wanted, self._spread)
        self.farthest = max(off, self.farthest or 0.0)
        if not off <= self._limit:
            words = "at full size, the outputs are off by {:.2g} of what samples differ by (limit {:.2g})"
            raise NotEquivalent(words.format(off, self._limit))


def _time(predictor, job, emit):
    """Warms up, takes samples, and checks that no pass is left out or unfinished. Returns the facts of `done`."""
    clock, sampling, alone = building.clock, job["sampling"], job["batch"] == 1
    budget = sampling["budget_seconds"]

    def passes(number):
        predictor.infer(number)
        return 0.0

    warm = timing.warm_up(passes, clock, budget, most_steps=1 if alone else timing.MOST_STEPS)
    del warm["first_loss"]
    counted = kernel_counters()
    emit("warmup", kernel=counted, **warm)
    least = sampling["least_samples"]
    if alone:
        # As many as tell where the slowest hundredth begins, as far as time allows.
        fitting = int(LATENCY_SECONDS * warm["steps"] / warm["seconds"])
        least, budget = max(least, min(HUNDREDTHS, fitting)), min(budget, LATENCY_SECONDS)
    limits = budget, sampling["precision"], least
    _, usage, times = undisturbed.sample(passes, warm["per_block"], limits, counted, job, emit)
    _refuse_left_out(passes, clock, warm["per_block"], median(times))
    late = _late_seconds(predictor, passes, clock, warm["per_block"], median(times))
    return dict(usage.used, late_seconds=late, peak_memory_bytes=peak_memory())


def _refuse_left_out(passes, clock, per_block, seconds):
    """Raises NotEquivalent where passes of a block take too little time for all of them to have been computed.

    A compiler may leave out what nobody reads, or compute repeated passes once.
    """
    if per_block == 1:
        return
    singles = []
    for _ in range(SINGLES):
        start = clock()
        passes(1)
        singles.append(clock() - start)
    if seconds < min(singles) / per_block**ROOT:
        words = "a pass of a block of {} takes {:.3g} s and one alone {:.3g} s: passes are left out"
        raise NotEquivalent(words.format(per_block, seconds, min(singles)))


def _late_seconds(predictor, passes, clock, per_block, seconds):
    """Returns `timing.late_seconds` of reading outputs; raises NotEquivalent where work is left."""
    block = per_block * seconds
    fresh = 4 * predictor.outputs().nbytes / FRESH_BYTES_PER_SECOND
    limit = max(LATE_SECONDS, LATE_SHARE * block, fresh)
    passes(per_block)
    late = timing.late_seconds(passes, predictor.outputs, clock, per_block, limit)
    if late > limit:
        words = "a synchronisation is missing: {} passes return after {:.3g} s, but their work takes {:.3g} s more"
        raise NotEquivalent(words.format(per_block, block, late))
    return late
