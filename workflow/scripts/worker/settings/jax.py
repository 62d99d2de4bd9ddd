"""Chooses JAX's GPU, checks the precision of its products, and says which libraries compute them."""

from importlib import metadata

import jax
from jax import numpy as jnp

from .. import rounding
from ..contract import Unsupported

# NVIDIA's packages for CUDA 13, and for CUDA 12: JAX does not say what its plugin calls.
PACKAGES = {
    "cuda": ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    "cudnn": ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
}


def cuda_versions():
    """Returns the versions of CUDA and cuDNN, by their packages; {} where there are none."""
    found = {}
    for library, names in PACKAGES.items():
        for name in names:
            try:
                found.setdefault(library, metadata.version(name))
            except metadata.PackageNotFoundError:
                pass
    return found


def narrowed(precision, values):
    """Casts arrays to the type in which a precision multiplies; vectors stay: XLA would add them up in bfloat16."""
    if precision != "bfloat16":
        return values
    return jax.tree_util.tree_map(
        lambda value: (
            value.astype(jnp.bfloat16) if value.dtype == jnp.float32 and value.ndim > 1 else value
        ),
        values,
    )


def configure_cpu(precision):
    """Returns a precision's settings; raises NotEquivalent where products keep other bits."""
    if precision != "bfloat16":
        return {}
    product = jax.jit(lambda *both: jnp.matmul(*narrowed(precision, both)))
    return rounding.in_bfloat16(lambda *both: product(*both).astype(jnp.float32))


def first_gpu(precision, asked):
    """Returns the first GPU, with products as `asked`. Raises Unsupported without one, else NotEquivalent."""
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
