"""JAX 0.4.13 to 0.4.30: the adapter of later ones, where an array is not yet made on a device."""

from jax import device_put, devices, nn, random
from jax import numpy as jnp

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


def _attend(queries, keys, values, is_causal):
    """Attention over (batch, steps, heads, size), as two products, a mask and a softmax."""
    steps, _, size = queries.shape[1:]
    scores = jnp.einsum("bqhs,bkhs->bhqk", queries * size**-0.5, keys)
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones((steps, steps), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhs->bqhs", nn.softmax(scores), values)


if not hasattr(nn, "dot_product_attention"):
    # Before 0.4.31.
    nn.dot_product_attention = _attend


def build(job):
    place = devices("cpu")[0]
    # device_put may borrow numpy's memory, which must not be given away with the parameters.
    parameters = {name: device_put(jnp.array(job.take(name)), place) for name in job.layout.names}
    batch = device_put(job.inputs, place)
    answers = device_put(job.labels.reshape(-1), place)
    return jax.Trainer(job, parameters, batch, answers)
