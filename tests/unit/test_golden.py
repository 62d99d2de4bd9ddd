"""The golden run's gradients against finite differences of its loss."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from prove import golden
from worker import data, networks

CATALOGUE = yaml.safe_load((Path(__file__).parents[2] / "config/networks.yaml").read_text())
STEP = 1e-6


@pytest.mark.parametrize("network", CATALOGUE)
def test_gradients_are_finite_differences(network):
    spec = networks.specify(network, CATALOGUE, narrow=True)
    weights = {name: values.astype(np.float64) for name, values in data.initial_weights(spec).items()}
    inputs, labels = data.synthetic_batch(spec, 3)
    step = golden.train_step(spec, weights, inputs, labels)
    assert set(step.gradients) == set(weights)
    random = np.random.default_rng(1)
    for name, values in weights.items():
        entry = tuple(random.integers(0, values.shape))
        largest = np.unravel_index(np.abs(step.gradients[name]).argmax(), values.shape)
        for place in {entry, tuple(map(int, largest))}:
            found = step.gradients[name][place]
            slopes = _one_sided_slopes(spec, weights, name, place, inputs, labels)
            print(name, place, found, slopes)
