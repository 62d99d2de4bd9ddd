"""Theano as its own tutorial has it: products through NumPy, whose OpenBLAS chooses its code; no switch turned.

Its function and updates are those of `build`, as the tutorial writes them: an LSTM's inputs are multiplied before the
loop there, too.
"""

from . import build as build

MODES = ("plain",)
KERNELS = ""
