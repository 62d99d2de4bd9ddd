"""Defects in PyTorch: each function returns what takes which place, as (owner, name, value)."""

import torch


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(values):
        # Its parameters have gradients, all of them zero.
        return values.detach() + 0.0 * values

    return adapter.LAYERS, "reversal", lambda node, _: adapter._Call(held)


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""

    class Turned(adapter._ConvTranspose2d):
        def forward(self, values):
            weight = self.weight.transpose(2, 3)
            return adapter.functional.conv_transpose2d(
                *(values, weight, self.bias, self.stride, self.padding)
            )

    return adapter, "_ConvTranspose2d", Turned


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def scores(values, table):
        return adapter.functional.linear(values, table.detach())

    return adapter.LAYERS, "unembedding", lambda node, _: adapter._Call(scores)


def decaying(adapter):
    """AdamW with its decay in the gradient, as Adam's `weight_decay`."""

    def adamw(parameters, wanted):
        settings = adapter._averaging(wanted)
        return torch.optim.Adam(parameters, weight_decay=wanted["weight_decay"], **settings)

    return adapter._MOVING, "adamw", adamw


def shortened(adapter):
    """AdamW whose averages are kept in bfloat16."""

    class Shortened(torch.optim.AdamW):
        def step(self, closure=None):
            loss = super().step(closure)
            for state in self.state.values():
                for name in ("exp_avg", "exp_avg_sq"):
                    state[name].copy_(state[name].bfloat16())
            return loss

    return adapter.torch.optim, "AdamW", Shortened
