"""A stand-in framework in numpy: dense networks, and a fault for each mode once the full-size network is run."""

import ctypes
import os
import signal

import numpy as np

from . import Unsupported

MODES = ("good", "killed", "segfault", "hangs", "memory", "quiet", "nan", "narrow", "unable", "wrong")
FAULT_STEP = 3


def versions():
    return {"framework_version": "1.0", "blas": "numpy's"}


def build(spec, weights, inputs, labels, mode, threads, device):
    if mode == "unable":
        raise Unsupported("the stand-in has no layer of this kind")
    return Trainer(spec, weights, inputs, labels, mode, threads)


class Trainer:
    settings = {"kind": "stand-in"}
    frozen_parameters = 0

    def __init__(self, spec, weights, inputs, labels, mode, threads):
        self.nodes = spec["nodes"]
        self.rate = spec["optimiser"]["learning_rate"]
        self.values, self.inputs, self.labels = weights, inputs, labels
        self.full_size = inputs.shape[1] == 100
        self.mode, self.threads, self.steps = mode, threads, 0
        self.parameters = sum(value.size for value in weights.values()) - (mode == "narrow" and self.full_size)

    def run(self, steps):
        for _ in range(steps):
            loss = self._step()
            self.steps += 1
            if self.full_size and self.steps == FAULT_STEP:
                loss = self._fail(loss)
        return loss

    def weights(self):
        return self.values

    def _step(self):
        hidden, saved = self.inputs, []
        for node in self.nodes:
            saved.append(hidden)
            if node["op"] == "sigmoid":
                hidden = 1 / (1 + np.exp(-hidden))
            else:
                hidden = hidden @ self.values[node["name"] + "/weight"] + self.values[node["name"] + "/bias"]
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
