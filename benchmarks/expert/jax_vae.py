"""VAE in JAX, with the sizes of PyTorch's example; its noise is given.

python jax_vae.py vae THREADS < commands
"""

import functools

import blocks
import jax
import jax.numpy as jnp
import numpy as np

PIXELS, HIDDEN, CODE, BATCH = 784, 400, 20, 64
random = np.random.default_rng(0)


def dense(features, units):
    deviation = features**-0.5
    return {
        "w": jnp.array(random.normal(0, deviation, (features, units)), jnp.float32),
        "b": jnp.zeros(units),
    }


# One product makes means and logarithms of variances.
sizes = {"wide": (PIXELS, HIDDEN), "code": (HIDDEN, 2 * CODE)}
sizes |= {"back": (CODE, HIDDEN), "made": (HIDDEN, PIXELS)}
parameters = {name: dense(*size) for name, size in sizes.items()}
images = jnp.array(random.uniform(0, 1, (BATCH, PIXELS)), jnp.float32)
noise = jnp.array(random.normal(0, 1, (BATCH, CODE)), jnp.float32)


def compute_loss(parameters, images, noise):
    def apply(name, x):
        return x @ parameters[name]["w"] + parameters[name]["b"]

    mean, spread = jnp.split(apply("code", jax.nn.relu(apply("wide", images))), 2, 1)
    code = mean + jnp.exp(0.5 * spread) * noise
    made = apply("made", jax.nn.relu(apply("back", code)))
    missed = jnp.sum(jax.nn.softplus(made) - made * images)
    return (missed + 0.5 * jnp.sum(mean**2 + jnp.exp(spread) - spread - 1)) / BATCH


@functools.partial(jax.jit, donate_argnums=0)
def step(parameters, images, noise):
    loss, gradients = jax.value_and_grad(compute_loss)(parameters, images, noise)
    return jax.tree.map(lambda w, gradient: w - 0.001 * gradient, parameters, gradients), loss


reached = [parameters]


def train(steps):
    for _ in range(steps):
        reached[0], loss = step(reached[0], images, noise)
    return jax.block_until_ready((reached[0], loss))[1].item()


blocks.obey(train, sum(value.size for value in jax.tree.leaves(parameters)))
