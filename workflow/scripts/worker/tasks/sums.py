"""Times what ranks exchange: sums of an array of each rank, which each rank then has, by the framework's own
all-reduce.

Arrays have 4 KiB to 512 MiB, and one is as long as the network's gradients; beside each, a copy of as much memory is
timed. All ranks run this task: rank 0 says what comes next. The module of the framework's ranks offers a class `Sums`.
`Sums(job)` makes the ranks meet; it has `threads` and `exchange`, a text. Its `all_reduce(values)`, of one array,
returns an `Operation`. See `worker.parts`.
"""

import time

import numpy as np

from shared.operations import BYTES, COPY, ROLES, SUM, Operation, repeated

from .. import contract, parts, ranks

KIB = 2**10
SIZES = [4 * KIB * 4**power for power in range(9)] + [512 * KIB**2]


class Sum(object):
    """The sum of an array of `count` numbers of each rank; `flops` are its additions."""

    kind = "sum"

    def __init__(self, count, role, rank, number):
        self.part, self.role, self.way = "{} bytes".format(BYTES * count), role, SUM
        self.count, self.number, self.flops = count, number, (number - 1) * count
        self.values = values_of(count, rank)

    def wanted(self):
        """Returns the right result, as `seen`."""
        return sum(self.seen(values_of(self.count, rank)) for rank in range(self.number))

    def seen(self, value):
        """Returns a number for each block of an array: the sum of its numbers with random signs."""
        flat = value.reshape(-1)
        signs = 2.0 * np.random.RandomState(parts.SEED).randint(0, 2, parts.BLOCK) - 1.0
        blocks = [flat[start : start + parts.BLOCK] for start in range(0, flat.size, parts.BLOCK)]
        return np.array([np.dot(block.astype(np.float64), signs[: block.size]) for block in blocks])


class Copy(Sum):
    """A copy of such an array in the memory of rank 0, while the others rest."""

    def __init__(self, count, role):
        super(Copy, self).__init__(count, role, 0, 1)
        self.way = COPY

    def build(self):
        """Returns NumPy's copy."""
        target = np.empty_like(self.values)
        return repeated(lambda: np.copyto(target, self.values), lambda: target)


class Leading(object):
    """The framework's sums for rank 0: the others build and run whatever it does."""

    def __init__(self, module):
        self._module, self._links, self.versions = module, ranks.links(), module.versions

    def start(self, job):
        self._sums = self._module.Sums(told(job))
        settings = {"exchange": self._sums.exchange}
        return {"threads": self._sums.threads, "settings": settings}

    def build(self, part):
        if part.way == COPY:
            return part.build()
        self._tell(do="build", count=part.count)
        own = self._sums.all_reduce(part.values)
        self._hear()

        def run(times):
            self._tell(do="run", times=times)
            own.run(times)
            errors = [answer["error"] for answer in self._hear()]
            if max(errors) > parts.TOLERANCE:
                words = "rank {} has a sum that is off by {:.2g} of its length"
                raise contract.NotEquivalent(
                    words.format(1 + errors.index(max(errors)), max(errors))
                )

        return Operation(run, own.value)

    def _tell(self, **words):
        for link in self._links:
            link.tell(**words)

    def _hear(self):
        return [ranks.answer(rank, link) for rank, link in enumerate(self._links, 1)]


def run(loaded, job, emit):
    """Proves and times each sum; the other ranks take part in it."""
    if job["rank"]:
        _follow(loaded.adapter, job, emit)
        return
    leading = loaded._replace(adapter=Leading(loaded.adapter))
    parts.run(leading, job, emit, sums(job["parameters"], job["ranks"]))


def sums(parameters, number):
    """Yields the parts, each made when it is needed."""
    counts = {size // BYTES for size in SIZES} | {parameters}
    for count in sorted(counts):
        role = ROLES[count == parameters]
        yield Sum(count, role, 0, number)
        yield Copy(count, role)


def told(job):
    """Returns the job as adapters of several ranks need it, without a network."""
    return contract.Job(job, job["spec"], None, {}, None, None)


def values_of(count, rank):
    """Returns the array of a rank: no two ranks have the same."""
    return parts.filled((count,), rank)


def _follow(module, job, emit):
    """Builds and runs what rank 0 says, and reports how far the first result of each sum is off."""
    (link,) = ranks.links()
    summing = module.Sums(told(job))
    begun, operation, part = time.process_time(), None, None
    while True:
        asked = link.hear()
        if asked is None:
            break
        if asked["do"] == "build":
            part = operation = None
            part = Sum(asked["count"], "", job["rank"], job["ranks"])
            operation = summing.all_reduce(part.values)
            wanted = part.wanted()
            link.tell()
            continue
        operation.run(asked["times"])
        error = 0.0 if wanted is None else parts.error_of(part.seen(operation.value()), wanted)
        wanted = None
        link.tell(error=error)
    emit("followed", cpu_seconds=time.process_time() - begun)
    emit("done")
