"""The specifications against the numbers of the literature and of the papers' scripts."""

from pathlib import Path

import pytest
import yaml

from steptime import networks
from worker import data

CATALOGUE = yaml.safe_load((Path(__file__).parents[2] / "config" / "networks.yaml").read_text())

# Counted by hand from the layers that the papers' authors used (docs/reference/networks.md).
PARAMETERS = {
    "fcn5": 117_997_696,
    "fcn8": 130_586_752,
    "alexnet": 61_640_936,
    "resnet50": 25_557_032,
    "lstm32": 6_180_624,
    "lstm64": 6_180_624,
    "mnist": 1_199_882,
    "cifar10": 1_250_858,
    "mnist-cntk": 98_778,
    "cifar10-cntk": 1_195_594,
    "fcn5-table2": 55_533_752,
    "fcn8-table2": 58_536_752,
    "alexnet-caffe": 62_378_344,
    "lstm32-table2": 13_598_480,
    "lstm64-table2": 13_598_480,
}


def test_every_network_is_tested():
    assert set(PARAMETERS) == set(CATALOGUE)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    spec = networks.specify(name, CATALOGUE)
    assert (
        networks.count_parameters(spec)
        == PARAMETERS[name]
        == networks.resolve(name, CATALOGUE)["parameters"]
    )


def test_resnet50_costs_what_its_authors_say():
    """3.8e9 multiply-adds forward (He et al. 2015, table 1) with the stride in the 1x1; 4.1e9 with it in the 3x3."""
    flops = networks.flops_per_step(networks.specify("resnet50", CATALOGUE), 1)
    first = 2 * 64 * 3 * 49 * 112 * 112
    assert (flops + first) / 6 == pytest.approx(4.09e9, rel=0.01)


def test_a_dense_network_costs_six_operations_a_weight_but_for_its_first_layer():
    spec = networks.specify("fcn5", CATALOGUE)
    weights = 26752 * 2048 * 2 + 2048 * 2048 * 2
    assert networks.flops_per_step(spec, 64) == 64 * (6 * weights - 2 * 26752 * 2048)


def test_the_narrow_version_has_the_same_layers():
    for name in CATALOGUE:
        wide, narrow = (networks.specify(name, CATALOGUE, narrow) for narrow in (False, True))
        assert [(n["op"], n["inputs"]) for n in wide["nodes"]] == [
            (n["op"], n["inputs"]) for n in narrow["nodes"]
        ]
        assert networks.count_parameters(narrow) < 100_000


def test_start_values_depend_on_nothing_but_the_seed():
    """The digits stand here because they must never change: proofs and first losses hang on them."""
    spec = networks.specify("fcn5", CATALOGUE, narrow=True)
    weights = data.initial_weights(spec)
    assert weights["dense1/weight"].dtype == "float32"
    assert weights["dense1/weight"].ravel()[:3].tolist() == pytest.approx(FIRST_WEIGHTS, rel=1e-6)
    assert weights["dense1/bias"][0] != weights["dense2/bias"][0]


FIRST_WEIGHTS = [-0.2376227080821991, 0.15639056265354156, 0.14985708892345428]


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_batch_fits_the_network(name):
    spec = networks.specify(name, CATALOGUE, narrow=True)
    inputs, labels = data.synthetic_batch(spec, 3)
    assert list(inputs.shape) == [3] + spec["input"]["shape"]
    assert labels.max() < networks.count_classes(spec)
    assert labels.size == 3 * networks.count_labels(spec)


def test_a_wrong_layer_is_told_with_what_to_write():
    catalogue = {
        "n": {
            "input": {"kind": "dense", "shape": [4]},
            "sizes": {},
            "narrow": {},
            "layers": ["sigmoyd"],
        }
    }
    with pytest.raises(
        ValueError, match="network n: there is no layer 'sigmoyd'; write one of .*sigmoid"
    ):
        networks.specify("n", catalogue)


def test_a_size_without_a_value_is_told():
    layers = [{"dense": {"units": "hiden"}}]
    catalogue = {
        "n": {
            "input": {"kind": "dense", "shape": [4]},
            "sizes": {"hidden": 2},
            "narrow": {},
            "layers": layers,
        }
    }
    with pytest.raises(ValueError, match="the size 'hiden' is not defined; write one of hidden"):
        networks.specify("n", catalogue)
