"""MXNet 1.0: a symbol bound to an executor, with the LSTM built from plain operators: its own runs on GPUs alone.

What was chosen here, and by which measured ratios: docs/adapters/mxnet1.md.
"""

import ctypes

import mxnet as mx

from shared import specification

from ...contract import Unsupported
from .. import mxnet

MODES = ("graph",)
LOSSES = mxnet.LOSSES
OPTIMISERS = mxnet.OPTIMISERS
TASKS = ("step", "training")
LAYOUT = {"sequences": "steps first", "dense": "units first", "lstm": "units first"}
KERNELS = "openblas:mxnet"
REASONS = {
    "gpu": "this build of MXNet is the one for CPUs",
    "gelu": "MXNet 1.0 has no error function, of which an exact GELU is made",
}


def versions():
    """Version of MXNet."""
    return {"framework_version": mx.__version__}


def build(job):
    """A trainer of the specification. MXNet reads its thread numbers from the environment, at import."""
    mx.random.seed(job.seed)
    return _Trainer(job)


class _Trainer(object):
    settings = {"update": "w -= g, with the backward pass started from the learning rate"}

    def __init__(self, job):
        self._layout, self._spec = job.layout, job.spec
        self._data = {"input": _array(job.inputs), "labels": _array(job.labels.ravel())}
        self._arrays = arrays = dict(self._data)
        self._trained = {name: _array(job.take(name)) for name in job.layout.names}
        arrays.update(self._trained)
        loss, states = _loss(job.spec)
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
        self._optimiser, self._judge = _optimiser(job.spec["optimiser"]), None
        # The gradients come out as SGD's steps: to subtract them is vectorised, sgd_update is not.
        self._head = mx.nd.full((1,), 1.0 if self._optimiser else job.learning_rate)
        self.parameters = sum(value.size for value in self._trained.values())
        self.threads = ctypes.CDLL(mx.libinfo.find_lib_path()[0]).omp_get_max_threads()

    def run(self, steps):
        for _ in range(steps):
            loss = self._step()
        last = float(loss.asscalar())
        # The loss is there before the last update is done.
        mx.nd.waitall()
        return last

    def train(self, batches):
        mean = mx.nd.zeros((1,))
        for steps, (inputs, labels, rate) in enumerate(batches, 1):
            self._data["input"][:] = self._layout.inputs(inputs)
            self._data["labels"][:] = self._layout.labels(labels).ravel()
            if self._optimiser:
                self._optimiser.optimizer.lr = rate
            else:
                self._head[:] = rate
            mean += (self._step() - mean) / steps
        mx.nd.waitall()
        return float(mean.asscalar())

    def scores(self, inputs):
        inputs = _array(self._layout.inputs(inputs))
        if self._judge is None:
            logits = _logits(self._spec)[0]
            arrays = dict(self._arrays, input=mx.nd.empty(inputs.shape))
            self._judge = logits.bind(
                mx.cpu(), {name: arrays[name] for name in logits.list_arguments()}, grad_req="null"
            )
        return self._judge.forward(is_train=False, input=inputs)[0].asnumpy()

    def _step(self):
        """Takes a step, and returns its loss."""
        (loss,) = self._executor.forward(is_train=True)
        self._executor.backward([self._head])
        for index, (value, gradient) in enumerate(self._updates):
            if self._optimiser:
                self._optimiser(index, gradient, value)
            else:
                value -= gradient
        return loss

    def weights(self, names=None):
        wanted = self._trained if names is None else names
        return {name: self._layout.leave(name, self._trained[name].asnumpy()) for name in wanted}


class _RMSProp(mx.optimizer.RMSProp):
    """MXNet's own has its epsilon inside of the root."""

    def update(self, index, weight, grad, state):
        (average,) = state
        average[:] = self.gamma1 * average + (1 - self.gamma1) * mx.nd.square(grad)
        weight[:] -= self._get_lr(index) * grad / (mx.nd.sqrt(average) + self.epsilon)


def _optimiser(wanted):
    """MXNet's own optimiser, which keeps its averages by the number of the parameter; None for plain SGD."""
    if wanted["name"] == "adadelta":
        if wanted["learning_rate"] != 1 or {"decay", "after_epochs"} & set(wanted):
            raise Unsupported("MXNet's AdaDelta has no learning rate: it is always 1")
        own = mx.optimizer.AdaDelta(rho=wanted["rho"], epsilon=wanted["epsilon"])
        return mx.optimizer.get_updater(own)
    if wanted["name"] == "rmsprop":
        rate, rho, epsilon = wanted["learning_rate"], wanted["rho"], wanted["epsilon"]
        own = _RMSProp(learning_rate=rate, gamma1=rho, epsilon=epsilon)
        return mx.optimizer.get_updater(own)
    return mxnet.make_optimiser(wanted)


