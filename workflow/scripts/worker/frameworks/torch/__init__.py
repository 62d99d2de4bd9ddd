"""PyTorch: `torch.nn` modules, automatic differentiation, SGD by its multi-tensor update, torch.optim for the rest."""

import shutil

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from shared import rotary, specification

from ...contract import Unsupported
from ...settings import torch as torch_settings

MODES = ("eager", "compiled")
OPTIMISERS = ("sgd", "adadelta", "rmsprop", "momentum", "adam", "adamw")
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
PRECISIONS = {"float32": {"allow_tf32": False}, "tf32": {"allow_tf32": True}, "bfloat16": {}}
TASKS = ("step", "training")
EXCHANGES = {"sync": "ranks", "async": "asynchronous", "mixed": "mixed"}
# As nn.LSTM works inside: so that it need not transpose.
LAYOUT = {"sequences": "steps first"}

# Backward through these layers does not need their own result, so the next layer may write over it.
_MAY_BE_OVERWRITTEN = (
    "dense",
    "conv",
    "batch_norm",
    "add",
    "concat",
    "conv_transpose",
    "group_norm",
    "grouped_conv",
)

# Where a parameter of the specification lives in the module, and whether PyTorch keeps it transposed.
_RECURRENT = {
    "input": ("weight_ih_l0", True),
    "recurrent": ("weight_hh_l0", True),
    "bias": ("bias_ih_l0", False),
}
_BACK = {
    "back_input": ("weight_ih_l0_reverse", True),
    "back_recurrent": ("weight_hh_l0_reverse", True),
    "back_bias": ("bias_ih_l0_reverse", False),
}
_HOMES = {
    "dense": {"weight": ("weight", True), "bias": ("bias", False)},
    "conv": {"weight": ("weight", False), "bias": ("bias", False)},
    "conv_transpose": {"weight": ("weight", False), "bias": ("bias", False)},
    "grouped_conv": {"weight": ("weight", False), "bias": ("bias", False)},
    "batch_norm": {"gamma": ("weight", False), "beta": ("bias", False)},
    "group_norm": {"gamma": ("weight", False), "beta": ("bias", False)},
    "embedding": {"weight": ("weight", False)},
    "table": {"weight": ("weight", False)},
    "positions": {"weight": ("weight", False)},
    "class_token": {"weight": ("weight", False)},
    "bias": {"bias": ("bias", False)},
    "layer_norm": {"weight": ("weight", False), "bias": ("bias", False)},
    "rms_norm": {"weight": ("weight", False)},
    "layer_scale": {"weight": ("weight", False)},
    "dense_within": {"weight": ("weight", True), "bias": ("bias", False)},
    "rbm": {"weight": ("weight", True), "visible": ("visible", False), "hidden": ("hidden", False)},
    "rnn": _RECURRENT,
    "gru": _RECURRENT,
    "lstm": _RECURRENT,
}


def versions():
    """Returns the versions of PyTorch and of the libraries with which it was built."""
    found = {"framework_version": torch.__version__}
    if hasattr(torch, "__config__"):
        lines = [line.strip(" -") for line in torch.__config__.show().splitlines()]
        found["blas"] = "; ".join(
            line for line in lines if "Math Kernel" in line or "MKL-DNN" in line
        )
        found["build"] = "; ".join(
            line for line in lines if line.startswith(("GCC", "CPU capability"))
        )
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
    return found


def build(job):
    check(job.mode, job.device)
    torch.set_num_threads(job.threads)
    # PyTorch refuses to be told a second time in one process.
    if hasattr(torch, "set_num_interop_threads") and torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    on_gpu = job.device == "gpu"
    if on_gpu:
        settings = torch_settings.configure_cuda(job.precision, PRECISIONS[job.precision])
    else:
        settings = torch_settings.configure_cpu()
    mixed = job.precision == "bfloat16"
    if mixed:
        settings.update(torch_settings.configure_bfloat16())
    torch.manual_seed(job.seed)
    network = _Network(job.spec["nodes"])
    network.load(job)
    if mixed:
        network.forward = torch_settings.in_bfloat16(network.forward)
    if job.spec["input"]["kind"] == "image" and not on_gpu and hasattr(torch, "channels_last"):
        network.to(memory_format=torch.channels_last)
        settings["memory_format"] = "channels_last"
    trainer = _Trainer(network.to("cuda" if on_gpu else "cpu"), job, settings)
    if job.mode == "compiled":
        trainer.compile()
    return trainer


