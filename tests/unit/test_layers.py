"""A network is taken apart into its layers, and their times explain a difference only where they add up to the step."""

import pytest
from examples import CATALOGUE, inputs, measured

from steptime import networks
from steptime.artefacts.results import layers, ratios
from steptime.explain.run import said
from steptime.networks import apart
from steptime.render import tables

FCN5 = apart.of_network("fcn5", CATALOGUE)
SLOW, FAST = "mxnet-1.9", "torch-9.9"


@pytest.mark.parametrize("network", ["fcn5", "alexnet", "resnet50", "lstm32"])
def test_the_layers_of_a_network_have_all_its_operations_and_weights(network):
    parts = apart.of_network(network, CATALOGUE)
    assert len({entry["label"] for entry in parts.values()}) == len(parts)
    for name in parts:
        networks.specify(name, parts, narrow=True)
    specs = {name: networks.specify(name, parts) for name in parts}
    whole, batch = networks.specify(network, CATALOGUE), CATALOGUE[network]["batch"]
    times = {name: entry["part_of"]["times"] for name, entry in parts.items()}

    def total(count):
        return sum(times[name] * count(specs[name]) for name in parts)

    assert total(lambda spec: networks.flops_per_step(spec, batch)) == networks.flops_per_step(
        whole, batch
    )
    in_front = ("layer_scale1", "bias1")
    own = total(
        lambda spec: sum(
            len(values["shape"]) and networks.count_parameters({"parameters": [values]})
            for values in spec["parameters"]
            if values["name"].partition("/")[0] not in in_front
        )
    )
    assert own == networks.count_parameters(whole)


def test_what_is_equal_is_timed_once_and_ends_are_taken_away_in_halves():
    told = {name: entry["part_of"] for name, entry in FCN5.items()}
    assert [part["times"] for part in told.values()] == [1, 2, 1, 0]
    assert told["fcn5-layer1"]["less"] == {"fcn5-around1": 0.5}
    assert told["fcn5-layer2"]["less"] == {"fcn5-around1": 1.0}
    assert told["fcn5-layer2"]["layer"] == "dense 2048 to 2048, sigmoid"


def test_layers_that_only_their_words_have_in_common_are_told_apart():
    square = {"dense": {"units": 6}}
    entry = {"family": "FCN", "batch": 4, "input": {"kind": "dense", "shape": [6]}}
    parts = apart.of_network("own", {"own": entry | {"layers": [square] * 3}})
    told = [part["part_of"]["layer"] for part in parts.values() if part["part_of"]["times"]]
    assert told == ["dense 6 to 6", "dense 6 to 6 (2)", "dense 6 to 6 (3)"]


@pytest.fixture
def read(tmp_path):
    """Rows of two frameworks by the seconds of the whole step, the three layers and what stands around them."""

    def cells(task="step", **seconds):
        return measured(
            tmp_path,
            *(
                {
                    "environment": environment,
                    "framework": environment.partition("-")[0],
                    "network": network,
                    "task": task,
                }
                | {"mode": "eager", "threads": 2, "repeat": repeat, "seconds": time * drift}
                for environment, times in ((SLOW, seconds["slow"]), (FAST, seconds["fast"]))
                for network, time in zip(["fcn5", *FCN5], times, strict=True)
                for repeat, drift in enumerate((1.0, 1.002, 0.998), 1)
            ),
        )

    def rows(passes=None, **seconds):
        passes = [cells("forward", **passes)] if passes else []
        entry = {"title": "Title", "caption": "Caption."}
        known = cells(**seconds)
        return inputs(measured=known, passes=passes, networks=CATALOGUE | FCN5, entry=entry)

    return rows


def test_a_layer_is_named_that_takes_longer_and_the_sum_is_the_step(read):
    told = read(slow=(1.3, 0.52, 0.16, 0.5, 0.02), fast=(1.0, 0.42, 0.11, 0.4, 0.02))
    data, layout = layers.table(told)
    own = data[data["environment"] == FAST].set_index("layer")
    assert own.loc["dense 2048 to 2048, sigmoid", "seconds"] == pytest.approx(0.18, rel=1e-3)
    assert own.loc[layers.BETWEEN, "seconds"] == pytest.approx(1 - 0.41 - 0.18 - 0.39, abs=1e-3)
    assert "PyTorch 9.9.0" in tables.web_page(layout, told.page)
    (words,) = said(data, [SLOW, FAST])
    assert "takes 1.30" in words and "2 × dense 2048 to 2048, sigmoid adds 0.10" in words
    assert "forward" not in words
    drawn, drawing = layers.figure(inputs(**vars(told), table=(data, layout)))
    assert len(drawn) == 10 and len(drawing.axes[0].patches) >= 8


def test_of_a_layer_it_is_said_how_much_of_the_difference_is_forward(read):
    passes = {"slow": (0.4, 0.16, 0.07, 0.14, 0.01), "fast": (0.3, 0.15, 0.04, 0.13, 0.01)}
    told = read(passes, slow=(1.3, 0.52, 0.16, 0.5, 0.02), fast=(1.0, 0.42, 0.11, 0.4, 0.02))
    data, layout = layers.table(told)
    own = data[data["environment"] == SLOW].set_index("layer")
    # 2 × (0.07 less half of what stands around, at both ends).
    assert own.loc["dense 2048 to 2048, sigmoid", "forward"] == pytest.approx(0.12, rel=1e-3)
    assert "(120 ms forward)" in tables.web_page(layout, told.page)
    (words,) = said(data, [SLOW, FAST])
    assert "2 × dense 2048 to 2048, sigmoid adds 0.10" in words
    assert ", of which forward 0.06 (0.0" in words
    layers.figure(inputs(**vars(told), table=(data, layout)))


def test_who_is_fastest_is_asked_of_the_network_and_not_of_its_layers(read):
    told = read(slow=(1.3, 0.52, 0.16, 0.5, 0.02), fast=(1.0, 0.42, 0.11, 0.4, 0.02))
    rows, _ = ratios.table(told)
    assert rows["network"].tolist() == ["fcn5", "fcn5"]


def test_layers_that_do_not_add_up_to_the_step_explain_nothing(read):
    told = read(slow=(1.3, 0.52, 0.16, 0.5, 0.02), fast=(1.0, 0.2, 0.05, 0.2, 0.02))
    words = "\n".join(said(layers.table(told)[0], [SLOW, FAST]))
    assert "Why is not shown" in words and "adds" not in words