def _loss(spec):
    """The loss of the batch as a symbol, (1,), and what it needs besides parameters: {name: (shape, value)}."""
    logits, states = _logits(spec)
    if spec.get("loss", "softmax_cross_entropy") != "softmax_cross_entropy":
        return _distance(spec, logits), states
    likelihoods = mx.sym.log_softmax(logits, axis=-1)
    return -mx.sym.mean(mx.sym.pick(likelihoods, mx.sym.Variable("labels"), axis=-1)), states


def _distance(spec, outputs):
    """A loss without classes; targets come flat, as labels do."""
    width = spec["nodes"][-1]["shape"][-1]
    if spec["loss"] == "evidence_bound":
        # The outputs of a decoder, and behind them the means and logarithms of variances of a code.
        decoded = 2 * spec["input"]["shape"][0] - width
        middle = (decoded + width) // 2
        mean, spread = _columns(outputs, decoded, middle), _columns(outputs, middle, width)
        apart = 0.5 * (mx.sym.square(mean) + mx.sym.exp(spread) - spread - 1)
        missed = mxnet.entropy(mx.sym, _columns(outputs, 0, decoded), _targets(decoded))
        return mx.sym.mean(mx.sym.sum(mx.sym.concat(missed, apart, dim=1), axis=1)) / width
    return mx.sym.mean(mxnet.DISTANCES[spec["loss"]](mx.sym, outputs, _targets(width)))


def _targets(width):
    return mx.sym.reshape(mx.sym.Variable("labels"), shape=(-1, width))


def _columns(value, begin, end):
    return mx.sym.slice_axis(value, axis=1, begin=begin, end=end)


def _logits(spec):
    """The scores of all labels as a symbol, (labels, classes), and what `_loss` says."""
    values, states = {"input": mx.sym.Variable("input")}, {}
    kinds = {node["name"]: node["op"] for node in spec["nodes"]}
    for node in spec["nodes"]:
        given = [values[name] for name in node["inputs"]]
        if node["op"] == "max_pool" and kinds.get(node["inputs"][0]) != "relu":
            given = [_kept(*given)]

        def own(role, shape=None, value=0, node=node):
            name = node["name"] + "/" + role
            if shape:
                states[name] = (shape, value)
            return mx.sym.Variable(name)

        values[node["name"]] = LAYERS[node["op"]](node, own, *given)
    return mx.sym.reshape(values[node["name"]], shape=(-1, node["shape"][-1])), states


def _kept(x):
    """A copy that stays until the backward pass, as the output of a ReLU does.

    MXNet 1.0 writes the gradient of a pool over the pool's input before it has looked there for the largest.
    """
    return mx.sym.LeakyReLU(x, act_type="leaky", slope=1.0)


def _dense(node, own, x):
    steps = node["in_shape"][:-1]
    rows = mx.sym.reshape(x, shape=(-1, node["in_shape"][-1])) if steps else x
    arrays = [rows, own("weight")] + ([own("bias")] if node["bias"] else [])
    rows = mx.sym.FullyConnected(*arrays, num_hidden=node["units"], no_bias=not node["bias"])
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


def _products(node, own, x, gates):
    """Of each step with the inputs, by one large product."""
    steps, units = node["shape"]
    rows = mx.sym.reshape(x, shape=(-1, node["in_shape"][-1]))
    # Here, and not in the LSTM, matrices are (in, units).
    products = mx.sym.broadcast_add(
        mx.sym.dot(rows, own("input")), mx.sym.reshape(own("bias"), shape=(1, -1))
    )
    products = mx.sym.reshape(products, shape=(steps, -1, gates * units))
    return mx.sym.SliceChannel(products, num_outputs=steps, axis=0, squeeze_axis=True)


def _rnn(node, own, x):
    weight, outputs = own("recurrent"), []
    for given in _products(node, own, x, 1):
        sums = given + mx.sym.dot(outputs[-1], weight) if outputs else given
        outputs.append(mx.sym.tanh(sums))
    return mx.sym.stack(*outputs, axis=0)


def _gru(node, own, x):
    weight, outputs = own("recurrent"), []
    for given in _products(node, own, x, 3):
        reset, update, new = mx.sym.SliceChannel(given, num_outputs=3, axis=1)
        if outputs:
            inner = mx.sym.dot(outputs[-1], weight)
            of_reset, of_update, of_new = mx.sym.SliceChannel(inner, num_outputs=3, axis=1)
            update = mx.sym.sigmoid(update + of_update)
            new = mx.sym.tanh(new + mx.sym.sigmoid(reset + of_reset) * of_new)
            outputs.append(new + update * (outputs[-1] - new))
        else:
            new = mx.sym.tanh(new)
            outputs.append(new - mx.sym.sigmoid(update) * new)
    return mx.sym.stack(*outputs, axis=0)