class _Network(nn.Module):
    """The nodes of a specification as modules, called in their order."""

    def __init__(self, nodes):
        super().__init__()
        self.plan, self.homes = [], []
        readers = [source for node in nodes for source in node["inputs"]]
        operators = {node["name"]: node["op"] for node in nodes}
        last_reader = {source: node["name"] for node in nodes for source in node["inputs"]}
        for node in nodes:
            name, op, sources = node["name"], node["op"], node["inputs"]
            in_place = (
                operators.get(sources[0]) in _MAY_BE_OVERWRITTEN and readers.count(sources[0]) == 1
            )
            module = LAYERS[op](node, in_place)
            if operators.get(sources[0]) in ("layer_norm", "gelu"):
                module = _as_product(node, module)
            self.add_module(name, module)
            # A result is let go when its last reader has it, so that its memory is there for the next one.
            done = [source for source in set(sources) if last_reader[source] == name]
            self.plan.append((name, module, sources, done))
            homes = dict(_HOMES.get(op, {}))
            if node.get("bidirectional"):
                homes.update(_BACK)
            for role, (attribute, transposed) in sorted(homes.items()):
                if role != "bias" or node.get("bias", True):
                    self.homes.append(("{}/{}".format(name, role), module, attribute, transposed))

    def forward(self, batch):
        values = {"input": batch}
        for name, module, sources, done in self.plan:
            value = module(*[values[source] for source in sources])
            for source in done:
                del values[source]
            values[name] = value
        return value

    def load(self, job):
        samples = job.inputs.size // int(np.prod(job.spec["input"]["shape"]))
        shapes = {node["name"]: node["shape"] for node in job.spec["nodes"]}
        for name, module, attribute, transposed in self.homes:
            value = torch.from_numpy(job.take(name))
            # Numpy's memory starts 16 bytes behind a cache line, which costs up to 8 % of a step.
            value = value if value.data_ptr() % 64 == 0 else value.clone()
            value = value.t() if transposed else value
            rows = samples * int(np.prod(shapes[name.split("/")[0]][:-1]))
            # Few rows are multiplied faster by weights in memory as (out, in), as PyTorch's own are.
            few = isinstance(module, nn.Linear) and rows <= module.out_features
            value = value.contiguous() if few or torch_settings.OLD else value
            setattr(module, attribute, nn.Parameter(value))


class _Trainer:
    def __init__(self, network, job, settings):
        self.network, self._layout, self.settings = network, job.layout, settings
        self.threads = torch.get_num_threads()
        self._trained = [value for value in network.parameters() if value.requires_grad]
        self._learning_rate = job.learning_rate
        self._optimiser = _optimiser(self._trained, job.spec["optimiser"])
        loss = job.spec["loss"]
        self._distance, self._classes = LOSSES[loss], loss == "softmax_cross_entropy"
        self.inputs, self.labels = self._placed(job.inputs), self._placed_labels(job.labels)
        self._loss = self._forward
        self._end = torch.cuda.Event() if job.device == "gpu" else None
        self.parameters = sum(value.numel() for value in self._trained)
        self.frozen_parameters = (
            sum(value.numel() for value in network.parameters()) - self.parameters
        )

    def compile(self):
        """Compiles forward, loss and backward here, not in the first step: it takes tens of seconds."""
        self._loss = torch.compile(self._forward)
        self._loss(self.inputs, self.labels).backward()
        self._forget_gradients()

    def run(self, steps):
        for _ in range(steps):
            loss = self._loss(self.inputs, self.labels)
            loss.backward()
            self._update()
        self._wait()
        return loss.item()

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._learning_rate = rate
            inputs, labels = self._layout.inputs(inputs), self._layout.labels(labels)
            loss = self._loss(self._placed(inputs), self._placed_labels(labels))
            loss.backward()
            self._update()
            total, steps = total + loss.detach(), steps + 1
        self._wait()
        return total.item() / steps

    def _wait(self):
        if self._end is not None:
            # Behind all work of these steps: forward, backward and update share the one stream of this process.
            self._end.record()
            self._end.synchronize()

    def scores(self, inputs):
        self.network.eval()
        with torch.no_grad():
            found = self.network(self._placed(self._layout.inputs(inputs))).cpu().numpy()
        self.network.train()
        return found

    def weights(self, names=None):
        found = {}
        for name, module, attribute, transposed in self.network.homes:
            if names is not None and name not in names:
                continue
            value = np.array(getattr(module, attribute).detach().cpu().numpy(), order="C")
            found[name] = value.T if transposed else value
        return found

    def statistics(self):
        return {
            "{}/{}".format(name.split("/")[0], role): values.cpu().numpy()
            for name, module, *_ in self.network.homes
            if getattr(module, "running_mean", None) is not None
            for role, values in (("mean", module.running_mean), ("variance", module.running_var))
        }

    def _forward(self, inputs, labels):
        return self._distance(self.network(inputs), labels)

    def _placed(self, inputs):
        inputs = torch.from_numpy(inputs)
        inputs = inputs if inputs.is_floating_point() else inputs.long()
        if "memory_format" in self.settings:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return inputs.to(self._trained[0].device)

    def _placed_labels(self, labels):
        labels = torch.from_numpy(labels)
        labels = labels.flatten().long() if self._classes else labels
        return labels.to(self._trained[0].device)

    def _update(self):
        if self._optimiser:
            self._optimiser.param_groups[0]["lr"] = self._learning_rate
            self._optimiser.step()
        else:
            self._descend()
        self._forget_gradients()

    def _descend(self):
        """Does what torch.optim.SGD does, without the 1.4 s that making one takes: it imports the compiler."""
        gradients = [value.grad for value in self._trained]
        with torch.no_grad():
            if hasattr(torch, "_foreach_add_"):
                torch._foreach_add_(self._trained, gradients, alpha=-self._learning_rate)
            else:
                for value, gradient in zip(self._trained, gradients):
                    value.add_(gradient, alpha=-self._learning_rate)

    def _forget_gradients(self):
        for value in self._trained:
            value.grad = None


