"""The worker: builds one network in one framework and times it, or collects what its proof needs.

    python -m worker FD < job.json

FD is the pipe to the supervisor; one JSON object a line goes there, each with an "event":

    ready    versions, import_seconds, prepare_seconds, build_seconds, parameters, frozen_parameters, threads, settings,
             clock
    warmup   steps, per_block, first_loss, first_seconds, seconds, steady, kernel
    sample   steps, seconds (per mini-batch)
    sampled  kernel: what the kernel counts of the whole machine, from which interference is seen
    began    kernel: training on real images begins
    epoch    what `worker.training.train` says of an epoch
    trained  stopped (by what), kernel
    done     last_loss, late_seconds, peak_memory_bytes; of the samples or the training: cpu_seconds, wall_seconds,
             waited_seconds (of all threads, for a CPU), involuntary_switches
    failed   status, reason

The job is JSON: task ("measure", "train" or "prove"), adapter, spec, mode, batch, threads, device and, to measure or
train, parameters (as many as the specification has); to measure, sampling; to train, plan (see
`worker.training.train`) and images, the paths of both splits; to prove, output. What the framework prints goes to this
process's output. Plain Python that 3.6 can import: standard library, numpy and the framework.
"""

import collections
import functools
import glob
import importlib
import json
import operator
import os
import resource
import sys
import time
import traceback

from . import timing
from .adapters import Unsupported
from .statistics import median

CLOCK = "perf_counter"
TELL_SECONDS = 0.5
# What may be left to do when a block has returned: less is noise of two readings of a weight.
LATE_SECONDS = 0.005
LATE_SHARE = 0.05
FRESH_BYTES_PER_SECOND = 1e9
TICKS = os.sysconf("SC_CLK_TCK")
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
        pipe.write(json.dumps(dict(fields, event=event)) + "\n")
        # Whoever reads the pipe needs a CPU, which may be one of those that the next block is timed on.
        if event != "sample" or time.perf_counter() - told[-1] >= TELL_SECONDS:
            pipe.flush()
            told.append(time.perf_counter())

    job = json.load(sys.stdin)
    try:
        {"prove": _prove, "measure": _measure, "train": _train}[job["task"]](job, emit)
    except Exception as error:
        traceback.print_exc()
        status, reason = _classify(error)
        emit("failed", status=status, reason=reason)
    # Frameworks take up to seconds to take themselves down, and some crash while they do.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _build(job, spec, emit, clock):
    """The trainer of a job, on the synthetic batch, when its parameters were counted."""
    start = clock()
    adapter = importlib.import_module("worker.adapters." + job["adapter"])
    imported = clock()
    from . import data, prove

    prove.require(adapter, spec)
    weights = data.initial_weights(spec, spec.get("seed", data.SEED))
    inputs, labels = data.synthetic_batch(spec, job["batch"])
    prepared = clock()
    trainer = adapter.build(
        spec, weights, inputs, labels, job["mode"], job["threads"], job["device"]
    )
    del weights, inputs, labels
    emit(
        "ready",
        versions=dict(adapter.versions(), python=sys.version.split()[0]),
        import_seconds=imported - start,
        prepare_seconds=prepared - imported,
        build_seconds=clock() - prepared,
        parameters=int(trainer.parameters),
        frozen_parameters=int(trainer.frozen_parameters),
        threads=int(trainer.threads),
        settings=trainer.settings,
        clock=timing.clock_facts(CLOCK),
    )
    if trainer.parameters != job["parameters"]:
        raise NotEquivalent(
            "the network has {:,} trainable parameters in the specification and {:,} in the framework".format(
                job["parameters"], trainer.parameters
            )
        )
    return trainer


def _measure(job, emit):
    clock, spec = getattr(time, CLOCK), job["spec"]
    trainer = _build(job, spec, emit, clock)

    def run(steps):
        loss = trainer.run(steps)
        # A number that is computed when it is looked at would be computed outside of the timed region.
        if not isinstance(loss, float):
            raise NotEquivalent("the loss is a {} and not yet a number".format(type(loss).__name__))
        return loss

    sampling = job["sampling"]
    warm = timing.warm_up(run, clock, sampling["budget_seconds"])
    emit("warmup", kernel=_kernel_counters(), **warm)
    usage = _Usage(clock)
    blocks = []

    def note(steps, seconds):
        blocks.append(steps * seconds)
        emit("sample", steps=steps, seconds=seconds)

    last_loss = timing.sample(
        run,
        clock,
        warm["per_block"],
        sampling["budget_seconds"],
        sampling["precision"],
        sampling["least_samples"],
        note,
    )
    used = usage.so_far()
    emit("sampled", kernel=_kernel_counters())
    if not last_loss < warm["first_loss"]:
        raise timing.Diverged(
            "the loss did not fall: {:.6g}, then {:.6g}".format(warm["first_loss"], last_loss)
        )
    emit(
        "done",
        last_loss=last_loss,
        late_seconds=_late_seconds(trainer, run, spec, clock, warm["per_block"], median(blocks)),
        peak_memory_bytes=_peak_memory(),
        **used,
    )