def _adaptive_avg_pool(node, own, x):
    size = node["size"]
    for axis, extent in zip((2, 3), node["in_shape"][1:]):
        ends = [(at * extent // size, -(-(at + 1) * extent // size)) for at in range(size)]
        shares = [mx.sym.slice_axis(x, axis=axis, begin=begin, end=end) for begin, end in ends]
        means = [mx.sym.mean(share, axis=axis, keepdims=True) for share in shares]
        x = mx.sym.concat(*means, dim=axis)
    return x


def _local_response_norm(node, own, x):
    channels = node["shape"][0]
    if channels < node["size"]:
        # It takes no fewer channels than neighbours: zeros stand behind those that are there.
        x = mx.sym.concat(x, *[mx.sym.zeros_like(x)] * node["size"], dim=1)
    x = mxnet.LAYERS["local_response_norm"](mx.sym, node, own, x)
    return mx.sym.slice_axis(x, axis=1, begin=0, end=channels) if channels < node["size"] else x


def _layer_norm(node, own, x):
    image = len(node["shape"]) == 3
    axis, shape = (1, (1, -1, 1, 1)) if image else (-1, (1,) * len(node["shape"]) + (-1,))
    centred = mx.sym.broadcast_sub(x, mx.sym.mean(x, axis=axis, keepdims=True))
    squares = mx.sym.mean(mx.sym.square(centred), axis=axis, keepdims=True)
    normal = mx.sym.broadcast_mul(centred, mx.sym.rsqrt(squares + node["epsilon"]))
    value = mx.sym.broadcast_mul(normal, mx.sym.reshape(own("weight"), shape=shape))
    if not node["bias"]:
        return value
    return mx.sym.broadcast_add(value, mx.sym.reshape(own("bias"), shape=shape))


def _attention(node, own, x):
    steps = node["shape"][0]

    def mask(role):
        row = mx.sym.reshape(mx.sym.arange(steps), shape=(1, 1, steps))
        column = mx.sym.reshape(mx.sym.arange(steps), shape=(1, steps, 1))
        return -1e30 * mx.sym.broadcast_greater(row, column)

    return mxnet.attention(mx.sym, node, mask, x)


def _class_token(node, own, x):
    # As many as the mini-batch has samples, whose number no symbol knows.
    none = mx.sym.zeros_like(mx.sym.slice_axis(x, axis=0, begin=0, end=1))
    token = mx.sym.reshape(own("weight"), shape=(1, 1, -1))
    return mx.sym.concat(mx.sym.broadcast_add(none, token), x, dim=0)


def _unembedding(node, own, x, table):
    rows = mx.sym.reshape(x, shape=(-1, node["in_shape"][-1]))
    rows = mx.sym.FullyConnected(rows, table, num_hidden=node["shape"][-1], no_bias=True)
    return mx.sym.reshape(rows, shape=(node["shape"][0], -1, node["shape"][-1]))


def _same(kind):
    """The layer of later versions, whose operators were there."""
    return lambda node, own, *inputs: mxnet.LAYERS[kind](mx.sym, node, own, *inputs)


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
    "dropout": lambda node, own, x: mx.sym.Dropout(x, p=node["rate"]),
    "sigmoid": lambda node, own, x: mx.sym.Activation(x, act_type="sigmoid"),
    "add": lambda node, own, x, y: x + y,
    "embedding": lambda node, own, x: mx.sym.Embedding(
        x, own("weight"), input_dim=node["vocabulary"], output_dim=node["units"]
    ),
    "lstm": _lstm,
    "rnn": _rnn,
    "gru": _gru,
    "adaptive_avg_pool": _adaptive_avg_pool,
    "layer_norm": _layer_norm,
    "attention": _attention,
    "class_token": _class_token,
    "unembedding": _unembedding,
    "conv_transpose": _same("conv_transpose"),
    "grouped_conv": _same("grouped_conv"),
    "upsample": _same("upsample"),
    "avg_pool": _same("avg_pool"),
    "channel_shuffle": _same("channel_shuffle"),
    "local_response_norm": _local_response_norm,
    "group_norm": _same("group_norm"),
    "concat": _same("concat"),
    "tanh": _same("tanh"),
    "gelu_tanh": _same("gelu_tanh"),
    "silu": _same("silu"),
    "rms_norm": _same("rms_norm"),
    "layer_scale": _same("layer_scale"),
    "bias": _same("bias"),
    "positions": _same("positions"),
    "table": _same("table"),
    "lookup": _same("lookup"),
    "patches": _same("patches"),
    "first_step": _same("first_step"),
    "mean_steps": _same("mean_steps"),
    "transpose": _same("transpose"),
    "dense_within": _same("dense_within"),
    "part": _same("part"),
    "stack": _same("stack"),
    "unstack": _same("unstack"),
    "reversal": _same("reversal"),
    "sampled_code": _same("sampled_code"),
    "rbm": _same("rbm"),
}


def _window(node):
    return {
        "kernel": (node["kernel"],) * 2,
        "stride": (node["stride"],) * 2,
        "pad": (node["padding"],) * 2,
    }


def _array(values):
    return mx.nd.array(values, dtype="float32")
