"""Torch7: modules of its package nn, in a LuaJIT below the worker, which trains when a pipe tells it to.

Its program is `torch7.lua` beside this file; it gets arrays in Torch7's layout, steps first, as rows.
"""

import os
import signal
import subprocess
import sys

import numpy as np

from shared import specification

MODES = ("eager",)
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
TASKS = ("step", "training")
LAYERS = (
    "dense",
    "conv",
    "max_pool",
    "global_average_pool",
    "flatten",
    "batch_norm",
    "relu",
    "dropout",
    "sigmoid",
    "add",
    "embedding",
    "lstm",
)
LAYOUT = {"sequences": "steps first", "dense": "units first", "gates": "ifog"}
KERNELS = "openblas:libopenblas.so.0"
REASONS = {
    "gpu": "Torch7 is built without cutorch here, which needs a CUDA of its time",
    "layer": "the adapter of Torch7 has the layers of the networks of Shi et al. and Shatnawi et al. alone",
}
_SAID = {}


def versions():
    """Returns the commit of Torch7, which has no version numbers, and what its process said of its BLAS and LuaJIT."""
    return dict(_SAID)


def build(job):
    """Returns a trainer of the specification, in a process of its own."""
    return _Trainer(job)


class _Trainer(object):
    def __init__(self, job):
        spec, inputs, self.layout = job.spec, job.inputs, job.layout
        self.shapes = {entry["name"]: entry["shape"] for entry in spec["parameters"]}
        self.scored = (job.labels.size, specification.count_classes(spec))
        words = spec["input"]["kind"] == "tokens"
        if words or spec["input"]["kind"] == "one_hot":
            inputs = inputs.reshape((-1,) + inputs.shape[2:])
        home = os.path.join(sys.prefix, "torch7")
        self._start(home)
        table = {
            "nodes": spec["nodes"],
            "parameters": list(self.shapes),
            "optimiser": spec["optimiser"],
            "seed": job.seed,
            "epsilon": specification.BATCH_NORM_EPSILON,
            "threads": job.threads,
            "words": words,
            "shape": list(inputs.shape),
            "labels": job.labels.size,
        }
        self._tell(_lua(table).encode() + b"\n")
        # Words and classes are counted from one.
        self._tell_array(inputs + 1 if words else inputs, np.int32 if words else np.float32)
        self._tell_array(job.labels + 1, np.int32)
        for name in self.shapes:
            self._tell_array(job.take(name), np.float32)
        parameters, self_threads, blas, kernel, luajit = self._answer().split("\t")
        self.parameters, self.threads = int(parameters), int(self_threads)
        with open(os.path.join(home, "commit")) as commit:
            _SAID["framework_version"] = "commit " + commit.read()
        _SAID.update(blas="{} runs {}".format(blas.strip(), kernel), build=luajit)
        plain = spec["optimiser"]["name"] == "sgd"
        self.settings = {
            "update": "a gradient of one product goes to its weights at once, times the learning rate"
            if plain
            else "the rule of the package optim",
            "convolution": "unfolded, one product for each image",
        }
        if any(node["op"] == "lstm" for node in spec["nodes"]):
            self.settings["lstm"] = "from primitives, one product for all gates"

    def run(self, steps):
        self._tell("run {}\n".format(steps).encode())
        return float(self._answer())

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._tell("train {!r}\n".format(float(rate)).encode())
            self._tell_array(self.layout.inputs(inputs), np.float32)
            self._tell_array(self.layout.labels(labels) + 1, np.int32)
            total, steps = total + float(self._answer()), steps + 1
        return total / steps

    def scores(self, inputs):
        self._tell(b"judge 1\n")
        self._tell_array(self.layout.inputs(inputs), np.float32)
        return self._numbers(self.scored)

    def weights(self, names=None):
        found = {}
        for name in self.shapes if names is None else names:
            self._tell("weights {}\n".format(name).encode())
            found[name] = self.layout.leave(name, self._numbers(self.shapes[name]).reshape(-1))
        return found

    def _numbers(self, shape):
        """Returns the raw numbers that the program answers, in this shape."""
        count = 4 * int(np.prod(shape, dtype=np.int64))
        content = self.answers.read(count)
        if len(content) != count:
            self._fail()
        return np.frombuffer(content, np.float32).reshape(shape)

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
        """Returns the next line of the program. Raises the error that it reports."""
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


def _lua(value):
    """Writes plain data as an expression of Lua."""
    if isinstance(value, dict):
        return "{{{}}}".format(
            ",".join("[{}]={}".format(_lua(key), _lua(each)) for key, each in value.items())
        )
    if isinstance(value, (list, tuple)):
        return "{{{}}}".format(",".join(map(_lua, value)))
    if isinstance(value, bool):
        return str(value).lower()
    return '"{}"'.format(value) if isinstance(value, str) else repr(value)
