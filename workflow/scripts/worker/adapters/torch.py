"""PyTorch: `torch.nn` modules, automatic differentiation, SGD by its multi-tensor update, torch.optim for the rest.

What was chosen here, and by which measured ratios: docs/adapters/torch.md.
"""

import shutil

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .. import torch_settings
from ..contract import Unsupported

MODES = ("eager", "compiled")
OPTIMISERS = ("sgd", "adadelta", "rmsprop")
DEVICES = ("cpu", "gpu")
TASKS = ("step", "training")
# As nn.LSTM works inside: so that it need not transpose.
LAYOUT = {"sequences": "steps first"}

# Backward through these layers does not need their own result, so the next layer may write over it.
_MAY_BE_OVERWRITTEN = ("dense", "conv", "batch_norm", "add")

# Where a parameter of the specification lives in the module, and whether PyTorch keeps it transposed.
_HOMES = {
    "dense": {"weight": ("weight", True), "bias": ("bias", False)},
    "conv": {"weight": ("weight", False), "bias": ("bias", False)},
    "batch_norm": {"gamma": ("weight", False), "beta": ("bias", False)},
    "embedding": {"weight": ("weight", False)},
    "lstm": {
        "input": ("weight_ih_l0", True),
        "recurrent": ("weight_hh_l0", True),
        "bias": ("bias_ih_l0", False),
    },
}


def versions():
    """Versions of PyTorch and of the libraries that it was built with."""
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
    """A trainer of the specification, with the batch and the start values in the memory of the device."""
    _check(job.mode, job.device)
    torch.set_num_threads(job.threads)
    # PyTorch refuses to be told a second time in one process.
    if hasattr(torch, "set_num_interop_threads") and torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    on_gpu = job.device == "gpu"
    settings = torch_settings.configure_cuda() if on_gpu else torch_settings.configure_cpu()

    torch.manual_seed(job.seed)
    network = _Network(job.spec["nodes"])
    network.load(job)
    if job.spec["input"]["kind"] == "image" and not on_gpu and hasattr(torch, "channels_last"):
        network.to(memory_format=torch.channels_last)
        settings["memory_format"] = "channels_last"
    trainer = _Trainer(network.to(torch.device("cuda" if on_gpu else "cpu")), job, settings)
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
            self.add_module(name, module)
            # A result is let go when its last reader has it, so that its memory is there for the next one.
            done = [source for source in set(sources) if last_reader[source] == name]
            self.plan.append((name, module, sources, done))
            for role, (attribute, transposed) in sorted(_HOMES.get(op, {}).items()):
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
        for name, module, attribute, transposed in self.homes:
            value = torch.from_numpy(job.take(name))
            # Numpy's memory starts 16 bytes behind a cache line, which costs up to 8 % of a step.
            value = value if value.data_ptr() % 64 == 0 else value.clone()
            value = value.t() if transposed else value
            # An update of weights that lie otherwise than their gradients costs more than the product gains.
            setattr(
                module, attribute, nn.Parameter(value.contiguous() if torch_settings.OLD else value)
            )


class _Trainer:
    def __init__(self, network, job, settings):
        self.network, self._layout, self.settings = network, job.layout, settings
        self.threads = torch.get_num_threads()
        self._trained = [value for value in network.parameters() if value.requires_grad]
        self._learning_rate = job.learning_rate
        self._optimiser = _optimiser(self._trained, job.spec["optimiser"])
        self.inputs, self.labels = self._placed(job.inputs), self._placed_labels(job.labels)
        self._loss = self._forward
        self._end = torch.cuda.Event() if self.inputs.is_cuda else None
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
            value = getattr(module, attribute).detach().cpu().numpy()
            found[name] = np.array(value.T if transposed else value, order="C")
        return found

    def _forward(self, inputs, labels):
        logits = self.network(inputs)
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)

    def _placed(self, inputs):
        inputs = torch.from_numpy(inputs)
        inputs = inputs if inputs.is_floating_point() else inputs.long()
        if "memory_format" in self.settings:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return inputs.to(self._trained[0].device)

    def _placed_labels(self, labels):
        return torch.from_numpy(labels.flatten()).long().to(self._trained[0].device)

    def _update(self):
        if self._optimiser:
            self._optimiser.param_groups[0]["lr"] = self._learning_rate
            self._optimiser.step()
        else:
            self._descend()
        self._forget_gradients()

    def _descend(self):
        """What torch.optim.SGD does, without the 1.4 s that making one takes: it imports the compiler."""
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


def _optimiser(parameters, wanted):
    """PyTorch's own optimiser; None for plain SGD."""
    rate, name = wanted["learning_rate"], wanted["name"]
    if name == "adadelta":
        return torch.optim.Adadelta(parameters, lr=rate, rho=wanted["rho"], eps=wanted["epsilon"])
    if name == "rmsprop":
        return torch.optim.RMSprop(parameters, lr=rate, alpha=wanted["rho"], eps=wanted["epsilon"])
    return None


def _bare(kind):
    """The module `kind` without its own start values: a hundred million of them would take seconds."""
    return type("Bare" + kind.__name__, (kind,), {"reset_parameters": lambda self: None})


_Linear, _Conv2d, _Embedding = _bare(nn.Linear), _bare(nn.Conv2d), _bare(nn.Embedding)


class _LSTM(_bare(nn.LSTM)):
    """An LSTM layer over (steps, batch, features); PyTorch's redundant second bias is kept at zero."""

    def __init__(self, features, units):
        super().__init__(features, units)
        self.bias_hh_l0 = nn.Parameter(torch.zeros(4 * units), requires_grad=False)

    def forward(self, values):
        return super().forward(values)[0]


class _Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


LAYERS = {
    "dense": lambda node, _: _Linear(node["in_shape"][-1], node["units"], bias=node["bias"]),
    "conv": lambda node, _: _Conv2d(
        *[node["in_shape"][0], node["channels"], node["kernel"], node["stride"], node["padding"]],
        bias=node["bias"],
    ),
    "max_pool": lambda node, _: nn.MaxPool2d(node["kernel"], node["stride"], node["padding"]),
    "global_average_pool": lambda node, _: _Call(lambda values: values.mean((2, 3))),
    "flatten": lambda node, _: _Call(lambda values: values.flatten(1)),
    "batch_norm": lambda node, _: nn.BatchNorm2d(node["in_shape"][0], eps=1e-5),
    "relu": lambda node, in_place: nn.ReLU(inplace=in_place),
    "dropout": lambda node, _: nn.Dropout(node["rate"]),
    "sigmoid": lambda node, _: nn.Sigmoid(),
    "add": lambda node, in_place: _Call(torch.Tensor.add_ if in_place else torch.add),
    "embedding": lambda node, _: _Embedding(node["vocabulary"], node["units"]),
    "lstm": lambda node, _: _LSTM(node["in_shape"][-1], node["units"]),
}


def _check(mode, device):
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
