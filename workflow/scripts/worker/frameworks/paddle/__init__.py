"""PaddlePaddle 2 and later: `paddle.nn` layers run as they are called (dynamic graph), with its own optimisers."""

import os

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from shared import rotary, specification

from ... import rounding
from ...contract import Unsupported

MODES = ("eager",)
TASKS = ("step", "training")
# As its recurrent layers work inside.
LAYOUT = {
    "sequences": "steps first",
    "lstm": "units first",
    "rnn": "units first",
    "gru": "units first",
}
KERNELS = "mkl"
OPTIONS = {
    "conv": ("sides", "dilation"),
    "grouped_conv": ("sides", "dilation"),
    "max_pool": ("sides", "up"),
    "avg_pool": ("sides",),
    "upsample": ("bilinear",),
    "batch_norm": ("epsilon", "momentum"),
    "group_norm": ("epsilon",),
    "attention": ("kv_heads", "rotary", "dropout"),
    "lstm": ("bidirectional",),
    "gru": ("bidirectional",),
    "rnn": ("bidirectional",),
}
DEVICES = ("cpu", "gpu")
PRECISIONS = {"float32": {"tf32": False}, "tf32": {"tf32": True}}
REASONS = {
    "bfloat16": "PaddlePaddle's auto_cast is for GPUs: on a CPU it computes in float32, and warns"
}

# Where a parameter of the specification lives in the layer.
_WEIGHTED = {"weight": "weight", "bias": "bias"}
_RECURRENT = {"input": "weight_ih_l0", "recurrent": "weight_hh_l0", "bias": "bias_ih_l0"}
_RECURRENT.update({"back_" + role: name + "_reverse" for role, name in _RECURRENT.items()})
_HOMES = {
    "batch_norm": {"gamma": "weight", "beta": "bias"},
    "group_norm": {"gamma": "weight", "beta": "bias"},
    "bias": {"bias": "weight"},
    "rbm": {"weight": "weight", "visible": "visible", "hidden": "hidden"},
    "lstm": _RECURRENT,
    "rnn": _RECURRENT,
    "gru": _RECURRENT,
}


def versions():
    """Returns the versions of Paddle and of its math libraries."""
    return {"framework_version": paddle.__version__}


def build(job):
    settings = _configure_gpu(job.precision) if job.device == "gpu" else _configure_cpu()
    paddle.seed(job.seed)
    return _Trainer(_Network(job), job, settings)


def _configure_cpu():
    paddle.set_device("cpu")
    return {}


def _configure_gpu(precision):
    """Sets how products are rounded. Without a GPU, Paddle itself ends the process."""
    if not paddle.device.cuda.device_count():
        raise Unsupported("PaddlePaddle {} finds no GPU".format(paddle.__version__))
    rounded = PRECISIONS[precision]["tf32"]
    paddle.base.core.set_cublas_switch(rounded)
    paddle.base.core.set_cudnn_switch(rounded)
    paddle.set_device("gpu:0")
    rounding.require(
        precision,
        lambda left, right: paddle.matmul(paddle.to_tensor(left), paddle.to_tensor(right)).numpy(),
    )
    return {"tf32": "on" if rounded else "off"}


class _Network(nn.Layer):
    """The nodes of a specification as layers, called in their order."""

    def __init__(self, job):
        super().__init__()
        self.plan, self.homes = [], {}
        # Their own start values would be random; a hundred million of those take seconds.
        nn.initializer.set_global_initializer(
            nn.initializer.Constant(0.0), nn.initializer.Constant(0.0)
        )
        for node in job.spec["nodes"]:
            layer = LAYERS[node["op"]](node)
            if isinstance(layer, nn.Layer):
                self.add_sublayer(node["name"], layer)
            self.plan.append((node["name"], layer, node["inputs"]))
            for role, name in sorted(job.own(node).items()):
                self.homes[name] = getattr(layer, _HOMES.get(node["op"], _WEIGHTED)[role])
                self.homes[name].set_value(np.ascontiguousarray(job.take(name)))

    def forward(self, batch):
        values = {"input": batch}
        for name, layer, sources in self.plan:
            values[name] = layer(*[values[source] for source in sources])
        return values[name]


