"""Reads off weights what a framework's dropout drops."""

import numpy as np

from . import building


def read(adapter, job, spec):
    """Says what the dropout of a network without hidden layers makes of ones: (steps + 1, batch, ...sample).

    In steps that are a call each, and in a call of two steps, both together.

    All scores are equal. So a softmax gives a label's own class a gradient that is smaller, by 1 / labels, than that of
    the class without labels. The columns of the first weight's update, less the column of that class, are then what
    each label was given.
    """
    batch, shape = job["batch"], spec["input"]["shape"]
    start = {entry["name"]: np.zeros(entry["shape"], np.float32) for entry in spec["parameters"]}
    labels = np.arange(spec["nodes"][-1]["units"] - 1, dtype=np.int32)
    labels = labels.reshape([batch] + spec["nodes"][-1]["shape"][:-1])
    ones = np.ones([batch] + shape, np.float32)
    trainer = building.make(adapter, job, spec, start, ones, labels)
    name, seen, masks = spec["parameters"][0]["name"], 0.0, []
    scale = labels.size / spec["optimiser"]["learning_rate"]
    for steps in [1] * spec["steps"] + [2]:
        trainer.run(steps)
        weight = np.array(trainer.weights([name])[name], np.float64)
        update, seen = weight - seen, weight
        columns = (update[:, : labels.size] - update[:, labels.size :]).T * scale
        masks.append(columns.reshape([batch] + shape))
    return np.array(masks)
