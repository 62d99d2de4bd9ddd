"""MXNet's parts of planted defects (see `planted`), in its mode `graph`."""

import sys
from contextlib import contextmanager

import mxnet as mx

HERE = sys.modules[__name__]
KEPT = "/kept"


def cut(values, bits):
    """Dekker's way: MXNet has no whole numbers of a float's bits."""
    high = values * (2.0 ** (24 - bits) + 1)
    return high - (high - values)


def stopped(values):
    return mx.sym.BlockGrad(values)


def front(values):
    last = mx.sym.slice_axis(values, axis=0, begin=-1, end=None)
    return mx.sym.concat(
        mx.sym.slice_axis(values, axis=0, begin=0, end=-1), mx.sym.BlockGrad(last), dim=0
    )


def in_two(adapter, right):
    def lstm(operators, node, own, value):
        half = node["in_shape"][0] // 2
        asked = {"state_size": node["units"], "num_layers": 1, "mode": "lstm"}
        parts = [
            operators.slice_axis(value, axis=0, begin=begin, end=end)
            for begin, end in ((0, half), (half, None))
        ]
        states, start = {"state_outputs": True}, own("start")
        first = operators.RNN(parts[0], own("packed"), start, start, **dict(asked, **states))
        reached = [stopped(first[1]), stopped(first[2])]
        second = operators.RNN(parts[1], own("packed"), *reached, **asked)
        return operators.concat(first[0], second, dim=0)

    return lstm


@contextmanager
def changing(adapter, changes):
    """Operators of these names take changed parameters and inputs, and give a changed output."""
    right, add = dict(adapter.LAYERS), adapter.Trainer._add_arrays

    def added(self, node, job):
        add(self, node, job)
        if node["name"] in changes and changes[node["name"]].keeps:
            for name in adapter._names(node, self.trained):
                self.states[name + KEPT] = self.trained[name].copy()

    def wrapped(operator):
        def called(operators, node, own, value, *more):
            if node["name"] not in changes:
                return operator(operators, node, own, value, *more)
            change = changes[node["name"]]

            def changed(role):
                return change.parameter(HERE, role, own(role), lambda: own(role + KEPT))

            given = change.given(HERE, value)
            return change.found(HERE, operator(operators, node, changed, given, *more))

        return called

    adapter.LAYERS.update({op: wrapped(operator) for op, operator in right.items()})
    adapter.Trainer._add_arrays = added
    try:
        yield
    finally:
        adapter.LAYERS.update(right)
        adapter.Trainer._add_arrays = add
