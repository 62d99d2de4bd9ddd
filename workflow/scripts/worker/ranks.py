"""Makes several workers one trainer: rank 0 leads, and the others take part in every step that it takes.

Rank 0 runs the task as on one device. Its adapter builds a `Leader`, which tells the other ranks what to do and hears
from each when it is done: so all ranks wait before a block of steps begins and after it has ended, and the clock of
rank 0 counts for all. The others run `tasks.follow`. Ranks talk over sockets that the supervisor has made, which no
other process can reach. The framework itself shares the gradients.

The supervisor sets STEPTIME_LINKS, the numbers of these sockets in the order of the ranks; STEPTIME_MEETING, an empty
folder that all ranks see; STEPTIME_ENDPOINTS, an address and a free port of it for each rank, and STEPTIME_SERVER, one
more for a server beside rank 0; STEPTIME_INTERFACE, the interface that has this rank's address; and STEPTIME_NETWORK:
"own" where no other process is in their network, "nodes" where they are on several nodes.
"""

import json
import os
import subprocess
import sys
import threading
import time
import zlib
from contextlib import contextmanager

import numpy as np

from shared.grouping import UNMET, groups

from .contract import NotEquivalent, Unsupported

# Beside the parameters, whose names have a layer's before them.
INPUTS, LABELS = "inputs", "labels"
# PR_SET_PDEATHSIG and SIGKILL (prctl(2)).
ENDS_WITH_PARENT = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\n"
COMPUTES = "while True:\n    sum(range(10**6))\n"
# Why ranks have no network of their own, by STEPTIME_NETWORK.
REACHED = {
    "": "this machine gives its ranks no network of their own (user namespaces)",
    "nodes": "ranks on several nodes have no network of their own",
}
# Ranks meet as soon as their frameworks are imported, which takes seconds. The supervisor starts them again.
MEETING_SECONDS = 120
_LINKS = []


class Link(object):
    """One end of a socket between two ranks: JSON objects, a line each, and arrays behind them."""

    def __init__(self, number):
        self._reading, self._writing = os.fdopen(number, "rb"), os.fdopen(os.dup(number), "wb")

    def tell(self, arrays=None, **words):
        """Sends words, and arrays by name."""
        arrays = {name: np.ascontiguousarray(each) for name, each in (arrays or {}).items()}
        shapes = {name: [str(each.dtype), each.shape] for name, each in arrays.items()}
        self._writing.write(json.dumps(dict(words, arrays=shapes)).encode() + b"\n")
        for each in arrays.values():
            self._writing.write(each.data)
        self._writing.flush()

    def hear(self):
        """Returns the next words of the other end, with its `arrays`; None where it has ended."""
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

    The loss is the mean over the ranks, which have equal shares of the mini-batch, and so that of all of it. Weights
    are those of rank 0; whenever they are read, those of the other ranks must have the same bits. Where groups of ranks
    do not wait for one another (`shared.grouping`), each takes all the steps of a call with its own share, and all have
    ended when the call returns. `own_seconds` are those that rank 0 took for its steps, without waiting for the others;
    `last_seconds` are each rank's in the last call.
    """

    def __init__(self, job, build):
        self._links, self._ranks = links(), job.ranks
        self._groups = groups(job.ranks, job.exchange)
        arrays = dict(job.weights, **{INPUTS: job.inputs, LABELS: job.labels})
        self._tell(do="build", spec=job.spec, arrays=arrays)
        del arrays
        self._own, self._steps, self.own_seconds = build(job), 0, 0.0
        self.last_seconds = []
        self._hear()
        self.parameters, self.threads = self._own.parameters, self._own.threads
        self.settings = dict(self._own.settings, ranks=str(job.ranks))
        self.frozen_parameters = getattr(self._own, "frozen_parameters", 0)

    def run(self, steps, apart=0.0):
        """Trains steps of all ranks; those that do not wait for one another start `apart` seconds after one another."""
        return self._together(lambda own: own.run(steps), apart, do="run", steps=steps)

    def train(self, batches):
        """Trains as on one device, on a `worker.tasks.training.Fed` with rank 0's share of each mini-batch."""
        return self._together(lambda own: own.train(batches), do="train", **batches.words)

    def scores(self, inputs):
        # Its own trainer knows mini-batches of the size of a share.
        return np.concatenate([self._own.scores(part) for part in np.split(inputs, self._ranks)])

    def turn(self, group, steps):
        """Trains steps of one group while the others rest; returns the mean loss of its last step."""
        return self._alone(group, lambda own: own.run(steps), do="run", steps=steps)

    def feed(self, group, batches):
        """Trains one group alone on its share of mini-batches; returns the mean loss. `batches` has rank 0's."""
        return self._alone(group, lambda own: own.train(batches), do="train", **batches.words)

    def burden(self, programs):
        """Starts so many programs that compute on the CPUs of the last rank beside it."""
        self._links[-1].tell(do="burden", programs=programs)
        answer(len(self._links), self._links[-1])

    def staleness(self):
        """Returns the framework's staleness over all ranks; None where it has none."""
        tells = getattr(self._own, "staleness", None)
        return tells() if tells else None

    def own_weights(self, names=None):
        """Returns rank 0's weights without asking the others."""
        return self._own.weights(names)

    def weights(self, names=None):
        self._tell(do="weigh", names=names if names is None else list(names))
        found = self._own.weights(names)
        own = sums(found)
        for number, said in enumerate(self._hear(), 1):
            unlike = [name for name in sorted(own) if said["sums"].get(name) != own[name]]
            if unlike:
                words = (
                    "after {} steps, rank {} has other weights than rank 0 in {} and {} more of {}"
                )
                few = self._steps, number, unlike[0], len(unlike) - 1, len(own)
                raise NotEquivalent(words.format(*few))
        return found

    def _together(self, do_own, apart=0.0, **words):
        self._tell(apart, **words)
        start = time.perf_counter()
        losses = [do_own(self._own)]
        own = time.perf_counter() - start
        self.own_seconds += own
        answers = self._hear()
        losses += [said["loss"] for said in answers]
        self.last_seconds = [own] + [said["seconds"] for said in answers]
        self._steps += words["steps"]
        return sum(losses) / len(losses)

    def _alone(self, group, do_own, **words):
        self._steps += words["steps"]
        others = [rank for rank in self._groups[group] if rank]
        for rank in others:
            self._links[rank - 1].tell(**words)
        losses = [do_own(self._own)] if 0 in self._groups[group] else []
        losses += [answer(rank, self._links[rank - 1])["loss"] for rank in others]
        return sum(losses) / len(losses)

    def _tell(self, apart=0.0, **words):
        # The group of rank 0 is the last one: its own steps come next.
        for group in reversed(self._groups):
            for rank in filter(None, group):
                self._links[rank - 1].tell(**words)
            if apart and 0 not in group:
                time.sleep(apart)

    def _hear(self):
        return [answer(rank, link) for rank, link in enumerate(self._links, 1)]


