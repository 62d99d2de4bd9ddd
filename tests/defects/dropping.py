"""Ways of getting dropout wrong, each planted in an adapter: at each size, or above that of the narrow proof alone."""

import numpy as np
from defects.full_size import NARROW
from defects.stand_in import RIGHT, Trainer, replacing

from shared.specification import without_dropout


def drawn(random, shape, rate):
    """A right mask."""
    return (random.random_sample(shape) >= rate) / (1 - rate)


def masking(mask, above=0):
    """A trainer that drops by `mask(random, shape, rate)`, of more than so many samples; or the trainer that it is."""
    if isinstance(mask, type):
        return mask

    def dropout(node, own, x):
        if len(x) <= above or "random" not in node:
            return RIGHT["dropout"](node, own, x)
        factors = mask(node["random"], x.shape, node["rate"])
        return x * factors, lambda dy: ([dy * factors], {})

    return replacing(dropout=dropout)


VALUES, ANY = "makes other values of 1 than 0", (1, 2, 3)


def drawn_once(random, shape, rate):
    return drawn(np.random.RandomState(7), shape, rate)


class OnceACall(Trainer):
    """Draws masks once a call, and uses them in all of its steps."""

    def run(self, steps):
        drawing = [node["random"] for node in self.spec["nodes"] if "random" in node]
        before = [random.get_state() for random in drawing]
        for _ in range(steps):
            for random, state in zip(drawing, before, strict=True):
                random.set_state(state)
            loss = super().run(1)
        return loss


BEFORE: list[np.ndarray] = []


def in_pairs(random, shape, rate):
    """The mask of a layer is that of the layer before."""
    if BEFORE:
        return BEFORE.pop()
    BEFORE.append(drawn(random, shape, rate))
    return BEFORE[0]


def alike(*axes):
    """A mask that is the same along these axes."""

    def mask(random, shape, rate):
        one = [1 if axis in axes else size for axis, size in enumerate(shape)]
        return drawn(random, one, rate) + np.zeros(shape)

    return mask


# {defect: (mask, words of the refusal, numbers of axes of a sample where it can be)}
MASKS = {
    "left out": (lambda random, shape, rate: np.ones(shape), VALUES, ANY),
    "not scaled": (lambda *how: drawn(*how) * (1 - how[-1]), VALUES, ANY),
    # At 0.5 as many are dropped as kept.
    "rate for keep": (lambda random, shape, rate: drawn(random, shape, 1 - rate), VALUES, (2, 3)),
    "drawn once": (drawn_once, "drops the same values in each step", ANY),
    "drawn once a call": (OnceACall, "drops the same values in each step of a call", ANY),
    "the same in each layer": (in_pairs, "keeps 0", ANY),
    "the same for all samples": (alike(0), "drops the same values in each sample", ANY),
    "the same at each place": (alike(1), "drops the same values at each place of a sequence", (2,)),
    "whole maps": (alike(2, 3), "drops neighbours together, such as whole maps", (3,)),
}


def possible(spec):
    """The defects that can be in a network."""
    ranks = {len(node["in_shape"]) for node in spec["nodes"] if node.get("rate")}
    return [defect for defect, (*_, places) in MASKS.items() if ranks & {*places}]


class AnEighth(Trainer):
    """Trains on an eighth of the samples where something is dropped."""

    def __init__(self, spec, weights, inputs, labels):
        drops = any(node.get("rate") for node in spec["nodes"])
        count = max(1, len(labels) // 8) if drops and len(labels) > NARROW else len(labels)
        super().__init__(spec, weights, inputs[:count], labels[:count])


class LeftOut(Trainer):
    """Drops in the small networks that show masks, and in no other at its own rate."""

    def __init__(self, spec, weights, inputs, labels):
        if len(spec["nodes"]) > 3 and len(labels) > NARROW:
            spec = without_dropout(spec)
        super().__init__(spec, weights, inputs, labels)
