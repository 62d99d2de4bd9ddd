"""The golden run against finite differences of its loss, and how well its narrow networks are conditioned."""

import numpy as np
import pytest
from examples import CATALOGUE, deep_seldom

from shared import data
from shared.narrow import BATCH
from steptime import networks
from steptime.networks.layers import LAYERS, rbm, upsample
from steptime.networks.windows import pad, windows
from steptime.prove import golden
from steptime.prove.compare import TOLERANCES

# Of the spread of all values; frameworks err by some 1e-6 of it.
NEAR = 4e-6
# Looked at in a network.
MOST_PARAMETERS = 15
NETWORKS = [name for name in CATALOGUE if "variant_of" not in CATALOGUE[name]]


OPTIONS = [f"{kind} {option}" for kind in LAYERS for option in LAYERS[kind].options]


def start_of(network):
    kind, _, option = network.partition(" ")
    spec = (
        networks.tiny(kind, option)
        if kind in LAYERS
        else networks.specify(network, CATALOGUE, narrow=True)
    )
    return spec, {
        name: values.astype(np.float64) for name, values in data.initial_weights(spec).items()
    }


def driven(gradients):
    """Those with a gradient to speak of: a number that is added to all features of a step has none in front of a layer
    normalisation, such as the biases by which MLP-Mixer's patches are mixed.
    """
    sizes = {name: np.linalg.norm(gradient) for name, gradient in gradients.items()}
    kept = [name for name, size in sizes.items() if size > golden.FAINT * max(sizes.values())]
    assert len(kept) > 0.8 * len(sizes)
    return {name: gradients[name] for name in kept}


def slope(spec, weights, name, place, step, inputs, labels):
    """Central difference of the loss for one entry of one parameter."""
    losses = []
    for signed in (step, -step):
        moved = dict(weights, **{name: weights[name].copy()})
        moved[name][place] += signed
        losses.append(golden.loss_of(spec)(golden.forward(spec, moved, inputs)[0], labels)[0])
    return (losses[0] - losses[1]) / (2 * step)


def hold_constants(monkeypatch, spec, weights, inputs):
    """What a Boltzmann machine takes for constant stays as it is at these weights."""
    rightful, kept = rbm.chain, {}

    def noted(own, visible, noise):
        return kept.setdefault(own["weight"].shape, rightful(own, visible, noise))

    monkeypatch.setattr(rbm, "chain", noted)
    golden.forward(spec, weights, inputs)


def climbing(spec):
    """The nodes in front of a reversal: theirs is the gradient with its sign turned."""
    operators = [node["op"] for node in spec["nodes"]]
    end = operators.index("reversal") if "reversal" in operators else 0
    return {node["name"] for node in spec["nodes"][:end]}


@pytest.mark.parametrize("network", deep_seldom([*LAYERS, *OPTIONS, *NETWORKS]))
def test_gradients_are_finite_differences(network, monkeypatch):
    spec, weights = start_of(network)
    inputs, labels = data.synthetic_batch(spec, 4)
    gradients = golden.train_step(spec, weights, inputs, labels).gradients
    hold_constants(monkeypatch, spec, weights, inputs)
    for name in gradients:
        if name.split("/")[0] in climbing(spec):
            gradients[name] = -gradients[name]
    random = np.random.default_rng(1)
    found = list(driven(gradients).items())
    # Each layer kind is held alone as well: of deep networks, some parameters say that they are joined rightly.
    for number in random.permutation(len(found))[:MOST_PARAMETERS]:
        name, gradient = found[number]
        sizes = np.abs(gradient)
        place = tuple(random.choice(np.argwhere(sizes >= np.median(sizes))))
        # A step may carry a ReLU or a maximum over its kink; a shorter one does not.
        assert any(
            abs(slope(spec, weights, name, place, step, inputs, labels) - gradient[place])
            < 1e-5 * sizes.max()
            for step in (1e-6, 1e-5, 1e-7)
        ), f"{name} {place}"


@pytest.mark.parametrize("network", deep_seldom([*LAYERS, *OPTIONS, *NETWORKS]))
def test_rounding_cannot_fail_a_proof(network):
    """Weights that are off by ten float32 roundings stay within the tolerances, as any framework must."""
    spec, weights = start_of(network)
    inputs, labels = data.synthetic_batch(spec, BATCH)
    exact = golden.train_step(spec, weights, inputs, labels)
    random = np.random.default_rng(1)
    for _ in range(3):
        noisy = {
            name: values * (1 + 10 * 2.0**-24 * random.standard_normal(values.shape))
            for name, values in weights.items()
        }
        rounded = golden.train_step(spec, noisy, inputs, labels)
        assert abs(rounded.loss / exact.loss - 1) < TOLERANCES["loss"]
        for name, gradient in driven(exact.gradients).items():
            miss = np.linalg.norm(rounded.gradients[name] - gradient) / np.linalg.norm(gradient)
            assert miss < TOLERANCES["update"] / 2, name


def test_a_pixel_between_two_counts_each_by_how_near_it_is():
    """Of two rows, at 0 and 1: for a factor of 2 there are rows at -1/4, 1/4, 3/4 and 5/4, the outer ones held."""
    four = [[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]]
    assert np.array_equal(upsample.weights(2, 2), four)
    six = np.array([[3, 0], [3, 0], [2, 1], [1, 2], [0, 3], [0, 3]]) / 3
    assert np.allclose(upsample.weights(3, 2), six, rtol=0, atol=1e-15)


@pytest.mark.parametrize("network", CATALOGUE)
def test_no_unit_stands_where_float32_cannot_tell_its_side(network, monkeypatch):
    """In front of a ReLU, or in a window whose largest value is taken: a sign that rounding turns there is another
    gradient, in each framework another one.
    """
    spec, weights = start_of(network)
    rightful, nearest = golden.forward_of, []

    def looked_at(op):
        def forward(node, own, *sources):
            (x, *_), far = sources, np.empty(0)
            if op == "relu":
                far = np.abs(x)
            elif op == "max_pool":
                seen = windows(pad(x, node, -np.inf), node)
                two = np.sort(seen.reshape(-1, seen.shape[-1] * seen.shape[-2]), 1)[:, -2:]
                far = two[:, 1] - two[:, 0]
            elif op == "rbm":
                far = np.abs(2 * rbm.chain(own, *sources)[1] - 1 - sources[1])
            # Of equal ones, zeros behind a ReLU, any is as good.
            nearest.extend(np.sort(far[far > 0], axis=None)[:1] / x.std())
            return rightful(op)(node, own, *sources)

        return forward

    monkeypatch.setattr(golden, "forward_of", looked_at)
    golden.forward(spec, weights, data.synthetic_batch(spec, BATCH)[0])
    assert min(nearest, default=1.0) > NEAR, sorted(nearest)[:3]
