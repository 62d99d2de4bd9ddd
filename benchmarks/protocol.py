"""Times one network in one process by a named protocol; runs in a framework's environment for time_to_number.py.

python protocol.py < job.json > answer.json      job: a worker's, and {protocol, sampling, answer}
"""

import json
import sys
import time

from worker import building, timing

LEAST_SECONDS = 0.1  # of a value of pyperf's (its --min-time)


def main() -> None:
    """Prints {seconds: per mini-batch, of each sample, started: seconds of import and build, sampled: of the rest}."""
    job, clock = json.load(sys.stdin), time.perf_counter
    start = clock()
    loaded, spec = building.load(job), job["spec"]
    # The framework first, then numpy's work: the worker's own order.
    from shared import data

    weights, batch = data.initial_weights(spec), data.synthetic_batch(spec, job["batch"])
    trainer = building.make(loaded.adapter, job, spec, weights, *batch)
    built = clock()
    seconds = PROTOCOLS[job["protocol"]](trainer.run, clock, job["sampling"])
    answer = {"seconds": seconds, "started": built - start, "sampled": clock() - built}
    with open(job["answer"], "w") as file:
        json.dump(answer, file)


def ours(run, clock, sampling):
    """The worker's own warm-up and sampling."""
    from worker import full_size

    values = []
    most = full_size.MOST_STEPS
    warm = timing.warm_up(run, clock, sampling["budget_seconds"], most_steps=most)
    limits = (sampling["budget_seconds"], sampling["precision"], sampling["least_samples"])
    timing.sample(run, clock, warm["per_block"], *limits, lambda _, seconds: values.append(seconds))
    return values


def fixed(run, clock, _):
    """50 iterations after 10 of warm-up."""
    run_each(run, clock, 10, 1)
    return run_each(run, clock, 50, 1)


def pyperf(run, clock, _):
    """A process of pyperf's, by its documentation ("Runner CLI": --min-time, --warmups, --values): as many loops as
    last LEAST_SECONDS, one value to warm up, three values. Pyperf finds the loops in a process of its own; here each
    process does.
    """
    loops = 1
    while run_each(run, clock, 1, loops)[0] * loops < LEAST_SECONDS:
        loops *= 2
    return run_each(run, clock, 4, loops)[1:]


def run_each(run, clock, count, steps):
    """Seconds per step of `count` timed blocks of `steps` steps."""
    values = []
    for _ in range(count):
        before = clock()
        run(steps)
        values.append((clock() - before) / steps)
    return values


PROTOCOLS = {"ours": ours, "fixed": fixed, "pyperf": pyperf}

if __name__ == "__main__":
    main()
