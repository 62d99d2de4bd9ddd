"""Expansion of the grid, and the sentences for mistakes in it."""

import re
from dataclasses import replace
from functools import cache

import pytest
import yaml
from conftest import ROOT
from today import JAX, MXNET, TENSORFLOW, TORCH, TORCH_ON_GPU

from steptime.cells.expected import Expected
from steptime.claims.papers import read_printed
from steptime.plan import axes, configuration, grid, interim, written
from steptime.plan.cell import reference_path
from steptime.tasks import TASKS

FIGURES = {"figure_batches": {"fcn5": [32, 64, 128]}, "plain": []}


@cache
def shipped(name):
    return configuration.load(ROOT, {"grid": name})


@pytest.fixture(scope="module")
def desktop():
    return shipped("desktop")


def changed(loaded, **values):
    return replace(loaded, grid=loaded.grid | values)


GRIDS = sorted(path.stem for path in (ROOT / "config/grids").glob("*.yaml"))


@pytest.mark.parametrize("name", GRIDS)
def test_shipped_grids_expand(name):
    loaded = shipped(name)
    plan = grid.expand(loaded, 4)
    asked = {task: set(entry.policy(loaded.grid).networks) for task, entry in TASKS.items()}

    def has_cells(chosen):
        networks = asked[chosen.get("task", "step")]
        networks = networks & {*loaded.grid["plain"]} if chosen.get("plain") else networks
        # What shows several devices has no cells of a grid with one, nor has what shows other networks.
        several = not chosen.get("devices") or max(loaded.grid["devices"]) > 1
        found = networks if chosen["networks"] == "all" else networks & set(chosen["networks"])
        kinds = {loaded.networks[name].get("variant_of", name) for name in found}
        enough = len(kinds) >= chosen.get("least_networks", 1)
        enough &= chosen["threads"] != "above" or bool(loaded.grid.get("threads", {}).get("above"))
        # No shipped grid has layers of a network as networks of their own.
        enough &= "apart" not in chosen
        enough &= "precisions" not in chosen or len(loaded.grid["precision"]) > 1
        return several and enough and asked[chosen.get("beside", "step")]

    shown = {name for name, chosen in loaded.artefacts.items() if has_cells(chosen)}
    assert set(plan.artefacts) == shown
    first = {
        key for key, cell in plan.cells.items() if not interim.is_further(plan.looks, cell.repeat)
    }
    assert first == {key for keys in plan.artefacts.values() for key in keys}


def test_ranks_of_one_thread_are_held_against_one_device_with_the_threads_of_both():
    plan = grid.expand(configuration.load(ROOT, {"grid": "ranks"}), 2)
    cells = [plan.cells[key] for key in plan.artefacts["steptime_overlap"]]
    for environment in {cell.environment for cell in cells}:
        found = {
            (cell.devices, cell.exchange, cell.threads, cell.batch)
            for cell in cells
            if cell.environment == environment
        }
        alone = {(1, "", 1, 64), (1, "", 2, 64), (1, "", 1, 32)}
        assert found == alone | {(2, "sync", 1, 64), (2, "async", 1, 64)}
    # A speed-up has an interval.
    assert {cell.repeat for cell in cells} == {1, 2, 3}


@pytest.mark.parametrize("name", ["shi2016", "wuensche2018"])
def test_a_cell_of_two_grids_is_measured_once(desktop, name):
    jobs = []
    for loaded in (desktop, shipped(name)):
        expected = Expected(loaded)
        cells = grid.expand(loaded, 2).cells
        jobs.append({key: expected.job_of(cell) for key, cell in cells.items()})
    common = jobs[0].keys() & jobs[1].keys()
    assert len(common) > 10 and all(jobs[0][key] == jobs[1][key] for key in common)


@pytest.mark.parametrize("name", ["shi2016", "shatnawi2018", "wuensche2018"])
def test_a_papers_grid_has_its_own_frameworks_mini_batches_and_threads(name):
    loaded = shipped(name)
    paper = yaml.safe_load((ROOT / f"resources/papers/{name}/paper.yaml").read_text())
    task, cells = paper.get("times_of", "step"), grid.expand(loaded, 2).cells.values()
    own = [cell for cell in cells if cell.task == task and cell.network in paper["networks"]]
    runners = {f"{cell.environment}.{cell.mode}" for cell in own}
    assert {runner for nearest in paper["nearest"].values() for runner in nearest} <= runners
    assert {1, 2, 4} <= {cell.threads for cell in own}
    printed = read_printed(ROOT / f"resources/papers/{name}/{paper['times']}.csv")
    batches = set(zip(printed["network"], printed["batch"], strict=True))
    timed = {(cell.network, str(cell.batch)) for cell in own}
    assert batches <= timed if task == "step" else {cell.network for cell in own} == {"mnist"}


