"""Takes samples again, in the same process, where something else was at work on the machine."""

from . import building, timing
from .usage import Usage, is_disturbed, kernel_counters


def sample(run, per_block, limits, counted, job, emit):
    """Takes samples as `timing.sample` does, and replaces them where other programs had CPU time meanwhile.

    `limits` are those of `timing.sample`: seconds, precision, least samples. `counted` are the kernel's counters now.
    Which samples are kept depends on these counters alone, never on a time; `again`, which is emitted between the two,
    has the seconds of those that are left out. Returns the last loss, the Usage and the seconds of each sample.
    """
    may_repeat = job["device"] == "cpu" and job["ranks"] == 1
    for is_last in (False, True) if may_repeat else (True,):
        usage = Usage(building.clock)
        taken = []

        def note(steps, seconds, taken=taken):
            taken.append(seconds)
            emit("sample", steps=steps, seconds=seconds)

        loss = timing.sample(run, building.clock, per_block, *limits, emit=note)
        usage.pause()
        now = kernel_counters()
        if is_last or not is_disturbed(counted, now, usage.used):
            emit("sampled", kernel=now)
            return loss, usage, taken
        emit("again", kernel=now, seconds=taken)
        counted = now
