"""Mean over all labels of -log softmax(logits)[label]."""

from steptime.networks.arrays import np
from steptime.networks.losses import Loss


def each(logits, labels):
    return _softmax(logits, labels)[0]


def value(logits, labels):
    losses, chances = _softmax(logits, labels)
    chances /= labels.size
    wanted = labels[..., None]
    of_label = np.take_along_axis(chances, wanted, -1) - 1.0 / labels.size
    np.put_along_axis(chances, wanted, of_label, -1)
    return losses.mean(), chances


def _softmax(logits, labels):
    """Returns the loss of each label, and the chance of each class."""
    shifted = logits - logits.max(-1, keepdims=True)
    of_label = np.take_along_axis(shifted, labels[..., None], -1)[..., 0]
    chances = np.exp(shifted, out=shifted)
    sums = chances.sum(-1)
    chances /= sums[..., None]
    return np.log(sums) - of_label, chances


def misfit(form, shape, source):
    if form not in ("row", "sequence"):
        return "write global_average_pool or flatten behind it, and a dense layer of the classes"
    return "" if shape[-1] > 1 else "write two classes or more, or another loss"


# It reads the logits and writes their gradient.
LOSS = Loss(value, each, moves=2, misfit=misfit)
