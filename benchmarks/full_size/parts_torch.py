"""PyTorch's parts of planted defects (see `planted`)."""

import sys
from contextlib import contextmanager

import torch

HERE = sys.modules[__name__]


def cut(values, bits):
    """Rounded to nearest by a whole number that has the bits of the float."""
    drop = 24 - bits
    whole = values.detach().contiguous().view(torch.int32) + (1 << (drop - 1))
    return (whole & -(1 << drop)).view(torch.float32)


def stopped(values):
    return values.detach()


def front(values):
    return torch.cat([values[:-1], values[-1:].detach()])


def in_two(adapter, right):
    def make(node, in_place):
        module = right(node, in_place)
        through = torch.nn.LSTM.forward

        def forward(values):
            half = len(values) // 2
            first, state = through(module, values[:half])
            state = tuple(each.detach() for each in state)
            return torch.cat([first, through(module, values[half:], state)[0]])

        module.forward = forward
        return module

    return make


@contextmanager
def changing(adapter, changes):
    """Modules of these names take changed parameters and inputs, and give a changed output."""
    right = dict(adapter.LAYERS)

    def wrapped(op, make):
        def made(node, in_place):
            module = make(node, in_place)
            if node["name"] in changes:
                roles = {home[0]: role for role, home in adapter._HOMES.get(op, {}).items()}
                _change(module, changes[node["name"]], roles)
            return module

        return made

    adapter.LAYERS.update({op: wrapped(op, make) for op, make in right.items()})
    try:
        yield
    finally:
        adapter.LAYERS.update(right)


def _change(module, change, roles):
    right = module.forward
    kept = {}

    def forward(values, *more):
        own = dict(module.named_parameters())
        for name, value in own.items():
            if change.keeps and name in roles:
                kept.setdefault(name, value.detach().clone())
        changed = {
            name: change.parameter(HERE, roles[name], value, lambda name=name: kept[name])
            for name, value in own.items()
            if name in roles
        }
        module.forward = right
        found = torch.func.functional_call(module, changed, (change.given(HERE, values), *more))
        module.forward = forward
        return change.found(HERE, found)

    module.forward = forward
