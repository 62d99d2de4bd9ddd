"""Optimisers that PyTorch 1.0 lacks: Adam as later ones have it, and AdamW."""

import torch


class AdamW(torch.optim.Adam):
    """By PyTorch's own Adam, which adds epsilon to a root before it is corrected: so epsilon is corrected instead."""

    def __init__(self, parameters, weight_decay=0.0, **wanted):
        super(AdamW, self).__init__(parameters, weight_decay=weight_decay, **wanted)
        self._steps = 0
        for group in self.param_groups:
            # Adam would add it to the gradient.
            group["decay"], group["weight_decay"] = group["weight_decay"], 0.0

    def step(self):
        """Takes a step, as PyTorch's own does."""
        self._steps += 1
        for group in self.param_groups:
            group["eps"] = self.defaults["eps"] * (1 - group["betas"][1] ** self._steps) ** 0.5
            if group["decay"]:
                for value in group["params"]:
                    value.data.mul_(1 - group["lr"] * group["decay"])
        super(AdamW, self).step()


# Without decay, AdamW is Adam.
Adam = AdamW
