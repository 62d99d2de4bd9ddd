"""JAX 0.4.13 to 0.4.30: the adapter of later ones, where an array cannot yet be made directly on a device."""

from jax import __version__, device_put, devices, nn, random
from jax import numpy as jnp

from ...contract import Unsupported
from .. import jax

MODES = ("compiled",)
LOSSES = jax.LOSSES
OPTIMISERS = jax.OPTIMISERS
TASKS = ("step", "training")
LAYERS = jax.LAYERS
LAYOUT = jax.LAYOUT
REASONS = {"gpu": "the adapter of JAX before 0.4.31 is for CPUs"}

versions = jax.versions
if not hasattr(random, "key"):
    # Before 0.4.16.
    random.key = random.PRNGKey


def build(job):
    kinds = {node["op"] for node in job.spec["nodes"]}
    if "attention" in kinds and not hasattr(nn, "dot_product_attention"):
        raise Unsupported("JAX {} has no function for attention".format(__version__))
    place = devices("cpu")[0]
    # device_put may borrow numpy's memory, which must not be given away with the parameters.
    parameters = {name: device_put(jnp.array(job.take(name)), place) for name in job.layout.names}
    batch = device_put(job.inputs, place)
    answers = device_put(job.labels.reshape(-1), place)
    return jax.Trainer(job, parameters, batch, answers)
