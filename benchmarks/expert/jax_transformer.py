"""GPT-small, BERT-base, ViT-tiny and MLP-Mixer in JAX.

python jax_transformer.py {gpt-small,gpt-small-adamw,bert-base,vit-tiny,mlp-mixer} THREADS < commands
"""

import functools
import sys

import jax
import jax.numpy as jnp
import loops
import numpy as np

random = np.random.default_rng(0)


def normal(deviation, *shape):
    return jnp.array(random.normal(0, deviation, shape), jnp.float32)


def dense(features, units, bias=True):
    made = {"w": normal(features**-0.5, features, units)}
    return made | {"b": jnp.zeros(units)} if bias else made


def scales(units, bias=True):
    return {"w": jnp.ones(units)} | ({"b": jnp.zeros(units)} if bias else {})


def block(units, hidden, bias=True, patches=None):
    """Two branches with a norm each: attention, or layers over the patches, and layers over the units."""
    first = [dense(units, 3 * units, bias), dense(units, units, bias)]
    if patches:
        first = [dense(patches, 256), dense(256, patches)]
    second = [dense(units, hidden, bias), dense(hidden, units, bias)]
    return [(first, scales(units, bias)), (second, scales(units, bias))]


def apply(layer, x):
    """A product of rows: XLA takes long for a product of more dimensions on CPUs."""
    rows = x.reshape(-1, x.shape[-1]) @ layer["w"]
    return (rows + layer["b"] if "b" in layer else rows).reshape(*x.shape[:-1], -1)


def norm(epsilon, layer, x):
    x = jax.nn.standardize(x, epsilon=epsilon) * layer["w"]
    return x + layer["b"] if "b" in layer else x


def attend(heads, causal, layers, x):
    batch, steps, units = x.shape
    q, k, v = jnp.split(apply(layers[0], x).reshape(batch, steps, 3 * heads, -1), 3, 2)
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return apply(layers[1], y.reshape(batch, steps, units))


def mix(layers, x):
    return mlp(layers, x.swapaxes(1, 2)).swapaxes(1, 2)


def mlp(layers, x):
    return apply(layers[1], jax.nn.gelu(apply(layers[0], x), approximate=False))


def run(blocks, first, epsilon, x, behind=False):
    """Blocks whose norms are before their branches, or behind the sums."""
    for each in blocks:
        for branch, (layers, scales) in zip((first, mlp), each, strict=True):
            if behind:
                x = norm(epsilon, scales, x + branch(layers, x))
            else:
                x = x + branch(layers, norm(epsilon, scales, x))
    return x


def gpt(parameters, words):
    x = parameters["words"][words] + parameters["positions"]
    x = run(parameters["blocks"], functools.partial(attend, 6, True), 1e-5, x)
    return apply({"w": parameters["words"].T}, norm(1e-5, parameters["norm"], x))


def bert(parameters, words):
    places = parameters["positions"][:128] + jnp.repeat(parameters["sentences"], 64, 0)
    x = norm(1e-12, parameters["norm"], parameters["words"][words] + places)
    attention = functools.partial(attend, 12, False)
    x = run(parameters["blocks"], attention, 1e-12, x, behind=True)
    x = jax.nn.gelu(apply(parameters["head"], x), approximate=False)
    x = norm(1e-12, parameters["last"], x)
    return apply({"w": parameters["words"].T, "b": parameters["bias"]}, x)


def cut(images):
    """A patch does not overlap another one: its convolution is a product."""
    parts = images.reshape(len(images), 14, 16, 14, 16, 3).swapaxes(2, 3)
    return parts.reshape(len(images), 196, -1)


def vit(parameters, images):
    x = apply(parameters["patches"], cut(images))
    token = jnp.broadcast_to(parameters["token"], (len(x), 1, 192))
    x = jnp.concatenate([token, x], 1) + parameters["positions"]
    x = run(parameters["blocks"], functools.partial(attend, 3, False), 1e-6, x)
    return apply(parameters["head"], norm(1e-6, parameters["norm"], x)[:, 0])


def mixer(parameters, images):
    x = run(parameters["blocks"], mix, 1e-6, apply(parameters["patches"], cut(images)))
    return apply(parameters["head"], norm(1e-6, parameters["norm"], x).mean(1))


def of_words(words, steps, units, count, bias=True):
    return {
        "words": normal(0.02, words, units),
        "positions": normal(0.02, steps, units),
        "blocks": [block(units, 4 * units, bias) for _ in range(count)],
        "norm": scales(units, bias),
    }


def of_images(units, count, patches=None):
    return {
        "patches": dense(16 * 16 * 3, units),
        "blocks": [block(units, 4 * units, patches=patches) for _ in range(count)],
        "norm": scales(units),
        "head": dense(units, 1000),
    }


def make_bert():
    head = {"head": dense(768, 768), "last": scales(768), "bias": jnp.zeros(30522)}
    return of_words(30522, 512, 768, 12) | {"sentences": normal(0.02, 2, 768)} | head


def make_vit():
    token = {"token": jnp.zeros((1, 1, 192)), "positions": normal(0.02, 197, 192)}
    return of_images(192, 12) | token


# The network, its parameters, its mini-batch, and its steps and words, which images do not have.
network, make, batch, steps, words = {
    "gpt-small": (gpt, lambda: of_words(65, 256, 384, 6, False), 8, 256, 65),
    "bert-base": (bert, make_bert, 4, 128, 30522),
    "vit-tiny": (vit, make_vit, 8, 0, 0),
    "mlp-mixer": (mixer, lambda: of_images(512, 8, 196), 8, 0, 0),
}[sys.argv[1].removesuffix("-adamw")]
if words:
    inputs, labels = (jnp.array(random.integers(0, words, (batch, steps))) for _ in range(2))
else:
    inputs, labels = normal(1, batch, 224, 224, 3), jnp.array(random.integers(0, 1000, batch))


def compute_loss(parameters, inputs, labels):
    logits = network(parameters, inputs)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


loops.jax(make(), compute_loss, inputs, labels)
