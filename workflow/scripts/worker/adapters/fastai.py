"""fastai 2: its Learner and its SGD train the network of the PyTorch adapter.

What was chosen here: docs/adapters/fastai.md.
"""

import fastai
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.optimizer import SGD

from . import torch

MODES = ("eager",)
LAYERS = torch.LAYERS
DEVICES = torch.DEVICES
LAYOUT = torch.LAYOUT


def versions():
    """Version of fastai, and what the PyTorch below it says of itself."""
    below = torch.versions()
    return dict(
        below,
        framework_version=fastai.__version__,
        build="PyTorch {framework_version}; {build}".format(**below),
    )


def build(job):
    """A trainer of the specification: PyTorch's network, batch and settings in a Learner of fastai."""
    return _Trainer(torch.build(job), job.learning_rate)


class _Trainer(object):
    def __init__(self, below, learning_rate):
        self.parameters, self.frozen_parameters = below.parameters, below.frozen_parameters
        self.threads, self.settings, self.weights = below.threads, below.settings, below.weights
        self._batch = (below.inputs, below.labels)
        loaders = DataLoaders([self._batch], [], device=below.inputs.device)
        # Without what shows progress and keeps records of each step.
        self._learner = Learner(
            loaders,
            below.network,
            CrossEntropyLossFlat(),
            opt_func=SGD,
            lr=learning_rate,
            default_cbs=False,
        )
        self._learner.create_opt()
        self._learner.training = True

    def run(self, steps):
        for step in range(steps):
            self._learner.one_batch(step, self._batch)
        return self._learner.loss.item()
