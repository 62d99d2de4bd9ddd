"""PyTorch as its own tutorial has it: modules of `torch.nn` and `torch.optim.SGD`, and no switch turned."""

import numpy as np
import torch
from torch import nn

MODES = ("plain",)
OPTIONS = {}
OPTIMISERS = ("sgd",)
LOSSES = ("softmax_cross_entropy",)
DEVICES = ("cpu",)
PRECISIONS = ("float32",)


def build(job):
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    return _Trainer(job)


class _Network(nn.Module):
    """The nodes of a specification as modules, called in their order."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes
        for node in nodes:
            self.add_module(node["name"], LAYERS[node["op"]](node))

    def forward(self, batch):
        values = {"input": batch}
        for node in self.nodes:
            module = getattr(self, node["name"])
            values[node["name"]] = module(*[values[name] for name in node["inputs"]])
        return values[node["name"]]


class _Trainer(object):
    settings = {"plain": "torch.nn, torch.optim.SGD"}

    def __init__(self, job):
        self._network = _Network(job.spec["nodes"])
        self._layout = job.layout
        self._homes = {}
        for node in job.spec["nodes"]:
            for role, name in job.own(node).items():
                attribute, turned = _HOMES.get((node["op"], role), (role, False))
                home = getattr(getattr(self._network, node["name"]), attribute)
                value = torch.from_numpy(job.take(name))
                with torch.no_grad():
                    home.copy_(value.t() if turned else value)
                self._homes[name] = home, turned
        inputs = torch.from_numpy(job.inputs)
        self._inputs = inputs if inputs.is_floating_point() else inputs.long()
        self._labels = torch.from_numpy(job.labels.flatten()).long()
        self._optimiser = torch.optim.SGD(self._network.parameters(), lr=job.learning_rate)
        self._loss, self.threads = nn.CrossEntropyLoss(), torch.get_num_threads()
        sizes = [(value.requires_grad, value.numel()) for value in self._network.parameters()]
        self.parameters = sum(size for trained, size in sizes if trained)
        self.frozen_parameters = sum(size for trained, size in sizes if not trained)

    def run(self, steps):
        for _ in range(steps):
            outputs = self._network(self._inputs)
            loss = self._loss(outputs.reshape(-1, outputs.shape[-1]), self._labels)
            loss.backward()
            self._optimiser.step()
            self._optimiser.zero_grad()
        return loss.item()

    def weights(self, names=None):
        found = {}
        for name in self._homes if names is None else names:
            home, turned = self._homes[name]
            value = np.array(home.detach().numpy(), order="C")
            found[name] = value.T if turned else value
        return found


# Where a parameter lives in its module, and whether PyTorch keeps it transposed; others have its name and order.
_HOMES = {
    ("dense", "weight"): ("weight", True),
    ("batch_norm", "gamma"): ("weight", False),
    ("batch_norm", "beta"): ("bias", False),
    ("lstm", "input"): ("weight_ih_l0", True),
    ("lstm", "recurrent"): ("weight_hh_l0", True),
    ("lstm", "bias"): ("bias_ih_l0", False),
}


class _LSTM(nn.LSTM):
    """An LSTM whose second bias stays at zero, since the network has one."""

    def __init__(self, node):
        super().__init__(node["in_shape"][-1], node["units"])
        nn.init.zeros_(self.bias_hh_l0).requires_grad_(False)

    def forward(self, values):
        return super().forward(values)[0]


class _Add(nn.Module):
    def forward(self, left, right):
        return left + right


def _conv(node):
    window = node["kernel"], node["stride"], node["padding"]
    return nn.Conv2d(node["in_shape"][0], node["channels"], *window, bias=node["bias"])


LAYERS = {
    "dense": lambda node: nn.Linear(node["in_shape"][-1], node["units"], bias=node["bias"]),
    "conv": _conv,
    "max_pool": lambda node: nn.MaxPool2d(node["kernel"], node["stride"], node["padding"]),
    "global_average_pool": lambda node: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "flatten": lambda node: nn.Flatten(),
    "batch_norm": lambda node: nn.BatchNorm2d(node["in_shape"][0]),
    "relu": lambda node: nn.ReLU(),
    "dropout": lambda node: nn.Dropout(node["rate"]),
    "sigmoid": lambda node: nn.Sigmoid(),
    "add": lambda node: _Add(),
    "embedding": lambda node: nn.Embedding(node["vocabulary"], node["units"]),
    "lstm": _LSTM,
}
