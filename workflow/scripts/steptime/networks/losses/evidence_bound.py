"""The mean over all outputs of the terms of the negative evidence lower bound (Kingma and Welling 2013).

The outputs are those of the decoder, then the means of the code, then the logarithms of its variances. Binary
cross-entropy compares the decoder's outputs with targets from 0 to 1; (mean^2 + variance - log variance - 1) / 2
compares the code with the standard normal distribution.
"""

from steptime.networks.arrays import np
from steptime.networks.layers.sigmoid import logistic
from steptime.networks.losses import Loss
from steptime.networks.losses.binary_cross_entropy import each as entropy


def parts(outputs, targets):
    """Returns outputs of the decoder, means, and logarithms of variances."""
    decoded = targets.shape[1]
    code = (outputs.shape[1] - decoded) // 2
    return outputs[:, :decoded], outputs[:, decoded:-code], outputs[:, -code:]


def each(outputs, targets):
    decoded, mean, spread = parts(outputs, targets)
    terms = entropy(decoded, targets), 0.5 * mean**2, 0.5 * (np.exp(spread) - spread - 1.0)
    return np.concatenate(terms, 1)


def value(outputs, targets):
    decoded, mean, spread = parts(outputs, targets)
    flowing = logistic(decoded) - targets, mean, 0.5 * (np.exp(spread) - 1.0)
    return each(outputs, targets).mean(), np.concatenate(flowing, 1) / outputs.size


def misfit(form, shape, source):
    if form == "row" and len(source) == 1 and source[0] < shape[0] < 2 * source[0]:
        return ""
    return "write concat of what is decoded, the means and the logarithms of variances"


# It reads the outputs and their targets, and writes the gradient.
LOSS = Loss(value, each, moves=3, misfit=misfit)