def test_networks_are_proven_that_are_not_timed(desktop, tmp_path):
    plan = grid.expand(changed(desktop, proven=["lenet", "fcn5"]), 2)
    assert list(plan.cells) == list(grid.expand(desktop, 2).cells)
    assert plan.proven[::4] == [f"{TORCH}.eager-lenet", f"{TORCH}.eager-fcn5"]
    assert len(plan.proven) == 2 * 4
    written.write(plan, tmp_path / "plan.json")
    assert written.read(tmp_path / "plan.json").proven == plan.proven


def test_a_grid_may_prove_alone():
    loaded = configuration.load(ROOT, {"grid": "matrix"})
    plan = grid.expand(loaded, 2)
    assert not plan.cells and not plan.artefacts
    proven = set(plan.proven)
    assert {f"{TORCH}.eager-gpt2", "theano-0.9.graph-xception", "keras-2.0.5.cntk-rbm"} <= proven
    # Of what is trained on images, neither the network nor a variant of it.
    assert not [name for name in proven if "mnist" in name or "cuda" in name]


def test_a_papers_tested_networks_are_proven():
    """Each name in the column "Tested Networks" of Dai and Berleant is a network that their grid times or proves."""
    printed = read_printed(ROOT / "resources/papers/dai2019/table2.csv")
    cells = printed[printed["column"] == "Tested Networks"]["value"]
    named = {name for cell in cells for name in cell.split(", ")}
    here = {
        "RNN": "rnn32",
        "LSTM": "lstm32",
        "CNN": "lenet",
        "VGG": "vgg16",
        "DenseNet": "densenet121",
    }
    here |= {"Inception": "googlenet", "ResNet": "resnet50", "ResidualNet": "resnet50"}
    loaded = configuration.load(ROOT, {"grid": "dai2019"})
    asked = {*loaded.grid["networks"], *loaded.grid["proven"]}
    assert {here.get(name, name.lower()) for name in named} <= asked


def test_kinds_are_compared_where_a_grid_has_more_than_one(desktop):
    kinds = grid.expand(configuration.load(ROOT, {"grid": "kinds"}), 2)
    shown = {kinds.cells[key].network for key in kinds.artefacts["wuensche2018_kinds"]}
    assert {"lstm32", "rnn32", "gru32"} < shown
    several = changed(desktop, networks=["lstm32", "lstm32-table2"])
    assert "wuensche2018_kinds" not in grid.expand(several, 2).artefacts
    assert (
        "wuensche2018_kinds"
        in grid.expand(changed(desktop, networks=["lstm32", "vae"]), 2).artefacts
    )


def test_desktop_is_every_environment_network_and_thread_count(desktop):
    plan = grid.expand(changed(desktop, **FIGURES), 2)
    # A cell of two artefacts is one cell.
    assert set(plan.artefacts["shi2016_fig1d"]) < set(plan.artefacts["shi2016_table4"])
    assert len(plan.artefacts["shi2016_table4"]) == 4 * 6 * 2 * 2
    assert f"local-cpu/step/{TORCH}.eager.float32-fcn5-b64-t1-d1-r1" in plan.cells
    assert {plan.cells[key].batch for key in plan.artefacts["shi2016_fig1a"]} == {32, 64, 128}
    assert {plan.cells[key].threads for key in plan.artefacts["shi2016_fig1a"]} == {2}


def test_single_operations_are_cells_of_their_networks_and_come_after_all_steps(desktop):
    plan = grid.expand(changed(desktop, parts={"products": ["fcn5"]}), 2)
    keys = plan.artefacts["shi2016_products"]
    assert len(keys) == 4 * 2 and keys[0].startswith(f"local-cpu/products/{TORCH}.eager")
    assert "shi2016_convolutions" not in plan.artefacts
    assert [plan.cells[key].task for key in plan.cells][-len(keys) :] == ["products"] * len(keys)
    assert len(plan.artefacts["shi2016_table4"]) == 4 * 6 * 2 * 2


