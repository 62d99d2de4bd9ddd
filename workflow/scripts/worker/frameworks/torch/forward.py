"""PyTorch's forward passes: modules in evaluation mode, in `torch.inference_mode`; `compiled` with frozen weights."""

import torch

from shared import evaluation

from .. import torch as training

TASKS = ("forward",)

# Before 1.9 there is no such mode.
_in_use = getattr(torch, "inference_mode", torch.no_grad)


def build(job):
    """Returns the network of the adapter torch, without training."""
    # A step is not compiled for it.
    mode, job.mode = job.mode, "eager"
    training.check(mode, job.device)
    return _Predictor(training.build(job), job, mode)


class _Predictor(object):
    def __init__(self, trainer, job, mode):
        self._trainer, self._inputs, self._layout = trainer, trainer.inputs, job.layout
        self.parameters, self.frozen_parameters = trainer.parameters, trainer.frozen_parameters
        self.threads, self.settings = trainer.threads, trainer.settings
        network = trainer.network.eval()
        for node in job.spec["nodes"]:
            if node["op"] == "batch_norm":
                known = evaluation.statistics(node)
                module = getattr(network, node["name"])
                module.running_mean.copy_(torch.from_numpy(known["mean"]))
                module.running_var.copy_(torch.from_numpy(known["variance"]))
        self._pass = network
        if mode == "compiled":
            network.requires_grad_(False)
            self._pass = torch.compile(network, options={"freezing": True})
            self.settings["freezing"] = "on"
            # Here, not in the first pass: it takes tens of seconds.
            self.infer(1)

    def infer(self, passes):
        with _in_use():
            for _ in range(passes):
                self._found = self._pass(self._inputs)
        self._trainer._wait()

    def give(self, inputs):
        self._inputs = self._trainer._placed(self._layout.inputs(inputs))

    def outputs(self):
        return self._found.cpu().numpy()
