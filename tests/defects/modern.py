"""Defects of the kinds and options that imported networks ask for: activations, epsilons, windows, turned heads."""

import numpy as np
from defects.planting import wrong
from defects.stand_in import RIGHT


def without(kind, option):
    """A layer that does not look at an option."""

    def forward(node, own, *x):
        return RIGHT[kind]({key: node[key] for key in node if key != option}, own, *x)

    return {kind: forward}


def steep(node, own, x):
    """A hard sigmoid of slope 0.2, as in Keras's older releases."""
    passed = np.abs(x) < 2.5
    return np.clip(0.2 * x + 0.5, 0.0, 1.0), lambda dy: ([0.2 * dy * passed], {})


def scaled(node, own, x):
    """SELU in place of ELU."""
    y, backward = RIGHT["elu"](node, own, x)
    return 1.0507 * y, lambda dy: backward(1.0507 * dy)


def behind(node, own, x):
    """Zeros on the other sides."""
    other = {key: node[key][::-1] for key in ("rows", "columns")}
    return RIGHT["pad"](node | other, own, x)


def from_the_start(node, own, x):
    """The first channels, whichever are asked for."""
    return RIGHT["channel_part"](node | {"start": 0}, own, x)


def in_front(node, own, x):
    """A pool whose windows reach beyond the first row and column in place of the last."""
    y, backward = RIGHT["max_pool"](node, own, x[:, :, ::-1, ::-1])

    def back(dy):
        (dx,), gradients = backward(dy[:, :, ::-1, ::-1])
        return [dx[:, :, ::-1, ::-1]], gradients

    return y[:, :, ::-1, ::-1], back


def between_corners(node, own, x):
    """An upsampling that lays the outer pixels' centres upon one another, as `align_corners=True` does."""
    matrices = []
    for extent in x.shape[2:]:
        centres = np.linspace(0, extent - 1, node["factor"] * extent)
        matrices.append(np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(extent))))
    rows, columns = matrices
    return rows @ x @ columns.T, lambda dy: ([rows.T @ dy @ columns], {})


def by_neighbours(node, own, x):
    """Attention that turns each number with its neighbour, as the authors of rotary positions wrote it."""
    size = node["shape"][-1] // node["heads"]
    order = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)])
    count = 2 * node["heads"] * size
    places = np.arange(x.shape[-1])
    places[:count] = places[:count].reshape(-1, size)[:, order].ravel()
    y, backward = RIGHT["attention"](node, own, x[..., places])
    back = np.argsort(places)
    return y, lambda dy: ([backward(dy)[0][0][..., back]], {})


def in_turn(node, own, x):
    """Attention whose keys go round: the first head has the first one, the second the second."""
    heads, pairs = node["heads"], node["kv_heads"]
    size = node["shape"][-1] // heads
    places = np.arange(heads * size).reshape(pairs, -1, size).swapaxes(0, 1).ravel()
    places = np.concatenate([places, np.arange(heads * size, x.shape[-1])])
    y, backward = RIGHT["attention"](node, own, x[..., places])
    back = np.argsort(places)
    own_back = back[: heads * size]

    def turned_back(dy):
        return [backward(dy[..., places[: heads * size]])[0][0][..., back]], {}

    return y[..., own_back], turned_back


def drawn_once(node, own, x):
    """The same samples in each step."""
    again = {"random": np.random.RandomState(7)} if "random" in node else {}
    return RIGHT["stochastic_depth"](node | again, own, x)


PLANTED = {
    "dropout for stochastic depth": wrong(
        "stochastic_depth", "drops parts of a sample", stochastic_depth=RIGHT["dropout"]
    ),
    "stochastic depth left out": wrong(
        "stochastic_depth",
        "makes other values",
        stochastic_depth=lambda n, o, x: (x, lambda dy: ([dy], {})),
    ),
    "the same samples in each step": wrong(
        "stochastic_depth", "drops the same samples in each step", stochastic_depth=drawn_once
    ),
    "ReLU without its six": wrong("relu6", relu6=RIGHT["relu"]),
    "SiLU for its hard form": wrong("hard_swish", hard_swish=RIGHT["silu"]),
    "another slope of a hard sigmoid": wrong("hard_sigmoid", hard_sigmoid=steep),
    "SELU for ELU": wrong("elu", elu=scaled),
    "ReLU for softplus": wrong("softplus", softplus=RIGHT["relu"]),
    "zeros on other sides": wrong("pad", pad=behind),
    "the first channels for others": wrong("channel_part", channel_part=from_the_start),
    "a pool that begins too early": wrong("max_pool up", max_pool=in_front),
    "an epsilon of batches that is not asked": wrong(
        "batch_norm epsilon", **without("batch_norm", "epsilon")
    ),
    "an epsilon of groups that is not asked": wrong(
        "group_norm epsilon", **without("group_norm", "epsilon")
    ),
    "pixels between the corners": wrong("upsample bilinear", upsample=between_corners),
    "repeated pixels for those between": wrong(
        "upsample bilinear", **without("upsample", "bilinear")
    ),
    "heads turned by neighbours": wrong("attention rotary", attention=by_neighbours),
    "keys for other heads": wrong("attention kv_heads", attention=in_turn),
    "heads that are not turned": wrong("attention rotary", **without("attention", "rotary")),
}
