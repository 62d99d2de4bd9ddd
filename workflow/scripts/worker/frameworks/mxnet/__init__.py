"""MXNet: a symbol bound to an executor (`graph`), or the same operators called one after the other (`eager`)."""

import ctypes
import os

import mxnet as mx
import numpy as np

from shared import specification
from shared.sketch import in_one_piece

from ... import rounding
from ...contract import Unsupported

MODES = ("graph", "eager")
OPTIONS = {
    "conv": ("sides", "dilation"),
    "grouped_conv": ("sides", "dilation"),
    "max_pool": ("sides", "up"),
    "avg_pool": ("sides",),
    "upsample": ("bilinear",),
    "batch_norm": ("epsilon", "momentum"),
    "group_norm": ("epsilon",),
    "lstm": ("bidirectional",),
    "gru": ("bidirectional",),
    "rnn": ("bidirectional",),
}
DEVICES = ("cpu", "gpu")
PRECISIONS = ("float32", "tf32")
TASKS = ("step", "training")
EXCHANGES = {"sync": "ranks", "async": "asynchronous"}
# oneDNN has no product of `dot`, `batch_dot` and attention: OpenBLAS multiplies there, and nowhere else.
KERNELS = "openblas:mxnet/libopenblas.so.0"
KERNELS_OF = ("attention", "conv_transpose", "dense_within", "layer_norm", "layer_scale", "rbm")
# As RNN takes sequences, or each layer would turn them around and back.
LAYOUT = {
    "sequences": "steps first",
    "dense": "units first",
    "rnn": "units first",
    "gru": "units first",
    "lstm": "units first",
    "rbm": "units first",
}

# A dense layer is turned where its weight has at least this many times as many rows, and columns, as there are samples.
# With half as many, it takes as long either way, or longer turned.
FEW = 16
# Layers that recur, by how many vectors of units a bias has: MXNet wants all of a layer's parameters in one array.
_GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def versions():
    """Returns the versions of MXNet and of its BLAS, as the library names it, and its compiled-in features."""
    features = mx.runtime.Features()
    found = {
        "framework_version": mx.__version__,
        "build": " ".join(sorted(name for name in features if features.is_enabled(name))),
    }
    if features.is_enabled("BLAS_OPEN"):
        config, core = _library().openblas_get_config, _library().openblas_get_corename
        config.restype = core.restype = ctypes.c_char_p
        found["blas"] = "oneDNN; for `dot` and attention {} runs {}".format(
            config().decode(), core().decode()
        )
    return found


def build(job):
    """Returns a trainer of the specification. MXNet reads its thread numbers from the environment, at import."""
    mx.random.seed(job.seed)
    with context_of(job) as context:
        return {"graph": Graph, "eager": Eager}[job.mode](job, context)


def context_of(job):
    """Returns where a job computes. Raises Unsupported without a GPU, NotEquivalent for one that rounds otherwise."""
    if job.device == "cpu":
        return mx.cpu()
    if not mx.context.num_gpus():
        raise Unsupported("this build of MXNet sees no GPU")
    with mx.gpu(0) as context:
        rounding.require(job.precision, _product)
    return context


def _product(left, right):
    return mx.nd.dot(mx.nd.array(left), mx.nd.array(right)).asnumpy()


