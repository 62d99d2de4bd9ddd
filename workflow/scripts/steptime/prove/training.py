"""What a proof asks besides of a network that is trained on real images: that a framework trains on what it is fed, at
the rates that it is given, judges without dropout, and drops what dropout must drop.
"""

import numpy as np

from shared import data
from steptime import networks
from steptime.prove import golden

# Weights are held to what `compare` allows after several steps; scores to a thousandth of their spread.
FED_LOSS = 1e-5
FED_UPDATE = 1e-2
SCORES = 1e-3
# A kept value is 1 / (1 - rate) exactly but for what reading it off a float32 weight costs.
MASK = 1e-2
# So far from its mean does the number of kept values stray by chance once in 10**9 draws.
SIGMAS = 6
TELLTALE = 0.9

# Masks of dropout are read off the first weights of a network without hidden layers: one more class than labels tells
# what of a gradient is the mask's. At this rate, a power of two, a step leaves the scores as good as equal.
MASK_RATE = 2.0**-20
MASK_SHAPES = {1: [512], 3: [4, 12, 12]}


def mask_networks(spec, batch):
    """By name, the networks off which the masks of every kind of dropout layer of a network are read, for a batch."""
    return {f"{rate}-{rank}": _mask_network(rate, rank, batch) for rate, rank in _dropouts(spec)}


def _mask_network(rate, rank, batch):
    layers = (
        [{"dropout": {"rate": rate}}] + ["flatten"] * (rank > 1) + [{"dense": {"units": batch + 1}}]
    )
    source = {"kind": "image" if rank > 1 else "dense", "shape": MASK_SHAPES[rank]}
    entry = {
        "input": source,
        "sizes": {},
        "narrow": {},
        "layers": layers,
        "learning_rate": MASK_RATE,
    }
    return dict(networks.specify("masks", {"masks": entry}), seed=data.SEED)


def _dropouts(spec):
    """Every (rate, number of axes of a sample) of a dropout layer."""
    return sorted(
        {(node["rate"], len(node["in_shape"])) for node in spec["nodes"] if node["op"] == "dropout"}
    )


def check_scores(spec, expected, measured, details):
    """With dropout in the network, what it is judged by has none."""
    if "dataset" not in spec:
        return None
    inputs, _ = data.synthetic_batch(spec, expected.batch)
    wanted, _ = golden.forward(
        spec, {name: np.float64(values) for name, values in expected.start.items()}, inputs
    )
    error = np.abs(measured["scores"] - wanted).max() / wanted.std()
    details["scores_error"] = float(error)
    if not error <= SCORES:
        return (
            f"the scores by which the network is judged are off by {error:.2g} of their spread: "
            "dropout may be in them"
        )
    return None


def check_feeding(spec, expected, measured, details):
    """Weights and mean loss after one call that feeds several mini-batches at their own learning rates."""
    if "dataset" not in spec:
        return None
    weights, losses, state = expected.start, [], {}
    for inputs, labels, rate in data.fed_batches(spec, expected.batch):
        at_rate = dict(spec, optimiser=dict(spec["optimiser"], learning_rate=rate))
        taken = golden.train_step(at_rate, weights, inputs, labels, state, expected.shares)
        weights = taken.updated
        losses.append(taken.loss)
    error = abs(measured["fed_loss"] - np.mean(losses)) / np.mean(losses)
    details["fed_loss_error"] = float(error)
    if not error <= FED_LOSS:
        return (
            f"the mean loss over {len(losses)} mini-batches that were fed is {float(measured['fed_loss']):.6g} in the "
            f"framework and {np.mean(losses):.6g} in the specification"
        )
    errors = {
        name: np.linalg.norm(measured[f"fed/{name}"] - wanted)
        / np.linalg.norm(wanted - expected.start[name])
        for name, wanted in weights.items()
    }
    worst = farthest(errors)
    details.update(fed_update=float(errors[worst]), fed_update_of=worst)
    if not errors[worst] <= FED_UPDATE:
        way = f"off by {errors[worst]:.2g} of the way it should have gone"
        return f"{worst} is wrong after {len(losses)} mini-batches were fed: {way}"
    return None


def farthest(errors):
    """The name of the largest error; one that is no number is larger than all."""
    return max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))


def check_dropout(spec, expected, measured, details):
    """Values are dropped one by one, at the rate, others in each step and sample, and the rest is scaled."""
    for rate, rank in _dropouts(spec) if "dataset" in spec else []:
        masks = measured[f"masks/{rate}-{rank}"]
        kept, scaled = np.abs(masks) > MASK, np.abs(masks * (1 - rate) - 1) < MASK
        share = float(kept.mean())
        details[f"dropout_{rate}_{rank}_kept"] = share
        layer = f"dropout of {rate:g} on {'feature maps' if rank > 1 else 'vectors'}"
        if not (scaled | ~kept).all():
            return f"{layer} makes other values of 1 than 0 and {1 / (1 - rate):.4g}, which keeps the mean"
        allowed = SIGMAS * np.sqrt(rate * (1 - rate) / kept.size)
        if abs(share - (1 - rate)) > allowed:
            return f"{layer} keeps {share:.4f} of {kept.size:,} values, more than {allowed:.4f} from {1 - rate:g}"
        # Two masks that have nothing to do with each other agree by chance in this share of places.
        chance = (1 - rate) ** 2 + rate**2
        telling = chance + TELLTALE * (1 - chance)
        if (kept[0] == kept[1]).mean() > telling:
            return f"{layer} drops the same values in each step"
        if (kept[:, :1] == kept[:, 1:]).mean() > telling:
            return f"{layer} drops the same values in each sample"
        neighbours = kept.reshape(*kept.shape[:2], -1, 2)
        if (neighbours[..., 0] == neighbours[..., 1]).mean() > telling:
            return f"{layer} drops neighbours together, such as whole maps"
    return None


CHECKS = {"scores": check_scores, "feeding": check_feeding, "dropout": check_dropout}
