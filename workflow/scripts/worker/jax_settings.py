"""Which GPU JAX computes on, and that its products are those of float32.

Plain Python that 3.6 can import: JAX.
"""

import jax
from jax import numpy as jnp

from . import rounding
from .contract import Unsupported


def first_gpu():
    """JAX's first GPU. Raises Unsupported where it finds none, and NotEquivalent where that rounds to TF32."""
    try:
        place = jax.devices("gpu")[0]
    except RuntimeError:
        raise Unsupported("JAX {} finds no GPU".format(jax.__version__))
    rounding.require_float32(
        lambda left, right: jnp.matmul(jax.device_put(left, place), jax.device_put(right, place))
    )
    return place