class Trainer(object):
    """What both modes have in common: the arrays, the update and the way back to the neutral layout."""

    def __init__(self, job, context):
        self.layout, self.context = job.layout, context
        on_gpu = job.device == "gpu"
        self.layers = ON_GPUS if on_gpu else LAYERS
        spec = self.spec = job.spec if on_gpu else _arranged(job.spec, _few_rows(job))
        self.trained, self.states = {}, {}
        self.heads = _heads_of(spec)
        for node in spec["nodes"]:
            self._add_arrays(node, job)
        self.data = {"input": array_of(job.inputs), "labels": array_of(job.labels)}
        # Written by each backward pass before it is read, so it need not be filled.
        self.gradients = {name: mx.nd.empty(value.shape) for name, value in self.trained.items()}
        self.optimiser = make_optimiser(spec["optimiser"])
        # SGD's backward pass starts from the learning rate, so that it gives steps and not gradients. Their subtraction
        # is vectorised; MXNet's own sgd_update and multi_sgd_update are not, and take 2.5 and 6 times as long.
        self.head = mx.nd.full((1,), 1.0 if self.optimiser else job.learning_rate)
        self.updates = [
            (_trainable(node, self.trained[name]), _trainable(node, self.gradients[name]))
            for node in spec["nodes"]
            for name in _names(node, self.trained)
        ]
        self.parameters = sum(value.size for value, _ in self.updates)
        self.frozen_parameters = (
            sum(value.size for value in self.trained.values()) - self.parameters
        )
        self.threads = _library().omp_get_max_threads()
        self.settings = {
            "update": "w -= g, with the backward pass started from the learning rate",
            "engine": os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),
            "malloc_arena_max": os.environ.get("MALLOC_ARENA_MAX", "default"),
        }
        turned = [node["name"] for node in spec["nodes"] if "few_rows" in node]
        if turned:
            self.settings["turned"] = ", ".join(turned)

    def run(self, steps):
        for _ in range(steps):
            loss = self.differentiate()
            self.update()
        last = float(loss.asscalar())
        # The loss is there before the last update is done.
        mx.nd.waitall()
        return last

    def update(self):
        for index, (value, gradient) in enumerate(self.updates):
            if self.optimiser:
                self.optimiser(index, gradient, value)
            else:
                value -= gradient

    def train(self, batches):
        with self.context:
            mean = mx.nd.zeros((1,))
            for steps, (inputs, labels, rate) in enumerate(batches, 1):
                array_of(self.layout.inputs(inputs), self.data["input"])
                array_of(self.layout.labels(labels), self.data["labels"])
                if self.optimiser:
                    self.optimiser.optimizer.set_learning_rate(rate)
                else:
                    self.head[:] = rate
                mean += (self.differentiate() - mean) / steps
                self.update()
        mx.nd.waitall()
        return float(mean.asscalar())

    def scores(self, inputs):
        with self.context:
            inputs = array_of(self.layout.inputs(inputs))
            arrays = dict(self.trained, input=inputs, **self.states)
            return logits(mx.nd, self.layers, self.spec, arrays.__getitem__).asnumpy()

    def weights(self, names=None):
        neutral = {}
        for node in self.spec["nodes"]:
            packed = node["op"] in _GATES
            kept = [
                name
                for name in _names(node, self.trained)
                if names is None or packed or name in names
            ]
            own = {name: self.trained[name].asnumpy() for name in kept}
            own = _unpacked(self.spec, node, own) if packed else own
            if node["name"] in self.heads:
                own = _turned(own, (self.heads[node["name"]], 3))
            for name, values in own.items():
                neutral[name] = self.layout.leave(name, values)
        return neutral if names is None else {name: neutral[name] for name in names}

    def statistics(self):
        return {
            name: values.asnumpy()
            for name, values in self.states.items()
            if name.endswith(("/mean", "/variance"))
        }

    def _add_arrays(self, node, job):
        """Adds the arrays of one layer."""
        own = {name: in_one_piece(job.take(name)) for name in job.own(node).values()}
        own = _packed(node, own) if node["op"] in _GATES else own
        if node["name"] in self.heads:
            own = _turned(own, (3, self.heads[node["name"]]))
        axes = 2 if node["op"] == "dense" else None
        self.trained.update(
            (name, array_of(values.reshape(values.shape[:axes]))) for name, values in own.items()
        )
        if node["op"] in _GATES:
            # Sequences have the steps first.
            batch = job.inputs.shape[1]
            self.states[node["name"] + "/start"] = mx.nd.zeros((1, batch, node["units"]))
        if node["op"] == "batch_norm":
            self.states[node["name"] + "/mean"] = mx.nd.zeros((node["shape"][0],))
            self.states[node["name"] + "/variance"] = mx.nd.ones((node["shape"][0],))
        if node["op"] == "attention":
            self.states.update(_fixed(node))


class Graph(Trainer):
    """The whole network as one symbol, whose executor plans its memory once."""

    def __init__(self, *arguments):
        super(Graph, self).__init__(*arguments)
        loss = _loss(mx.sym, self.layers, self.spec, mx.sym.Variable)
        arrays = {**self.trained, **self.states, **self.data}
        self.executor = loss.bind(
            self.context,
            args={name: arrays[name] for name in loss.list_arguments()},
            args_grad=self.gradients,
            grad_req={
                name: "write" if name in self.trained else "null" for name in loss.list_arguments()
            },
            aux_states={name: arrays[name] for name in loss.list_auxiliary_states()},
        )

    def differentiate(self):
        (loss,) = self.executor.forward(is_train=True)
        self.executor.backward([self.head])
        return loss


