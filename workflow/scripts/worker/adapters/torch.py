"""PyTorch: `torch.nn` modules, automatic differentiation and SGD by PyTorch's own multi-tensor update.

What was chosen here, and by which measured ratios: docs/adapters/torch.md.
"""

import shutil

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from . import Unsupported

MODES = ("eager", "compiled")

# The gradients of these layers do not need the layer's own result, so the next layer may write over it.
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
        libraries = ("Intel(R) oneAPI Math Kernel", "Intel(R) Math Kernel", "Intel(R) MKL-DNN", "OpenMP")
        found["blas"] = "; ".join(line.split(" Product Build")[0] for line in lines if line.startswith(libraries))
        found["build"] = "; ".join(line for line in lines if line.startswith(("GCC", "CPU capability")))
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["cudnn"] = str(torch.backends.cudnn.version())
    return found


def build(spec, weights, inputs, labels, mode, threads, device):
    """A trainer of the specification, with the batch and the start values in the memory of `device`."""
    _check(mode, device)
    torch.set_num_threads(threads)
    # PyTorch refuses to be told a second time in one process.
    if hasattr(torch, "set_num_interop_threads") and torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    place = torch.device("cuda" if device == "gpu" else "cpu")
    settings = _configure_cuda() if device == "gpu" else _configure_cpu()
    settings["update"] = "foreach" if hasattr(torch, "_foreach_add_") else "for-loop"

    network = _Network(spec["nodes"])
    _load(network, spec["nodes"], weights)
    network.to(place)
    batch = _place_inputs(spec["input"]["kind"], inputs).to(place)
    answers = torch.from_numpy(np.ascontiguousarray(labels.T).reshape(-1)).long().to(place)
    if spec["input"]["kind"] == "image" and device == "cpu" and hasattr(torch, "channels_last"):
        network.to(memory_format=torch.channels_last)
        batch = batch.contiguous(memory_format=torch.channels_last)
        settings["memory_format"] = "channels_last"
    trainer = _Trainer(network, spec, batch, answers, settings)
    if mode == "compiled":
        trainer.compile()
    return trainer


class _Network(nn.Module):
    """The nodes of a specification as modules, called in their order."""

    def __init__(self, nodes):
        super().__init__()
        readers = [source for node in nodes for source in node["inputs"]]
        operators = {node["name"]: node["op"] for node in nodes}
        last_reader = {source: node["name"] for node in nodes for source in node["inputs"]}
        self.plan = []
        for node in nodes:
            if node["op"] not in _MODULES:
                raise Unsupported("the PyTorch adapter has no layer '{}'".format(node["op"]))
            first = node["inputs"][0]
            in_place = operators.get(first) in _MAY_BE_OVERWRITTEN and readers.count(first) == 1
            module = _MODULES[node["op"]](node, in_place)
            self.add_module(node["name"], module)
            # A result is let go when its last reader has it, so that its memory is there for the next one.
            done = [source for source in set(node["inputs"]) if last_reader[source] == node["name"]]
            self.plan.append((node["name"], module, node["inputs"], done))

    def forward(self, batch):
        values = {"input": batch}
        for name, module, sources, done in self.plan:
            value = module(*[values[source] for source in sources])
            for source in done:
                del values[source]
            values[name] = value
        return value


class _Trainer:
    def __init__(self, network, spec, inputs, labels, settings):
        self.network = network
        self.inputs, self.labels = inputs, labels
        self.settings = settings
        self.threads = torch.get_num_threads()
        self._nodes = spec["nodes"]
        self._step_size = -spec["optimiser"]["learning_rate"]
        self._trained = [value for value in network.parameters() if value.requires_grad]
        self._loss = self._forward
        self.parameters = sum(value.numel() for value in self._trained)
        self.frozen_parameters = sum(value.numel() for value in network.parameters()) - self.parameters

    def compile(self):
        """Compiles forward, loss and backward, here and not in the first step: it takes tens of seconds."""
        self._loss = torch.compile(self._forward)
        self._loss(self.inputs, self.labels).backward()
        self._forget_gradients()
        self.settings["compiler"] = "torch.compile, inductor"

    def run(self, steps):
        for _ in range(steps):
            loss = self._loss(self.inputs, self.labels)
            loss.backward()
            self._update()
        if self.inputs.is_cuda:
            torch.cuda.synchronize()
        return loss.item()

    def weights(self):
        found = {}
        for node in self._nodes:
            for role, (attribute, transposed) in _homes(node):
                value = getattr(getattr(self.network, node["name"]), attribute).detach().cpu().numpy()
                found["{}/{}".format(node["name"], role)] = np.array(value.T if transposed else value, order="C")
        return found

    def _forward(self, inputs, labels):
        logits = self.network(inputs)
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)

    def _update(self):
        """What torch.optim.SGD does, without the 1.4 s that making one takes: it imports the compiler."""
        gradients = [value.grad for value in self._trained]
        with torch.no_grad():
            if self.settings["update"] == "foreach":
                torch._foreach_add_(self._trained, gradients, alpha=self._step_size)
            else:
                for value, gradient in zip(self._trained, gradients):
                    value.add_(gradient, alpha=self._step_size)
        self._forget_gradients()

    def _forget_gradients(self):
        for value in self._trained:
            value.grad = None


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


