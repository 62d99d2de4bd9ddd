"""Which GPU JAX computes on, and that its products have the precision that was asked for.

Plain Python that 3.6 can import: JAX.
"""

import jax
from jax import numpy as jnp

from .. import rounding
from ..contract import Unsupported


def first_gpu(precision):
    """The first GPU of this process, with products in a precision.

    Raises Unsupported where it finds none, and NotEquivalent where products have another one. Of itself, JAX rounds
    products and convolutions of float32 to TF32.
    """
    try:
        place = jax.local_devices(backend="gpu")[0]
    except RuntimeError:
        raise Unsupported("JAX {} finds no GPU".format(jax.__version__))
    rounded = {"float32": "highest", "tf32": "default"}
    jax.config.update("jax_default_matmul_precision", rounded[precision])
    rounding.require(
        precision,
        lambda left, right: jnp.matmul(jax.device_put(left, place), jax.device_put(right, place)),
    )
    return place
