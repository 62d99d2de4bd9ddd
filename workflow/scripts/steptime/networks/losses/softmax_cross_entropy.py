"""Mean over all labels of -log softmax(logits)[label]."""

from steptime.networks.arrays import np
from steptime.networks.losses import Loss


def value(logits, labels):
    shifted = logits - logits.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    hot = np.arange(logits.shape[-1]) == labels[..., None]
    return -logs[hot].mean(), (np.exp(logs) - hot) / labels.size


# It reads the logits and writes their gradient.
LOSS = Loss(value, moves=2)