class _Trainer(object):
    def __init__(self, network, job, settings):
        self.network, self._layout, self.settings = network, job.layout, settings
        self._on_gpu = job.device == "gpu"
        loss = job.spec["loss"]
        self._loss, self._place = LOSSES[loss], _PLACES.get(loss, paddle.to_tensor)
        self._inputs, self._labels = paddle.to_tensor(job.inputs), self._place(job.labels)
        # Paddle does not tell; this is where it reads it from.
        self.threads = int(os.environ["OMP_NUM_THREADS"])
        trained = list(network.homes.values())
        wanted = job.spec["optimiser"]
        self._optimiser = OPTIMISERS[wanted["name"]](wanted, trained)
        self.parameters = sum(value.size for value in trained)
        # Statistics of batch normalisation are parameters too there, but have no gradient.
        self._learnt = [value for value in network.parameters() if not value.stop_gradient]
        self.frozen_parameters = sum(value.size for value in self._learnt) - self.parameters

    def run(self, steps):
        for _ in range(steps):
            loss = self._step(self._inputs, self._labels)
        self._wait()
        return float(loss)

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._optimiser.set_lr(rate)
            inputs, labels = self._layout.inputs(inputs), self._layout.labels(labels)
            loss = self._step(paddle.to_tensor(inputs), self._place(labels))
            total, steps = total + float(loss), steps + 1
        self._wait()
        return total / steps

    def _wait(self):
        # On a CPU a step returns when its updates are done; on a GPU, when they are queued.
        if self._on_gpu:
            paddle.device.cuda.synchronize()

    def scores(self, inputs):
        self.network.eval()
        with paddle.no_grad():
            found = self.network(paddle.to_tensor(self._layout.inputs(inputs))).numpy()
        self.network.train()
        return found

    def _step(self, inputs, labels):
        """Takes a step, and returns its loss."""
        loss = self._loss(self.network(inputs), labels)
        loss.backward()
        self._optimiser.step()
        # As Layer.clear_gradients does it, which has no such choice in 2.6.
        for value in self._learnt:
            value.clear_gradient(False)
        return loss

    def weights(self, names=None):
        homes = self.network.homes
        return {
            name: np.array(self._layout.leave(name, homes[name].numpy()))
            for name in (homes if names is None else names)
        }

    def statistics(self):
        return {
            "{}/{}".format(name, role): values.numpy()
            for name, layer, _ in self.network.plan
            if isinstance(layer, nn.BatchNorm2D)
            for role, values in (("mean", layer._mean), ("variance", layer._variance))
        }


def _cross_entropy(logits, labels):
    return functional.cross_entropy(logits.reshape([-1, logits.shape[-1]]), labels)


def _evidence_bound(outputs, targets):
    decoded, code = targets.shape[1], (outputs.shape[1] - targets.shape[1]) // 2
    decoded, mean, spread = outputs.split([decoded, code, code], 1)
    missed = functional.binary_cross_entropy_with_logits(decoded, targets, reduction="sum")
    apart = 0.5 * (mean.square() + spread.exp() - spread - 1).sum()
    return (missed + apart) / outputs.size


LOSSES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": functional.mse_loss,
    "binary_cross_entropy": functional.binary_cross_entropy_with_logits,
    "evidence_bound": _evidence_bound,
    "adversarial": functional.binary_cross_entropy_with_logits,
    "mean_output": lambda outputs, targets: outputs.mean(),
}
# Labels that are classes, and not targets.
_PLACES = {
    "softmax_cross_entropy": lambda labels: paddle.to_tensor(labels.flatten().astype(np.int64))
}


def _adadelta(wanted, trained):
    rate, rho, epsilon = (wanted[name] for name in ("learning_rate", "rho", "epsilon"))
    return paddle.optimizer.Adadelta(rate, epsilon, rho, parameters=trained)


def _momentum(wanted, trained):
    rate, momentum = wanted["learning_rate"], wanted["momentum"]
    return paddle.optimizer.Momentum(rate, momentum, parameters=trained)


