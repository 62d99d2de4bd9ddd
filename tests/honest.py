"""Small right networks of the kinds that people write, each with its mini-batch and optimiser."""

import itertools
import random

LEAKY = {"leaky_relu": {"slope": 0.1}}
ACTIVATIONS = ("relu", "relu", "tanh", "sigmoid", LEAKY, "gelu", "silu")
OPTIMISERS = (
    {"name": "sgd", "learning_rate": 0.05},
    {"name": "sgd", "learning_rate": 0.01},
    {"name": "sgd", "learning_rate": 0.001},
    {"name": "momentum", "learning_rate": 0.01, "momentum": 0.9},
    {"name": "rmsprop", "learning_rate": 0.001, "rho": 0.9, "epsilon": 1e-7},
    {"name": "adam", "learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    {
        "name": "adamw",
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "weight_decay": 0.01,
    },
)
BATCHES = (2, 4, 8, 16, 32, 64, 128)
# Numbers of a layer: hundreds of networks are proven in each framework.
MOST = 2**19


def networks(count):
    """{name: entry of a catalogue} of so many; the first are always the same."""
    chance, made = random.Random(1), {}
    for kind in itertools.islice(itertools.cycle(KINDS), count):
        entry = kind(chance)
        optimiser = chance.choice(OPTIMISERS) if chance.random() < 0.5 else OPTIMISERS[0]
        entry |= {"optimiser": dict(optimiser)}
        name = f"{len(made):03}-{entry['label']}-b{entry['batch']}-{optimiser['name']}"
        made[name] = entry
    return made


def _entry(label, family, shown, sizes, narrow, layers, batch):
    return {
        "label": label,
        "family": family,
        "batch": batch,
        "input": shown,
        "sizes": sizes,
        "narrow": {size: narrow for size in sizes if size not in ("classes", "words")},
        "layers": [*layers, {"dense": {"units": "classes"}}],
    }


def _named(layer):
    return layer if isinstance(layer, str) else next(iter(layer))


def perceptron(chance):
    """Dense layers and activations, and dropout or layer norm in some."""
    depth, units = chance.randint(1, 6), chance.choice((8, 24, 64, 160, 256))
    features, between = chance.choice((12, 48, 784)), chance.choice(ACTIVATIONS)
    norm = chance.random() < 0.25
    block = [{"dense": {"units": "units"}}, *[{"layer_norm": {"epsilon": 1e-5}}] * norm, between]
    label = f"mlp{depth}x{units}-{_named(between)}{'-norm' * norm}-{features}"
    shown = {"kind": "dense", "shape": [features]}
    sizes = {"units": units, "classes": chance.choice((2, 10, 50))}
    return _entry(label, "FCN", shown, sizes, 7, block * depth, chance.choice(BATCHES))


def convolutions(chance, norm=None, ends=None):
    """Convolutions with a norm and an activation, a pooling behind some, and one of three ends."""
    depth, channels = chance.randint(1, 6), chance.choice((8, 16, 32, 64, 96))
    size, between = chance.choice((8, 12, 20, 32)), chance.choice(ACTIVATIONS)
    norm = norm or chance.choice(("", "", "batch_norm", "group_norm"))
    ends = ends or chance.choice(("global_average_pool", "flatten"))
    pool = chance.choice(("", "max_pool", "avg_pool"))
    bias, layers, left = chance.random() < 0.3 or not norm, [], size
    for _ in range(depth):
        layers.append({"conv": {"channels": "channels", "kernel": 3, "padding": 1, "bias": bias}})
        layers += [{"group_norm": {"groups": 2}}] if norm == "group_norm" else [norm] * bool(norm)
        layers.append(between)
        if pool and left > 5:
            layers.append({pool: {"kernel": 2, "stride": 2}})
            left //= 2
    fits = [batch for batch in BATCHES if batch * channels * size * size <= MOST]
    label = f"conv{depth}x{channels}-{norm or 'plain'}{'-bias' * bias}-{_named(between)}"
    label += f"{'-' * bool(pool)}{pool}-{ends.partition('_')[0]}-{size}px"
    shown = {"kind": "image", "shape": [3, size, size]}
    sizes = {"channels": channels, "classes": chance.choice((2, 10))}
    return _entry(label, "CNN", shown, sizes, 4, [*layers, ends], chance.choice(fits))


def averaged(chance):
    """Batch norm before a global average, whose gradient is the same in all places."""
    return convolutions(chance, "batch_norm", "global_average_pool")


def residual(chance):
    """Blocks of two convolutions with batch norm, each added to what goes in."""
    depth, channels = chance.randint(1, 4), chance.choice((8, 16, 32, 64))
    size, batch = chance.choice((8, 16, 32)), chance.choice((2, 4, 8, 16, 32))
    conv = {"conv": {"channels": "channels", "kernel": 3, "padding": 1, "bias": False}}
    block = {"residual": {"layers": [conv, "batch_norm", "relu", conv, "batch_norm"]}}
    layers = [conv, "batch_norm", "relu", *[block, "relu"] * depth, "global_average_pool"]
    label, shown = (
        f"residual{depth}x{channels}-{size}px",
        {"kind": "image", "shape": [3, size, size]},
    )
    return _entry(label, "CNN", shown, {"channels": channels, "classes": 10}, 4, layers, batch)


def recurrent(chance):
    """Words, one or more recurrent layers, and their last step or mean."""
    kind, depth = chance.choice(("lstm", "gru", "rnn")), chance.randint(1, 3)
    units, steps = chance.choice((8, 32, 96)), chance.choice((3, 12, 40))
    ends = chance.choice(("last_step", "mean_steps"))
    layers = [{"embedding": {"vocabulary": "words", "units": "units"}}]
    layers += [{kind: {"units": "units"}}] * depth
    label = f"{kind}{depth}x{units}-{steps}steps-{ends.partition('_')[0]}"
    shown = {"kind": "tokens", "shape": [steps], "vocabulary": 60}
    sizes = {"units": units, "words": 60, "classes": chance.choice((2, 10))}
    return _entry(label, "RNN", shown, sizes, 6, [*layers, ends], chance.choice(BATCHES[:6]))


def transformer(chance):
    """Attention and dense layers, each behind a layer norm and added to what goes in."""
    depth, heads, each = chance.randint(1, 3), chance.choice((1, 2, 4)), chance.choice((4, 16))
    steps, causal = chance.choice((4, 16, 48)), chance.random() < 0.5
    units, norm = heads * each, {"layer_norm": {"epsilon": 1e-5}}
    attention = [{"dense": {"units": 3 * units}}, {"attention": {"heads": heads, "causal": causal}}]
    dense = [{"dense": {"units": 4 * units}}, "gelu", {"dense": {"units": units}}]
    block = [
        {"residual": {"layers": [norm, *attention, {"dense": {"units": units}}]}},
        {"residual": {"layers": [norm, *dense]}},
    ]
    words = [{"embedding": {"vocabulary": "words", "units": units}}, {"positions": {"rows": steps}}]
    label = f"transformer{depth}x{units}-{heads}heads-{steps}steps{'-causal' * causal}"
    shown = {"kind": "tokens", "shape": [steps], "vocabulary": 60}
    sizes, batch = {"words": 60, "classes": 10}, chance.choice(BATCHES[:5])
    return _entry(
        label, "Transformer", shown, sizes, 0, [*words, *block * depth, norm, "mean_steps"], batch
    )


KINDS = (
    averaged,
    perceptron,
    convolutions,
    recurrent,
    averaged,
    residual,
    convolutions,
    transformer,
)