def _cross_entropy(logits, labels):
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)


def _evidence_bound(outputs, targets):
    decoded, code = outputs.split([targets.shape[1], outputs.shape[1] - targets.shape[1]], 1)
    mean, spread = code.chunk(2, 1)
    missed = functional.binary_cross_entropy_with_logits(decoded, targets, reduction="sum")
    apart = 0.5 * (mean.pow(2) + spread.exp() - spread - 1).sum()
    return (missed + apart) / outputs.numel()


LOSSES = {
    "softmax_cross_entropy": _cross_entropy,
    "mean_squares": functional.mse_loss,
    "binary_cross_entropy": functional.binary_cross_entropy_with_logits,
    "evidence_bound": _evidence_bound,
    "adversarial": functional.binary_cross_entropy_with_logits,
    "mean_output": lambda outputs, targets: outputs.mean(),
}


def _optimiser(parameters, wanted):
    """Returns PyTorch's own optimiser; None for plain SGD."""
    rate, name = wanted["learning_rate"], wanted["name"]
    if name == "adadelta":
        return torch.optim.Adadelta(parameters, lr=rate, rho=wanted["rho"], eps=wanted["epsilon"])
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=rate, alpha=wanted["rho"], eps=wanted["epsilon"])
    if name in ("momentum", "adam", "adamw"):
        return _MOVING[name](parameters, wanted)
    return None


def _momentum(parameters, wanted):
    fused = {} if torch_settings.OLD else {"fused": True}
    rate, momentum = wanted["learning_rate"], wanted["momentum"]
    return torch.optim.SGD(parameters, lr=rate, momentum=momentum, **fused)


def _adam(parameters, wanted):
    return torch.optim.Adam(parameters, **_averaging(wanted))


def _adamw(parameters, wanted):
    if "after_epochs" in wanted or "decay" in wanted:
        raise Unsupported("the adapter of PyTorch gives AdamW one learning rate, and no schedule")
    vectors = [value for value in parameters if value.dim() < 2]
    groups = [
        {"params": [value for value in parameters if value.dim() > 1]},
        {"params": vectors, "weight_decay": 0.0},
    ]
    decay = wanted["weight_decay"]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], weight_decay=decay, **_averaging(wanted)
    )


