"""The timing loop: warm-up until the step no longer gets faster, then blocks of steps until the median is known.

All times are seconds of a monotonic clock. `run(steps)` trains that many steps, ends synchronised and returns the last
loss, so a block costs one synchronisation.
"""

import math
import time

from shared.statistics import median, median_interval

# Long against a reading of the clock and a synchronisation, and so short that what disturbs one step spoils few others.
BLOCK_SECONDS = 0.02
WARMUP_SECONDS = 0.5
LEAST_SECONDS = 0.5
STEADY = 0.95
MOST_STEPS = 1000000
ALONE = 3
LATE_TRIES, LATE_TRIES_SECONDS = 3, 2.0
LOOKS = 1.5
CLOCK_READINGS = 1000


class Diverged(Exception):
    """The loss is not a number, or did not fall; the text is the reason."""


def warm_up(run, clock, limit_seconds, look=lambda: None, most_steps=MOST_STEPS):
    """Runs until steady. Returns {steps, per_block, first_loss, first_seconds, seconds, steady}.

    The first step is a call of its own: it traces, compiles and allocates. After it `look` is called, whose time counts
    nowhere. Each of the first ALONE steps is a call, so that its loss is known. Then blocks of at least BLOCK_SECONDS
    are run until the newest is no faster than STEADY times the running median of the up to three before it, for at
    least WARMUP_SECONDS or, for a network whose step is slower than that, two blocks. Ends `limit_seconds` after the
    first step in any case: then it is not steady. `per_block` is the number of steps that make a block, `most_steps` at
    most.
    """
    start = clock()
    first_loss = _finite(run(1), 1)
    first_seconds = clock() - start
    look()
    start = clock() - first_seconds
    steps, per_block, blocks = 1, 1, []
    while True:
        before = clock()
        _finite(run(per_block), steps + per_block)
        now = clock()
        steps += per_block
        if steps < ALONE:
            blocks.append(now - before)
        elif now - before < BLOCK_SECONDS and per_block < most_steps:
            wanted = _steps_for(BLOCK_SECONDS, (now - before) / per_block)
            per_block = min(wanted, 10 * per_block, most_steps)
            blocks = []
        else:
            blocks.append((now - before) / per_block)
        elapsed = now - start - first_seconds
        steady = (
            elapsed >= WARMUP_SECONDS
            and len(blocks) > 1
            and blocks[-1] >= STEADY * median(blocks[-4:-1])
        )
        if steady or (elapsed >= limit_seconds and blocks):
            return {
                "steps": steps,
                "per_block": per_block,
                "first_loss": first_loss,
                "first_seconds": first_seconds,
                "seconds": now - start,
                "steady": steady,
            }


def sample(run, clock, per_block, budget_seconds, precision, least_samples, emit):
    """Times blocks until the 95 % interval of the median is within +-`precision`, or the budget is spent.

    The interval is looked at after `least_samples` and LEAST_SECONDS, since neighbouring samples are alike, and then
    each time the samples have grown LOOKS-fold. Who looks after each sample stops when the interval happens to be
    narrow, and it then holds the true median less often than it says (Anscombe, "Fixed-sample-size analysis of
    sequential observations", Biometrics 10, 1954; how much less: tests/unit/test_timing.py). `emit(steps, seconds)`
    gets every sample, in seconds per mini-batch. Returns the last loss.
    """
    start = clock()
    values = []
    look = least_samples
    while True:
        before = clock()
        loss = run(per_block)
        now = clock()
        values.append((now - before) / per_block)
        emit(per_block, values[-1])
        _finite(loss, len(values) * per_block)
        if len(values) >= least_samples and now - start >= budget_seconds:
            return loss
        if len(values) >= look and now - start >= LEAST_SECONDS:
            look = int(math.ceil(LOOKS * len(values)))
            low, high = median_interval(values)
            if high - low <= 2 * precision * median(values):
                return loss


def take(run, clock, blocks, emit):
    """Times a block for each of these numbers of steps, as `sample` does. Returns [(steps, loss)]."""
    losses = []
    for steps in blocks:
        before = clock()
        loss = run(steps)
        emit(steps, (clock() - before) / steps)
        losses.append((steps, _finite(loss, steps)))
    return losses


def late_seconds(run, read, clock, per_block, limit):
    """Returns how long the work of a block goes on after `run` has returned. Call it right after a block.

    `read()` brings a trained weight to the host, which cannot be had before the steps that write it are done: the first
    reading waits for them and copies, the second copies. Something else on the machine may delay one reading, but a
    missing synchronisation shows after every block. So the shortest of LATE_TRIES counts, and of as many more as fit
    into LATE_TRIES_SECONDS, or the first within `limit`.
    """
    shortest, tries, begin = float("inf"), 0, clock()
    while tries < LATE_TRIES or clock() - begin < LATE_TRIES_SECONDS:
        if tries:
            run(per_block)
        start = clock()
        read()
        middle = clock()
        read()
        shortest = min(shortest, 2 * middle - start - clock())
        if shortest <= limit:
            break
        tries += 1
    return max(0.0, shortest)


def clock_facts(name):
    """Returns how good a clock of `time` is: {clock, implementation, monotonic, resolution_seconds, reading_seconds}.

    The resolution is the shortest step between two readings that differ; reading_seconds is what one reading costs.
    Raises ValueError for a clock that can be set back.
    """
    clock, about = getattr(time, name), time.get_clock_info(name)
    if not about.monotonic:
        raise ValueError("the clock time.{} of this Python is not monotonic".format(name))
    readings = [clock() for _ in range(CLOCK_READINGS)]
    steps = [later - earlier for earlier, later in zip(readings, readings[1:]) if later > earlier]
    return {
        "clock": name,
        "implementation": about.implementation,
        "monotonic": about.monotonic,
        "resolution_seconds": min(steps) if steps else about.resolution,
        "reading_seconds": (readings[-1] - readings[0]) / (CLOCK_READINGS - 1),
    }


def _steps_for(seconds, seconds_per_step):
    return max(1, int(math.ceil(1.1 * seconds / max(seconds_per_step, 1e-9))))


def _finite(loss, steps):
    if not math.isfinite(loss):
        raise Diverged("the loss was {} after {} steps".format(loss, steps))
    return loss
