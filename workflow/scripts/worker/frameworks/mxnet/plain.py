"""MXNet as its own tutorial has it: Gluon's blocks, one after the other, and `gluon.Trainer`. No switch is turned."""

import ctypes

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

MODES = ("plain",)
OPTIONS = {}
OPTIMISERS = ("sgd",)
LOSSES = ("softmax_cross_entropy",)
DEVICES = ("cpu",)
PRECISIONS = ("float32",)
KERNELS = ""


def build(job):
    """Returns a trainer of the specification. MXNet reads its thread numbers from the environment, at import."""
    mx.random.seed(job.seed)
    return _Trainer(job)


class _Network(gluon.Block):
    """The nodes of a specification as blocks, called in their order."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes
        self.blocks = {}
        for node in nodes:
            self.blocks[node["name"]] = block = LAYERS[node["op"]](node)
            if isinstance(block, gluon.Block):
                self.register_child(block)

    def forward(self, batch):
        values = {"input": batch}
        for node in self.nodes:
            block = self.blocks[node["name"]]
            values[node["name"]] = block(*[values[name] for name in node["inputs"]])
        return values[node["name"]]


class _Trainer(object):
    settings = {"plain": "gluon.nn, gluon.Trainer"}

    def __init__(self, job):
        self._network = _Network(job.spec["nodes"])
        self._layout = job.layout
        self._homes = {}
        self._network.initialize(mx.init.Zero())
        for node in job.spec["nodes"]:
            for role, name in job.own(node).items():
                home = getattr(
                    self._network.blocks[node["name"]], _HOMES.get((node["op"], role), role)
                )
                home.set_data(mx.nd.array(job.take(name)))
                self._homes[name] = home
        self._inputs, self._labels = mx.nd.array(job.inputs), mx.nd.array(job.labels)
        own = self._network.collect_params()
        self._trainer = gluon.Trainer(own, "sgd", {"learning_rate": job.learning_rate})
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        sizes = [(value.grad_req, value.data().size, name) for name, value in own.items()]
        self.parameters = sum(size for asked, size, _ in sizes if asked != "null")
        # Running averages are no parameters.
        self.frozen_parameters = sum(
            size for asked, size, name in sizes if asked == "null" and name.endswith("h2h_bias")
        )
        self.threads = ctypes.CDLL(mx.libinfo.find_lib_path()[0]).omp_get_max_threads()

    def run(self, steps):
        for _ in range(steps):
            with autograd.record():
                loss = self._loss(self._network(self._inputs), self._labels)
            loss.backward()
            self._trainer.step(len(loss))
        last = float(loss.mean().asscalar())
        # The loss is there before the last update is done.
        mx.nd.waitall()
        return last

    def weights(self, names=None):
        names = self._homes if names is None else names
        return {
            name: self._layout.leave(name, self._homes[name].data().asnumpy()) for name in names
        }


# Where a parameter of the specification lives in its block, where that has another name for it.
_HOMES = {
    ("lstm", "input"): "l0_i2h_weight",
    ("lstm", "recurrent"): "l0_h2h_weight",
    ("lstm", "bias"): "l0_i2h_bias",
}


def _dense(node):
    sizes = {"in_units": node["in_shape"][-1], "use_bias": node["bias"]}
    return nn.Dense(node["units"], flatten=False, **sizes)


def _conv(node):
    window = node["kernel"], node["stride"], node["padding"]
    sizes = {"in_channels": node["in_shape"][0], "use_bias": node["bias"]}
    return nn.Conv2D(node["channels"], *window, **sizes)


def _global_average_pool(node):
    made = nn.Sequential()
    made.add(nn.GlobalAvgPool2D(), nn.Flatten())
    return made


def _lstm(node):
    """Returns an LSTM whose second bias stays at zero, since the network has one."""
    made = rnn.LSTM(node["units"], input_size=node["in_shape"][-1])
    made.l0_h2h_bias.grad_req = "null"
    return made


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": lambda node: nn.MaxPool2D(node["kernel"], node["stride"], node["padding"]),
    "global_average_pool": _global_average_pool,
    "flatten": lambda node: nn.Flatten(),
    "batch_norm": lambda node: nn.BatchNorm(in_channels=node["in_shape"][0]),
    "relu": lambda node: nn.Activation("relu"),
    "dropout": lambda node: nn.Dropout(node["rate"]),
    "sigmoid": lambda node: nn.Activation("sigmoid"),
    "add": lambda node: lambda left, right: left + right,
    "embedding": lambda node: nn.Embedding(node["vocabulary"], node["units"]),
    "lstm": _lstm,
}
# As `rnn.LSTM` has them.
LAYOUT = {"sequences": "steps first", "dense": "units first", "lstm": "units first"}
