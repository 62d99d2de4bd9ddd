"""Ways of getting dropout wrong, each planted in an adapter: at each size, or above that of the narrow proof alone."""

from types import SimpleNamespace

import numpy as np
from defects.full_size import NARROW
from defects.stand_in import RIGHT, Trainer, replacing

from shared.specification import rate_of, without_dropout


def drawn(random, shape, rate):
    """A right mask."""
    return (random.random_sample(shape) >= rate) / (1 - rate)


class Drawn:
    """Numbers that make these factors when a layer compares them with its rate."""

    def __init__(self, factors):
        self.factors = factors

    def __ge__(self, rate):
        return self.factors * (1 - rate)


def masking(mask, above=0):
    """A trainer that drops by `mask(random, shape, rate)`, of more than so many samples; or the trainer that it is."""
    if isinstance(mask, type):
        return mask

    def dropping(kind):
        def forward(node, own, x):
            def made(shape):
                return Drawn(mask(node["random"], shape, rate_of(node)))

            if len(x) <= above or "random" not in node:
                return RIGHT[kind](node, own, x)
            wrong = SimpleNamespace(random_sample=made)
            return RIGHT[kind](dict(node, random=wrong), own, x)

        return forward

    return replacing(dropout=dropping("dropout"), attention=dropping("attention"))


def of_output(node, own, x):
    """Drops what an attention gives, and none of its shares."""
    still = {key: node[key] for key in node if key != "random"}
    y, backward = RIGHT["attention"](still, own, x)
    if "random" not in node:
        return y, backward
    factors = drawn(node["random"], y.shape, node["dropout"])
    return y * factors, lambda dy: backward(dy * factors)


# Where dropout can be: on samples of so many axes, and on an attention's shares (batch, heads, queries, keys).
SHARES = "shares"
VALUES, ANY = "makes other values of 1 than 0", (1, 2, 3, SHARES)


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


# {defect: (mask, words of the refusal, where it can be)}
MASKS = {
    "left out": (lambda random, shape, rate: np.ones(shape), VALUES, ANY),
    "not scaled": (lambda *how: drawn(*how) * (1 - how[-1]), VALUES, ANY),
    # At 0.5 as many are dropped as kept.
    "rate for keep": (
        lambda random, shape, rate: drawn(random, shape, 1 - rate),
        VALUES,
        (2, 3, SHARES),
    ),
    "drawn once": (drawn_once, "in each step", ANY),
    "drawn once a call": (OnceACall, "in each step of a call", ANY),
    "the same in each layer": (in_pairs, "keeps 0", (1, 2, 3)),
    "the same for all samples": (alike(0), "in each sample", ANY),
    "the same at each place": (alike(1), "drops the same values at each place of a sequence", (2,)),
    "whole maps": (alike(2, 3), "drops neighbours together, such as whole maps", (3,)),
    "the same in each attention": (in_pairs, "shares in each layer", (SHARES,)),
    "the same in each head": (alike(1), "shares in each head", (SHARES,)),
    "whole keys": (alike(2), "shares for each query", (SHARES,)),
    "whole queries": (alike(3), "neighbours together, such as whole queries", (SHARES,)),
    "whole heads": (alike(2, 3), "shares for each query", (SHARES,)),
    "the output": (replacing(attention=of_output), "and not its shares", (SHARES,)),
}


def possible(spec):
    """The defects that can be in a network."""
    own = {
        SHARES if "dropout" in node else len(node["in_shape"])
        for node in spec["nodes"]
        if rate_of(node)
    }
    return [defect for defect, (*_, places) in MASKS.items() if own & {*places}]


class AnEighth(Trainer):
    """Trains on an eighth of the samples where something is dropped."""

    def __init__(self, spec, weights, inputs, labels):
        drops = any(rate_of(node) for node in spec["nodes"])
        count = max(1, len(labels) // 8) if drops and len(labels) > NARROW else len(labels)
        super().__init__(spec, weights, inputs[:count], labels[:count])


class LeftOut(Trainer):
    """Drops in the small networks that show masks, and in no other at its own rate."""

    def __init__(self, spec, weights, inputs, labels):
        if "drops" not in spec and len(labels) > NARROW:
            spec = without_dropout(spec)
        super().__init__(spec, weights, inputs, labels)
