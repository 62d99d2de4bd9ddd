"""MXNet's adapter, and a mode `early` whose `run` does not wait for MXNet's engine to be done."""

from . import mxnet

MODES = ("graph", "early")
versions = mxnet.versions


def build(spec, weights, inputs, labels, mode, threads, device):
    trainer = mxnet.build(spec, weights, inputs, labels, "graph", threads, device)
    if mode == "early":
        trainer.run = lambda steps: run(trainer, steps)
    return trainer


def run(trainer, steps):
    for _ in range(steps):
        loss = trainer.differentiate()
        for value, gradient in trainer.updates:
            value -= gradient
    # The loss is there before the weights are: the last backward pass and the last update go on.
    return float(loss.asscalar())
