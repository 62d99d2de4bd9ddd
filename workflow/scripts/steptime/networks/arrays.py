"""Imports numpy when it is first used: planning only needs shapes and counts, in a Python that may lack numpy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray
else:
    Array = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("numpy"), name)
            # Asked once: the next time it is an attribute like any other.
            setattr(self, name, value)
            return value

    np = _Numpy()

__all__ = ["Array", "np"]
