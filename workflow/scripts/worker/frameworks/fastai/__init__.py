"""fastai 2: its Learner and its optimisers train the network of the PyTorch adapter."""

import functools

import fastai
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.losses import BCEWithLogitsLossFlat, CrossEntropyLossFlat, MSELossFlat
from fastai.optimizer import SGD, Adam, OptimWrapper, RMSProp
from torch.optim import Adadelta

from .. import torch

MODES = ("eager",)
OPTIMISERS = torch.OPTIMISERS
TASKS = ("step", "training")
LAYERS = torch.LAYERS
DEVICES = torch.DEVICES
PRECISIONS = torch.PRECISIONS
LAYOUT = torch.LAYOUT


def versions():
    """Returns the version of fastai, and what its PyTorch says of itself."""
    below = torch.versions()
    return dict(
        below,
        framework_version=fastai.__version__,
        build="PyTorch {framework_version}; {build}".format(**below),
    )


def build(job):
    """Returns a trainer of the specification: PyTorch's network, batch and settings in a Learner of fastai."""
    return _Trainer(torch.build(job), job)


def _evidence_bound(outputs, targets):
    decoded, code = outputs.split([targets.shape[1], outputs.shape[1] - targets.shape[1]], 1)
    mean, spread = code.chunk(2, 1)
    missed = BCEWithLogitsLossFlat(reduction="sum")(decoded, targets)
    apart = 0.5 * (mean.pow(2) + spread.exp() - spread - 1).sum()
    return (missed + apart) / outputs.numel()


# fastai's own where it has the loss; what it has not is a function, as its Learner takes them.
LOSSES = {
    "softmax_cross_entropy": CrossEntropyLossFlat,
    "mean_squares": MSELossFlat,
    "binary_cross_entropy": BCEWithLogitsLossFlat,
    "evidence_bound": lambda: _evidence_bound,
    "adversarial": BCEWithLogitsLossFlat,
    "mean_output": lambda: lambda outputs, targets: outputs.mean(),
}


class _Trainer(object):
    def __init__(self, below, job):
        self.parameters, self.frozen_parameters = below.parameters, below.frozen_parameters
        self.threads, self.settings, self.weights = below.threads, below.settings, below.weights
        self._layout, self._below, self.scores = job.layout, below, below.scores
        self._batch = (below.inputs, below.labels)
        wanted, loss = job.spec["optimiser"], job.spec["loss"]
        loaders = DataLoaders([self._batch], [], device=below.inputs.device)
        # Without what shows progress and keeps records of each step.
        self._learner = Learner(
            loaders,
            below.network,
            LOSSES[loss](),
            opt_func=_optimiser(wanted),
            lr=job.learning_rate,
            default_cbs=False,
        )
        self._learner.create_opt()
        for value in self._learner.model.parameters() if "weight_decay" in wanted else ():
            # As fastai does with biases: a vector does not decay.
            self._learner.opt.state[value]["do_wd"] = value.dim() > 1
        self._learner.training = True

    def run(self, steps):
        for step in range(steps):
            self._learner.one_batch(step, self._batch)
        self._below._wait()
        return self._learner.loss.item()

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            self._learner.opt.set_hyper("lr", rate)
            inputs, labels = self._layout.inputs(inputs), self._layout.labels(labels)
            fed = self._below._placed(inputs), self._below._placed_labels(labels)
            self._learner.one_batch(steps, fed)
            total, steps = total + self._learner.loss.detach(), steps + 1
        self._below._wait()
        return total.item() / steps


def _optimiser(wanted):
    """Returns fastai's own optimiser; for Adadelta, which it lacks, its wrapper for PyTorch's."""
    if wanted["name"] == "adadelta":
        rule = {"rho": wanted["rho"], "eps": wanted["epsilon"]}
        return functools.partial(OptimWrapper, opt=Adadelta, **rule)
    if wanted["name"] == "rmsprop":
        return functools.partial(RMSProp, sqr_mom=wanted["rho"], eps=wanted["epsilon"])
    if wanted["name"] == "momentum":
        return functools.partial(SGD, mom=wanted["momentum"])
    if wanted["name"] in ("adam", "adamw"):
        rule = {"mom": wanted["beta1"], "sqr_mom": wanted["beta2"], "eps": wanted["epsilon"]}
        return functools.partial(Adam, wd=wanted.get("weight_decay", 0.0), **rule)
    return SGD
