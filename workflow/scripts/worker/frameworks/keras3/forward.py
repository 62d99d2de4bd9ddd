"""Keras 3's forward passes: `predict_on_batch`, which compiles the model as its backend does, and copies outputs."""

import keras

from shared import evaluation

from .. import keras3 as training

TASKS = ("forward",)
# The policy mixed_bfloat16 is that of a training step.
PRECISIONS = ("float32", "tf32")


def build(job):
    """Returns the model of the adapter keras3, without training."""
    trainer = training.build(job)
    return _Predictor(trainer, job)


class _Predictor(object):
    def __init__(self, trainer, job):
        self._model, self._layout = trainer._model, job.layout
        self.parameters, self.frozen_parameters = trainer.parameters, trainer.frozen_parameters
        self.threads, self.settings = trainer.threads, trainer.settings
        self._inputs = keras.ops.convert_to_tensor(job.inputs)
        gammas = {id(kept): name for name, (kept, _) in trainer._variables.items()}
        known = evaluation.of_network(job.spec)
        for layer in trainer._model.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                name = gammas[id(layer.gamma)].split("/")[0]
                layer.moving_mean.assign(known[name + "/mean"])
                layer.moving_variance.assign(known[name + "/variance"])

    def infer(self, passes):
        for _ in range(passes):
            # NumPy's, so the pass is done.
            self._found = self._model.predict_on_batch(self._inputs)

    def give(self, inputs):
        self._inputs = keras.ops.convert_to_tensor(self._layout.inputs(inputs))

    def outputs(self):
        return self._found