def test_gradients_are_shown_with_the_most_threads_that_cpus_are_for(desktop):
    threads = {"table": [1, "all", "4*all"], "figure": ["all"]}
    cells = grid.expand(changed(desktop, threads=threads, **FIGURES), 2).cells
    shows = grid.shown_by(cells, 2)
    steps = [key for key, cell in cells.items() if cell.task == "step"]
    assert {cells[key].threads for key in shows} == {1, 2, 8} and set(shows) < set(steps)
    # One of each environment, network and mini-batch is left.
    shown = [cells[key] for key in steps if key not in shows]
    assert {cell.repeat for cell in shown} == {1}
    assert set(shows.values()) <= {cell.key for cell in shown}
    assert {cell.threads for cell in shown} == {2} and len(shown) == 4 * (6 + 2)
    assert len({(cell.environment, cell.network, cell.batch) for cell in shown}) == len(shown)
    of_one = {key: cells[key] for key in shows if "-t1-" in key and key.endswith("-r1")}
    assert not grid.shown_by(of_one, 2)


@pytest.mark.parametrize(
    ("wanted", "cores", "most", "counts"),
    [
        ([1, "all"], 2, 4, [1, 2]),
        ([1, "all"], 16, 4, [1, 4]),
        ([1, "all"], 1, 4, [1]),
        (["doubling"], 6, None, [1, 2, 4, 6]),
        (["doubling"], 32, None, [1, 2, 4, 8, 16, 32]),
        ([8], 2, 4, [8]),
        (["doubling", "2*all", "4*all"], 2, None, [1, 2, 4, 8]),
        # Above the machine's CPUs, and not above what `all` stops at.
        (["all", "2*all"], 16, 4, [4, 32]),
    ],
)
def test_thread_counts(wanted, cores, most, counts):
    assert axes.thread_counts(wanted, cores, most) == counts


def test_repeats_and_modes_are_axes(desktop):
    plan = grid.expand(changed(desktop, repeats=3, modes={"torch": ["eager", "compiled"]}), 1)
    assert f"local-cpu/step/{TORCH}.compiled.float32-fcn5-b64-t1-d1-r3" in plan.cells
    assert len(plan.artefacts["shi2016_table4"]) == 5 * 6 * 3


def test_plain_is_in_the_table_of_tuning_alone(desktop):
    plan = grid.expand(desktop, 2)
    plain = {key for key, cell in plan.cells.items() if cell.mode == "plain"}
    assert {plan.cells[key].network for key in plain} == {*desktop.grid["plain"]}
    assert {plan.cells[key].threads for key in plain} == {2} and len(plain) == 4 * 3 * 2
    assert {name for name, keys in plan.artefacts.items() if plain & {*keys}} == {"steptime_tuning"}
    beside = {*plan.artefacts["steptime_tuning"]} - plain
    assert len(beside) == len(plain) and beside < {*plan.artefacts["steptime_times"]}
    asked = [Expected(desktop).job_of(plan.cells[key]) for key in sorted(plain)]
    assert {job["adapter"].split(".")[1] for job in asked} == {"plain"}
    assert not any("MALLOC_MMAP_THRESHOLD_" in job["variables"] for job in asked)
    with pytest.raises(configuration.ConfigurationError, match="There is no network 'fnc5'"):
        grid.expand(changed(desktop, plain=["fnc5"]), 2)


@pytest.fixture(scope="module")
def on_gpus():
    """The default grid on a machine with a GPU, as a stand-in for one says."""
    return configuration.load(ROOT, {"grid": "desktop"}, lambda needs: needs["device"] == "gpu")


def test_environments_meet_the_platforms_of_their_kind_of_device_alone(desktop, on_gpus):
    assert desktop.grid["platforms"] == ["local-cpu"]
    plan = grid.expand(on_gpus, 2)
    met = {(cell.platform, cell.environment.endswith("-cuda")) for cell in plan.cells.values()}
    assert met == {("local-cpu", False), ("local-gpu", True)}
    alone = grid.expand(desktop, 2).cells
    assert [key for key in plan.cells if key.startswith("local-cpu/")] == list(alone)


