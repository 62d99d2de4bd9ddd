"""Start values and the synthetic batch: the same numbers in every framework and with every numpy since 1.7.

Both are cut from a table of uniform numbers of `numpy.random.RandomState`, whose stream numpy keeps for ever (NEP 19).
The table's length is a prime, so that rows of a large matrix are different windows of it: 118 million start values cost
a copy and not half a minute of random numbers.
"""

import numpy as np

from . import specification
from .narrow import SEED

TABLE_LENGTH = 1000003
BATCH_SEED = SEED + 1
# For networks trained on real images: the (epoch, steps before) at whose learning rates they are fed other data.
FED = ((1, 0), (15, 500000), (25, 1000000))


def initial_weights(spec, seed=SEED):
    """Returns start values of every parameter: {name: float32 array in the neutral layout}."""
    return dict(start_values(spec, seed))


def start_values(spec, seed=SEED, names=None):
    """Yields name and start values of each parameter, or of `names`, one by one: all at once take much memory."""
    table = np.random.RandomState(seed).uniform(-1.0, 1.0, TABLE_LENGTH).astype(np.float32)
    offset = 0
    for parameter in spec["parameters"]:
        size = int(np.prod(parameter["shape"], dtype=np.int64))
        if names is None or parameter["name"] in names:
            period = _cut(table, offset, min(size, TABLE_LENGTH))
            values = period * np.float32(parameter["bound"]) + np.float32(parameter["centre"])
            yield parameter["name"], _cut(values, 0, size).reshape(parameter["shape"])
        offset = (offset + size) % TABLE_LENGTH


def synthetic_batch(spec, batch, seed=BATCH_SEED):
    """Returns inputs and labels of one mini-batch.

    Inputs are float32 (batch, *shape), uniform in (-1, 1), or one-hot; for tokens int32 (batch, steps). Labels are
    int32 (batch,), or (batch, steps) for a network that classifies each step. Without classes they are targets, float32
    from 0 to 1 and of the last layer's shape: the inputs, where there are as many, or random ones.
    """
    random = np.random.RandomState(seed)
    kind, shape = spec["input"]["kind"], spec["input"]["shape"]
    if kind == "tokens":
        inputs = random.randint(0, spec["input"]["vocabulary"], [batch] + shape).astype(np.int32)
    elif kind == "one_hot":
        steps, vocabulary = shape
        inputs = np.zeros([batch, steps, vocabulary], np.float32)
        chosen = random.randint(0, vocabulary, [batch, steps])
        inputs.reshape([batch * steps, vocabulary])[np.arange(batch * steps), chosen.ravel()] = 1.0
    else:
        table = random.uniform(-1.0, 1.0, TABLE_LENGTH).astype(np.float32)
        inputs = _cut(table, 0, batch * int(np.prod(shape))).reshape([batch] + shape)
    if spec.get("loss") in ("mean_squares", "binary_cross_entropy"):
        return inputs, _targets(spec, inputs, random)
    if spec.get("loss") in ("evidence_bound",):
        return inputs, _decoded(spec, inputs)
    if spec.get("loss") in ("adversarial", "mean_output"):
        return inputs, _verdicts(spec, batch)
    steps = specification.count_labels(spec)
    labels = random.randint(0, specification.count_classes(spec), [batch, steps]).astype(np.int32)
    return inputs, labels if len(spec["nodes"][-1]["shape"]) > 1 else labels[:, 0]


def fed_batches(spec, batch):
    """Yields (inputs, labels, learning rate) of the mini-batches that a proof feeds, each of other data."""
    for number, (epoch, steps) in enumerate(FED, 1):
        inputs, labels = synthetic_batch(spec, batch, BATCH_SEED + number)
        yield inputs, labels, specification.learning_rate(spec["optimiser"], epoch, steps)


def _targets(spec, inputs, random):
    """Returns targets from 0 to 1 in the last layer's shape: the inputs, where there are as many, or random ones."""
    shape = [len(inputs)] + spec["nodes"][-1]["shape"]
    size = int(np.prod(shape))
    if inputs.size != size or spec["input"]["kind"] == "tokens":
        inputs = _cut(random.uniform(-1.0, 1.0, TABLE_LENGTH).astype(np.float32), 0, size)
    return (np.float32(0.5) * inputs + np.float32(0.5)).reshape(shape)


def _decoded(spec, inputs):
    """Returns the targets of a variational autoencoder: its inputs, without the noise for the code after them."""
    (fed,), (given,) = spec["input"]["shape"], spec["nodes"][-1]["shape"]
    kept = inputs[:, : 2 * fed - given]
    return np.float32(0.5) * kept + np.float32(0.5)


def _verdicts(spec, batch):
    """Returns a discriminator's targets: 1 for the real sample, 0 for the generated one. Other losses ignore them."""
    verdicts = np.ones([batch] + spec["nodes"][-1]["shape"], np.float32)
    verdicts[:, 1:] = 0.0
    return verdicts


def _cut(table, offset, size):
    """Returns `size` values of the endlessly repeated table, from `offset` on."""
    values = np.empty(size, table.dtype)
    filled = 0
    while filled < size:
        part = table[(offset + filled) % TABLE_LENGTH :][: size - filled]
        values[filled : filled + len(part)] = part
        filled += len(part)
    return values
