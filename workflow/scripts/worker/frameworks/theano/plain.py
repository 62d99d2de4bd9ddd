"""Theano as its own tutorial has it: products through NumPy, whose OpenBLAS chooses its code; no switch turned.

A function and its updates are those of `build`, which the tutorial writes so: an LSTM's inputs are multiplied before
the loop there, too.
"""

from . import build as build

MODES = ("plain",)
KERNELS = ""
