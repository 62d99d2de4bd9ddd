"""Collects what the proof of forward passes needs: outputs of the narrow network (`prove.outputs`)."""

import numpy as np

from shared import data, evaluation

from .. import building
from ..contract import NotEquivalent, Unsupported, of_mode

# Layers whose results are drawn at random, in use too.
DRAWN = ("sampled_code", "rbm")


def run(loaded, job, emit):
    """Writes what was collected to the job's `output`."""
    refuse_drawn(job["spec"])
    with open(job["output"], "wb") as handle:
        np.savez(handle, **collect(loaded.adapter, job))
    emit("done")


def refuse_drawn(spec):
    """Raises Unsupported for a network whose outputs are drawn at random."""
    drawn = [node["op"] for node in spec["nodes"] if node["op"] in DRAWN]
    if drawn:
        raise Unsupported("what the layer {} gives is drawn at random".format(drawn[0]))


def collect(adapter, job):
    """Returns what `prove.outputs` judges: parameters, and outputs of the mini-batch, of another one, and again."""
    spec = job["spec"]
    first, other = evaluation.mini_batches(spec, job["batch"])
    _, labels = data.synthetic_batch(spec, job["batch"])
    predictor = building.make(adapter, job, spec, data.initial_weights(spec), first, labels)
    collected = {"parameters": int(predictor.parameters)}
    for name, inputs, passes in (("first", None, 1), ("other", other, 3), ("again", first, 1)):
        if inputs is not None:
            predictor.give(inputs)
        predictor.infer(passes)
        collected["outputs/" + name] = neutral(predictor.outputs(), adapter, job)
    return collected


def neutral(outputs, adapter, job):
    """Returns a copy of outputs, float32, with the samples first: (batch, ...) as the last layer has it."""
    outputs, shape = np.array(outputs, np.float32), list(job["spec"]["nodes"][-1]["shape"])
    if outputs.size != job["batch"] * np.prod(shape):
        raise NotEquivalent("it gives {:,} outputs for a mini-batch".format(outputs.size))
    layout = of_mode(adapter.LAYOUT, job["mode"])
    if len(shape) == 2 and layout.get("sequences") == "steps first":
        return outputs.reshape([shape[0], job["batch"], shape[1]]).swapaxes(0, 1)
    return outputs.reshape([job["batch"]] + shape)
