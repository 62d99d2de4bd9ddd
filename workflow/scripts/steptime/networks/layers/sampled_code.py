"""A code that is drawn for each sample: mean + exp(log variance / 2) x noise (Kingma and Welling 2013).

The first input has the means and then the logarithms of the variances; the second is the noise, which comes with the
data, so that every framework draws the same.
"""

from steptime.networks.arrays import np
from steptime.networks.layers import LayerKind, moved_by_fused


def shape(node, source, noise):
    if source != [2 * noise[-1]]:
        raise ValueError(
            f"its noise, '{node['inputs'][1]}', has shape {noise}: write half as many features as "
            "there are means and variances"
        )
    return list(noise)


def forward(node, own, x, noise):
    mean, spread = x[:, : noise.shape[1]], np.exp(0.5 * x[:, noise.shape[1] :])

    def backward(dy):
        return [np.concatenate([dy, 0.5 * dy * noise * spread], 1), dy * spread], {}

    return mean + spread * noise, backward


LAYER = LayerKind(
    forward,
    takes=("row",),
    inputs=2,
    shape=shape,
    numbers_moved=moved_by_fused,
    example=(
        {"kind": "dense", "shape": [6]},
        [
            {"part": {"start": 0, "size": 4, "name": "noise"}},
            {"dense": {"units": 8, "inputs": ["input"], "name": "code"}},
            {"sampled_code": {"inputs": ["code", "noise"]}},
        ],
    ),
)
