"""A restricted Boltzmann machine and a deep belief network by CD-1 in JAX; their noise is given.

python jax_rbm.py {rbm,dbn} THREADS < commands
"""

import functools
import sys

import blocks
import jax
import jax.numpy as jnp
import numpy as np

UNITS, BATCH, RATE = {"rbm": (784, 500), "dbn": (784, 500, 500)}[sys.argv[1]], 64, 0.01
random = np.random.default_rng(0)


def machine(visible, hidden):
    weight = jnp.array(random.normal(0, 0.01, (visible, hidden)), jnp.float32)
    return {"weight": weight, "visible": jnp.zeros(visible), "hidden": jnp.zeros(hidden)}


def uniform(start, units):
    return jnp.array(random.uniform(start, 1, (BATCH, units)), jnp.float32)


def learn(machine, data, noise):
    """What the parameters become, the free energy of the data less that of the chain's end, and hidden chances."""
    weight, visible, hidden = machine["weight"], machine["visible"], machine["hidden"]
    scores = data @ weight + hidden
    chances = jax.nn.sigmoid(scores)
    drawn = (chances > noise).astype(jnp.float32)
    end = jax.nn.sigmoid(drawn @ weight.T + visible)
    again = end @ weight + hidden
    energy = jnp.sum(jax.nn.softplus(again) - jax.nn.softplus(scores))
    energy += jnp.sum((end - data) @ visible)
    # One product of both ends of the chain.
    signed, share = jnp.concatenate([chances, -jax.nn.sigmoid(again)]), RATE / BATCH
    moved = {
        "weight": weight + share * (jnp.concatenate([data, end]).T @ signed),
        "visible": visible + share * (data - end).sum(0),
        "hidden": hidden + share * signed.sum(0),
    }
    return moved, energy / BATCH, chances


@functools.partial(jax.jit, donate_argnums=0)
def step(machines, pixels, noises):
    data = jax.nn.sigmoid(pixels)
    loss = 0.0
    moved = []
    for machine, noise in zip(machines, noises, strict=True):
        fresh, energy, data = learn(machine, data, noise)
        moved, loss = [*moved, fresh], loss + energy
    return moved, loss


reached = [[machine(*pair) for pair in zip(UNITS, UNITS[1:], strict=False)]]
pixels, noises = uniform(-1, UNITS[0]), [uniform(0, units) for units in UNITS[1:]]


def train(steps):
    for _ in range(steps):
        reached[0], loss = step(reached[0], pixels, noises)
    return jax.block_until_ready((reached[0], loss))[1].item()


blocks.obey(train, sum(value.size for value in jax.tree.leaves(reached)))
