"""Defects of networks for images: kernels, padding, groups, pools and norms over channels."""

import numpy as np
from defects.planting import replacing
from defects.stand_in import RIGHT, adapter

from steptime.networks.layers import channel_shuffle


def turned(kind):
    """A layer kind whose kernels stand with rows for columns."""

    def wrong(node, own, x):
        y, backward = RIGHT[kind](node, own | {"weight": own["weight"].swapaxes(2, 3)}, x)

        def back(dy):
            dx, gradients = backward(dy)
            return dx, gradients | {"weight": gradients["weight"].swapaxes(2, 3)}

        return y, back

    return wrong


def padded_behind(kind):
    """A layer kind whose images are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def wrong(node, own, x):
        edge = (0, 2 * node["padding"])
        filling = -np.inf if kind == "max_pool" else 0.0
        wide = np.pad(x, ((0, 0), (0, 0), edge, edge), constant_values=filling)
        y, backward = RIGHT[kind](node | {"padding": 0}, own, wide)
        height, width = x.shape[2:]

        def back(dy):
            (dx,), gradients = backward(dy)
            return [dx[:, :, :height, :width]], gradients

        return y, back

    return wrong


def mean_without_padding(node, own, x):
    """Average pooling whose padding does not count."""
    y, backward = RIGHT["avg_pool"](node, own, x)
    count = RIGHT["avg_pool"](node, own, np.ones_like(x))[0]
    return y / count, lambda dy: backward(dy / count)


def interleaved(node, own, x):
    """A convolution in groups that takes every so manyeth channel for a group."""
    order = channel_shuffle.shuffled(np.arange(x.shape[1])[None, :, None], node["groups"]).ravel()
    y, backward = RIGHT["grouped_conv"](node, own, x[:, order])

    def back(dy):
        (dx,), gradients = backward(dy)
        return [dx[:, np.argsort(order)]], gradients

    return y, back


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


def reversed_concat(node, own, *inputs):
    y, backward = RIGHT["concat"](node, own, *reversed(inputs))

    def back(dy):
        gradients, _ = backward(dy)
        return gradients[::-1], {}

    return y, back


# {defect: (network, adapter, words of the refusal)}
PLANTED = {
    "a turned kernel in groups": (
        "mobilenet",
        adapter(replacing(grouped_conv=turned("grouped_conv"))),
        "the first loss is",
    ),
    "a turned transposed kernel": (
        "deconv",
        adapter(replacing(conv_transpose=turned("conv_transpose"))),
        "the first loss is",
    ),
    "padding behind a pool": (
        "densenet121",
        adapter(replacing(max_pool=padded_behind("max_pool"))),
        "the first loss is",
    ),
    "padding behind a convolution in groups": (
        "xception",
        adapter(replacing(grouped_conv=padded_behind("grouped_conv"))),
        "the first loss is",
    ),
    "padding that does not count": (
        "shufflenet",
        adapter(replacing(avg_pool=mean_without_padding)),
        "the first loss is",
    ),
    "groups of other channels": (
        "shufflenet",
        adapter(replacing(grouped_conv=interleaved)),
        "the first loss is",
    ),
    "channels shuffled back": (
        "shufflenet",
        adapter(replacing(channel_shuffle=shuffled_back)),
        "the first loss is",
    ),
    "responses normalised by the whole sum": (
        "googlenet",
        adapter(replacing(local_response_norm=undivided)),
        "the first loss is",
    ),
    "unbiased variance of groups": (
        "resnet50-group-norm",
        adapter(replacing(group_norm=unbiased_groups)),
        "the first loss is",
    ),
    "inputs the other way round": (
        "densenet121",
        adapter(replacing(concat=reversed_concat)),
        "the first loss is",
    ),
    "layer scale left out": (
        "convnext-tiny",
        adapter(
            replacing(
                layer_scale=lambda node, own, x: (
                    x,
                    lambda dy: ([dy], {"weight": np.zeros_like(own["weight"])}),
                )
            )
        ),
        "does not depend on layer_scale",
    ),
}