class Eager(Trainer):
    """Gluon's way without `hybridize`: operators run as they are called, and autograd records them."""

    def __init__(self, *arguments):
        super(Eager, self).__init__(*arguments)
        self.arrays = {**self.trained, **self.states, **self.data}
        mx.autograd.mark_variables(list(self.trained.values()), list(self.gradients.values()))

    def differentiate(self):
        with mx.autograd.record():
            loss = _loss(mx.nd, self.layers, self.spec, self.arrays.__getitem__)
        loss.backward(self.head)
        return loss


def _loss(operators, layers, spec, variable):
    """Returns the loss of the batch, (1,), by `operators` (`mx.sym` or `mx.nd`) of the variables of these names."""
    outputs = logits(operators, layers, spec, variable)
    return LOSSES[spec["loss"]](operators, outputs, variable("labels"), spec)


def _cross_entropy(operators, outputs, labels, spec):
    likelihoods = operators.log_softmax(outputs, axis=-1)
    return -operators.mean(operators.pick(likelihoods, labels, axis=-1))


def entropy(operators, outputs, targets):
    soft = operators.Activation(-operators.abs(outputs), act_type="softrelu")
    return operators.relu(outputs) - outputs * targets + soft


def _mean_entropy(operators, outputs, targets, spec):
    return operators.mean(entropy(operators, outputs, targets))


def _evidence_bound(operators, outputs, targets, spec):
    (given,) = spec["nodes"][-1]["shape"]
    decoded = 2 * spec["input"]["shape"][0] - given
    middle = (decoded + given) // 2
    decoded, mean, spread = [
        operators.slice_axis(outputs, axis=1, begin=begin, end=end)
        for begin, end in ((0, decoded), (decoded, middle), (middle, given))
    ]
    apart = 0.5 * (operators.square(mean) + operators.exp(spread) - spread - 1)
    missed = entropy(operators, decoded, targets)
    terms = operators.sum(operators.concat(missed, apart, dim=1), axis=1)
    return operators.mean(terms) / given


LOSSES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": lambda operators, outputs, targets, spec: operators.mean(
        operators.square(outputs - targets)
    ),
    "binary_cross_entropy": _mean_entropy,
    "evidence_bound": _evidence_bound,
    "adversarial": _mean_entropy,
    "mean_output": lambda operators, outputs, targets, spec: operators.mean(outputs),
}


def logits(operators, layers, spec, variable):
    """Returns the output of the last node. MXNet's dropout only drops where a backward pass is to follow."""
    # By name, and whether an image has its channels last.
    values = {("input", False): variable("input")}

    def value(name, last):
        if (name, last) not in values:
            axes = (0, 2, 3, 1) if last else (0, 3, 1, 2)
            values[name, last] = operators.transpose(values[name, not last], axes=axes)
        return values[name, last]

    for node in spec["nodes"]:

        def own(role, node=node):
            return variable(node["name"] + "/" + role)

        last = node.get("channels_last", False)
        values[node["name"], last] = layers[node["op"]](
            operators, node, own, *[value(name, last) for name in node["inputs"]]
        )
    return value(node["name"], False)


class _RMSProp(mx.optimizer.RMSProp):
    """MXNet's own with the epsilon outside of the root."""

    def update(self, index, weight, grad, state):
        (average,) = state
        average[:] = self.gamma1 * average + (1 - self.gamma1) * mx.nd.square(grad)
        weight[:] -= self._get_lr(index) * grad / (mx.nd.sqrt(average) + self.epsilon)


class _Adam(mx.optimizer.Adam):
    """MXNet's own, which adds its epsilon to a root that is not corrected yet; here, weights may decay."""

    def __init__(self, wanted):
        betas = {name: wanted[name] for name in ("beta1", "beta2", "epsilon")}
        super(_Adam, self).__init__(learning_rate=wanted["learning_rate"], **betas)
        self._wanted, self._decay = wanted, wanted.get("weight_decay", 0.0)

    def update(self, index, weight, grad, state):
        taken = self._index_update_count.get(index, self.begin_num_update) + 1
        self.epsilon = self._wanted["epsilon"] * (1 - self.beta2**taken) ** 0.5
        if self._decay and len(weight.shape) > 1:
            weight *= 1 - self._wanted["learning_rate"] * self._decay
        super(_Adam, self).update(index, weight, grad, state)


def _adadelta(wanted):
    if wanted["learning_rate"] != 1 or {"decay", "after_epochs"} & set(wanted):
        raise Unsupported("MXNet's AdaDelta has no learning rate: it is always 1")
    return mx.optimizer.AdaDelta(rho=wanted["rho"], epsilon=wanted["epsilon"])


