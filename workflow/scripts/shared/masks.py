"""Judges what dropout makes of ones, for both sides of a proof: in a narrow network and at full size."""

from .specification import rate_of

# A kept value is 1 / (1 - rate) exactly but for what reading it off a float32 weight costs.
MASK = 1e-2
# The same of a share: bfloat16 rounds a third several times. Seen is up to 1.6e-2.
MASK_OF_SHARES = 3e-2
# By chance, the number of kept values is so many standard deviations from its mean once in 10**9 draws.
SIGMAS = 6
TELLTALE = 0.9
# Up to this rate, two layers in a row show whether each layer has its own masks. Above it, they leave too few values.
TWICE = 0.5
# How often an attention's output shows each share; if the output is dropped, each copy has a mask of its own.
COPIES = 2
# How a layer is called, by the number of axes of a sample.
PLACES = {1: "vectors", 2: "sequences", 3: "feature maps"}


def fault(masks, spec):
    """Says what is wrong with the masks of `worker.masks.read`, in a sentence; "" where nothing is.

    Values, samples or shares must be dropped at the rate, each by itself, and others in each layer, step and sample.
    `spec` is the network that shows the masks, and names what is dropped.
    """
    steps, both, rate = masks[:-1], masks[-1], rate_of(spec["nodes"][0])
    if spec["drops"] == "shares":
        return _fault_of_shares(steps, both, rate, _seen(spec["nodes"][0]))
    if spec["drops"] == "samples":
        layer, dropped = "stochastic depth of {:g}".format(rate), "samples"
    else:
        layer, dropped = "dropout of {:g} on {}".format(rate, PLACES[masks.ndim - 2]), "values"
    if rate <= TWICE:
        layer, rate = layer + " twice", 1 - (1 - rate) ** 2
    if spec["drops"] == "samples":
        steps = steps.reshape(steps.shape[:2] + (-1,))
        if (abs(steps - steps[..., :1]) > 2 * MASK).any():
            return "{} drops parts of a sample".format(layer)
        steps = steps[..., 0]
    kept = abs(steps) > MASK
    pairs = [("in each step", kept[:-1], kept[1:]), ("in each sample", kept[:, :-1], kept[:, 1:])]
    if kept.ndim == 4:
        pairs.append(("at each place of a sequence", kept[:, :, :-1], kept[:, :, 1:]))
    alone = []
    if spec["drops"] == "values":
        alone = ["whole maps", kept[..., ::2], kept[..., 1::2], both]
    return _fault(layer, dropped, rate, steps, pairs, *alone)


def kept(masks, spec):
    """Returns the share of values (or samples, or shares) that the first two steps keep."""
    first = abs(masks[:2]) > MASK
    if spec["drops"] == "shares":
        first = first[..., _seen(spec["nodes"][0])]
    return float(first.mean())


def _seen(node):
    """Returns which keys (columns) each query (row) of an attention sees."""
    # Here, since a plain Snakemake plans without it.
    import numpy as np

    shape = (node["shape"][0],) * 2
    return np.tri(*shape, dtype=bool) if node.get("causal") else np.ones(shape, bool)


def _fault_of_shares(steps, both, rate, seen):
    """Says the same of shares (steps, batch, layers, heads, copies, queries, keys)."""
    layer = "dropout of {:g} of an attention's shares".format(rate)
    if (abs(steps[..., 0, :, :] - steps[..., 1, :, :]) > 2 * MASK_OF_SHARES).any():
        return "{} drops what an attention gives, and not its shares".format(layer)
    steps, both = steps[..., 0, :, :], both[..., 0, :, :]
    kept = abs(steps) > MASK
    alike = kept[..., seen]
    pairs = [
        ("in each step", alike[:-1], alike[1:]),
        ("in each sample", alike[:, :-1], alike[:, 1:]),
        ("in each layer", alike[:, :, :-1], alike[:, :, 1:]),
        ("in each head", alike[:, :, :, :-1], alike[:, :, :, 1:]),
        ("for each query", kept[..., :-1, :][..., seen[:-1]], kept[..., 1:, :][..., seen[:-1]]),
    ]
    neighbours = (kept[..., at::2][..., seen[:, 1::2]] for at in (0, 1))
    alone = ["whole queries", *neighbours, both[..., seen]]
    return _fault(layer, "shares", rate, steps[..., seen], pairs, *alone)


def _fault(layer, dropped, rate, steps, pairs, whole="", one=None, other=None, both=None):
    """Says the same of masks, no two of which may be alike in `pairs`: (where, some, others).

    Single values may not be dropped together with neighbours either (`whole`, `one`, `other`), nor in `both` steps of a
    call.
    """
    near = MASK_OF_SHARES if dropped == "shares" else MASK
    kept, scaled = abs(steps) > MASK, abs(steps * (1 - rate) - 1) < near
    if not (scaled | ~kept).all():
        makes = "{} makes other values of 1 than 0 and {:.4g}, which keeps the mean"
        return makes.format(layer, 1 / (1 - rate))
    # Two masks that have nothing to do with each other agree by chance in this share of places.
    chance = (1 - rate) ** 2 + rate**2
    telling = chance + TELLTALE * (1 - chance)
    for where, some, others in pairs:
        if others.size and (some == others).mean() > telling:
            return "{} drops the same {} {}".format(layer, dropped, where)
    if whole and (one == other).mean() > telling:
        return "{} drops neighbours together, such as {}".format(layer, whole)
    # If two steps have independent masks, only one of them keeps at least so many values.
    alone = (1 - TELLTALE) * 2 * rate * (1 - rate)
    if whole and (abs(both * (1 - rate) - 1) < 2 * near).mean() < alone:
        return "{} drops the same {} in each step of a call".format(layer, dropped)
    allowed = SIGMAS * (rate * (1 - rate) / kept.size) ** 0.5
    if abs(kept.mean() - (1 - rate)) > allowed:
        keeps = "{} keeps {:.4f} of {:,} {}, more than {:.4f} from {:g}"
        return keeps.format(layer, kept.mean(), kept.size, dropped, allowed, 1 - rate)
    return ""
