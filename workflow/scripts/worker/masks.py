"""Reads from weights what a framework's dropout drops."""

import numpy as np

from shared.masks import COPIES

from . import building


def read(adapter, job, spec):
    """Returns what the dropout of a network without hidden layers makes of ones: (steps + 1, batch, ...sample).

    The first masks are of steps that are a call each, the last one is of a call of two steps, both together. For an
    attention, returns what it makes of equal shares: (steps + 1, batch, layers, heads, copies, queries, keys).

    All scores are equal. So a softmax gives a label's own class a gradient that is smaller, by 1 / labels, than the
    gradient of the class without labels. The columns of a weight's update, minus the column of that class, are then
    what each label was given.
    """
    batch, shape, is_shares = job["batch"], spec["input"]["shape"], spec["drops"] == "shares"
    start = {entry["name"]: np.zeros(entry["shape"], np.float32) for entry in spec["parameters"]}
    names = [name for name in sorted(start) if name.endswith("/weight")]
    *extents, classes = spec["nodes"][-1]["shape"]
    labels = np.arange(classes - 1, dtype=np.int32).reshape([batch] + extents)
    inputs = _one_for_each_step(spec) if is_shares else np.ones(shape)
    inputs = np.repeat(np.float32(inputs)[None], batch, 0)
    trainer = building.make(adapter, job, spec, start, inputs, labels)
    seen, masks = 0.0, []
    scale = labels.size / spec["optimiser"]["learning_rate"]
    for steps in [1] * spec["steps"] + [2]:
        trainer.run(steps)
        weights = trainer.weights(names)
        weights = np.array([weights[name] for name in names], np.float64)
        update, seen = weights - seen, weights
        # (weights, labels, inputs of a weight).
        given = (update[..., : labels.size] - update[..., labels.size :]).swapaxes(1, 2) * scale
        masks.append(_of_shares(given, spec) if is_shares else given.reshape([batch] + shape))
    return np.array(masks)


def _one_for_each_step(spec):
    """Returns zeros as queries and keys, so that all scores are equal, and `COPIES` values of each head for each step.

    The value of a step is the number of steps, at the place of the step: so an output is each share of a query, times
    the number of steps.
    """
    steps, heads = spec["input"]["shape"][0], spec["nodes"][0]["heads"]
    values = spec["nodes"][0].get("kv_heads", heads)
    inputs = np.zeros([steps, heads + 2 * values, COPIES, steps])
    inputs[:, heads + values :] = steps * np.eye(steps)[:, None, None]
    return inputs.reshape(steps, -1)


def _of_shares(given, spec):
    """Returns masks (batch, layers, heads, copies, queries, keys) from what labels were given of two attentions."""
    steps, heads = spec["input"]["shape"][0], spec["nodes"][0]["heads"]
    given = given.reshape(len(given), -1, steps, heads, COPIES, steps).transpose(1, 0, 3, 4, 2, 5)
    # A query that sees fewer keys has larger shares.
    seen = np.arange(1, steps + 1) if spec["nodes"][0].get("causal") else np.full(steps, steps)
    return given * seen[:, None] / steps
