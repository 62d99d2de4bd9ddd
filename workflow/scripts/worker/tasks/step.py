"""Times training steps on one mini-batch that does not change.

Besides `ready`, events are

    warmup   steps, per_block, first_loss, first_seconds, seconds, steady, kernel
    sample   steps, seconds (per mini-batch)
    again    kernel, seconds: of samples that are left out, since other programs had CPU time meanwhile
    sampled  kernel: what the kernel counts of the whole machine, from which interference is seen
    resumed, ended  kernel: between them the last samples are taken, from weights that are known
    proven   loss, change: how far its own steps are from the reference (`worker.full_size`); gradients: whether each
             was shown; seconds that this took, and lacking: why there was no second and third trainer
    timed    what `done` says, before other trainers are built: a limit that is reached there ends the proof alone
    done     last_loss, late_seconds, peak_memory_bytes; of the samples: cpu_seconds, wall_seconds, waited_seconds
             (of all threads, for a CPU), involuntary_switches

The job has sampling: {budget_seconds, precision, least_samples}, reference: the path of its file, and
gradients: whether each gradient is shown.
"""

import functools
import math
import operator

from shared.specification import rate_of
from shared.statistics import median

from .. import building, printing, timing, undisturbed
from ..contract import NotEquivalent
from ..usage import kernel_counters, peak_memory

# What may be left to do when a block has returned: less is noise of two readings of a weight.
LATE_SECONDS = 0.005
LATE_SHARE = 0.05
FRESH_BYTES_PER_SECOND = 1e9


def run(loaded, job, emit):
    """Takes samples, and shows before and after them that these are steps of the network."""
    steps = _Steps(building.build(loaded, job, job["spec"], emit))
    # Numpy after the framework, which may want another one's libraries.
    from .. import full_size

    proof = full_size.Proof(job)
    try:
        done = _time(job, steps, proof, emit)
        if _asks_others(job, proof):
            emit("proven", **proof.facts())
            emit("timed", **done)
            # What follows builds other trainers, which may need the memory of this one.
            steps.trainer = None
            _hold_others(proof, loaded.adapter, job.get("gradients"))
    finally:
        emit("proven", **proof.facts())
    emit("done", **done)


def _asks_others(job, proof):
    """Tells whether other trainers are compared with this one; each process shows that blocks take all steps."""
    return job.get("gradients") or proof.still or (proof.reference and proof.per_block > 1)


def _hold_others(proof, adapter, gradients):
    """Compares other trainers. Some frameworks cannot build twice in one process: then the first trainer is enough."""
    try:
        proof.hold_end(adapter)
        if gradients:
            proof.hold_gradients(adapter)
            proof.hold_masks(adapter)
    except NotEquivalent:
        raise
    except Exception as error:
        printing.print_exception()
        proof.lacking = "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:200])


def _time(job, steps, proof, emit):
    """Warms up, takes samples, and shows that the loss fell and no work was left; returns the facts of `done`.

    Other trainers repeat the last samples.
    """
    from .. import full_size

    clock, spec, sampling = building.clock, job["spec"], job["sampling"]
    warm = timing.warm_up(
        steps,
        clock,
        sampling["budget_seconds"],
        lambda: proof.look(steps.trainer),
        full_size.MOST_STEPS,
    )
    proof.hold_losses(steps.losses[: timing.ALONE])
    counted = kernel_counters()
    emit("warmup", kernel=counted, **warm)
    least = sampling["least_samples"]
    if job.get("gradients") and proof.plain:
        # The blocks that other trainers repeat are samples too.
        least = max(1, least - len(full_size.end_blocks(warm["per_block"])))
    limits = sampling["budget_seconds"], sampling["precision"], least
    last_loss, usage, taken = undisturbed.sample(
        steps, warm["per_block"], limits, counted, job, emit
    )
    # What is dropped at random moves a loss up and down.
    drops = any(rate_of(node) for node in spec["nodes"])
    if not (drops or last_loss < warm["first_loss"]):
        raise timing.Diverged(
            "the loss did not fall: {:.6g}, then {:.6g}".format(warm["first_loss"], last_loss)
        )
    block_seconds = warm["per_block"] * median(taken)
    late = late_seconds(steps.trainer, steps, spec, clock, warm["per_block"], block_seconds)
    done = dict(last_loss=last_loss, late_seconds=late, peak_memory_bytes=peak_memory())
    proof.hold_steps(steps.trainer, steps.losses, warm["per_block"])
    if _asks_others(job, proof) and proof.plain:
        proof.keep_start(steps.trainer)
        emit("resumed", kernel=kernel_counters())
        usage.resume()
        blocks = full_size.end_blocks(warm["per_block"])
        losses = timing.take(
            steps, clock, blocks, lambda count, each: emit("sample", steps=count, seconds=each)
        )
        usage.pause()
        emit("ended", kernel=kernel_counters())
        proof.keep_end(steps.trainer, losses)
        done["last_loss"] = losses[-1][1]
    return dict(done, **usage.used)


class _Steps(object):
    """The timed trainer: a call takes so many steps. Keeps the loss of every call."""

    def __init__(self, trainer):
        self.trainer = trainer
        self.losses = []

    def __call__(self, steps):
        loss = self.trainer.run(steps)
        # A number that is computed when it is looked at would be computed outside of the timed region.
        if not isinstance(loss, float):
            raise NotEquivalent("the loss is a {} and not yet a number".format(type(loss).__name__))
        # Its value, whatever a subclass of a number makes of it.
        loss = float.__pos__(loss)
        self.losses.append(loss)
        return loss


def late_seconds(trainer, run, spec, clock, per_block, block_seconds):
    """Returns `timing.late_seconds` by the smallest parameter of the first layer, which is updated last.

    Of several ranks, rank 0's own weights are read, since all have run the same steps: asking the others takes time,
    and the first time after a block even more. Raises NotEquivalent where work is left that would make the samples too
    short: then the timed region is not that of the row, which ends with `sync`. Less than a twentieth of a block may be
    left, and the time of a first copy into fresh memory: for an embedding of 10 MB, JAX took 5 to 7 ms.
    """
    sizes = {
        entry["name"]: functools.reduce(operator.mul, entry["shape"])
        for entry in spec["parameters"]
    }
    # In a short block, what is left may be no more than noise of two readings.
    short = int(math.ceil(timing.BLOCK_SECONDS / max(block_seconds, 1e-9)))
    if short > 1:
        per_block, block_seconds = short * per_block, short * block_seconds
        run(per_block)
    first = spec["parameters"][0]["name"].split("/")[0]
    name = min((name for name in sizes if name.split("/")[0] == first), key=sizes.get)
    limit = max(LATE_SECONDS, LATE_SHARE * block_seconds, 4 * sizes[name] / FRESH_BYTES_PER_SECOND)
    weights = getattr(trainer, "own_weights", trainer.weights)
    late = timing.late_seconds(run, lambda: weights([name]), clock, per_block, limit)
    if late > limit:
        words = "a synchronisation is missing: {} steps return after {:.3g} s, but their work takes {:.3g} s more"
        raise NotEquivalent(words.format(per_block, block_seconds, late))
    # Holds several ranks against one another.
    trainer.weights([name])
    return late