def joined(build):
    """Turns `build(job)`, which returns a rank's own trainer, into one whose trainer makes all ranks take part."""

    def build_for_all(job):
        return Leader(job, build) if job.rank == 0 and job.ranks > 1 else build(job)

    return build_for_all


def endpoints():
    """Returns the address of each rank with a free port, as "127.0.0.1:port"."""
    return os.environ["STEPTIME_ENDPOINTS"].split(",")


def interface():
    """Returns the name of the network interface that has this rank's address."""
    return os.environ["STEPTIME_INTERFACE"]


def server():
    """Returns the address for a server that keeps the weights of all ranks."""
    return os.environ["STEPTIME_SERVER"]


def start(code, arguments=(), **variables):
    """Starts a server: Python code, in a process that ends when this one does. Returns the process."""
    command = [sys.executable, "-c", ENDS_WITH_PARENT + code] + list(arguments)
    return subprocess.Popen(command, env=dict(os.environ, **variables))


@contextmanager
def meeting(seconds=MEETING_SECONDS):
    """Ends this process if it has not met the others in `seconds`: a framework may wait for ever."""

    def give_up():
        sys.stderr.write("{} in {:g} s\n".format(UNMET, seconds))
        sys.stderr.flush()
        os._exit(1)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def require_own_network(framework):
    """Raises Unsupported where other processes could reach a framework that listens on every interface."""
    if os.environ["STEPTIME_NETWORK"] != "own":
        reason = REACHED[os.environ["STEPTIME_NETWORK"]]
        raise Unsupported("{} listens on every interface, and {}".format(framework, reason))


def require_one_node():
    """Raises Unsupported where ranks on several nodes would need common memory for weights."""
    if os.environ["STEPTIME_NETWORK"] == "nodes":
        raise Unsupported("weights in memory that all ranks have in common are of one node")


def links():
    """Returns the sockets to the other ranks: from rank 0 to each, from another rank to rank 0."""
    if not _LINKS:
        _LINKS.extend(Link(int(number)) for number in os.environ["STEPTIME_LINKS"].split(","))
    return _LINKS


def share(job, rank=None):
    """Returns inputs and labels of the job's rank, or another's: an equal part in the adapter's layout."""
    number = job.rank if rank is None else rank
    parts = []
    for values, turned in ((job.inputs, job.layout.inputs), (job.labels, job.layout.labels)):
        # Where the layout puts the samples, of which there are none.
        samples = turned(np.empty([0] + [1] * (values.ndim - 1))).shape.index(0)
        parts.append(np.ascontiguousarray(np.split(values, job.ranks, samples)[number]))
    return parts


def answer(rank, link):
    """Returns a rank's next words, from its link. Raises RuntimeError where it has ended."""
    said = link.hear()
    if said is None:
        raise RuntimeError("rank {} has ended".format(rank))
    return said


def sums(weights):
    """Returns a number for each array, which is the same where all bits are."""
    return {
        name: zlib.crc32(np.ascontiguousarray(values).tobytes()) & 0xFFFFFFFF
        for name, values in weights.items()
    }
