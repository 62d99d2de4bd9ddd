"""A GAN for MNIST in JAX, whose players move at once; its codes are given.

python jax_gan.py gan THREADS < commands
"""

import jax
import jax.numpy as jnp
import loops
import numpy as np

PIXELS, CODE, MADE, JUDGED, BATCH = 784, 100, 1200, 240, 64
random = np.random.default_rng(0)


def uniform(*shape):
    return jnp.array(random.uniform(-1, 1, shape), jnp.float32)


def player(*units):
    pairs = zip(units, units[1:], strict=False)
    return [{"w": uniform(m, n) * (3 / m) ** 0.5, "b": jnp.zeros(n)} for m, n in pairs]


def play(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


@jax.custom_vjp
def reverse(x):
    """So that the generator climbs where the judge descends."""
    return x


reverse.defvjp(lambda x: (x, None), lambda _, upstream: (-upstream,))


def compute_loss(parameters, given, verdicts):
    images, codes = given
    made = reverse(jnp.tanh(play(parameters["generator"], codes)))
    scores = play(parameters["judge"], jnp.concatenate([images, made]))
    return jnp.mean(jax.nn.softplus(scores) - verdicts * scores)


parameters = {
    "generator": player(CODE, MADE, MADE, PIXELS),
    "judge": player(PIXELS, JUDGED, JUDGED, 1),
}
verdicts = jnp.concatenate([jnp.ones((BATCH, 1)), jnp.zeros((BATCH, 1))])
loops.jax(parameters, compute_loss, (uniform(BATCH, PIXELS), uniform(BATCH, CODE)), verdicts)
