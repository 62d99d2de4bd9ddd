"""The worker: builds one network in one framework and does with it what its job asks for.

    python -m worker FD < job.json

FD is the pipe to the supervisor; one JSON object a line goes there, each with an "event":

    ready    versions, import_seconds, prepare_seconds, build_seconds, parameters, frozen_parameters, threads, settings,
             clock
    done     what the task says at its end
    failed   status, reason

and those of its task. `ready`, `sampled` and `trained` have `libraries` too, the paths of those that are loaded. The
job is JSON: task (the name of a module of `worker.tasks`), adapter, spec, mode, precision, batch, threads, device,
rank, ranks, exchange, parameters (as many as the specification has), and what the task wants besides. What the
framework prints goes to this process's output.
"""

import collections
import importlib
import json
import os
import sys
import time

from . import building, contract, printing, timing, usage

TELL_SECONDS = 0.5
# Some libraries are loaded by the first step.
LOADED = ("ready", "sampled", "trained")
OUT_OF_MEMORY = (
    "out of memory",
    "bad_alloc",
    "allocate memory",
    "memory allocation",
    "resourceexhausted",
)


def main():
    """Runs the job of standard input; the exit code is 0 whenever the supervisor was told how it ended."""
    pipe = os.fdopen(int(sys.argv[1]), "w")
    told = collections.deque([0.0], maxlen=1)

    def emit(event, **fields):
        if event in LOADED:
            fields["libraries"] = usage.libraries()
        pipe.write(json.dumps(dict(fields, event=event)) + "\n")
        # The reader of the pipe needs a CPU, which may be one that the next block is timed on.
        if event != "sample" or time.perf_counter() - told[-1] >= TELL_SECONDS:
            pipe.flush()
            told.append(time.perf_counter())

    job = json.load(sys.stdin)
    try:
        # The framework before numpy, which a task imports: it may want to load libraries of its own.
        loaded = building.load(job)
        importlib.import_module("worker.tasks." + job["task"]).run(loaded, job, emit)
    except Exception as error:
        status, reason = classify(error)
        # Before it is printed, for which there may be no space.
        emit("failed", status=status, reason=reason)
        printing.print_exception()
    # Frameworks take up to seconds to take themselves down, and some crash while they do.
    printing.flush()
    os._exit(0)


def classify(error):
    """Returns status and one sentence for an exception that stopped the worker."""
    text = " ".join(str(error).split()) or type(error).__name__
    short = text if len(text) <= 300 else text[:297] + "..."
    if isinstance(error, contract.Unsupported):
        return "unsupported", short
    if isinstance(error, contract.NotEquivalent):
        return "not_equivalent", short
    if isinstance(error, timing.Diverged):
        return "diverged", short
    if isinstance(error, MemoryError) or any(words in text.lower() for words in OUT_OF_MEMORY):
        return "out_of_memory", short
    return "crashed", "{}: {}".format(type(error).__name__, short)


if __name__ == "__main__":
    main()