OPTIMISERS = {
    "sgd": None,
    "adadelta": _adadelta,
    "rmsprop": lambda wanted: _RMSProp(
        learning_rate=wanted["learning_rate"], gamma1=wanted["rho"], epsilon=wanted["epsilon"]
    ),
    "momentum": lambda wanted: mx.optimizer.SGD(
        learning_rate=wanted["learning_rate"], momentum=wanted["momentum"]
    ),
    "adam": _Adam,
    "adamw": _Adam,
}


def make_optimiser(wanted):
    """Returns MXNet's own optimiser, which keeps averages by the parameter's number; None for plain SGD."""
    name = wanted["name"]
    if name in ("momentum", "adam", "adamw") and {"decay", "after_epochs"} & set(wanted):
        raise Unsupported("the adapter of MXNet gives this optimiser one learning rate")
    return OPTIMISERS[name] and mx.optimizer.get_updater(OPTIMISERS[name](wanted))


def _fixed(node):
    """Returns an attention's mask, an input that is not trained."""
    steps = node["shape"][0]
    later = np.triu(np.full((1, steps, steps), -1e30, np.float32), 1)
    return {node["name"] + "/mask": array_of(later)} if node.get("causal") else {}


def _version():
    return tuple(int(part) for part in mx.__version__.split(".")[:2])


def _weighted(node, own, x):
    return [x, own("weight")] + ([own("bias")] if node["bias"] else [])


def _dense(operators, node, own, x):
    # In use MXNet keeps the second factor that it was given first.
    if "few_rows" in node and (operators is mx.sym or mx.autograd.is_training()):
        return _turned_dense(operators, node, own, x)
    return operators.FullyConnected(
        *_weighted(node, own, x), num_hidden=node["units"], no_bias=not node["bias"], flatten=False
    )


def _turned_dense(operators, node, own, x):
    """Multiplies a large weight by few rows of values, turned.

    oneDNN's product is hardly faster with two threads where the first factor has few rows; turned, it is faster.
    """
    x = operators.FullyConnected(own("weight"), x, num_hidden=node["few_rows"], no_bias=True)
    x = operators.transpose(x)
    return operators.broadcast_add(x, _wide(operators, node, own("bias"))) if node["bias"] else x


def dense_in_use(operators, node, own, x):
    """Computes a dense layer where nothing is trained: OpenBLAS multiplies few rows."""
    if "few_rows" not in node:
        return _dense(operators, node, own, x)
    x = operators.dot(x, own("weight"), transpose_b=True)
    return operators.broadcast_add(x, _wide(operators, node, own("bias"))) if node["bias"] else x


def _dense_within(operators, node, own, x):
    """Computes a dense layer whose weight is (in, units)."""
    x = operators.dot(x, own("weight"))
    return operators.broadcast_add(x, own("bias")) if node["bias"] else x


def _conv(operators, node, own, x):
    shape = {"num_filter": node["channels"], "num_group": node.get("groups", 1)}
    arrays, window = _weighted(node, own, x), _window(node)
    if "dilation" in node:
        window["dilate"] = tuple(specification.pair(node["dilation"]))
    return operators.Convolution(*arrays, no_bias=not node["bias"], **shape, **window)


def _upsample(operators, node, own, x):
    if node.get("bilinear"):
        _, height, width = node["shape"]
        return operators.contrib.BilinearResize2D(
            x, height=height, width=width, align_corners=False
        )
    return operators.UpSampling(x, scale=node["factor"], sample_type="nearest")


def _conv_transpose(operators, node, own, x):
    if node["channels"] == 1 and hasattr(operators, "col2im"):
        return _transposed_product(operators, node, own, x)
    arrays = _weighted(node, own, x)
    return operators.Deconvolution(
        *arrays, num_filter=node["channels"], no_bias=not node["bias"], **_window(node)
    )


def _transposed_product(operators, node, own, x):
    """Multiplies, and adds up the parts where they overlap: oneDNN has no convolution of 64 channels to one."""
    x = operators.reshape(x, shape=(0, 0, -1))
    weight = operators.expand_dims(operators.reshape(own("weight"), shape=(0, -1)), axis=0)
    # The same one for each sample.
    weight = operators.broadcast_like(weight, x, lhs_axes=(0,), rhs_axes=(0,))
    products = operators.batch_dot(weight, x, transpose_a=True)
    made = operators.col2im(products, output_size=node["shape"][1:], **_window(node))
    if not node["bias"]:
        return made
    return operators.broadcast_add(made, operators.reshape(own("bias"), shape=(1, -1, 1, 1)))