def _train(job, emit):
    from . import prove, training

    clock, spec = getattr(time, CLOCK), dict(job["spec"], seed=job["plan"]["seed"])
    splits = {name: training.read(path) for name, path in job["images"].items()}
    trainer = _build(job, spec, emit, clock)
    prove.require_training(trainer)
    emit("began", kernel=_kernel_counters())
    usage = _Usage(clock)
    stopped = training.train(
        trainer, spec["optimiser"], splits, job["batch"], job["plan"], clock, _cpu_seconds, emit
    )
    used = usage.so_far()
    emit("trained", stopped=stopped, kernel=_kernel_counters())
    emit("done", peak_memory_bytes=_peak_memory(), **used)


def _late_seconds(trainer, run, spec, clock, per_block, block_seconds):
    """What `timing.late_seconds` says, by the smallest parameter of the first layer: the last one to be updated.

    Raises NotEquivalent where work is left that would make the samples too short: another region is timed then than
    the one that the row says, which ends with `sync`. Less than a twentieth of a block is left alone, and what a first
    copy into fresh memory may take: that of an embedding of 10 MB took JAX 5 to 7 ms.
    """
    sizes = {
        entry["name"]: functools.reduce(operator.mul, entry["shape"])
        for entry in spec["parameters"]
    }
    first = spec["parameters"][0]["name"].split("/")[0]
    name = min((name for name in sizes if name.split("/")[0] == first), key=sizes.get)
    limit = max(LATE_SECONDS, LATE_SHARE * block_seconds, 4 * sizes[name] / FRESH_BYTES_PER_SECOND)
    late = timing.late_seconds(run, lambda: trainer.weights([name]), clock, per_block, limit)
    if late > limit:
        raise NotEquivalent(
            "a synchronisation is missing: {} steps return after {:.3g} s, but their work takes {:.3g} s more".format(
                per_block, block_seconds, late
            )
        )
    return late


def _prove(job, emit):
    adapter = importlib.import_module("worker.adapters." + job["adapter"])
    from . import prove

    collected = prove.collect(
        adapter, job["spec"], job["masks"], job["batch"], job["mode"], job["threads"], job["device"]
    )
    prove.write(job["output"], collected)
    emit("done")


class NotEquivalent(Exception):
    """The framework built another network; the text is the difference."""


def _classify(error):
    """Status and one sentence for an exception that stopped the worker."""
    text = " ".join(str(error).split()) or type(error).__name__
    short = text if len(text) <= 300 else text[:297] + "..."
    if isinstance(error, Unsupported):
        return "unsupported", short
    if isinstance(error, NotEquivalent):
        return "not_equivalent", short
    if isinstance(error, timing.Diverged):
        return "diverged", short
    if isinstance(error, MemoryError) or any(words in text.lower() for words in OUT_OF_MEMORY):
        return "out_of_memory", short
    return "crashed", "{}: {}".format(type(error).__name__, short)


class _Usage(object):
    """What this process used of its CPUs from now on."""

    def __init__(self, clock):
        self.clock = clock
        self.before = self._now()

    def so_far(self):
        now = self._now()
        return {name: now[name] - self.before[name] for name in now}

    def _now(self):
        return {
            # How often the kernel took a CPU from a thread of this process.
            "involuntary_switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            "waited_seconds": _waited_seconds(),
            "cpu_seconds": _cpu_seconds(),
            "wall_seconds": self.clock(),
        }


def _cpu_seconds():
    """CPU seconds of this process, and of those below it in the kernel's ticks (stat, proc(5))."""
    total = time.process_time()
    for process in _family()[1:]:
        # The name in parentheses may hold anything; the state comes after it, and eleven fields later the times.
        fields = _text("/proc/{}/stat".format(process)).rpartition(")")[2].split()
        total += sum(map(int, fields[11:13])) / TICKS
    return total


def _waited_seconds():
    """How long threads that are still there, of processes below too, could have run and had no CPU (schedstat)."""
    tasks = (
        path
        for process in _family()
        for path in glob.glob("/proc/{}/task/*/schedstat".format(process))
    )
    return sum(int(waited) for path in tasks for waited in _text(path).split()[1:2]) / 1e9


def _kernel_counters():
    """The texts of /proc/stat and /proc/cpuinfo (proc(5)) that tell CPU seconds and clock rates.

    Read here: the supervisor may be late, while it imports or where it has no CPU of its own.
    """
    with open("/proc/stat") as stat, open("/proc/cpuinfo") as cpuinfo:
        rates = [line for line in cpuinfo if line.startswith(("processor", "cpu MHz"))]
        return {"stat": stat.readline(), "cpuinfo": "".join(rates)}


def _peak_memory():
    """Resident memory in bytes, of this process and of those below it, at their kernel's high-water marks (VmHWM)."""
    lines = [
        line
        for process in _family()
        for line in _text("/proc/{}/status".format(process)).splitlines()
    ]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _family():
    """This process and those below it: some frameworks are programs that Python only speaks to."""
    found, left = [], ["self"]
    while left:
        found.append(left.pop())
        for path in glob.glob("/proc/{}/task/*/children".format(found[-1])):
            left.extend(_text(path).split())
    return found


def _text(path):
    """The text of a file of /proc, or "" where what it tells of has ended."""
    try:
        with open(path, errors="replace") as lines:
            return lines.read()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