def _averaging(wanted):
    """Returns the options of Adam and AdamW: one kernel for all of an update, where there is one."""
    if not hasattr(torch.optim, "AdamW"):
        raise Unsupported(
            "PyTorch 1.0 adds the epsilon of Adam to a root that is not corrected yet"
        )
    fused = {} if torch_settings.OLD else {"fused": True}
    betas = wanted["beta1"], wanted["beta2"]
    return dict(fused, lr=wanted["learning_rate"], betas=betas, eps=wanted["epsilon"])


_MOVING = {"momentum": _momentum, "adam": _adam, "adamw": _adamw}


def _bare(kind):
    """Returns the module `kind` without its own start values: a hundred million of them would take seconds."""
    return type("Bare" + kind.__name__, (kind,), {"reset_parameters": lambda self: None})


_Linear, _Conv2d, _Embedding = _bare(nn.Linear), _bare(nn.Conv2d), _bare(nn.Embedding)


class _Dense(_Linear):
    """A dense layer. A sequence that was turned around is multiplied from the left, so that nothing is copied."""

    def forward(self, values):
        before = values.transpose(0, -1)
        if values.is_contiguous() or not before.is_contiguous():
            return super().forward(values)
        found = self.weight.mm(before.flatten(1))
        found = found if self.bias is None else found.add_(self.bias[:, None])
        return found.view(-1, *before.shape[1:]).transpose(0, -1)


class _Pointwise(_Conv2d):
    """A convolution of 1x1 as a product over the channels, where these are last in memory."""

    def forward(self, values):
        if values.is_cuda or not values.is_contiguous(memory_format=torch.channels_last):
            return super().forward(values)
        rows = functional.linear(values.permute(0, 2, 3, 1), self.weight.flatten(1), self.bias)
        return rows.permute(0, 3, 1, 2)


def _as_product(node, module):
    """Returns a node's module as a product, after a layer norm or a GELU: so ConvNeXt's authors wrote its blocks."""
    pointwise = node["op"] == "conv" and node["kernel"] == node["stride"] == 1
    if torch_settings.OLD or not pointwise or node["padding"]:
        return module
    return _Pointwise(node["in_shape"][0], node["channels"], 1, bias=node["bias"])


def _recurrent(kind, node):
    """Returns a recurrent module over (steps, batch, features); PyTorch's redundant second bias stays at zero."""

    class Recurrent(_bare(kind)):
        def forward(self, values):
            return super().forward(values)[0]

    bidirectional = node.get("bidirectional", False)
    module = Recurrent(node["in_shape"][-1], node["units"], bidirectional=bidirectional)
    for name in ("bias_hh_l0", "bias_hh_l0_reverse")[: 1 + bidirectional]:
        zeros = torch.zeros(getattr(module, name).shape)
        setattr(module, name, nn.Parameter(zeros, requires_grad=False))
    return module


_ConvTranspose2d = _bare(nn.ConvTranspose2d)


class _Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


class _Weighted(nn.Module):
    """A function of a weight and of the module's input, as a module."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, *values):
        return self._function(self.weight, *values)


class _Bias(nn.Module):
    def forward(self, values):
        return values + self.bias


def _positions(node):
    """Returns a view for each step, which addition spreads over the mini-batch: sequences have the steps first."""
    steps, each = node["shape"][0], node["each"]

    def add(weight, values):
        rows = weight[: -(-steps // each)]
        rows = rows[:, None].expand(-1, each, -1).flatten(0, 1)[:steps] if each > 1 else rows
        return values + rows[:, None]

    return _Weighted(add)


def _class_token(node):
    return _Weighted(
        lambda weight, values: torch.cat([weight.expand(1, values.shape[1], -1), values])
    )


class _StochasticDepth(nn.Module):
    def __init__(self, node):
        super().__init__()
        self._rate = node["rate"]

    def forward(self, values):
        if not (self.training and self._rate):
            return values
        # Sequences have the steps first.
        samples = 1 if values.dim() == 3 else 0
        shape = [1] * values.dim()
        shape[samples] = values.shape[samples]
        return values * functional.dropout(values.new_ones(shape), self._rate)


class _LayerNorm(nn.Module):
    """PyTorch's own function. The channels of images, which are last in memory, are features too."""

    def __init__(self, node):
        super().__init__()
        self._image, self._epsilon, self.bias = len(node["in_shape"]) == 3, node["epsilon"], None

    def forward(self, values):
        values = values.permute(0, 2, 3, 1) if self._image else values
        shape = self.weight.shape
        # In bfloat16, the weight's gradient on CPUs is off by 0.04 over 2,048 rows. On GPUs autocast gives it float32.
        values = values.float()
        values = functional.layer_norm(values, shape, self.weight, self.bias, self._epsilon)
        return values.permute(0, 3, 1, 2) if self._image else values


