"""The specifications against the numbers of the literature and of the papers' scripts."""

from pathlib import Path

import pytest
import yaml

from steptime import networks
from steptime.networks.layers import LAYERS
from steptime.plan import digests
from steptime.prove import golden
from worker import data

CATALOGUE = yaml.safe_load((Path(__file__).parents[2] / "config" / "networks.yaml").read_text())

# Of every network: digests of its specification and of the narrow one, layers, operations and bytes
# of a step on 7 samples, and the narrow one's loss in float64 after three steps on 8. Whoever
# changes a digest has the network timed again, so it must be meant.
FACTS = """
fcn5 6e1ce71a6e411fb3 61d90ac3b66444c9 4 4187488256 2618138624 3.4408183270773334
fcn8 15370ebe961c6f95 44909796cf7bd006 7 4715970560 2921136128 3.0513026531599765
alexnet 334930fc053152ec 88a7f97479697371 8 40971729792 1579490752 2.3037105847681185
resnet50 cc98267cd6aec7a2 f8363d8e47dfdb17 50 170093543424 2343686208 1.525869524531726
lstm32 0945ba0e800fd277 ce31c075a1de9823 3 4849926144 127324288 3.4220283162041523
lstm64 316e9eaa515effe5 cb219c1548c67916 3 9699852288 167753600 3.400888288277715
mnist 85c2d35ae8277f73 3c5bb79e0f5683e5 4 500957184 38352848 2.2420046605286075
cifar10 96c948aa81e7597c af0649f4494e5057 6 858740736 43754704 2.3032804433039087
fcn5-table2 c75777f638564de6 55cc22765ee1b889 4 1956640000 1230712384 3.4408183270773334
fcn8-table2 e7a5820efb8d7f69 034862abcb72105a 7 2082640000 1303204384 3.0513026531599765
alexnet-caffe 513950a0a8bb90fa 2e695c6beb7dfdd9 8 46204943232 1600217024 2.3037105847681185
lstm32-table2 3f7e6331f72a0842 86206f0ecb664111 3 13672644608 340404608 3.404370096181905
lstm64-table2 516833ea37db120c c7b824fa4aa51baa 3 27345289216 396458368 3.40036414084317
mnist-cntk ef3ca882f40a3a45 6221c29e1317bb7f 5 100628864 6902672 2.2243454492732986
cifar10-cntk 8326fe1769b873f0 de0cf02bee826563 7 2473185792 52468048 2.2725901287727064
"""


def facts_of(name):
    """The line of `FACTS` of a network."""
    wide, narrow = (networks.specify(name, CATALOGUE, narrow) for narrow in (False, True))
    weights, state = data.initial_weights(narrow), {}
    for _ in range(4):
        taken = golden.train_step(narrow, weights, *data.synthetic_batch(narrow, 8), state)
        weights = taken.updated
    counts = networks.flops_per_step(wide, 7), networks.bytes_per_step(wide, 7)
    facts = [
        name,
        digests.digest(wide),
        digests.digest(narrow),
        networks.count_layers(wide),
        *counts,
    ]
    return " ".join(map(str, [*facts, float(taken.loss)]))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_network_stays_what_was_timed(name):
    facts = facts_of(name)
    known = [line for line in FACTS.splitlines() if line.split()[:1] == [name]]
    assert known, f"a new network: write its line into FACTS: {facts}"
    assert known[0].split()[:-1] == facts.split()[:-1]
    assert float(known[0].split()[-1]) == pytest.approx(float(facts.split()[-1]), rel=1e-13)


@pytest.mark.parametrize("name", CATALOGUE)
def test_parameters(name):
    """`parameters` was counted by hand, from the layers that the papers' authors used."""
    spec = networks.specify(name, CATALOGUE)
    assert networks.count_parameters(spec) == networks.resolve(name, CATALOGUE)["parameters"]


def test_every_loss_and_optimiser_is_in_a_network():
    """So that its steps are proven: those of a layer kind are, on its tiny network."""
    specs = [networks.specify(name, CATALOGUE) for name in CATALOGUE]
    assert set.union(*map(networks.used_records, specs)) >= networks.RECORDS - set(LAYERS)


@pytest.mark.parametrize("kind", LAYERS)
def test_the_tiny_network_of_a_layer_kind_has_it(kind):
    assert kind in {node["op"] for node in networks.tiny(kind)["nodes"]}


def test_resnet50_costs_what_its_authors_say():
    """3.8e9 multiply-adds forward (He et al. 2015, table 1) with the stride in the 1x1; 4.1e9 with
    it in the 3x3.
    """
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
    """The digits stand here because they must never change: proofs and losses hang on them."""
    spec = networks.specify("fcn5", CATALOGUE, narrow=True)
    weights = data.initial_weights(spec)
    assert weights["dense1/weight"].dtype == "float32"
    assert weights["dense1/weight"].ravel()[:3].tolist() == pytest.approx(FIRST_WEIGHTS, rel=1e-6)
    assert weights["dense1/bias"][0] != weights["dense2/bias"][0]