def _adam(wanted, trained):
    return paddle.optimizer.Adam(parameters=trained, **_averaging(wanted))


def _adamw(wanted, trained):
    matrices = {value.name for value in trained if len(value.shape) > 1}
    return paddle.optimizer.AdamW(
        parameters=trained,
        weight_decay=wanted["weight_decay"],
        apply_decay_param_fun=matrices.__contains__,
        **_averaging(wanted),
    )


def _averaging(wanted):
    return {name: wanted[name] for name in ("learning_rate", "beta1", "beta2", "epsilon")}


class _RMSProp(object):
    """Paddle's own with the epsilon outside of the root."""

    def __init__(self, wanted, trained):
        self._rho, self._epsilon, self._trained = wanted["rho"], wanted["epsilon"], trained
        self._averages = [paddle.zeros_like(value) for value in trained]
        self.set_lr(wanted["learning_rate"])

    def set_lr(self, rate):
        self._rate = rate

    @paddle.no_grad()
    def step(self):
        for value, average in zip(self._trained, self._averages):
            average.scale_(self._rho).add_((1 - self._rho) * value.grad.square())
            value.subtract_(value.grad * self._rate / (average.sqrt() + self._epsilon))


OPTIMISERS = {
    "sgd": lambda wanted, trained: paddle.optimizer.SGD(
        wanted["learning_rate"], parameters=trained
    ),
    "adadelta": _adadelta,
    "rmsprop": _RMSProp,
    "momentum": _momentum,
    "adam": _adam,
    "adamw": _adamw,
}


def _recurrent(kind):
    """Returns what makes a recurrent layer of a node, over (steps, batch, features).

    Its redundant second bias stays at zero, since no optimiser has it; but Paddle's kernel needs its gradient.
    """

    def make(node):
        way = "bidirect" if node.get("bidirectional") else "forward"
        return Recurrent(node["in_shape"][-1], node["units"], direction=way, time_major=True)

    class Recurrent(kind):
        def forward(self, values):
            return super().forward(values)[0]

    return make


class _Weighted(nn.Layer):
    """A function of a weight of this shape and of the layer's input, as a layer."""

    def __init__(self, shape, function):
        super().__init__()
        self.weight, self._function = self.create_parameter(shape), function

    def forward(self, *values):
        return self._function(self.weight, *values)


class _LayerNorm(nn.Layer):
    """Paddle's own function, over the channels of images too."""

    def __init__(self, node):
        super().__init__()
        self._image, self._epsilon = len(node["shape"]) == 3, node["epsilon"]
        self._features = [node["shape"][0 if self._image else -1]]
        self.weight = self.create_parameter(self._features)
        self.bias = self.create_parameter(self._features, is_bias=True) if node["bias"] else None

    def forward(self, values):
        values = values.transpose([0, 2, 3, 1]) if self._image else values
        own = self.weight, self.bias, self._epsilon
        values = functional.layer_norm(values, self._features, *own)
        return values.transpose([0, 3, 1, 2]) if self._image else values


def _rms_norm(node):
    def norm(weight, values):
        squares = values.square().mean(-1, keepdim=True)
        return values * paddle.rsqrt(squares + node["epsilon"]) * weight

    return _Weighted(node["shape"][-1:], norm)


def _layer_scale(node):
    image = len(node["shape"]) == 3

    def scale(weight, values):
        return values * (weight.reshape([-1, 1, 1]) if image else weight)

    return _Weighted([node["shape"][0 if image else -1]], scale)


