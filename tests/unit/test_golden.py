"""The golden run against finite differences of its loss, and how well its narrow networks are conditioned."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from steptime import networks
from steptime.networks.layers import LAYERS
from steptime.prove import golden
from steptime.prove.compare import TOLERANCES
from worker import data
from worker.tasks.proof import BATCH

CATALOGUE = yaml.safe_load((Path(__file__).parents[2] / "config/networks.yaml").read_text())
NETWORKS = [name for name in CATALOGUE if "variant_of" not in CATALOGUE[name]]


def start_of(network):
    spec = (
        networks.tiny(network)
        if network in LAYERS
        else networks.specify(network, CATALOGUE, narrow=True)
    )
    return spec, {
        name: values.astype(np.float64) for name, values in data.initial_weights(spec).items()
    }


def slope(spec, weights, name, place, step, inputs, labels):
    """Central difference of the loss for one entry of one parameter."""
    losses = []
    for signed in (step, -step):
        moved = dict(weights, **{name: weights[name].copy()})
        moved[name][place] += signed
        losses.append(golden.loss_of(spec)(golden.forward(spec, moved, inputs)[0], labels)[0])
    return (losses[0] - losses[1]) / (2 * step)


@pytest.mark.parametrize("network", [*LAYERS, *NETWORKS])
def test_gradients_are_finite_differences(network):
    spec, weights = start_of(network)
    inputs, labels = data.synthetic_batch(spec, 4)
    gradients = golden.train_step(spec, weights, inputs, labels).gradients
    random = np.random.default_rng(1)
    for name, gradient in gradients.items():
        sizes = np.abs(gradient)
        place = tuple(random.choice(np.argwhere(sizes >= np.median(sizes))))
        # One step may carry a ReLU or a maximum over its kink; two of different length do not alike.
        assert any(
            abs(slope(spec, weights, name, place, step, inputs, labels) - gradient[place])
            < 1e-5 * sizes.max()
            for step in (1e-6, 1e-5)
        ), f"{name} {place}"


@pytest.mark.parametrize("network", [*LAYERS, *NETWORKS])
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
        for name, gradient in exact.gradients.items():
            miss = np.linalg.norm(rounded.gradients[name] - gradient) / np.linalg.norm(gradient)
            assert miss < TOLERANCES["update"] / 2, name
