"""Torch7: modules of its package nn, in a LuaJIT below the worker that trains when it is told to through a pipe.

The program is `torch7.lua` beside this file; it gets arrays in Torch7's layout and steps first, as rows. What was
chosen, and why: docs/adapters/torch7.md.
"""

import ctypes
import os
import signal
import subprocess
import sys

from .. import openblas, specification
from . import Unsupported

KERNELS = openblas.find_kernels(lambda: ctypes.CDLL("libopenblas.so.0"))

import numpy as np  # noqa: E402

MODES = ("eager",)

LAYERS = "dense conv max_pool global_average_pool flatten batch_norm relu sigmoid add embedding lstm".split()
# The order of an LSTM's gates is i, f, o, g there; that of the specification i, f, g, o. Each is the other's inverse.
_GATES = [0, 1, 3, 2]
_SAID = {}


def versions():
    """The commit of Torch7, which has no numbers of versions, and what its process said of its BLAS and LuaJIT."""
    return dict(_SAID)


def build(spec, weights, inputs, labels, mode, threads, device):
    """See the contract in `adapters/__init__.py`."""
    if device != "cpu":
        raise Unsupported("Torch7 is built without cutorch here, which needs a CUDA of its time")
    for node in spec["nodes"]:
        if node["op"] not in LAYERS:
            raise Unsupported("the Torch7 adapter has no layer '{}'".format(node["op"]))
    return _Trainer(spec, weights, inputs, labels, threads)


class _Trainer(object):
    frozen_parameters = 0

    def __init__(self, spec, weights, inputs, labels, threads):
        self.kinds = {node["name"]: node["op"] for node in spec["nodes"]}
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        if spec["input"]["kind"] in ("tokens", "one_hot"):
            inputs = inputs.swapaxes(0, 1)
            inputs = inputs.reshape((-1,) + inputs.shape[2:])
        words = spec["input"]["kind"] == "tokens"
        home = os.path.join(sys.prefix, "torch7")
        self._start(home)
        table = {
            "nodes": spec["nodes"],
            "parameters": list(self.shapes),
            "rate": spec["optimiser"]["learning_rate"],
            "epsilon": specification.BATCH_NORM_EPSILON,
            "threads": threads,
            "words": words,
            "shape": list(inputs.shape),
            "labels": labels.size,
        }
        self._tell(_lua(table).encode() + b"\n")
        # Words and classes are counted from one.
        self._tell_array(inputs + 1 if words else inputs, np.int32 if words else np.float32)
        self._tell_array(labels.T + 1, np.int32)
        for name in self.shapes:
            self._tell_array(self._turned(name, weights.pop(name)), np.float32)
        parameters, self_threads, blas, kernel, luajit = self._answer().split("\t")
        self.parameters, self.threads = int(parameters), int(self_threads)
        with open(os.path.join(home, "commit")) as commit:
            _SAID["framework_version"] = "commit " + commit.read()
        _SAID.update(blas="{} runs {}".format(blas.strip(), kernel), build=luajit)
        self.settings = {
            "update": "each gradient goes to its weights at once, times the learning rate",
            "convolution": "unfolded, one product for each image",
            "kernels": KERNELS,
        }
        if "lstm" in self.kinds.values():
            self.settings["lstm"] = "from primitives, one product for all gates"

    def run(self, steps):
        self._tell("run {}\n".format(steps).encode())
        return float(self._answer())

    def weights(self, names=None):
        found = {}
        for name in self.shapes if names is None else names:
            self._tell("weights {}\n".format(name).encode())
            count = int(np.prod(self.shapes[name], dtype=np.int64))
            content = self.answers.read(4 * count)
            if len(content) != 4 * count:
                self._fail()
            found[name] = self._turned(name, np.frombuffer(content, np.float32), back=True)
        return found

    def __del__(self):
        for pipe in (self.commands, self.answers):
            try:
                pipe.close()
            except OSError:
                pass
        self.process.wait()

    def _start(self, home):
        reading, commands = os.pipe()
        answers, writing = os.pipe()
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch7.lua")
        luajit = os.path.join(sys.prefix, "debian", "usr", "bin", "luajit")
        arguments = [luajit, program, home, str(reading), str(writing)]
        self.process = subprocess.Popen(
            arguments, pass_fds=[reading, writing], stdin=subprocess.DEVNULL
        )
        os.close(reading)
        os.close(writing)
        self.commands, self.answers = os.fdopen(commands, "wb"), os.fdopen(answers, "rb")

    def _tell(self, content):
        try:
            self.commands.write(content)
            self.commands.flush()
        except BrokenPipeError:
            self._answer()

    def _tell_array(self, values, kind):
        self._tell(np.ascontiguousarray(values, kind).reshape(-1).data)

    def _answer(self):
        """The next line of the program. Raises what it failed with."""
        line = self.answers.readline().decode()
        if line.startswith("error "):
            if "not enough memory" in line:
                raise MemoryError(line[6:])
            raise RuntimeError(line[6:])
        if not line.endswith("\n"):
            self._fail()
        return line[:-1]

    def _fail(self):
        code = self.process.wait()
        if code == -signal.SIGKILL:
            raise MemoryError("LuaJIT was killed, as the kernel does where memory runs out")
        raise RuntimeError("LuaJIT ended with exit code {}".format(code))

    def _turned(self, name, value, back=False):
        """From the neutral layout to Torch7's, or back: of dense layers the transposed matrix, gates in its order."""
        kind, shape = self.kinds[name.split("/")[0]], self.shapes[name]
        if kind == "lstm":
            value = value.reshape(-1, 4, shape[-1] // 4)[:, _GATES]
        if kind == "dense" and len(shape) > 1:
            return value.reshape(shape[::-1]).T if back else value.T
        return value.reshape(shape)


def _lua(value):
    """Plain data as an expression of Lua."""
    if isinstance(value, dict):
        return "{{{}}}".format(
            ",".join("[{}]={}".format(_lua(key), _lua(each)) for key, each in value.items())
        )
    if isinstance(value, (list, tuple)):
        return "{{{}}}".format(",".join(map(_lua, value)))
    if isinstance(value, bool):
        return str(value).lower()
    return '"{}"'.format(value) if isinstance(value, str) else repr(value)
