"""The adapter of a stand-in framework whose ranks share gradients over real sockets. Its mode is what is wrong with it.

Tests put it beside the real adapters of a worker. It computes by the golden code.
"""

import os
import signal
import socket
import sys
import time

import numpy as np

sys.path.append(os.environ["STAND_IN_SCRIPTS"])

from shared.operations import repeated  # noqa: E402
from steptime.networks import optimisers  # noqa: E402
from steptime.prove import golden  # noqa: E402

from ... import ranks  # noqa: E402

MODES = (
    "right", "summed", "apart", "absent", "other_start", "shared_batch", "whole_norm", "killed",
    "hangs", "misses", "raises", "slow", "far", "fed_apart", "unfed", "fed_rateless",
)  # fmt: skip
TASKS = ("step", "stragglers", "sums", "training", "follow")
FAULT_STEP = 5
_WIRES = []


def versions():
    return {"framework_version": "1.0"}


def build(job):
    return ranks.joined(Trainer)(job)


def meet(job, members):
    """Sockets between the first of some ranks and each other of them, on the address of that one."""
    first, *others = members
    address, port = ranks.endpoints()[first].split(":")
    place = (address, int(port))
    if job.rank == first:
        with socket.create_server(place) as server:
            return [server.accept()[0] for _ in others]
    while True:
        try:
            return [socket.create_connection(place)]
        except ConnectionRefusedError:
            time.sleep(0.01)


class Trainer:
    threads = 1
    settings = {}

    def __init__(self, job):
        if job.mode == "misses":
            with ranks.meeting(0.5):
                time.sleep(60)
        if not _WIRES:
            _WIRES.extend(meet(job, range(job.ranks)))
        self.job, self.spec, self.values, self.state = job, job.spec, job.weights, {}
        self.parameters = sum(values.size for values in self.values.values())
        self.steps = self.shown = 0
        if job.mode == "other_start" and job.rank:
            self.values = {name: values * np.float32(1.01) for name, values in self.values.items()}
        self.is_first = job.rank == 0
        self.inputs, self.labels = job.inputs, job.labels
        if job.mode == "shared_batch":
            job.rank = 0
        if job.mode != "whole_norm":
            self.inputs, self.labels = ranks.share(job)

    def run(self, steps):
        for _ in range(steps):
            self.steps += 1
            if not self.is_first:
                self.fail()
            loss = self.learn(self.inputs, self.labels, self.spec["optimiser"]["learning_rate"])
        return loss

    def learn(self, inputs, labels, rate, apart=False):
        taken = golden.train_step(self.spec, self.values, inputs, labels)
        mean = taken.gradients if apart else self.exchange(taken.gradients)
        wanted = dict(self.spec["optimiser"], learning_rate=rate)
        updated = optimisers.update(wanted, self.values, mean, self.state)
        self.values = {name: values.astype(np.float32) for name, values in updated.items()}
        return float(np.float32(taken.loss))

    def train(self, batches):
        mode, losses = self.job.mode, []
        for inputs, labels, rate in batches:
            if mode == "unfed":
                inputs, labels = self.inputs, self.labels
            rate = self.spec["optimiser"]["learning_rate"] if mode == "fed_rateless" else rate
            losses.append(self.learn(inputs, labels, rate, mode == "fed_apart"))
        return float(np.mean(losses))

    def scores(self, inputs):
        return golden.forward(self.spec, self.values, inputs)[0]

    def weights(self, names=None):
        if self.job.mode == "far" and not self.is_first and self.steps != self.shown:
            self.shown = self.steps
            time.sleep(0.05)
        return {name: self.values[name] for name in names or self.values}

    def exchange(self, gradients):
        mode, own = self.job.mode, np.concatenate([each.ravel() for each in gradients.values()])
        if mode == "apart":
            return gradients
        if mode == "absent" and not self.is_first:
            own = np.zeros_like(own)
        if self.is_first:
            total = own + sum(self.hear(wire, own) for wire in _WIRES)
            for wire in _WIRES:
                wire.sendall(total.tobytes())
        else:
            _WIRES[0].sendall(own.tobytes())
            total = self.hear(_WIRES[0], own)
        mean, start = total / (1 if mode == "summed" else self.job.ranks), 0
        found = {}
        for name, values in gradients.items():
            found[name] = mean[start : start + values.size].reshape(values.shape)
            start += values.size
        return found

    def hear(self, wire, like):
        left, parts = like.nbytes, []
        while left:
            part = wire.recv(left)
            if not part:
                raise OSError("Connection reset by peer")
            parts.append(part)
            left -= len(part)
        return np.frombuffer(b"".join(parts))

    def fail(self):
        if self.job.mode == "slow":
            time.sleep(0.2)
        if self.steps < FAULT_STEP:
            return
        if self.job.mode == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.job.mode == "hangs":
            time.sleep(1000)
        if self.job.mode == "raises":
            raise ValueError("of my own")


class _Rank(Trainer):
    """What a trainer exchanges with, without its network."""

    def __init__(self, job):
        _WIRES.extend(meet(job, range(job.ranks)))
        self.job, self.is_first = job, job.rank == 0


class Sums:
    threads, exchange = 1, "sockets"

    def __init__(self, job):
        self.rank, self.ranks = _Rank(job), job.ranks

    def all_reduce(self, values):
        kept = [values]

        def add_up():
            mean = self.rank.exchange({"": kept[0].astype(np.float64)})[""]
            kept[0] = (mean * self.ranks).astype(np.float32)

        return repeated(add_up, lambda: kept[0])