def _conv(node):
    sizes = (node["in_shape"][0], node["channels"], node["kernel"], node["stride"], node["padding"])
    return _Conv2d(*sizes, bias=node["bias"])


_MODULES = {
    "dense": lambda node, _: _Linear(node["in_shape"][-1], node["units"], bias=node["bias"]),
    "conv": lambda node, _: _conv(node),
    "max_pool": lambda node, _: nn.MaxPool2d(node["kernel"], node["stride"], node["padding"]),
    "global_average_pool": lambda node, _: _Call(lambda values: values.mean((2, 3))),
    "flatten": lambda node, _: _Call(lambda values: values.flatten(1)),
    "batch_norm": lambda node, _: nn.BatchNorm2d(node["in_shape"][0], eps=1e-5),
    "relu": lambda node, in_place: nn.ReLU(inplace=in_place),
    "sigmoid": lambda node, _: nn.Sigmoid(),
    "add": lambda node, in_place: _Call(torch.Tensor.add_ if in_place else torch.add),
    "embedding": lambda node, _: _Embedding(node["vocabulary"], node["units"]),
    "lstm": lambda node, _: _LSTM(node["in_shape"][-1], node["units"]),
}


def _check(mode, device):
    if device == "gpu" and not torch.cuda.is_available():
        raise Unsupported(f"this PyTorch ({torch.__version__}) sees no CUDA device")
    if mode == "compiled" and not hasattr(torch, "compile"):
        raise Unsupported(f"PyTorch {torch.__version__} has no torch.compile")
    if mode == "compiled" and device == "cpu" and not (shutil.which("g++") or shutil.which("clang++")):
        raise Unsupported("torch.compile needs a C++ compiler on the processor, and there is no g++ or clang++")


def _configure_cpu():
    """Gives matrix products to oneDNN where that keeps them in float32.

    PyTorch's own choice, MKL, leaves half the speed of a processor with AVX-512 that is not Intel's. PyTorch lets
    oneDNN in only with leave to round to bfloat16, of which oneDNN makes use only where there is AMX; so the last bit
    is tried.
    """
    matmul = getattr(torch.backends.mkldnn, "matmul", None)
    if not hasattr(matmul, "fp32_precision"):
        return {"matmul": "PyTorch's choice"}
    matmul.fp32_precision = "bf16"
    probe = torch.full((64, 256), 1 + 2.0**-23)
    if torch.equal(torch.mm(probe, torch.eye(256)), probe):
        return {"matmul": "oneDNN, in float32"}
    matmul.fp32_precision = "ieee"
    return {"matmul": "PyTorch's choice"}


def _configure_cuda():
    """Lets cuDNN time its algorithms, and keeps products in float32: TF32 rounds them to 10 bits."""
    torch.backends.cudnn.benchmark = True
    for library in (torch.backends.cudnn, getattr(torch.backends.cuda, "matmul", None)):
        if hasattr(library, "allow_tf32"):
            library.allow_tf32 = False
    return {"cudnn_benchmark": "on", "tf32": "off"}


def _homes(node):
    roles = _HOMES.get(node["op"], {})
    return [(role, home) for role, home in sorted(roles.items()) if role != "bias" or node.get("bias", True)]


def _load(network, nodes, weights):
    for node in nodes:
        module = getattr(network, node["name"])
        for role, (attribute, transposed) in _homes(node):
            value = _align(torch.from_numpy(weights.pop("{}/{}".format(node["name"], role))))
            setattr(module, attribute, nn.Parameter(value.t() if transposed else value))


def _align(value):
    """The tensor in memory that starts at a cache line; numpy's starts 16 bytes behind, which costs 8 % of a step."""
    return value if value.data_ptr() % 64 == 0 else value.clone()


def _place_inputs(kind, inputs):
    """Tokens as the integers that an embedding wants, and sequences with their steps first, as in nn.LSTM."""
    if kind in ("tokens", "one_hot"):
        inputs = np.ascontiguousarray(inputs.swapaxes(0, 1))
    values = torch.from_numpy(inputs)
    return values.long() if kind == "tokens" else values
