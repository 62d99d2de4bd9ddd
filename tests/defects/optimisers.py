"""Defects of the updates of momentum, Adam and AdamW."""

from defects.planting import Updating, by

from steptime.networks import optimisers
from steptime.prove import golden


class Dampened(Updating):
    """Momentum of which a gradient is but a tenth, as PyTorch's `dampening` of 0.9 makes it."""

    def updated(self, gradients, kept):
        found = {}
        for name, gradient in gradients.items():
            kept[name] = 0.9 * kept[name] + 0.1 * gradient if name in kept else gradient
            found[name] = self.values[name] - self.spec["optimiser"]["learning_rate"] * kept[name]
        return found


class Decaying(Updating):
    """AdamW with its decay in the gradient, as Adam's `weight_decay` in PyTorch."""

    def updated(self, gradients, kept):
        rule = self.spec["optimiser"]
        decayed = {
            name: gradient + rule["weight_decay"] * self.values[name] * (gradient.ndim > 1)
            for name, gradient in gradients.items()
        }
        return optimisers.update(dict(rule, name="adam"), self.values, decayed, kept)


class DecayingAll(Updating):
    """AdamW that lets biases and the weights of norms decay, too."""

    def updated(self, gradients, kept):
        rule = self.spec["optimiser"]
        found = optimisers.update(dict(rule, name="adam"), self.values, gradients, kept)
        lost = rule["learning_rate"] * rule["weight_decay"]
        return {name: values - lost * self.values[name] for name, values in found.items()}


class Uncorrected(Updating):
    """Adam whose averages are not corrected for their start at zero."""

    def updated(self, gradients, kept):
        rule = self.spec["optimiser"]
        for name in gradients:
            # After so many steps there is nothing to correct.
            kept.setdefault(name, [0.0, 0.0])[2:] = [10**6]
        return optimisers.update(rule, self.values, gradients, kept)


class Shortened(Updating):
    """Adam whose averages are kept in bfloat16."""

    def updated(self, gradients, kept):
        found = optimisers.update(self.spec["optimiser"], self.values, gradients, kept)
        for averages in kept.values():
            averages[:2] = [golden.coarse(values, 8) for values in averages[:2]]
        return found


PLANTED = {
    "averages of Adam in bfloat16": by("gpt-small-adamw", Shortened, "of their way in the median"),
    "momentum with dampening": by("fcn5-momentum", Dampened, "a call of 3 steps"),
    "weight decay in the gradient": by("gpt-small-adamw", Decaying, "after one step"),
    "decay of biases and norms": by("gpt-small-adamw", DecayingAll, "after one step"),
    "Adam without its correction": by("gpt-small-adam", Uncorrected, "after one step"),
}