def _rms_norm(node):
    def norm(weight, values):
        if hasattr(functional, "rms_norm"):
            return functional.rms_norm(values, weight.shape, weight, node["epsilon"])
        squares = values.pow(2).mean(-1, keepdim=True)
        return values * torch.rsqrt(squares + node["epsilon"]) * weight

    return _Weighted(norm)


def _attention(node):
    """Returns two products and a softmax; for long sequences and on GPUs, PyTorch's fused function, if it has one."""
    heads, causal = node["heads"], bool(node.get("causal"))
    fused = getattr(functional, "scaled_dot_product_attention", None)
    if any(key in node for key in ("kv_heads", "rotary", "dropout")):
        return _Attention(node, fused)

    def attend(values):
        steps, batch, features = values.shape
        parts = values.view(steps, batch, 3, heads, -1).permute(2, 1, 3, 0, 4)
        # What is written out takes a CPU less time, but memory that grows with the square of the steps.
        if fused and (values.is_cuda or steps > 512):
            found = fused(*parts, is_causal=causal)
        else:
            q, k, v = parts.flatten(1, 2)
            added = torch.full((steps, steps), float("-inf") if causal else 0.0, device=q.device)
            shares = {"alpha": q.shape[-1] ** -0.5, "beta": int(causal)}
            scores = torch.baddbmm(added.triu(1), q, k.transpose(1, 2), **shares)
            found = torch.bmm(scores.softmax(-1), v).view(batch, heads, steps, -1)
        return found.permute(2, 0, 1, 3).reshape(steps, batch, -1)

    return _Call(attend)


