"""Mends in Python what SINGA's wheel cannot do as it comes: it was made without two of its rules for SWIG.

NumPy's arrays cannot go in and out, and a list of tensors comes back as a bare pointer that nothing can read or free.
Both are reached by their addresses in memory, with functions of SINGA's own library; SINGA computes every number. The
places in memory are those of SINGA 3.0.0.
"""

import ctypes

import numpy as np
from singa import device
from singa import singa_wrap as core

# Place of the memory block in a tensor of C++: behind its type and the shared pointer to its device.
_BLOCK = 24

_library = ctypes.CDLL(core._singa_wrap.__file__)
_memory = _library._ZN5singa5Block12mutable_dataEv
_memory.restype, _memory.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
_assign = _library._ZN5singa6TensoraSERKS0_
_assign.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_end_vector = _library._ZNSt6vectorIN5singa6TensorESaIS1_EED1Ev
_delete = _library._ZdlPv
_end_vector.argtypes = _delete.argtypes = [ctypes.c_void_p]


def _listed(function):
    """Makes a function of SINGA that returns a list of three tensors return them to Python, too."""

    def call(*arguments):
        vector = function(*arguments)
        vector.disown()
        begin, end = (ctypes.c_void_p * 2).from_address(int(vector))
        tensors = [core.Tensor() for _ in range(3)]
        for place, each in enumerate(tensors):
            _assign(int(each.this), begin + place * (end - begin) // 3)
        _end_vector(int(vector))
        _delete(int(vector))
        return tensors

    return call


for name in ("CpuBatchNormForwardTraining", "CpuBatchNormBackwardx"):
    setattr(core, name, _listed(getattr(core, name)))


def empty(*shape):
    """Returns a C++ tensor whose values are not set."""
    return core.Tensor(list(shape), device.get_default_device(), core.kFloat32)


def view(data):
    """Returns the memory of a C++ tensor as a flat array."""
    block = ctypes.c_void_p.from_address(int(data.this) + _BLOCK).value
    return np.ctypeslib.as_array((ctypes.c_float * data.Size()).from_address(_memory(block)))


def filled(value, *shape):
    """Returns a C++ tensor filled with one value."""
    made = empty(*shape)
    made.SetFloatValue(value)
    return made


def joined(parts):
    """Joins tensors on axis 1; SINGA itself only joins lists, which its wheel cannot take."""
    shapes = [list(part.shape()) for part in parts]
    whole = empty(shapes[0][0], sum(shape[1] for shape in shapes), *shapes[0][2:])
    places, end = view(whole).reshape(shapes[0][0], -1), 0
    for part in parts:
        values = view(part).reshape(shapes[0][0], -1)
        places[:, end : end + values.shape[1]] = values
        end += values.shape[1]
    return whole
