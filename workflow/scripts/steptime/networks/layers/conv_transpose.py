"""The transpose of a convolution: each pixel spreads over a window of the new image.

Weight (in, out, kernel, kernel), and bias (out) if `bias` is true. `padding` rows and columns of every side are cut
off.
"""

import math

from steptime.networks.arrays import np
from steptime.networks.layers import BIAS_BOUND, CONV, IMAGES, LayerKind, over_places, parameter
from steptime.networks.windows import fold, pad, windows


def shape(node, source):
    _, *extents = source
    made = [
        (extent - 1) * node["stride"] + node["kernel"] - 2 * node["padding"] for extent in extents
    ]
    if min(made) < 1:
        raise ValueError(f"a padding of {node['padding']} leaves nothing of it")
    return [node["channels"], *made]


def parameters(node):
    """Starts weights in +-1/sqrt(fan-in), where fan-in is how many numbers reach a pixel in the mean."""
    channels, kernel = node["in_shape"][0], node["kernel"]
    reaching = channels * kernel**2 / node["stride"] ** 2
    shape = [channels, node["channels"], kernel, kernel]
    weight = parameter(node, "weight", shape, 1 / math.sqrt(reaching))
    bias = parameter(node, "bias", [node["channels"]], BIAS_BOUND)
    return [weight] + ([bias] if node["bias"] else [])


def multiply_adds(node):
    return math.prod(node["in_shape"]) * node["channels"] * node["kernel"] ** 2


def forward(node, own, x):
    """Multiplies all pixels, one a row, by what each spreads over its window."""
    batch, channels, height, width = x.shape
    filters = own["weight"].reshape(channels, -1)
    rows = np.moveaxis(x, 1, -1).reshape(-1, channels)
    pieces = (rows @ filters).reshape(batch, height, width, node["channels"], -1)
    extents = [extent + 2 * node["padding"] for extent in node["shape"][1:]]
    y = fold(np.moveaxis(pieces, 3, 1), (batch, node["channels"], *extents), node)
    if node["bias"]:
        y = y + own["bias"][:, None, None]

    def backward(dy):
        seen = windows(pad(dy, node, 0.0), node).transpose(0, 2, 3, 1, 4, 5)
        seen = seen.reshape(batch * height * width, -1)
        gradients = {
            "weight": (rows.T @ seen).reshape(own["weight"].shape),
            "bias": over_places(node, np.moveaxis(dy, 1, -1)),
        }
        dx = np.moveaxis((seen @ filters.T).reshape(batch, height, width, channels), -1, 1)
        return [dx], {role: gradients[role] for role in own}

    return y, backward


LAYER = LayerKind(
    forward,
    takes=("image",),
    needs=("channels", "kernel"),
    defaults={"stride": 1, "padding": 0, "bias": True},
    shape=shape,
    parameters=parameters,
    counted=True,
    multiply_adds=multiply_adds,
    example=(
        IMAGES,
        [
            CONV,
            {"conv_transpose": {"channels": 3, "kernel": 4, "stride": 2, "padding": 1}},
            "flatten",
        ],
    ),
)