class _Attention(nn.Module):
    """Attention in which queries share keys, are turned, or shares are dropped."""

    def __init__(self, node, fused):
        super().__init__()
        self._heads, self._causal = node["heads"], bool(node.get("causal"))
        self._shared, self._fused = node.get("kv_heads", self._heads), fused
        self._rate = node.get("dropout", 0.0)
        self._turns = "rotary" in node
        if self._turns:
            tables = rotary.turns(node["shape"][0], node["shape"][1] // self._heads, node["rotary"])
            for name, table in zip(("_cosine", "_sine"), tables):
                self.register_buffer(name, torch.from_numpy(table))

    def forward(self, values):
        steps, batch, _ = values.shape
        heads, shared = self._heads, self._shared
        parts = values.view(steps, batch, heads + 2 * shared, -1).permute(1, 2, 0, 3)
        q, k, v = parts.split([heads, shared, shared], 1)
        if self._turns:
            q, k = self._turned(q), self._turned(k)
        rate = self._rate if self.training else 0.0
        # On CPUs, no fused one drops: PyTorch's function is written out there too.
        if self._fused and (values.is_cuda or steps > 512 and not rate):
            own = {} if heads == shared else {"enable_gqa": True}
            own["dropout_p"] = rate
            found = self._fused(q, k, v, is_causal=self._causal, **own)
        else:
            # Queries of one key are more rows of a product: nothing is repeated.
            q = q.reshape(batch * shared, heads // shared * steps, -1)
            k, v = (part.reshape(batch * shared, steps, -1) for part in (k, v))
            masked = torch.full((steps, steps), float("-inf") if self._causal else 0.0)
            masked = masked.triu(1).repeat(heads // shared, 1).to(values.device)
            shares = {"alpha": q.shape[-1] ** -0.5, "beta": int(self._causal)}
            scores = torch.baddbmm(masked, q, k.transpose(1, 2), **shares)
            kept = functional.dropout(scores.softmax(-1), rate) if rate else scores.softmax(-1)
            found = torch.bmm(kept, v).view(batch, heads, steps, -1)
        return found.permute(2, 0, 1, 3).reshape(steps, batch, -1)

    def _turned(self, values):
        first, second = values.chunk(2, -1)
        cosine, sine = self._cosine, self._sine
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class _RBM(nn.Module):
    """Computes what one step of a chain does to the free energy, and the chances of hidden units (Hinton 2002)."""

    def forward(self, visible, noise):
        visible = visible.detach()
        scores = functional.linear(visible, self.weight, self.hidden)
        # The chain is given: its end has no gradient.
        with torch.no_grad():
            chances = scores.sigmoid()
            drawn = (2 * chances - 1 > noise).to(chances.dtype)
            end = functional.linear(drawn, self.weight.t(), self.visible).sigmoid_()
        again = functional.linear(end, self.weight, self.hidden)
        energy = (functional.softplus(again) - functional.softplus(scores)).sum(1)
        energy = energy + (end - visible).matmul(self.visible)
        return torch.cat([energy[:, None], chances], 1)


def _sampled_code(values, noise):
    mean, spread = values.chunk(2, 1)
    return mean + (0.5 * spread).exp() * noise


def _gelu_by_erf(values):
    return 0.5 * values * (1 + (values * 0.5**0.5).erf())


def _gelu_tanh(values):
    if not torch_settings.OLD:
        return functional.gelu(values, approximate="tanh")
    bent = torch.tanh((2 / np.pi) ** 0.5 * (values + 0.044715 * values.pow(3)))
    return 0.5 * values * (1 + bent)


def _shuffled(groups, values):
    """Shuffles as nn.ChannelShuffle does, which would not keep channels_last."""
    batch, channels, height, width = values.shape
    if values.is_contiguous():
        parts = values.view(batch, groups, -1, height, width).transpose(1, 2)
        return parts.reshape(values.shape)
    parts = values.permute(0, 2, 3, 1).reshape(batch, height, width, groups, -1).transpose(3, 4)
    return parts.reshape(batch, height, width, channels).permute(0, 3, 1, 2)


def _upsample(node):
    if node.get("bilinear"):
        return nn.Upsample(scale_factor=node["factor"], mode="bilinear", align_corners=False)
    return nn.Upsample(scale_factor=node["factor"])


def _conv(node, **more):
    sizes = [node[key] for key in ("channels", "kernel", "stride", "padding")]
    more = dict(more, bias=node["bias"], dilation=node.get("dilation", 1))
    return _Conv2d(node["in_shape"][0], *sizes, **more)


def _window(node):
    sides = zip(specification.pair(node["padding"]), specification.pair(node["kernel"]))
    if any(2 * edge > size for edge, size in sides):
        raise Unsupported("PyTorch pads a pooling by half of its kernel at most")
    return node["kernel"], node["stride"], node["padding"]


def _batch_norm(node):
    # Its own momentum is 0.1.
    values = {"eps": node.get("epsilon", 1e-5), "momentum": node.get("momentum", 0.1)}
    return nn.BatchNorm2d(node["in_shape"][0], **values)


def _activation(name):
    """Returns a module without values, which not every version has."""
    if not hasattr(nn, name):
        raise Unsupported("PyTorch {} has no {}".format(torch.__version__, name))
    return getattr(nn, name)()


LAYERS = {
    "dense": lambda node, _: _Dense(node["in_shape"][-1], node["units"], bias=node["bias"]),
    "conv": lambda node, _: _conv(node),
    "conv_transpose": lambda node, _: _ConvTranspose2d(
        node["in_shape"][0],
        node["channels"],
        node["kernel"],
        node["stride"],
        node["padding"],
        bias=node["bias"],
    ),
    "grouped_conv": lambda node, _: _conv(node, groups=node["groups"]),
    "max_pool": lambda node, _: nn.MaxPool2d(*_window(node), ceil_mode=node.get("up", False)),
    "avg_pool": lambda node, _: nn.AvgPool2d(*_window(node)),
    "adaptive_avg_pool": lambda node, _: nn.AdaptiveAvgPool2d(node["size"]),
    "upsample": lambda node, _: _upsample(node),
    "channel_shuffle": lambda node, _: _Call(lambda values: _shuffled(node["groups"], values)),
    "local_response_norm": lambda node, _: nn.LocalResponseNorm(
        node["size"], 1 / node["inverse_alpha"]
    ),
    "global_average_pool": lambda node, _: _Call(lambda values: values.mean((2, 3))),
    "flatten": lambda node, _: _Call(lambda values: values.flatten(1)),
    "batch_norm": lambda node, _: _batch_norm(node),
    "group_norm": lambda node, _: nn.GroupNorm(
        node["groups"], node["in_shape"][0], eps=node.get("epsilon", 1e-5)
    ),
    "relu": lambda node, in_place: nn.ReLU(inplace=in_place),
    "dropout": lambda node, _: nn.Dropout(node["rate"]),
    "sigmoid": lambda node, _: nn.Sigmoid(),
    "leaky_relu": lambda node, in_place: nn.LeakyReLU(node["slope"], in_place),
    "stochastic_depth": lambda node, _: _StochasticDepth(node),
    "relu6": lambda node, in_place: nn.ReLU6(in_place),
    "hard_swish": lambda node, _: _activation("Hardswish"),
    "hard_sigmoid": lambda node, _: _activation("Hardsigmoid"),
    "elu": lambda node, in_place: nn.ELU(inplace=in_place),
    "softplus": lambda node, _: nn.Softplus(),
    "scale_channels": lambda node, _: _Call(
        lambda values, factors: values * factors[:, :, None, None]
    ),
    "pad": lambda node, _: _Call(
        lambda values: functional.pad(values, node["columns"] + node["rows"])
    ),
    "channel_part": lambda node, _: _Call(
        lambda values: values.narrow(1, node["start"], node["size"])
    ),
    "multiply": lambda node, _: _Call(torch.mul),
    "add": lambda node, in_place: _Call(torch.Tensor.add_ if in_place else torch.add),
    "concat": lambda node, _: _Call(lambda *values: torch.cat(values, 1)),
    "embedding": lambda node, _: _Embedding(node["vocabulary"], node["units"]),
    "lstm": lambda node, _: _recurrent(nn.LSTM, node),
    "rnn": lambda node, _: _recurrent(nn.RNN, node),
    "gru": lambda node, _: _recurrent(nn.GRU, node),
    "tanh": lambda node, _: nn.Tanh(),
    "gelu": lambda node, _: _Call(getattr(functional, "gelu", _gelu_by_erf)),
    "gelu_tanh": lambda node, _: _Call(_gelu_tanh),
    "silu": lambda node, _: _Call(
        getattr(functional, "silu", lambda values: values * values.sigmoid())
    ),
    "layer_norm": lambda node, _: _LayerNorm(node),
    "rms_norm": lambda node, _: _rms_norm(node),
    "layer_scale": lambda node, _: _Weighted(
        lambda weight, values: values * (weight[:, None, None] if values.dim() == 4 else weight)
    ),
    "bias": lambda node, _: _Bias(),
    "positions": lambda node, _: _positions(node),
    "table": lambda node, _: _Weighted(lambda weight, values: weight),
    "lookup": lambda node, _: _Call(functional.embedding),
    "unembedding": lambda node, _: _Call(functional.linear),
    "attention": lambda node, _: _attention(node),
    "patches": lambda node, _: _Call(lambda values: values.flatten(2).permute(2, 0, 1)),
    "class_token": lambda node, _: _class_token(node),
    "first_step": lambda node, _: _Call(lambda values: values[0]),
    "last_step": lambda node, _: _Call(lambda values: values[-1]),
    "mean_steps": lambda node, _: _Call(lambda values: values.mean(0)),
    "transpose": lambda node, _: _Call(lambda values: values.transpose(0, 2)),
    "dense_within": lambda node, _: _Linear(node["in_shape"][-1], node["units"], bias=node["bias"]),
    "part": lambda node, _: _Call(lambda values: values.narrow(-1, node["start"], node["size"])),
    "stack": lambda node, _: _Call(lambda *values: torch.stack(values)),
    "unstack": lambda node, _: _Call(lambda values: values.transpose(0, 1).flatten(1)),
    "reversal": lambda node, _: _Call(lambda values: 2 * values.detach() - values),
    "sampled_code": lambda node, _: _Call(_sampled_code),
    "rbm": lambda node, _: _RBM(),
}


def check(mode, device):
    """Raises Unsupported for a mode or device that this PyTorch does not have."""
    if device == "gpu" and not torch.cuda.is_available():
        raise Unsupported("this PyTorch ({}) sees no CUDA device".format(torch.__version__))
    if mode == "compiled" and torch_settings.OLD:
        raise Unsupported("PyTorch {} has no torch.compile".format(torch.__version__))
    if (
        mode == "compiled"
        and device == "cpu"
        and not (shutil.which("g++") or shutil.which("clang++"))
    ):
        raise Unsupported(
            "torch.compile needs a C++ compiler, and there is neither g++ nor clang++ on PATH"
        )
