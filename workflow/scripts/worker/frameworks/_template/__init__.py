"""<Framework>: how it runs a network, in one sentence. To add one: docs/guides/add-framework.md."""

import numpy as np  # in place of: import <framework>

# Declarations are read without importing the framework, so they are plain words. By default (`DEFAULTS` of
# `shared.declarations`) an adapter has float32 on one CPU device, plain SGD and the task "step".
MODES = ("eager",)
# How arrays are to come; see `worker.layout`. Sequences then have the steps first, in inputs and labels.
LAYOUT = {"sequences": "steps first"}
REASONS = {"gpu": "this build of <framework> is for CPUs only"}


def versions():
    """Returns the versions of the framework and of its libraries."""
    return {"framework_version": np.__version__}


def build(job):
    """Returns a trainer of the specification, with the batch and the start values in the memory of the device."""
    # Set the thread knobs that no environment variable sets, by job.threads.
    return _Trainer(job)


class _Trainer(object):
    def __init__(self, job):
        self._layout, self._nodes, self._rate = job.layout, job.spec["nodes"], job.learning_rate
        self._inputs, self._labels = job.inputs, job.labels
        # Each start value is taken once, and is in the layout that LAYOUT asks for.
        self._trained = {name: np.array(job.take(name)) for name in job.layout.names}
        self._own = {node["name"]: job.own(node) for node in self._nodes}
        self.parameters = sum(value.size for value in self._trained.values())
        self.threads = 1  # as the framework says
        self.settings = {}  # the performance knobs that were chosen, as strings

    def run(self, steps):
        """Trains, waits until the last update is done, and returns the last loss."""
        for _ in range(steps):
            loss, gradients = self._differentiate()
            for name, gradient in gradients.items():
                self._trained[name] -= self._rate * gradient
        # Here: wait for the framework's engine or device, if it works in the background.
        return float(loss)

    def weights(self, names=None):
        """Returns the parameters in the neutral layout."""
        wanted = self._trained if names is None else names
        return {name: self._layout.leave(name, self._trained[name]) for name in wanted}

    def _differentiate(self):
        values = {"input": self._inputs}
        for node in self._nodes:
            own = {role: self._trained[name] for role, name in self._own[node["name"]].items()}
            sources = [values[name] for name in node["inputs"]]
            values[node["name"]] = LAYERS[node["op"]](node, own, *sources)
        # Here: the mean softmax cross-entropy of the last value over all labels, and the framework's own gradients.
        raise NotImplementedError("the template computes no gradients")


# From each layer kind to what computes or builds it; steptime/networks/layers has a kind's parameters.
LAYERS = {
    "dense": lambda node, own, value: value @ own["weight"] + (own["bias"] if node["bias"] else 0),
    "sigmoid": lambda node, own, value: 1 / (1 + np.exp(-value)),
}
