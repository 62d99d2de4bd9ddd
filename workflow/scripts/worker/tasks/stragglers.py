"""Times steps of several ranks, while programs on the CPUs of the last rank leave it half of them.

Where ranks wait for one another, all are as slow as that one; where they do not, the others go on. Events are those of
`worker.parts`. A `part` is a rank, its `role` one of STATES, its `way` the exchange in that state; a sample is (steps,
seconds of one by that rank's own clock), until its last update is done.
"""

from shared.operations import STATES

from .. import building, timing
from ..usage import Usage, kernel_counters, peak_memory

# Many turns of two programs on one CPU.
BLOCK_SECONDS = 0.5


def run(loaded, job, emit):
    """Times blocks of steps without the programs and with them, in turns, so that any other drift is in both."""
    trainer, clock = building.build(loaded, job, job["spec"], emit), building.clock
    warm = timing.warm_up(trainer.run, clock, job["sampling"]["budget_seconds"])
    start = clock()
    trainer.run(warm["per_block"])
    seconds = (clock() - start) / warm["per_block"]
    steps = max(1, int(round(BLOCK_SECONDS / seconds)))
    emit("warmup", kernel=kernel_counters())
    usage, samples = Usage(clock), [[[] for _ in range(job["ranks"])] for _ in STATES]
    while _goes_on(samples, job["sampling"], usage):
        for number, programs in enumerate((0, job["threads"])):
            trainer.burden(programs)
            trainer.run(steps)
            for rank, seconds in enumerate(trainer.last_seconds):
                samples[number][rank].append([steps, seconds / steps])
    trainer.burden(0)
    used = usage.so_far()
    emit("sampled", kernel=kernel_counters())
    trainer.weights([job["spec"]["parameters"][0]["name"]])
    for state, of_ranks in zip(STATES, samples):
        for rank, found in enumerate(of_ranks):
            part = {"part": "rank {}".format(rank), "role": state}
            part["way"] = "{}, {}".format(job["exchange"], state)
            part.update(flops=0, error=0.0, cpus=0.0, lacking="", samples=found)
            emit("part", **part)
    emit("done", peak_memory_bytes=peak_memory(), **used)


def _goes_on(samples, sampling, usage):
    """Tells whether samples or time are still lacking."""
    spent = usage.so_far()["wall_seconds"] >= 2 * sampling["budget_seconds"]
    return len(samples[0][0]) < sampling["least_samples"] or not spent
