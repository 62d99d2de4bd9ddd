"""Proves and then times parts of a training step - a matrix product, a convolution - one at a time.

Besides `ready`, events are

    warmup   kernel: what the kernel counts of the whole machine, before the first part
    part     part, role, way (its names), flops, error (see `error_of`), cpus (at work while its samples were taken),
             samples: [[times, seconds of one] ...], lacking: why there are none, "" where there are
    sampled  kernel, after the last part
    done     peak_memory_bytes; of all: cpu_seconds, wall_seconds, waited_seconds, involuntary_switches

A module `frameworks/<name>/parts.py` calls the framework. It declares what an adapter does (`worker.contract`) and
offers `versions()`, `start(job)`, which sets the thread knobs and returns {"threads", "settings"}, and `build(part)`,
which returns an `Operation` (`shared.operations`) or raises Unsupported with the reason.
"""

import numpy as np

from shared import data
from shared.statistics import median

from . import building, contract, printing, timing
from .usage import Usage, kernel_counters, peak_memory

# A share of the right result's length. Products of 26,752 terms in float32 are off by some 1e-6 and Winograd's
# convolution by some 1e-5; with factors in TF32 or bfloat16 they are off by 3e-4 and 2e-3.
TOLERANCE = 1e-4
LATE_SECONDS = 0.005
LATE_SHARE = 0.05
FRESH_BYTES_PER_SECOND = 1e9
SEED = data.SEED + 2
BLOCK = 2**20


class Product(object):
    """The product left times right, where `way`, such as "NT", says whether each is transposed in memory ("T").

    An update is `weights` minus `rate` times that, in `calls` calls of the framework: 1 or 2.
    """

    kind = "product"

    def __init__(self, part, role, way, sizes, calls=0):
        rows, inner, columns = sizes
        self.part, self.role, self.flops = part, role, 2 * rows * inner * columns
        order = "TN" if calls else way
        self.way, self.calls, self.rate = way, calls, 2.0**-3
        self.turned = tuple(letter == "T" for letter in order)
        self.left = filled((inner, rows) if self.turned[0] else (rows, inner), 1)
        self.right = filled((columns, inner) if self.turned[1] else (inner, columns), 2)
        self.weights = filled((rows, columns), 3) if calls else None

    def wanted(self):
        """Returns the right result for `error_of`: the product times a vector, right to left (Freivalds 1977)."""
        left, right = (
            matrix.T if turned else matrix
            for matrix, turned in zip((self.left, self.right), self.turned)
        )
        self.vector = _vector(right.shape[1])
        product = _times(left, _times(right, self.vector))
        self.before = 0.0 if self.weights is None else _times(self.weights, self.vector)
        return product if self.weights is None else -self.rate * product

    def seen(self, value):
        return _times(value, self.vector) - self.before


class Convolution(object):
    """Images (sample, channel, row, column) convolved with weights (to, from, row, column), as layers do it."""

    kind = "convolution"

    def __init__(self, part, way, node, batch):
        self.part, self.role, self.way = part, "forward", way
        # As a layer of an adapter has it.
        self.node = dict(node, bias=False)
        self.stride, self.padding, kernel = node["stride"], node["padding"], node["kernel"]
        self.shape = (batch,) + tuple(node["shape"])
        self.inputs = filled((batch,) + tuple(node["in_shape"]), 1)
        self.weights = filled((node["channels"], node["in_shape"][0], kernel, kernel), 2)
        self.flops = 2 * int(np.prod(self.shape)) * self.weights[0].size

    def wanted(self):
        """Returns the right result for `error_of`: all channels mixed into one are a convolution of few weights."""
        self.vector = _vector(len(self.weights))
        weights = np.tensordot(self.vector, self.weights.astype(np.float64), 1)
        around = [(self.padding,) * 2] * 2
        images = np.pad(self.inputs.astype(np.float64), [(0, 0), (0, 0)] + around, "constant")
        found = np.zeros((self.shape[0],) + self.shape[2:])
        for row, column in np.ndindex(*weights.shape[1:]):
            down, across = (
                slice(start, start + self.stride * (extent - 1) + 1, self.stride)
                for start, extent in zip((row, column), self.shape[2:])
            )
            found += np.tensordot(images[:, :, down, across], weights[:, row, column], ([1], [0]))
        return found

    def seen(self, value):
        return np.tensordot(value.astype(np.float64), self.vector, ([1], [0]))


