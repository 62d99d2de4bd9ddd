"""A stand-in framework in numpy: dense networks, and a fault for each mode once the full-size network is run."""

import ctypes
import os
import queue
import signal
import threading

import numpy as np

from ... import building
from ...contract import Unsupported

MODES = (
    "good", "killed", "segfault", "hangs", "memory", "quiet", "nan", "narrow",
    "unable", "wrong", "frozen", "early", "lazy", "greedy", "crowded", "dilated",
)  # fmt: skip
LAYERS = ("dense", "sigmoid")
FAULT_STEP = 3
# Calls of which the mode `early` says the right loss: what follows is nobody's to know.
AWAITED = 3
# That the engine of the mode `early` takes before it makes the caller wait.
ENGINE_STEPS = 300


def versions():
    return {"framework_version": "1.0", "blas": "numpy's"}


def build(job):
    if job.mode == "unable":
        raise Unsupported("the stand-in has no layer of this kind")
    return Trainer(job)


def burn():
    """A thread that nobody asked for; numpy lets go of the interpreter's lock while it multiplies."""
    matrix = np.ones((600, 600))
    while True:
        matrix @ matrix


class Later:
    """A loss that is computed when it is looked at."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value


class Trainer:
    settings = {"kind": "stand-in"}
    last_loss = None

    def __init__(self, job):
        self.nodes, self.rate, mode = job.spec["nodes"], job.learning_rate, job.mode
        self.values, self.inputs, self.labels = job.weights, job.inputs, job.labels
        self.full_size = job.inputs.shape[1] == 100
        self.mode, self.threads, self.steps, self.calls = mode, job.threads, 0, 0
        self.queue = queue.Queue(ENGINE_STEPS) if mode == "early" and self.full_size else None
        if self.queue:
            threading.Thread(target=self._work_off, daemon=True).start()
        if mode in ("greedy", "crowded") and self.full_size:
            if mode == "greedy":
                os.sched_setaffinity(0, range(os.cpu_count()))
            threading.Thread(target=burn, daemon=True).start()
        if mode == "dilated" and self.full_size:
            clock = building.clock
            building.clock = lambda: clock() / 10
        size = sum(value.size for value in self.values.values())
        self.parameters = size - (mode == "narrow" and self.full_size)

    def run(self, steps):
        if self.queue:
            # Returns when the work is queued, with the last loss that is known.
            for _ in range(steps):
                self.queue.put(None)
            self.calls += 1
            return self.last_loss if self.calls > AWAITED else self._wait()
        for _ in range(steps):
            loss = self._step()
            self.steps += 1
            if self.full_size and self.steps == FAULT_STEP:
                loss = self._fail(loss)
        return Later(loss) if self.mode == "lazy" and self.full_size else loss

    def weights(self, names=None):
        if self.queue:
            self.queue.join()
        return {name: self.values[name] for name in names or self.values}

    def _work_off(self):
        while True:
            self.queue.get()
            self.last_loss = self._step()
            self.queue.task_done()

    def _wait(self):
        self.queue.join()
        return self.last_loss

    def _step(self):
        hidden, saved = self.inputs, []
        for node in self.nodes:
            saved.append(hidden)
            if node["op"] == "sigmoid":
                hidden = 1 / (1 + np.exp(-hidden))
            else:
                weight, bias = (self.values[node["name"] + role] for role in ("/weight", "/bias"))
                hidden = hidden @ weight + bias
        exponents = np.exp(hidden - hidden.max(axis=1, keepdims=True))
        chances = exponents / exponents.sum(axis=1, keepdims=True)
        rows = np.arange(len(self.labels))
        loss = -np.log(chances[rows, self.labels]).mean()
        chances[rows, self.labels] -= 1
        gradient = chances / len(rows)
        if self.mode == "wrong":
            gradient = gradient * np.float32(2)
        for node, before in zip(self.nodes[::-1], saved[::-1], strict=True):
            if node["op"] == "sigmoid":
                after = 1 / (1 + np.exp(-before))
                gradient = gradient * after * (1 - after)
                continue
            weight, bias = (self.values[node["name"] + role] for role in ("/weight", "/bias"))
            passed = gradient @ weight.T
            if self.mode == "frozen" and self.full_size and before is self.inputs:
                continue
            weight -= self.rate * (before.T @ gradient)
            bias -= self.rate * gradient.sum(axis=0)
            gradient = passed
        return float(loss)

    def _fail(self, loss):
        if self.mode == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.mode == "segfault":
            ctypes.string_at(0)
        if self.mode == "hangs":
            # In native code that holds the interpreter's lock: no signal handler of Python's ever runs.
            ctypes.PyDLL(None).pause()
        if self.mode == "memory":
            kept = [np.ones(2**24) for _ in range(1024)]
            return float(kept[0][0])
        if self.mode == "quiet":
            os._exit(3)
        if self.mode == "nan":
            for values in self.values.values():
                values.fill(np.nan)
        return loss