def _positions(node):
    steps, each = node["shape"][0], node["each"]

    def add(weight, values):
        rows = weight[: -(-steps // each)]
        rows = rows.repeat_interleave(each, 0)[:steps] if each > 1 else rows
        return values + rows.unsqueeze(1)

    return _Weighted([node["rows"], node["shape"][-1]], add)


def _class_token(node):
    def put(weight, values):
        return paddle.concat([weight.expand([1, values.shape[1], -1]), values])

    return _Weighted(node["shape"][-1:], put)


class _Attention(nn.Layer):
    """Paddle's own function; in version 2, it is only causal on GPUs."""

    def __init__(self, node):
        super().__init__()
        self._node, self._causal = node, bool(node.get("causal"))
        is_old = paddle.__version__.startswith("2.")
        if self._causal and is_old and not paddle.is_compiled_with_cuda():
            raise Unsupported("PaddlePaddle 2 has causal attention on GPUs alone")

    def forward(self, values):
        node, batch = self._node, values.shape[1]
        (steps, units), heads = node["shape"], node["heads"]
        shared = node.get("kv_heads", heads)
        values = values.reshape([steps, batch, heads + 2 * shared, units // heads])
        # Each (batch, steps, heads, size), as Paddle's own function wants them.
        q, k, v = values.transpose([1, 0, 2, 3]).split([heads, shared, shared], 2)
        if "rotary" in node:
            q, k = _turned(node, q), _turned(node, k)
        if shared < heads:
            k, v = (each.repeat_interleave(heads // shared, 2) for each in (k, v))
        own = {"dropout_p": node.get("dropout", 0.0), "training": self.training}
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=self._causal, **own)
        return found.transpose([1, 0, 2, 3]).reshape([steps, batch, -1])


def _turned(node, values):
    steps, size = values.shape[1], values.shape[3]
    cosine, sine = (
        paddle.to_tensor(each[:, None]) for each in rotary.turns(steps, size, node["rotary"])
    )
    first, second = values.chunk(2, -1)
    return paddle.concat([first * cosine - second * sine, second * cosine + first * sine], -1)


def _batch_norm(node):
    # Its momentum is what it keeps of what was there before.
    kept = {"momentum": 1 - node["momentum"]} if "momentum" in node else {}
    epsilon = node.get("epsilon", specification.BATCH_NORM_EPSILON)
    return nn.BatchNorm2D(node["in_shape"][0], epsilon=epsilon, **kept)


class _StochasticDepth(nn.Layer):
    """What Paddle's dropout along an axis should do: in version 3.3, it drops single values."""

    def __init__(self, node):
        super().__init__()
        self._rate = node["rate"]

    def forward(self, values):
        # Sequences have the steps first.
        shape = [1] * values.ndim
        samples = int(values.ndim == 3)
        shape[samples] = values.shape[samples]
        return values * functional.dropout(paddle.ones(shape), self._rate, training=self.training)


class _RBM(nn.Layer):
    def __init__(self, node):
        super().__init__()
        (visible,), hidden = node["in_shape"], node["units"]
        self.weight = self.create_parameter([visible, hidden])
        self.visible, self.hidden = (self.create_parameter([size]) for size in (visible, hidden))

    def forward(self, visible, noise):
        visible = visible.detach()
        scores = functional.linear(visible, self.weight, self.hidden)
        with paddle.no_grad():
            chances = functional.sigmoid(scores)
            drawn = (2 * chances - 1 > noise).astype(chances.dtype)
            end = paddle.matmul(drawn, self.weight, transpose_y=True) + self.visible
            end = functional.sigmoid(end)
        again = functional.linear(end, self.weight, self.hidden)
        energy = (functional.softplus(again) - functional.softplus(scores)).sum(1)
        energy = energy + paddle.matmul(end - visible, self.visible)
        return paddle.concat([energy.unsqueeze(1), chances], 1)


def _part(node):
    end = node["start"] + node["size"]
    return lambda values: values[..., node["start"] : end]


def _sampled_code(values, noise):
    mean, spread = values.chunk(2, 1)
    return mean + (0.5 * spread).exp() * noise


def _dense(node):
    return nn.Linear(node["in_shape"][-1], node["units"], bias_attr=None if node["bias"] else False)


def _convolution(kind, node, **more):
    if "dilation" in node:
        more["dilation"] = node["dilation"]
    sizes = [node[extent] for extent in ("channels", "kernel", "stride", "padding")]
    return kind(node["in_shape"][0], *sizes, bias_attr=None if node["bias"] else False, **more)


LAYERS = {
    "dense": _dense,
    "dense_within": _dense,
    "conv": lambda node: _convolution(nn.Conv2D, node),
    "conv_transpose": lambda node: _convolution(nn.Conv2DTranspose, node),
    "grouped_conv": lambda node: _convolution(nn.Conv2D, node, groups=node["groups"]),
    "avg_pool": lambda node: nn.AvgPool2D(
        node["kernel"], node["stride"], node["padding"], exclusive=False
    ),
    "adaptive_avg_pool": lambda node: nn.AdaptiveAvgPool2D(node["size"]),
    "upsample": lambda node: nn.Upsample(
        scale_factor=node["factor"], mode="bilinear" if node.get("bilinear") else "nearest"
    ),
    "channel_shuffle": lambda node: nn.ChannelShuffle(node["groups"]),
    "local_response_norm": lambda node: nn.LocalResponseNorm(
        node["size"], 1 / node["inverse_alpha"]
    ),
    "group_norm": lambda node: nn.GroupNorm(
        node["groups"],
        node["in_shape"][0],
        epsilon=node.get("epsilon", specification.BATCH_NORM_EPSILON),
    ),
    "concat": lambda node: lambda *values: paddle.concat(values, 1),
    "max_pool": lambda node: nn.MaxPool2D(
        node["kernel"], node["stride"], node["padding"], ceil_mode=node.get("up", False)
    ),
    "global_average_pool": lambda node: lambda values: values.mean([2, 3]),
    "flatten": lambda node: nn.Flatten(),
    "batch_norm": _batch_norm,
    "relu": lambda node: nn.ReLU(),
    "dropout": lambda node: nn.Dropout(node["rate"]),
    "sigmoid": lambda node: nn.Sigmoid(),
    "add": lambda node: paddle.add,
    "embedding": lambda node: nn.Embedding(node["vocabulary"], node["units"]),
    "lstm": _recurrent(nn.LSTM),
    "rnn": _recurrent(nn.SimpleRNN),
    "gru": _recurrent(nn.GRU),
    "tanh": lambda node: nn.Tanh(),
    "gelu": lambda node: nn.GELU(),
    "gelu_tanh": lambda node: nn.GELU(approximate=True),
    "silu": lambda node: nn.Silu(),
    "layer_norm": lambda node: _LayerNorm(node),
    "rms_norm": _rms_norm,
    "layer_scale": _layer_scale,
    "bias": lambda node: _Weighted(node["shape"][-1:], lambda weight, values: values + weight),
    "positions": _positions,
    "table": lambda node: _Weighted(node["shape"], lambda weight, values: weight),
    "lookup": lambda node: functional.embedding,
    "unembedding": lambda node: (
        lambda values, table: paddle.matmul(values, table, transpose_y=True)
    ),
    "attention": lambda node: _Attention(node),
    "patches": lambda node: lambda values: values.flatten(2).transpose([2, 0, 1]),
    "class_token": _class_token,
    "first_step": lambda node: lambda values: values[0],
    "last_step": lambda node: lambda values: values[-1],
    "leaky_relu": lambda node: nn.LeakyReLU(node["slope"]),
    "stochastic_depth": lambda node: _StochasticDepth(node),
    "relu6": lambda node: nn.ReLU6(),
    "hard_swish": lambda node: nn.Hardswish(),
    # Its own slope is 0.1666667.
    "hard_sigmoid": lambda node: lambda values: functional.relu6(values + 3) / 6,
    "elu": lambda node: nn.ELU(),
    "softplus": lambda node: nn.Softplus(),
    "scale_channels": lambda node: lambda values, factors: values * factors.unsqueeze([2, 3]),
    "pad": lambda node: lambda values: functional.pad(values, node["columns"] + node["rows"]),
    "channel_part": lambda node: (
        lambda values: values[:, node["start"] : node["start"] + node["size"]]
    ),
    "multiply": lambda node: paddle.multiply,
    "mean_steps": lambda node: lambda values: values.mean(0),
    "transpose": lambda node: lambda values: values.transpose([2, 1, 0]),
    "part": _part,
    "stack": lambda node: lambda *values: paddle.stack(values),
    "unstack": lambda node: lambda values: values.transpose([1, 0, 2]).flatten(1),
    "reversal": lambda node: lambda values: 2 * values.detach() - values,
    "sampled_code": lambda node: _sampled_code,
    "rbm": _RBM,
}
