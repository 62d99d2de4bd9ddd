"""Defects of networks for images: kernels, padding, groups, pools and norms over channels."""

import numpy as np
from defects.planting import wrong
from defects.stand_in import RIGHT


def turned(node, own, x):
    """A transposed convolution whose kernels have rows for columns."""
    own = own | {"weight": own["weight"].swapaxes(2, 3)}
    y, backward = RIGHT["conv_transpose"](node, own, x)

    def back(dy):
        dx, gradients = backward(dy)
        return dx, gradients | {"weight": gradients["weight"].swapaxes(2, 3)}

    return y, back


def padded_behind(node, own, x):
    """A pool whose images are padded behind their last row and column alone, as TensorFlow's SAME does."""
    edge = (0, 2 * node["padding"])
    wide = np.pad(x, ((0, 0), (0, 0), edge, edge), constant_values=-np.inf)
    y, backward = RIGHT["max_pool"](node | {"padding": 0}, own, wide)
    height, width = x.shape[2:]

    def back(dy):
        (dx,), gradients = backward(dy)
        return [dx[:, :, :height, :width]], gradients

    return y, back


def mean_without_padding(node, own, x):
    """Average pooling whose padding does not count."""
    y, backward = RIGHT["avg_pool"](node, own, x)
    count = RIGHT["avg_pool"](node, own, np.ones_like(x))[0]
    return y / count, lambda dy: backward(dy / count)


def shuffled_back(node, own, x):
    """The channels in the order that undoes a shuffle."""
    return RIGHT["channel_shuffle"](node | {"groups": x.shape[1] // node["groups"]}, own, x)


def undivided(node, own, x):
    """Local response normalisation whose alpha is not divided by the size, as TensorFlow has it."""
    whole = node | {"inverse_alpha": node["inverse_alpha"] / node["size"]}
    return RIGHT["local_response_norm"](whole, own, x)


def unbiased_groups(node, own, x):
    """Group normalisation by the variance over n - 1."""
    count = x[0].size // node["groups"]
    share = np.sqrt((count - 1) / count)
    y, backward = RIGHT["group_norm"](node, own | {"gamma": own["gamma"] * share}, x)

    def back(dy):
        dx, gradients = backward(dy)
        return dx, gradients | {"gamma": gradients["gamma"] * share}

    return y, back


def unscaled(node, own, x):
    """No layer scale."""
    return x, lambda dy: ([dy], {"weight": np.zeros_like(own["weight"])})


PLANTED = {
    "a turned transposed kernel": wrong("deconv", conv_transpose=turned),
    "padding behind a pool": wrong("densenet121", max_pool=padded_behind),
    "padding that does not count": wrong("shufflenet", avg_pool=mean_without_padding),
    "channels shuffled back": wrong("shufflenet", channel_shuffle=shuffled_back),
    "responses normalised by the whole sum": wrong("googlenet", local_response_norm=undivided),
    "unbiased variance of groups": wrong("resnet50-group-norm", group_norm=unbiased_groups),
    "layer scale left out": wrong(
        "convnext-tiny", "does not depend on layer_scale", layer_scale=unscaled
    ),
}