FIRST_WEIGHTS = [-0.2376227080821991, 0.15639056265354156, 0.14985708892345428]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_batch_fits_the_network(name):
    spec = networks.specify(name, CATALOGUE, narrow=True)
    inputs, labels = data.synthetic_batch(spec, 3)
    assert list(inputs.shape) == [3] + spec["input"]["shape"]
    assert labels.max() < networks.count_classes(spec)
    assert labels.size == 3 * networks.count_labels(spec)


def specified(*layers, **entry):
    """The specification of a network with these layers on images of 4 channels, 8 by 8."""
    source = {"kind": "image", "shape": [4, 8, 8]}
    entry = {"input": source, "sizes": {"hidden": 2}, "narrow": {}, "layers": layers} | entry
    return networks.specify("n", {"n": entry})


def wired(spec):
    return [(node["name"], *node["inputs"]) for node in spec["nodes"]]


def test_a_residual_adds_its_input_or_what_a_shortcut_makes_of_it():
    same = {"conv": {"channels": 4, "kernel": 1}}
    wide = {"conv": {"channels": 6, "kernel": 1}}
    spec = specified(
        {"residual": {"layers": [same, "batch_norm"]}},
        {"residual": {"layers": [wide, "relu"], "shortcut": [wide, "batch_norm"]}},
        "relu",
    )
    assert wired(spec) == [
        ("conv1", "input"),
        ("batch_norm1", "conv1"),
        ("add1", "batch_norm1", "input"),
        ("conv2", "add1"),
        ("relu1", "conv2"),
        ("conv3", "add1"),
        ("batch_norm2", "conv3"),
        ("add2", "relu1", "batch_norm2"),
        ("relu2", "add2"),
    ]
    assert networks.count_layers(spec) == 2
    nodes = {node["name"]: node for node in spec["nodes"]}
    assert "ends_branch" in nodes["batch_norm1"] and "ends_branch" not in nodes["batch_norm2"]


def test_a_name_stands_for_the_last_layer_that_had_it():
    """So that a repeated block may name its layers; a round may have sizes of its own."""
    block = [
        {"conv": {"channels": "width", "kernel": 1, "name": "left"}},
        {"conv": {"channels": "width", "kernel": 1, "inputs": ["left"]}},
        {"add": {"inputs": ["left", "right"], "name": "out"}},
    ]
    block[1]["conv"]["name"] = "right"
    spec = specified({"repeat": [{"width": "hidden"}, {"width": 3}], "layers": block})
    assert wired(spec)[2::3] == [("add1", "conv1", "conv2"), ("add2", "conv3", "conv4")]
    assert wired(spec)[3] == ("conv3", "add1")
    assert [node["shape"][0] for node in spec["nodes"]] == [2, 2, 2, 3, 3, 3]


ADD = {"add": {"inputs": ["left", "input"]}}
SGD = {"name": "sgd", "learning_rate": 0.1}


@pytest.mark.parametrize(
    "layers, entry, told",
    [
        (["sigmoyd"], {}, "there is no layer 'sigmoyd'; write 'sigmoid'"),
        (["maxout"], {}, "there is no layer 'maxout'; write one of add, .*, residual, sigmoid"),
        ([{"dense": {"units": "hiden"}}], {}, "size 'hiden' is not defined; write one of hidden"),
        ([{"dense": {"unit": 3}}], {}, "layer 'dense1' has no 'unit'; write 'units'"),
        ([{"conv": {"channels": 3}}], {}, "layer 'conv1' lacks 'kernel'; write kernel:"),
        ([{"conv": {"channels": 3, "kernel": 9}}], {}, "'conv1' does not fit .*window of 9 on 8"),
        ([{"relu": {"name": "lef"}}, ADD], {}, "the input 'left', but no .*; write 'lef'"),
        (["relu", {"relu": {"inputs": ["input"]}}], {}, "takes the output of layer 'relu1'; give"),
        (["add"], {}, "layer 'add1' takes 2 inputs and has 1; write add: {inputs"),
        ([{"relu": {"inputs": ["input", "input"]}}], {}, "'relu1' takes 1 input and has 2"),
        (
            [{"residual": {"layers": [{"conv": {"channels": 3, "kernel": 1}}]}}],
            {},
            r"'add1' does not fit .*\[3, 8, 8\] .*'input', has shape \[4, 8, 8\]: write .*shortcut",
        ),
        ([{"residual": {"layers": ["relu"], "skip": []}}], {}, "a residual has no 'skip'; write"),
        (["relu"], {"loss": "entropy"}, "no loss 'entropy'; write .*softmax_cross_entropy"),
        (["relu"], {"optimiser": SGD | {"name": "adagrad"}}, "no optimiser 'adagrad'; write"),
        (["relu"], {"optimiser": SGD | {"rho": 0.9}}, "the optimiser sgd has no 'rho'; write"),
        (["relu"], {"optimiser": SGD | {"name": "rmsprop"}}, "rmsprop needs 'rho'; write"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_mistake_is_told_with_what_to_write(layers, entry, told):
    with pytest.raises(ValueError, match=f"^network n: .*{told}"):
        specified(*layers, **entry)