def test_a_precision_of_gpus_leaves_the_cells_of_float32_as_they_are(desktop, on_gpus):
    alone = list(grid.expand(on_gpus, 2).cells)
    both = grid.expand(changed(on_gpus, precision=["float32", "tf32"]), 2).cells
    further = [cell for key, cell in both.items() if key not in alone]
    assert [key for key in both if key in alone] == alone
    assert {(cell.precision, cell.device) for cell in further} == {("tf32", "gpu")}
    steps = [cell for cell in both.values() if (cell.device, cell.task) == ("gpu", "step")]
    assert 2 * sum(cell.precision == "tf32" for cell in steps) == len(steps)
    key = f"local-gpu/step/{TORCH_ON_GPU}.eager.tf32-fcn5-b64-t2-d1-r1"
    assert both[key].precision == "tf32" and key in both
    assert reference_path(both[key].facts()) == "results/references/fcn5-b64-tf32.npz"
    # The same grid where there is no GPU.
    without = changed(desktop, precision=["float32", "tf32"])
    assert list(grid.expand(without, 2).cells) == list(grid.expand(desktop, 2).cells)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"precision": ["float32", "tf32"], "platforms_if_present": []},
            "The grid asks for products in tf32, which a GPU alone has, and none of its platforms is one (local-cpu): "
            "take tf32 out of its 'precision', or add such a platform.",
        ),
        (
            {"precision": ["tf32"], "platforms_if_present": ["local-gpu"]},
            "The platform 'local-cpu' computes on a CPU, which has no tf32: add float32 to the grid's 'precision', or "
            "take local-cpu out of the grid.",
        ),
        (
            {"environments": [TORCH, TORCH_ON_GPU]},
            f"{TORCH_ON_GPU} computes on a GPU, and none of the grid's platforms is one (local-cpu): add one that "
            f"does, such as local-gpu, or take {TORCH_ON_GPU} out of the grid.",
        ),
        (
            {"platforms": ["local-cpu", "local-gpu"]},
            "The platform 'local-gpu' computes on a GPU, and none of the grid's environments does ("
            f"{TORCH}, {TENSORFLOW}, {MXNET}, cntk-2.5.1): add one that does, such as {TORCH_ON_GPU}, or take it",
        ),
    ],
)
def test_what_a_grid_cannot_mean_is_told_with_what_to_write(desktop, values, sentence):
    with pytest.raises(configuration.ConfigurationError, match=re.escape(sentence)):
        grid.expand(changed(desktop, **values), 2)


def load_grid(tmp_path, capability=None, **values):
    """The default grid with other values, on a machine whose GPU has this compute capability."""
    asked = yaml.safe_load((ROOT / "config/grids/desktop.yaml").read_text()) | values
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(asked))
    return configuration.load(ROOT, {"grid": str(path)}, lambda _: True, lambda _: capability)


@pytest.mark.parametrize(
    ("environments", "platforms", "sentence"),
    [
        (
            [TORCH_ON_GPU],
            ["k80"],
            f"{TORCH_ON_GPU} is built for GPUs of compute capability 7.5 and newer, and that of the platform 'k80' is "
            "3.7: write torch-1.4-cuda in its place, or k80 into another grid.",
        ),
        (
            ["jax-0.12-cuda12", "torch-1.4-cuda"],
            ["gtx1080", "k80"],
            "jax-0.12-cuda12 is built for GPUs of compute capability 5.2 and newer, and that of the platform 'k80' is "
            "3.7: no environment of jax is, so take jax-0.12-cuda12 or k80 out of the grid.",
        ),
    ],
)
def test_an_environment_that_is_not_built_for_a_gpu_is_refused(
    tmp_path, environments, platforms, sentence
):
    with pytest.raises(configuration.ConfigurationError) as error:
        load_grid(tmp_path, environments=environments, platforms=platforms)
    assert str(error.value) == sentence


def test_each_gpu_meets_the_environments_that_are_built_for_it(tmp_path):
    both = {"environments": ["torch-2.7-cuda", "torch-1.4-cuda"], "platforms": ["gtx980", "k80"]}
    plan = grid.expand(load_grid(tmp_path, platforms_if_present=[], **both), 2)
    met = {(cell.platform, cell.environment) for cell in plan.cells.values()}
    assert met == {
        ("gtx980", "torch-2.7-cuda"),
        ("gtx980", "torch-1.4-cuda"),
        ("k80", "torch-1.4-cuda"),
    }


def test_a_gpu_that_is_here_does_without_what_is_not_built_for_it(tmp_path):
    loaded = load_grid(tmp_path, capability=6.1)
    on_gpus = [name for name in loaded.grid["environments"] if "cuda" in name]
    # Of a framework, the first that runs there; JAX's environment is named itself.
    assert on_gpus == ["torch-2.7-cuda", f"{TENSORFLOW}-cuda", f"{MXNET}-cuda"]
    (sentence,) = loaded.left_out
    assert sentence.startswith(f"{JAX}-cuda is built for GPUs of compute capability 7.5 and")
    assert f"'local-gpu' is 6.1: write {JAX}-cuda12 in its place" in sentence
    nothing = load_grid(tmp_path, capability=2.0)
    assert nothing.grid["platforms"] == ["local-cpu"] and len(nothing.left_out) == 4
    assert [name for name in nothing.grid["environments"] if "cuda" in name] == []


