"""What layers of dropout may make of ones, on both sides of a proof: in a narrow network and at full size."""

# A kept value is 1 / (1 - rate) exactly but for what reading it off a float32 weight costs.
MASK = 1e-2
# So far from its mean does the number of kept values stray by chance once in 10**9 draws.
SIGMAS = 6
TELLTALE = 0.9
# Up to this rate, two layers in a row show whether each layer has its own masks. Above it, they leave too few values.
TWICE = 0.5
# How a layer is called, by the number of axes of a sample.
PLACES = {1: "vectors", 2: "sequences", 3: "feature maps"}


def fault(masks, spec):
    """Says what is wrong with the masks of steps, and of two more in one call, (steps + 1, batch, ...sample), in a
    sentence: single values are dropped, at the rate, others in each layer, step and sample; "" where nothing is.
    `spec` is what has shown them, and says whether whole samples are dropped.
    """
    steps, both, rate = masks[:-1], masks[-1], spec["nodes"][0]["rate"]
    if spec["drops_samples"]:
        layer, dropped = "stochastic depth of {:g}".format(rate), "samples"
    else:
        layer, dropped = "dropout of {:g} on {}".format(rate, PLACES[masks.ndim - 2]), "values"
    if rate <= TWICE:
        layer, rate = layer + " twice", 1 - (1 - rate) ** 2
    if spec["drops_samples"]:
        steps = steps.reshape(steps.shape[:2] + (-1,))
        if (abs(steps - steps[..., :1]) > 2 * MASK).any():
            return "{} drops parts of a sample".format(layer)
        steps = steps[..., 0]
    kept, scaled = abs(steps) > MASK, abs(steps * (1 - rate) - 1) < MASK
    if not (scaled | ~kept).all():
        makes = "{} makes other values of 1 than 0 and {:.4g}, which keeps the mean"
        return makes.format(layer, 1 / (1 - rate))
    # Two masks that have nothing to do with each other agree by chance in this share of places.
    chance = (1 - rate) ** 2 + rate**2
    telling = chance + TELLTALE * (1 - chance)
    pairs = [("in each step", kept[:-1], kept[1:]), ("in each sample", kept[:, :-1], kept[:, 1:])]
    if kept.ndim == 4:
        pairs.append(("at each place of a sequence", kept[:, :, :-1], kept[:, :, 1:]))
    for where, one, other in pairs:
        if other.size and (one == other).mean() > telling:
            return "{} drops the same {} {}".format(layer, dropped, where)
    reason = "" if spec["drops_samples"] else _fault_of_values(kept, both, rate, telling)
    if reason:
        return "{} {}".format(layer, reason)
    allowed = SIGMAS * (rate * (1 - rate) / kept.size) ** 0.5
    if abs(kept.mean() - (1 - rate)) > allowed:
        keeps = "{} keeps {:.4f} of {:,} {}, more than {:.4f} from {:g}"
        return keeps.format(layer, kept.mean(), kept.size, dropped, allowed, 1 - rate)
    return ""


def _fault_of_values(kept, both, rate, telling):
    """Returns the same of what single values alone show, without the layer."""
    if (kept[..., ::2] == kept[..., 1::2]).mean() > telling:
        return "drops neighbours together, such as whole maps"
    # Of two steps that have nothing to do with each other, one alone keeps so many values.
    if (abs(both * (1 - rate) - 1) < 2 * MASK).mean() < (1 - TELLTALE) * 2 * rate * (1 - rate):
        return "drops the same values in each step of a call"
    return ""
