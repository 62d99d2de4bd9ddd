"""What adapters declare: read without their frameworks, checked once, and arrays as each of them wants them."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from defects import stand_in
from examples import CATALOGUE, ROOT

from shared import data, declarations
from shared.precisions import PRECISIONS
from steptime import networks
from steptime.plan.cell import PLAIN
from worker import building, contract
from worker.layout import Layout

FRAMEWORKS = yaml.safe_load((ROOT / "config/frameworks.yaml").read_text())
# The layer kinds of the networks that grids time in the mode PLAIN.
TIMED = {
    node["op"]
    for path in (ROOT / "config/grids").glob("*.yaml")
    for name in yaml.safe_load(path.read_text()).get("plain", [])
    for node in networks.specify(name, CATALOGUE)["nodes"]
}
ADAPTERS = sorted(
    ".".join([path.parent.name, *module])
    for path in Path(declarations.FOLDER).glob("[a-z]*/__init__.py")
    for module in [[], *([each] for each in declarations.exchanges_of(path.parent.name).values())]
)


def test_versions_are_texts_whatever_a_framework_calls_them():
    said = {"framework_version": ("1", 0), "build": 7, "blas": float("nan"), "cuda": None}
    found = building.versions_of(SimpleNamespace(versions=lambda: said))
    assert found.pop("python") == sys.version.split()[0]
    assert found == {"framework_version": "('1', 0)", "build": "7", "blas": "nan"}


def job(network="lstm32", adapter="torch", **changes):
    """A job that times a network with an adapter."""
    spec = networks.specify(network, CATALOGUE, narrow=True)
    asked = stand_in.job(spec) | {"task": "step", "proves": "", "adapter": adapter, "device": "cpu"}
    return asked | {"mode": declarations.declared(adapter)["MODES"][0]} | changes


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_adapter_declares_what_the_catalogue_and_the_layers_know(adapter):
    has = declarations.declared(adapter)
    kinds = {
        node["op"] for name in CATALOGUE for node in networks.specify(name, CATALOGUE)["nodes"]
    }
    # In networks of their own, people ask for these.
    kinds |= {"last_step", "multiply", "leaky_relu", "elu", "softplus", "relu6", "pad"}
    kinds |= {"hard_swish", "hard_sigmoid", "scale_channels", "channel_part", "stochastic_depth"}
    assert set(has["LAYERS"]) <= kinds
    assert set(has["PRECISIONS"]) <= set(PRECISIONS)
    assert {*has["KERNELS_OF"]} <= {*(has["LAYERS"] or ())}
    for entry in FRAMEWORKS.values():
        for environment in entry["environments"]:
            used = entry | entry.get("differing", {}).get(environment, {})
            modes = set(used["modes"])
            if used["adapter"] == adapter and PLAIN in modes:
                plain = declarations.declared(f"{adapter}.{PLAIN}")
                assert plain["MODES"] == (PLAIN,) and used["plain"]
                assert used.get("device") != "gpu" and not plain["KERNELS"]
                assert set(plain["LAYERS"]) >= TIMED
            assert used["adapter"] != adapter or modes - {PLAIN} <= set(has["MODES"])
    assert not set(has["REASONS"]) & {*has["DEVICES"], *has["TASKS"], *has["OPTIMISERS"]}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (job("mnist", "neon"), "the optimiser 'adadelta' is not written here, since no grid asks"),
        (job("gan", "neon"), "loss 'adversarial' is not written here, since no grid asks for it"),
        (job("rnn32", "neon"), "neon has the layers of Shi et al.'s networks alone"),
        (job("mnist", "singa"), "SINGA 3.0 has no optimiser but SGD"),
        (job(mode="xla"), "the adapter torch has no mode 'xla'; it has eager, compiled"),
        (job(precision="float16"), "has no precision 'float16'; it has float32"),
        (job(exchange="sync"), "has no exchange 'sync'"),
        (job(adapter="neon", task="training"), "the adapter neon has no task 'training'"),
        (job("fcn5", "singa", device="gpu"), "the wheel of SINGA is built without CUDA"),
        (job("fcn5", "torch") | {"adapter": "nowhere"}, "there is no adapter 'nowhere'"),
        (job("fcn5", "torch") | {"adapter": "dynet.parts"}, "dynet times training steps alone"),
    ],
)
def test_a_job_that_asks_for_more_is_refused_before_the_framework_is_imported(asked, words):
    with pytest.raises(contract.Unsupported, match=words.replace("(", r"\(")):
        building.load(asked)
    assert not {"torch", "jax", "singa"} & set(sys.modules)


def test_a_network_on_real_images_is_proven_where_it_can_be_trained_alone():
    plain = job("mnist", "neon", task="proof", proves="training")
    plain["spec"]["optimiser"] = {"name": "sgd", "learning_rate": 0.1}
    with pytest.raises(contract.Unsupported, match="has no task 'training'; it has step"):
        building.load(plain)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("network", ["alexnet", "lstm32"])
def test_parameters_find_their_way_back(adapter, network):
    spec = networks.specify(network, CATALOGUE, narrow=True)
    has = declarations.declared(adapter)
    for mode in has["MODES"]:
        layout = Layout(spec, contract.of_mode(has["LAYOUT"], mode))
        for name, value in data.initial_weights(spec).items():
            back = layout.leave(name, np.ravel(layout.enter(name, value)))
            assert np.array_equal(back, value), name


@pytest.mark.parametrize("between", [False, True])
def test_an_arranged_network_computes_what_the_neutral_one_does(between):
    spec = networks.specify("alexnet", CATALOGUE, narrow=True)
    node, flat = (
        next(node for node in spec["nodes"] if node["op"] == op) for op in ("dense", "flatten")
    )
    if between:
        # Of a layer kind that the worker was never told of.
        new = dict(flat, name="new1", op="new", inputs=[flat["name"]], in_shape=flat["shape"])
        spec["nodes"].insert(spec["nodes"].index(node), new)
        node["inputs"] = ["new1"]
    layout = Layout(spec, {"images": "channels last", "dense": "units first"})
    images, _ = data.synthetic_batch(spec, 2)
    assert np.array_equal(layout.inputs(images), np.moveaxis(images, 1, -1))
    # The weight behind the flattened images, whose inputs stand in another order then.
    maps = np.random.default_rng(0).random((2, *flat["in_shape"]), np.float32)
    weight = data.initial_weights(spec)[f"{node['name']}/weight"]
    turned = layout.enter(f"{node['name']}/weight", weight)
    rows = np.moveaxis(maps, 1, -1).reshape(2, -1)
    assert np.allclose(rows @ turned.T, maps.reshape(2, -1) @ weight, atol=1e-5)


@pytest.mark.parametrize(
    "program",
    [
        "import worker.__main__, worker.tasks.step",
        "from shared import declarations; declarations.declared('torch')",
        "from worker import kernels; assert 'OpenBLAS' in kernels.choose('openblas:numpy')",
        "from worker import kernels; assert 'MKL' in kernels.choose('mkl')",
    ],
)
def test_a_worker_has_no_numpy_before_its_framework(program):
    """Numpy's libraries read what they are told when they are loaded, and a framework may bring its own."""
    told = f"{program}\nimport sys; assert 'numpy' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", told], check=True, cwd=Path(declarations.FOLDER).parents[1]
    )
