"""Several workers as one trainer: rank 0 leads, and the others take part in every step that it takes.

Rank 0 runs the task as on one device. What its adapter builds is a `Leader`, which tells the other ranks what to do and
hears from each when it is done: so all ranks wait before a block of steps begins and after it has ended, and the clock
of rank 0 stands for all. The others run `tasks.follow`. They speak over sockets that the supervisor has made, which no
other process can reach. How gradients are shared is the framework's affair.

The supervisor sets STEPTIME_LINKS, the numbers of these sockets in the order of the ranks; STEPTIME_MEETING, an empty
folder that all ranks see; STEPTIME_PORTS, a free port of 127.0.0.1 for each rank; and STEPTIME_NETWORK, "own" where
no other process is in their network. Plain Python that 3.6 can import: standard library and numpy.
"""

import json
import os
import zlib

import numpy as np

from .contract import NotEquivalent, Unsupported

# Beside the parameters, whose names have a layer's before them.
INPUTS, LABELS = "inputs", "labels"
_LINKS = []


class Link(object):
    """One end of a socket between two ranks: JSON objects, a line each, and arrays behind them."""

    def __init__(self, number):
        self._reading, self._writing = os.fdopen(number, "rb"), os.fdopen(os.dup(number), "wb")

    def tell(self, arrays=None, **words):
        """Says words, and arrays by name."""
        arrays = {name: np.ascontiguousarray(each) for name, each in (arrays or {}).items()}
        shapes = {name: [str(each.dtype), each.shape] for name, each in arrays.items()}
        self._writing.write(json.dumps(dict(words, arrays=shapes)).encode() + b"\n")
        for each in arrays.values():
            self._writing.write(each.data)
        self._writing.flush()

    def hear(self):
        """The words that the other end said next, with its `arrays`; None where it has ended."""
        try:
            line = self._reading.readline()
        except OSError:
            # It was killed before it had read all that was told.
            return None
        if not line:
            return None
        words = json.loads(line.decode())
        for name, (kind, shape) in words["arrays"].items():
            words["arrays"][name] = np.empty(shape, kind)
            self._reading.readinto(words["arrays"][name].reshape(-1).view(np.uint8))
        return words


class Leader(object):
    """The trainer of rank 0, by `build(job)`, in which all ranks take part.

    The loss is the mean over the ranks, which have equal shares of the mini-batch: that of all of it. Weights are those
    of rank 0; where they are read, those of the other ranks must have the same bits.
    """

    def __init__(self, job, build):
        self._links = links()
        arrays = dict(job.weights, **{INPUTS: job.inputs, LABELS: job.labels})
        self._tell(do="build", spec=job.spec, arrays=arrays)
        del arrays
        self._own, self._steps = build(job), 0
        self._hear()
        self.parameters, self.threads = self._own.parameters, self._own.threads
        self.settings = dict(self._own.settings, ranks=str(job.ranks))
        self.frozen_parameters = getattr(self._own, "frozen_parameters", 0)

    def run(self, steps):
        self._tell(do="run", steps=steps)
        losses = [self._own.run(steps)] + [answer["loss"] for answer in self._hear()]
        self._steps += steps
        return sum(losses) / len(losses)

    def weights(self, names=None):
        self._tell(do="weigh", names=names if names is None else list(names))
        found = self._own.weights(names)
        own = sums(found)
        for rank, answer in enumerate(self._hear(), 1):
            other = [name for name in sorted(own) if answer["sums"].get(name) != own[name]]
            if other:
                raise NotEquivalent(
                    "after {} steps, rank {} has other weights than rank 0 in {} and {} more of {}".format(
                        self._steps, rank, other[0], len(other) - 1, len(own)
                    )
                )
        return found

    def _tell(self, **words):
        for link in self._links:
            link.tell(**words)

    def _hear(self):
        answers = [link.hear() for link in self._links]
        for rank, answer in enumerate(answers, 1):
            if answer is None:
                raise RuntimeError("rank {} has ended".format(rank))
        return answers


def joined(job, build):
    """The trainer of a rank, by `build(job)`, which gets its own share of the job's mini-batch."""
    return Leader(job, build) if job.rank == 0 else build(job)


def endpoints():
    """The address of each rank, as "127.0.0.1:port"."""
    return ["127.0.0.1:" + port for port in os.environ["STEPTIME_PORTS"].split(",")]


def require_own_network(framework):
    """Raises Unsupported where others could reach a framework that listens on every interface."""
    if os.environ["STEPTIME_NETWORK"] != "own":
        raise Unsupported(
            "{} listens on every interface, and this machine gives its ranks no network of their own "
            "(user namespaces)".format(framework)
        )


def links():
    """The sockets to the other ranks: of rank 0 one to each, of another rank the one to rank 0."""
    if not _LINKS:
        _LINKS.extend(Link(int(number)) for number in os.environ["STEPTIME_LINKS"].split(","))
    return _LINKS


def share(job, layout):
    """Inputs and labels of a rank in the adapter's `layout`: its equal part of the job's mini-batch, in one piece."""
    steps_first = layout.get("sequences") == "steps first"
    is_sequence = job.spec["input"]["kind"] not in ("image", "dense")
    parts = []
    for values, axis in (
        (job.inputs, int(steps_first and is_sequence)),
        (job.labels, int(steps_first and job.labels.ndim > 1)),
    ):
        parts.append(np.ascontiguousarray(np.split(values, job.ranks, axis)[job.rank]))
    return parts


def sums(weights):
    """A number for each array, which is the same where all bits are."""
    return {
        name: zlib.crc32(np.ascontiguousarray(values).tobytes()) & 0xFFFFFFFF
        for name, values in weights.items()
    }