def test_all_environments_are_those_of_the_devices_that_are_there():
    names = [
        configuration.load(ROOT, {"grid": "zoo"}, lambda needs, here=here: here).grid[
            "environments"
        ]
        for here in (False, True)
    ]
    assert not [name for name in names[0] if "cuda" in name]
    assert TORCH_ON_GPU in names[1] and set(names[0]) < set(names[1])


def test_older_releases_are_in_no_grid_that_does_not_ask_for_them():
    history = configuration.load(ROOT, {"grid": "history"}, lambda needs: True)
    older = {name for framework in history.frameworks.values() for name in framework["history"]}
    asked = set(history.grid["environments"])
    assert older < asked and {TORCH, JAX} < asked
    assert not asked & {"theano-0.9", TORCH_ON_GPU}
    others = {*GRIDS} - {"history"}
    assert not [name for name in others if older & set(shipped(name).grid["environments"])]


@pytest.fixture(scope="module")
def differing(desktop):
    """A framework whose older environment has another adapter and one of its modes."""
    torch = desktop.frameworks["torch"] | {
        "environments": [TORCH, "torch-1.0"],
        "differing": {"torch-1.0": {"adapter": "torch1", "modes": ["eager", "traced"]}},
    }
    return replace(desktop, frameworks=desktop.frameworks | {"torch": torch})


def test_an_environment_may_differ_from_its_framework(differing):
    assert differing.entry_of(TORCH)["adapter"] == "torch"
    assert differing.entry_of("torch-1.0") == differing.entry_of(TORCH) | {
        "adapter": "torch1",
        "modes": ["eager", "traced"],
    }
    both = changed(
        differing, environments=[TORCH, "torch-1.0"], modes={"torch": ["compiled", "eager"]}
    )
    ran = {(cell.environment, cell.mode) for cell in grid.expand(both, 2).cells.values()}
    assert ran == {(TORCH, "compiled"), (TORCH, "eager"), ("torch-1.0", "eager")}


def test_an_environment_without_a_wanted_mode_is_told(differing):
    none = changed(differing, environments=["torch-1.0"], modes={"torch": ["compiled"]})
    sentence = r"torch-1.0 has none of the modes that the grid wants of torch \(compiled\): add one of eager, traced"
    with pytest.raises(configuration.ConfigurationError, match=sentence):
        grid.expand(none, 2)


def test_repeats_are_interleaved_and_no_environment_is_always_first(desktop):
    plan = grid.expand(changed(desktop, repeats=3), 2)
    cells = [cell for cell in plan.cells.values() if cell.task == "step"]
    # What takes longest comes last: no training stands between two steps that are compared.
    assert list(plan.cells.values())[: len(cells)] == cells
    assert [cell.repeat for cell in cells] == sorted(cell.repeat for cell in cells)
    blocks = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    for block in blocks:
        assert len({replace(cell, environment="", framework="", mode="") for cell in block}) == 1
    assert len({block[0].environment for block in blocks}) == 3


def test_a_variant_takes_its_network_s_batch(desktop):
    plan = grid.expand(changed(desktop, networks=["fcn5-table2"]), 1)
    assert {cell.batch for cell in plan.cells.values() if cell.task == "step"} == {64}


def test_a_network_of_another_size_than_promised_is_told(desktop):
    entry = desktop.networks["fcn5"] | {"parameters": 5}
    sentence = "fcn5: the layers have 117,997,696 trainable parameters and 'parameters' says 5"
    with pytest.raises(configuration.ConfigurationError, match=sentence):
        grid.expand(replace(desktop, networks=desktop.networks | {"fcn5": entry}), 2)


def test_a_grid_without_a_cell_is_told(desktop):
    only = replace(desktop, artefacts={"shi2016_fig1a": desktop.artefacts["shi2016_fig1a"]})
    with pytest.raises(configuration.ConfigurationError, match="The grid 'desktop' has no cell"):
        grid.expand(changed(only, networks=["alexnet"]), 2)


def test_the_first_cells_are_a_column_of_the_table_from_cheap_to_dear(desktop):
    cells = list(grid.expand(changed(desktop, **FIGURES), 2).cells.values())
    first = cells[: 4 * 6]
    assert {(cell.threads, cell.repeat) for cell in first} == {(1, 1)}
    order = list(dict.fromkeys(cell.network for cell in first))
    assert order == ["fcn5", "fcn8", "lstm32", "alexnet", "lstm64", "resnet50"]
    # Then the other column, and behind the table the mini-batches of figures alone.
    trial = [cell for cell in cells if (cell.task, cell.repeat) == ("step", 1)]
    assert {cell.threads for cell in trial[24:48]} == {2}
    assert {cell.batch for cell in trial[48:-8]} == {32, 128} and trial[-8].threads == 4
