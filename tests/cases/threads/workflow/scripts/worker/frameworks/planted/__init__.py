"""MXNet's adapter, and a mode `early` whose `run` does not wait for MXNet's engine to be done."""

from .. import mxnet

MODES = ("graph", "early")
LAYERS = mxnet.LAYERS
LAYOUT = mxnet.LAYOUT
versions = mxnet.versions


def build(job):
    early = job.mode == "early"
    job.mode = "graph"
    trainer = mxnet.build(job)
    if early:
        trainer.run = lambda steps: run(trainer, steps)
    return trainer


def run(trainer, steps):
    for _ in range(steps):
        loss = trainer.differentiate()
        for value, gradient in trainer.updates:
            value -= gradient
    # The loss is there before the weights are: the last backward pass and the last update go on.
    return float(loss.asscalar())
