"""PaddlePaddle's forward passes: layers in evaluation mode, run as they are called, without a gradient."""

import paddle

from shared import evaluation

from .. import paddle as training

TASKS = ("forward",)


def build(job):
    """Returns the network of the adapter paddle, without training."""
    return _Predictor(training.build(job), job)


class _Predictor(object):
    def __init__(self, trainer, job):
        self._wait, self._layout = trainer._wait, job.layout
        self.parameters, self.frozen_parameters = trainer.parameters, trainer.frozen_parameters
        self.threads, self.settings = trainer.threads, trainer.settings
        self._network, self._inputs = trainer.network, paddle.to_tensor(job.inputs)
        self._network.eval()
        layers = {name: layer for name, layer, _ in self._network.plan}
        for node in job.spec["nodes"]:
            if node["op"] == "batch_norm":
                known = evaluation.statistics(node)
                layers[node["name"]]._mean.set_value(known["mean"])
                layers[node["name"]]._variance.set_value(known["variance"])

    def infer(self, passes):
        with paddle.no_grad():
            for _ in range(passes):
                self._found = self._network(self._inputs)
        self._wait()

    def give(self, inputs):
        self._inputs = paddle.to_tensor(self._layout.inputs(inputs))

    def outputs(self):
        return self._found.numpy()
