"""What is planted in JAX: each function returns what takes which place, as (owner, name, value)."""

import jax


def as_on_a_gpu(adapter):
    """No defect: XLA's own convolutions, which are taken on GPUs."""
    return jax, "default_backend", lambda: "gpu"
