"""MXNet 1.0: a symbol bound to an executor, with an LSTM of plain operators: its own only runs on GPUs."""

import ctypes

import mxnet as mx

from shared import specification

MODES = ("graph",)
LAYOUT = {"sequences": "steps first", "dense": "units first", "lstm": "units first"}
KERNELS = "openblas:mxnet"
REASONS = {
    "gpu": "this build of MXNet is the one for CPUs",
    "gelu": "MXNet 1.0 has no error function, of which an exact GELU is made",
}


def versions():
    """Returns the version of MXNet."""
    return {"framework_version": mx.__version__}


def build(job):
    """Returns a trainer of the specification. MXNet reads its thread numbers from the environment, at import."""
    return _Trainer(job)


class _Trainer(object):
    settings = {"update": "w -= g, with the backward pass started from the learning rate"}

    def __init__(self, job):
        self._layout = job.layout
        arrays = {"input": _array(job.inputs), "labels": _array(job.labels.ravel())}
        self._trained = {name: _array(job.take(name)) for name in job.layout.names}
        arrays.update(self._trained)
        logits, states = _logits(job.spec)
        likelihoods = mx.sym.log_softmax(logits, axis=-1)
        loss = -mx.sym.mean(mx.sym.pick(likelihoods, mx.sym.Variable("labels"), axis=-1))
        arrays.update((name, mx.nd.full(shape, value)) for name, (shape, value) in states.items())
        # Written by each backward pass before it is read, so it need not be filled.
        gradients = {name: mx.nd.empty(value.shape) for name, value in self._trained.items()}
        self._updates = [(value, gradients[name]) for name, value in self._trained.items()]
        self._executor = loss.bind(
            mx.cpu(),
            args={name: arrays[name] for name in loss.list_arguments()},
            args_grad=gradients,
            grad_req={
                name: "write" if name in gradients else "null" for name in loss.list_arguments()
            },
            aux_states={name: arrays[name] for name in loss.list_auxiliary_states()},
        )
        # The gradients come out as SGD's steps: to subtract them is vectorised, sgd_update is not.
        self._head = mx.nd.full((1,), job.learning_rate)
        self.parameters = sum(value.size for value in self._trained.values())
        self.threads = ctypes.CDLL(mx.libinfo.find_lib_path()[0]).omp_get_max_threads()

    def run(self, steps):
        for _ in range(steps):
            (loss,) = self._executor.forward(is_train=True)
            self._executor.backward([self._head])
            for value, gradient in self._updates:
                value -= gradient
        last = float(loss.asscalar())
        # The loss is there before the last update is done.
        mx.nd.waitall()
        return last

    def weights(self, names=None):
        wanted = self._trained if names is None else names
        return {name: self._layout.leave(name, self._trained[name].asnumpy()) for name in wanted}


def _logits(spec):
    """Returns the scores of all labels as a symbol, (labels, classes), and its other inputs: {name: (shape, value)}."""
    values = {"input": mx.sym.Variable("input")}
    states = {}
    for node in spec["nodes"]:

        def own(role, shape=None, value=0, node=node):
            name = node["name"] + "/" + role
            if shape:
                states[name] = (shape, value)
            return mx.sym.Variable(name)

        values[node["name"]] = LAYERS[node["op"]](
            node, own, *[values[name] for name in node["inputs"]]
        )
    return mx.sym.reshape(values[node["name"]], shape=(-1, node["shape"][-1])), states


def _dense(node, own, x):
    steps = node["in_shape"][:-1]
    rows = mx.sym.reshape(x, shape=(-1, node["in_shape"][-1])) if steps else x
    rows = mx.sym.FullyConnected(rows, own("weight"), own("bias"), num_hidden=node["units"])
    return mx.sym.reshape(rows, shape=tuple(steps) + (-1, node["units"])) if steps else rows


def _conv(node, own, x):
    arrays = [x, own("weight")] + ([own("bias")] if node["bias"] else [])
    return mx.sym.Convolution(
        *arrays, num_filter=node["channels"], no_bias=not node["bias"], **_window(node)
    )


def _batch_norm(node, own, x):
    channels = (node["shape"][0],)
    arrays = [x, own("gamma"), own("beta"), own("mean", channels), own("variance", channels, 1)]
    return mx.sym.BatchNorm(
        *arrays, eps=specification.BATCH_NORM_EPSILON, fix_gamma=False, use_global_stats=False
    )


def _lstm(node, own, x):
    steps, units = node["shape"]
    rows = mx.sym.reshape(x, shape=(-1, node["in_shape"][-1]))
    # The product with the inputs needs no loop: one large product in place of one for each step.
    products = mx.sym.FullyConnected(rows, own("input"), own("bias"), num_hidden=4 * units)
    products = mx.sym.reshape(products, shape=(steps, -1, 4 * units))
    weight, output, cell, outputs = own("recurrent"), None, None, []
    for given in mx.sym.SliceChannel(products, num_outputs=steps, axis=0, squeeze_axis=True):
        sums = given
        if output is not None:
            sums = given + mx.sym.FullyConnected(output, weight, num_hidden=4 * units, no_bias=True)
        i, f, g, o = mx.sym.SliceChannel(sums, num_outputs=4, axis=1)
        fresh = mx.sym.sigmoid(i) * mx.sym.tanh(g)
        cell = fresh if cell is None else mx.sym.sigmoid(f) * cell + fresh
        output = mx.sym.sigmoid(o) * mx.sym.tanh(cell)
        outputs.append(mx.sym.expand_dims(output, axis=0))
    return mx.sym.concat(*outputs, dim=0)


LAYERS = {
    "dense": _dense,
    "conv": _conv,
    "max_pool": lambda node, own, x: mx.sym.Pooling(x, pool_type="max", **_window(node)),
    "global_average_pool": lambda node, own, x: mx.sym.Flatten(
        mx.sym.Pooling(x, pool_type="avg", global_pool=True, kernel=(1, 1))
    ),
    "flatten": lambda node, own, x: mx.sym.Flatten(x),
    "batch_norm": _batch_norm,
    "relu": lambda node, own, x: mx.sym.Activation(x, act_type="relu"),
    "sigmoid": lambda node, own, x: mx.sym.Activation(x, act_type="sigmoid"),
    "add": lambda node, own, x, y: x + y,
    "embedding": lambda node, own, x: mx.sym.Embedding(
        x, own("weight"), input_dim=node["vocabulary"], output_dim=node["units"]
    ),
    "lstm": _lstm,
}


def _window(node):
    return {
        "kernel": (node["kernel"],) * 2,
        "stride": (node["stride"],) * 2,
        "pad": (node["padding"],) * 2,
    }


def _array(values):
    return mx.nd.array(values, dtype="float32")
