"""What both sides of a proof of forward passes have in common: statistics, inputs, and outputs in few numbers.

In training, batch normalisation takes its statistics from the mini-batch; in use it takes those that the training has
left. Here they are drawn at random, as start values are, so that they are the same in every framework. None is near to
0 or 1, so that a proof sees where one is left out. Variances are about a half, which makes up for what a ReLU takes: so
outputs of different samples differ in deep networks, too.
"""

import zlib

import numpy as np

from . import data

SEED = 20163
MEAN, VARIANCE = 0.1, (0.3, 0.7)


def statistics(node):
    """Returns {"mean", "variance"} of the channels, float32, for a batch normalisation in use."""
    random = np.random.RandomState([SEED, zlib.crc32(node["name"].encode()) & 0xFFFFFFFF])
    (channels,) = node["in_shape"][:1]
    drawn = random.uniform(-MEAN, MEAN, channels), random.uniform(*VARIANCE, size=channels)
    return {role: values.astype(np.float32) for role, values in zip(("mean", "variance"), drawn)}


def of_network(spec):
    """Returns these of a whole network, by names as parameters have them."""
    return {
        "{}/{}".format(node["name"], role): values
        for node in spec["nodes"]
        if node["op"] == "batch_norm"
        for role, values in statistics(node).items()
    }


def mini_batches(spec, batch):
    """Returns inputs of two mini-batches: each sample of the second is the next sample of the first."""
    samples = data.synthetic_batch(spec, batch + 1)[0]
    return samples[:-1], samples[1:]


def projected(outputs):
    """Returns a number for each place of each sample, (batch, ...): the sum of all its outputs with random signs."""
    signs = 2.0 * np.random.RandomState(SEED).randint(0, 2, outputs.shape[-1]) - 1.0
    # Sample by sample: those of a language model take more memory in float64 than all else.
    return np.array([np.dot(sample.astype(np.float64), signs) for sample in outputs])


def spread(outputs):
    """Returns the root mean square distance of samples' outputs from their mean; from 0 where all are equal."""
    return _root(outputs - outputs.mean(0)) or _root(outputs) or 1.0


def distance(seen, wanted, scale):
    """Returns how far outputs are off, as a share of `scale`, their spread; infinity where shapes differ."""
    off = _root(seen - wanted) / scale if seen.shape == wanted.shape else float("inf")
    return off if off == off else float("inf")


def _root(values):
    return float(np.linalg.norm(values) / np.sqrt(len(values)))