def _channel_shuffle(operators, node, own, x):
    parts = operators.reshape(x, shape=(0, -4, node["groups"], -1, -2))
    return operators.reshape(operators.swapaxes(parts, 1, 2), shape=(0, -3, -2))


def _group_norm(operators, node, own, x):
    # MXNet 1.9's own GroupNorm wants gamma and beta of the groups, not of the channels.
    parts = operators.reshape(x, shape=(0, -4, node["groups"], -1, -2))
    axes = (2, 3, 4)
    centred = operators.broadcast_sub(parts, operators.mean(parts, axis=axes, keepdims=True))
    squares = operators.mean(operators.square(centred), axis=axes, keepdims=True)
    scale = operators.rsqrt(squares + node.get("epsilon", specification.BATCH_NORM_EPSILON))
    normal = operators.reshape(operators.broadcast_mul(centred, scale), shape=(0, -3, -2))
    gamma, beta = (operators.reshape(own(role), shape=(1, -1, 1, 1)) for role in ("gamma", "beta"))
    return operators.broadcast_add(operators.broadcast_mul(normal, gamma), beta)


def _batch_norm(operators, node, own, x):
    arrays = [x] + [own(role) for role in ("gamma", "beta", "mean", "variance")]
    # Its momentum is what it keeps of what was there before.
    kept = {"momentum": 1 - node["momentum"]} if "momentum" in node else {}
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    return operators.BatchNorm(
        *arrays, eps=epsilon, fix_gamma=False, use_global_stats=False, **kept
    )


def _embedding(operators, node, own, x):
    return operators.Embedding(
        x, own("weight"), input_dim=node["vocabulary"], output_dim=node["units"]
    )


def _layer_norm(operators, node, own, x):
    # Products with ones: MXNet's operator and its broadcasts sum one number at a time in the backward pass.
    weight = operators.reshape(own("weight"), shape=(1, -1))
    row = operators.ones_like(weight)
    column = operators.reshape(row, shape=(-1, 1))
    features = node["shape"][-1]
    centred = x - operators.dot(operators.dot(x, column) / features, row)
    variance = operators.dot(operators.square(centred), column) / features
    scale = operators.rsqrt(variance + node["epsilon"])
    made = centred * operators.dot(scale, weight)
    if not node["bias"]:
        return made
    bias = operators.reshape(own("bias"), shape=(1, -1))
    return made + operators.dot(operators.ones_like(scale), bias)


def _fused_layer_norm(operators, node, own, x):
    axis, weight = 1 if len(node["shape"]) == 3 else -1, own("weight")
    bias = own("bias") if node["bias"] else operators.zeros_like(weight)
    return operators.LayerNorm(x, weight, bias, axis=axis, eps=node["epsilon"])


def _wide(operators, node, vector):
    """Returns a vector of features in a shape to be combined with a value: MXNet's operators want as many axes."""
    return operators.reshape(vector, shape=(1,) * len(node["shape"]) + (-1,))


def _layer_scale(operators, node, own, x):
    ones = operators.ones_like(operators.slice_axis(x, axis=-1, begin=0, end=1))
    return x * operators.dot(ones, operators.reshape(own("weight"), shape=(1, -1)))


def _broadcast_layer_scale(operators, node, own, x):
    shape = (1, -1, 1, 1) if len(node["shape"]) == 3 else (1,) * len(node["shape"]) + (-1,)
    return operators.broadcast_mul(x, operators.reshape(own("weight"), shape=shape))


def _stochastic_depth(operators, node, own, x):
    # Sequences have the steps first.
    samples = 1 if len(node["shape"]) == 2 else 0
    axes = [axis for axis in range(len(node["shape"]) + 1) if axis != samples]
    return operators.Dropout(x, p=node["rate"], axes=axes)


def _rms_norm(operators, node, own, x):
    squares = operators.mean(operators.square(x), axis=-1, keepdims=True)
    normal = operators.broadcast_mul(x, operators.rsqrt(squares + node["epsilon"]))
    return operators.broadcast_mul(normal, _wide(operators, node, own("weight")))


def _gelu_tanh(operators, node, own, x):
    bent = operators.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1 + bent)


