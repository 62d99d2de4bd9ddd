"""Which GPU JAX computes on, and that its products have the precision that was asked for.

Plain Python that 3.6 can import: JAX.
"""

import jax
from jax import numpy as jnp

from .. import rounding
from ..contract import Unsupported


def first_gpu(precision, asked):
    """Returns the first GPU of this process, with products in a precision, for which JAX is `asked` this.

    Raises Unsupported where it finds none, and NotEquivalent where products have another one.
    """
    try:
        place = jax.local_devices(backend="gpu")[0]
    except RuntimeError:
        raise Unsupported("JAX {} finds no GPU".format(jax.__version__))
    jax.config.update("jax_default_matmul_precision", asked["matmul"])
    rounding.require(
        precision,
        lambda left, right: jnp.matmul(jax.device_put(left, place), jax.device_put(right, place)),
    )
    return place
