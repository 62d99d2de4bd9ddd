"""CNTK as its own layers have it: the whole LSTM inside of the loop, MKL's own choice of code; no switch turned."""

import cntk as library

from .. import cntk

MODES = ("plain",)
OPTIMISERS = ("sgd",)
DEVICES = ("cpu",)
KERNELS = ""


def build(job):
    return cntk.build(job, _Trainer)


class _Trainer(cntk.Trainer):
    settings = dict(cntk.Trainer.settings, plain="a Recurrence of whole steps")

    def layer(self, kind):
        return _lstm if kind == "lstm" else super(_Trainer, self).layer(kind)


def _lstm(node, own, value):
    """Returns a loop as `cntk.layers.LSTM` has it, which multiplies each step's input by itself."""
    units = node["units"]

    @library.Function
    def step(output, cell, given):
        sums = own["bias"] + library.times(given, own["input"])
        sums = sums + library.times(output, own["recurrent"])
        i, f, g, o = (
            library.slice(sums, -1, gate * units, (gate + 1) * units) for gate in range(4)
        )
        cell = library.sigmoid(f) * cell + library.sigmoid(i) * library.tanh(g)
        return library.sigmoid(o) * library.tanh(cell), cell

    return library.layers.Recurrence(step)(value)