def error_of(seen, wanted):
    """Returns how far a result is off, as a share of its length, by a random projection in float64; or infinity."""
    if seen.shape != wanted.shape:
        return float("inf")
    return float(np.linalg.norm(seen - wanted) / np.linalg.norm(wanted))


def run(loaded, job, emit, parts):
    """Proves and times each of `parts`, which are made one after the other: they may take much memory."""
    module = loaded.adapter
    if job["device"] != "cpu":
        raise contract.Unsupported("single operations are timed alone on CPUs only")
    contract.complete(module, "the module " + job["adapter"], ("start",))
    started = module.start(job)
    emit(
        "ready",
        versions=building.versions_of(module),
        import_seconds=loaded.seconds,
        threads=int(started["threads"]),
        settings=dict(started["settings"], **loaded.chosen),
        clock=timing.clock_facts(building.CLOCK),
    )
    emit("warmup", kernel=kernel_counters())
    usage = Usage(building.clock)
    lacking = []
    for part in parts:
        told = {name: getattr(part, name) for name in ("part", "role", "way", "flops")}
        told.update(error=None, cpus=None, samples=[], lacking="")
        try:
            _prove_and_time(module, part, job["sampling"], told)
        except Exception as error:
            told.update(samples=[], lacking=_reason(error))
        lacking.append(told["lacking"])
        emit("part", **told)
    used = usage.so_far()
    emit("sampled", kernel=kernel_counters())
    if all(lacking):
        raise contract.Unsupported(lacking[0])
    emit("done", peak_memory_bytes=peak_memory(), **used)


def _prove_and_time(module, part, sampling, told):
    clock, wanted = building.clock, part.wanted()
    operation = module.build(part)
    operation.run(1)
    told["error"] = error_of(part.seen(operation.value()), wanted)
    if not told["error"] <= TOLERANCE:
        raise contract.NotEquivalent(
            "it is off by {:.2g} of its length, more than {:g}".format(told["error"], TOLERANCE)
        )

    def repeat(times):
        operation.run(times)
        return 0.0

    warm = timing.warm_up(repeat, clock, sampling["budget_seconds"])
    usage = Usage(clock)
    timing.sample(
        repeat,
        clock,
        warm["per_block"],
        sampling["budget_seconds"],
        sampling["precision"],
        sampling["least_samples"],
        lambda times, seconds: told["samples"].append([times, seconds]),
    )
    used = usage.so_far()
    told["cpus"] = used["cpu_seconds"] / used["wall_seconds"]
    block = median([times * seconds for times, seconds in told["samples"]])
    fresh = 4 * operation.value().nbytes / FRESH_BYTES_PER_SECOND
    limit = max(LATE_SECONDS, LATE_SHARE * block, fresh)
    late = timing.late_seconds(repeat, operation.value, clock, warm["per_block"], limit)
    if late > limit:
        raise contract.NotEquivalent(
            "a synchronisation is missing: its work takes {:.3g} s more than its time".format(late)
        )


def _reason(error):
    if isinstance(error, (contract.Unsupported, contract.NotEquivalent)):
        return str(error)
    printing.print_exception()
    return "{}: {}".format(type(error).__name__, " ".join(str(error).split())[:200])


def filled(shape, seed):
    """Returns float32 numbers from -1 to 1: windows of one table, which costs a copy and no random numbers."""
    table = np.random.RandomState(SEED + seed).uniform(-1.0, 1.0, data.TABLE_LENGTH)
    return np.resize(table.astype(np.float32), shape)


def _vector(size):
    return 2.0 * np.random.RandomState(SEED).randint(0, 2, size) - 1.0


def _times(matrix, vector):
    """Returns their product in float64, by blocks of rows: the whole matrix need not be there in float64."""
    rows = max(1, BLOCK // matrix.shape[1])
    blocks = [matrix[start : start + rows] for start in range(0, len(matrix), rows)]
    return np.concatenate([np.dot(block.astype(np.float64), vector) for block in blocks])