def _positions(operators, node, own, x):
    steps, each = node["shape"][0], node["each"]
    rows = operators.slice_axis(own("weight"), axis=0, begin=0, end=-(-steps // each))
    if each > 1:
        rows = operators.repeat(rows, repeats=each, axis=0)
        rows = operators.slice_axis(rows, axis=0, begin=0, end=steps)
    return operators.broadcast_add(x, operators.expand_dims(rows, axis=1))


def _attention(operators, node, own, x):
    scores = operators.contrib.interleaved_matmul_selfatt_qk(x, heads=node["heads"])
    if node.get("causal"):
        scores = operators.broadcast_add(scores, own("mask"))
    shares = operators.softmax(scores, axis=-1)
    return operators.contrib.interleaved_matmul_selfatt_valatt(x, shares, heads=node["heads"])


def _class_token(operators, node, own, x):
    first = operators.slice_axis(x, axis=0, begin=0, end=1)
    token = operators.broadcast_like(_wide(operators, node, own("weight")), first)
    return operators.concat(token, x, dim=0)


def _patches(operators, node, own, x):
    return operators.transpose(operators.reshape(x, shape=(0, 0, -1)), axes=(2, 0, 1))


def _one_step(operators, node, own, x):
    begin = 0 if node["op"] == "first_step" else node["in_shape"][0] - 1
    chosen = operators.slice_axis(x, axis=0, begin=begin, end=begin + 1)
    return operators.reshape(chosen, shape=(-3, 0))


def _recurrent(mode, states=1):
    def one_way(operators, node, own, x, packed):
        arrays = [x, own(packed)] + [own("start") for _ in range(states)]
        return operators.RNN(*arrays, state_size=node["units"], num_layers=1, mode=mode)

    def recur(operators, node, own, x):
        found = one_way(operators, node, own, x, "packed")
        if node.get("bidirectional"):
            # In its own layer that reads both ways, the second bias of the first way would not stay at zero.
            back = one_way(operators, node, own, operators.reverse(x, axis=0), "back_packed")
            found = operators.concat(found, operators.reverse(back, axis=0), dim=2)
        return found

    return recur


def _part(operators, node, own, x):
    end = node["start"] + node["size"]
    return operators.slice_axis(x, axis=-1, begin=node["start"], end=end)


def _sampled_code(operators, node, own, x, noise):
    (units,) = node["shape"]
    mean = operators.slice_axis(x, axis=1, begin=0, end=units)
    spread = operators.slice_axis(x, axis=1, begin=units, end=2 * units)
    return mean + operators.exp(0.5 * spread) * noise


def _rbm(operators, node, own, visible, noise):
    # Each is asked for once: of two variables of one name, one writes its gradient over the other's.
    weight, bias, given = own("weight"), own("hidden"), own("visible")

    def scores(values):
        return operators.FullyConnected(values, weight, bias, num_hidden=node["units"])

    def soft(values):
        return operators.Activation(values, act_type="softrelu")

    visible = operators.BlockGrad(visible)
    first = scores(visible)
    chances = operators.BlockGrad(operators.sigmoid(first))
    drawn = operators.broadcast_greater(2 * chances - 1, noise)
    end = operators.broadcast_add(
        operators.dot(drawn, weight), operators.reshape(given, shape=(1, -1))
    )
    end = operators.BlockGrad(operators.sigmoid(end))
    energy = operators.sum(soft(scores(end)) - soft(first), axis=1, keepdims=True)
    moved = operators.dot(end - visible, operators.reshape(given, shape=(-1, 1)))
    return operators.concat(energy + moved, chances, dim=1)


LAYERS = {
    "dense": _dense,
    "dense_within": _dense_within,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "grouped_conv": _conv,
    "upsample": _upsample,
    "avg_pool": lambda operators, node, own, x: operators.Pooling(
        x, pool_type="avg", **_window(node)
    ),
    "adaptive_avg_pool": lambda operators, node, own, x: operators.contrib.AdaptiveAvgPooling2D(
        x, output_size=node["size"]
    ),
    "channel_shuffle": _channel_shuffle,
    "local_response_norm": lambda operators, node, own, x: operators.LRN(
        x, alpha=1 / node["inverse_alpha"], beta=0.75, knorm=1, nsize=node["size"]
    ),
    "group_norm": _group_norm,
    "concat": lambda operators, node, own, *inputs: operators.concat(*inputs, dim=1),
    "max_pool": lambda operators, node, own, x: operators.Pooling(
        x,
        pool_type="max",
        pooling_convention="full" if node.get("up") else "valid",
        **_window(node),
    ),
    "global_average_pool": lambda operators, node, own, x: operators.Flatten(
        operators.Pooling(x, pool_type="avg", global_pool=True, kernel=(1, 1))
    ),
    "flatten": lambda operators, node, own, x: operators.Flatten(x),
    "batch_norm": _batch_norm,
    "relu": lambda operators, node, own, x: operators.Activation(x, act_type="relu"),
    "dropout": lambda operators, node, own, x: operators.Dropout(x, p=node["rate"]),
    "sigmoid": lambda operators, node, own, x: operators.Activation(x, act_type="sigmoid"),
    "add": lambda operators, node, own, x, y: operators.elemwise_add(x, y),
    "embedding": _embedding,
    "lstm": _recurrent("lstm", 2),
    "rnn": _recurrent("rnn_tanh"),
    "gru": _recurrent("gru"),
    "tanh": lambda operators, node, own, x: operators.Activation(x, act_type="tanh"),
    "gelu": lambda operators, node, own, x: operators.LeakyReLU(x, act_type="gelu"),
    "gelu_tanh": _gelu_tanh,
    "silu": lambda operators, node, own, x: x * operators.sigmoid(x),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "layer_scale": _layer_scale,
    "bias": lambda operators, node, own, x: operators.broadcast_add(
        x, _wide(operators, node, own("bias"))
    ),
    "positions": _positions,
    "table": lambda operators, node, own, x: own("weight"),
    "lookup": lambda operators, node, own, x, table: operators.take(table, x),
    "unembedding": lambda operators, node, own, x, table: operators.FullyConnected(
        x, table, num_hidden=node["shape"][-1], no_bias=True, flatten=False
    ),
    "attention": _attention,
    "patches": _patches,
    "class_token": _class_token,
    "first_step": _one_step,
    "last_step": _one_step,
    "leaky_relu": lambda operators, node, own, x: operators.LeakyReLU(x, slope=node["slope"]),
    "stochastic_depth": _stochastic_depth,
    "relu6": lambda operators, node, own, x: operators.clip(x, a_min=0, a_max=6),
    "hard_swish": lambda operators, node, own, x: x * operators.clip(x + 3, a_min=0, a_max=6) / 6,
    "hard_sigmoid": lambda operators, node, own, x: operators.clip(x + 3, a_min=0, a_max=6) / 6,
    "elu": lambda operators, node, own, x: operators.LeakyReLU(x, act_type="elu", slope=1),
    "softplus": lambda operators, node, own, x: operators.Activation(x, act_type="softrelu"),
    "scale_channels": lambda operators, node, own, x, factors: operators.broadcast_mul(
        x, operators.reshape(factors, shape=(0, 0, 1, 1))
    ),
    "pad": lambda operators, node, own, x: operators.pad(
        x, mode="constant", constant_value=0, pad_width=(0,) * 4 + (*node["rows"], *node["columns"])
    ),
    "channel_part": lambda operators, node, own, x: operators.slice_axis(
        x, axis=1, begin=node["start"], end=node["start"] + node["size"]
    ),
    "multiply": lambda operators, node, own, x, y: operators.elemwise_mul(x, y),
    "mean_steps": lambda operators, node, own, x: operators.mean(x, axis=0),
    "transpose": lambda operators, node, own, x: operators.transpose(x, axes=(2, 1, 0)),
    "part": _part,
    "stack": lambda operators, node, own, *inputs: operators.stack(*inputs, axis=0),
    "unstack": lambda operators, node, own, x: operators.Flatten(
        operators.transpose(x, axes=(1, 0, 2))
    ),
    "reversal": lambda operators, node, own, x: 2 * operators.BlockGrad(x) - x,
    "sampled_code": _sampled_code,
    "rbm": _rbm,
}
# There the operators sum fast, and a product may round more than a sum.
ON_GPUS = dict(LAYERS, layer_norm=_fused_layer_norm, layer_scale=_broadcast_layer_scale)


def _few_rows(job):
    """Returns the samples of a mini-batch for which dense layers may be turned; None where none may.

    With one thread it gains little, and before MXNet 1.7 it takes longer.
    """
    is_sequence = job.spec["input"]["kind"] == "tokens" or job.inputs.ndim == 3
    rows = job.inputs.shape[1 if is_sequence else 0]
    return rows if rows > 1 and job.threads > 1 and _version() >= (1, 7) else None


def _arranged(spec, few_rows=None):
    """Returns the specification with channels last where layers of images want it, and after them where layers take
    both.

    There, a convolution of single pixels is a dense layer. A layer with far more weights than values is turned.
    """
    nodes, last = [], set()
    for node in spec["nodes"]:
        sizes = [node.get(size) for size in ("kernel", "stride", "padding")]
        pixels = node["op"] == "conv" and sizes == [1, 1, 0]
        wants = node["op"] in ("layer_norm", "layer_scale")
        takes = pixels or node["op"] == "gelu"
        if len(node["shape"]) == 3 and (wants or takes and node["inputs"][0] in last):
            last.add(node["name"])
            node = dict(node, channels_last=True, shape=node["shape"][1:] + node["shape"][:1])
            node.update({"op": "dense", "units": node["channels"]} if pixels else {})
        elif node["op"] == "dense" and len(node["in_shape"]) == 1 and few_rows:
            is_turned = FEW * few_rows <= min(node["units"], *node["in_shape"])
            node = dict(node, few_rows=few_rows) if is_turned else node
        nodes.append(node)
    return dict(spec, nodes=nodes)


def _window(node):
    return {
        "kernel": tuple(specification.pair(node["kernel"])),
        "stride": tuple(specification.pair(node["stride"])),
        "pad": tuple(specification.pair(node["padding"])),
    }


def _names(node, arrays):
    """Returns the names of the node's own arrays among `arrays`."""
    return [name for name in arrays if name.split("/")[0] == node["name"]]


def _trainable(node, array):
    """Returns the trained part of an array: all of it, except a second bias, which stays at zero."""
    return array[: -_GATES[node["op"]] * node["units"]] if node["op"] in _GATES else array


def _heads_of(spec):
    """Returns {dense layer that an attention reads: the number of its heads}."""
    made = {node["name"]: node["op"] for node in spec["nodes"]}
    read = [name for node in spec["nodes"] for name in node["inputs"]]
    found = {}
    for node in spec["nodes"]:
        if node["op"] == "attention":
            if not hasattr(mx.sym.contrib, "interleaved_matmul_selfatt_qk"):
                raise Unsupported("MXNet {} has no operators for attention".format(mx.__version__))
            (name,) = node["inputs"]
            if made.get(name) != "dense" or read.count(name) > 1:
                raise Unsupported("in MXNet, attention reads a dense layer that nothing else reads")
            found[name] = node["heads"]
    return found


def _turned(arrays, parts):
    """Returns arrays whose first axis has these two parts and a third, with the two parts swapped."""
    return {
        name: values.reshape(parts + (-1,) + values.shape[1:]).swapaxes(0, 1).reshape(values.shape)
        for name, values in arrays.items()
    }


def _packed(node, arrays):
    """Returns one vector for each direction of a layer: both matrices as (gates x units, in), an LSTM's gates i, f, g,
    o; the bias; and a second bias of zeros.
    """
    packed = {}
    for way in _ways(node):
        parts = [arrays[way + role].ravel() for role in ("input", "recurrent", "bias")]
        packed[way + "packed"] = np.concatenate(parts + [np.zeros_like(parts[-1])])
    return packed


def _unpacked(spec, node, arrays):
    shapes = {parameter["name"]: parameter["shape"] for parameter in spec["parameters"]}
    neutral = {}
    for way in _ways(node):
        rest = arrays[way + "packed"]
        for name in (way + "input", way + "recurrent", way + "bias"):
            neutral[name], rest = np.split(rest, [int(np.prod(shapes[name]))])
    return neutral


def _ways(node):
    """Returns the prefixes of the names of a recurrent layer's arrays, one for each direction."""
    return [
        node["name"] + "/" + way for way in ("", "back_")[: 1 + node.get("bidirectional", False)]
    ]


def array_of(values, target=None):
    """Copies numpy's array into MXNet's array `target`, or a new one, by MXNet's engine, without waiting; returns it.

    `mx.nd.array` copies in the calling thread, where a large array starts OpenMP threads that stay. Together with the
    engine's, there are more of them than CPUs, and then libgomp no longer spins at its barriers, in any later step.
    """
    # Word ids beyond these are not all in a float32.
    kind = "int32" if values.dtype == np.int32 and values.max() > 2**24 else "float32"
    kind = kind if target is None else target.dtype
    own = mx.nd.from_numpy(np.array(values, dtype=kind, order="C"))
    return own.copyto(mx.context.current_context() if target is None else target)


def _library():
    return ctypes.CDLL(mx.libinfo.find_lib_path()[0])
