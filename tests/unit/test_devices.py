"""Grids of several devices: which cells they have, and the sentences for mistakes in them."""

from dataclasses import replace

import pytest
from conftest import ROOT
from today import TORCH, TORCH_ON_GPU

from steptime.plan import configuration, exchanges, grid


@pytest.fixture
def desktop():
    return configuration.load(ROOT, {"grid": "desktop"})


def changed(loaded, **values):
    return replace(loaded, grid=loaded.grid | values)


@pytest.fixture
def together(desktop, monkeypatch):
    """Grids in which PyTorch alone shares gradients, by `sync`; the cells of the one artefact of several devices."""
    monkeypatch.setattr(
        exchanges, "of_adapter", lambda adapter: ("sync",) if adapter == "torch" else ()
    )

    def cells(cores=4, **values):
        plan = grid.expand(changed(desktop, networks=["fcn5"], repeats=1, **values), cores)
        return [plan.cells[key] for key in plan.artefacts["steptime_scaling"]]

    return cells


def test_a_device_has_cpus_of_its_own_and_two_share_one_mini_batch(together):
    two = together(devices=[1, 2])
    found = {(cell.devices, cell.exchange, cell.threads, cell.batch) for cell in two}
    assert found == {(1, "", 1, 64), (1, "", 4, 64), (2, "sync", 1, 64), (2, "sync", 2, 64)}
    assert f"local-cpu/step/{TORCH}.eager.float32-fcn5-b64-t1-d2sync-r1" in {
        cell.key for cell in two
    }
    weak = {(cell.devices, cell.batch) for cell in together(devices=[1, 2], scaling="weak")}
    assert weak == {(1, 64), (2, 128)}


def test_several_devices_are_cells_of_what_shows_them_alone(desktop, monkeypatch):
    monkeypatch.setattr(exchanges, "of_adapter", lambda adapter: ("sync",))
    one, two = (grid.expand(changed(desktop, devices=each), 2) for each in ([1], [1, 2]))
    assert [key for key in two.cells if "-d1-" in key] == list(one.cells)
    assert set(two.artefacts) - set(one.artefacts) == {"steptime_scaling"}
    assert all(two.artefacts[name] == keys for name, keys in one.artefacts.items())


@pytest.mark.parametrize(("scaling", "batches"), [("strong", {32, 64}), ("weak", {64})])
def test_what_is_hidden_of_an_exchange_is_held_against_one_device_with_the_share_of_a_rank(
    desktop, monkeypatch, scaling, batches
):
    monkeypatch.setattr(exchanges, "of_adapter", lambda adapter: ("sync",))
    asked = {"devices": [1, 2], "scaling": scaling, "networks": ["fcn5"]}
    asked |= {"threads": {"table": [1, "all"], "figure": ["all"]}, "repeats": 1}
    plan = grid.expand(changed(desktop, **asked, parts={"sums": ["fcn5"]}), 4)
    of_scaling, of_overlap = (
        {plan.cells[key] for key in plan.artefacts[f"steptime_{name}"]}
        for name in ("scaling", "overlap")
    )
    assert of_scaling < of_overlap
    # With the threads that a rank has, and no others.
    ranks = {cell.threads for cell in of_scaling if cell.devices == 2}
    alone = [cell for cell in of_overlap if cell.devices == 1]
    assert {cell.batch for cell in alone if cell.threads in ranks} == batches
    assert {cell.batch for cell in alone if cell.threads not in ranks} == {64}
    # Where no exchange is timed alone, there is nothing to compare it with.
    assert "steptime_overlap" not in grid.expand(changed(desktop, **asked), 4).artefacts


def test_sums_alone_are_cells_of_several_devices_that_wait_for_one_another(desktop, monkeypatch):
    monkeypatch.setattr(exchanges, "of_adapter", lambda adapter: ("sync", "async"))
    several = {"devices": [1, 2], "exchange": ["sync", "async"], "parts": {"sums": ["fcn5"]}}
    plan = grid.expand(changed(desktop, **several), 2)
    found = {plan.cells[key] for key in plan.artefacts["steptime_exchange"]}
    assert {(cell.task, cell.network, cell.devices, cell.exchange) for cell in found} == {
        ("sums", "fcn5", 2, "sync")
    }
    # Trainings too, of the network that shows them; what else shows trainings has those of one device.
    trained = desktop.grid["training"] | {"networks": ["mnist", "mnist-hidden-100"]}
    plan = grid.expand(changed(desktop, **several | {"training": trained}), 2)
    found = {plan.cells[key] for key in plan.artefacts["wuensche2018_fig3"]}
    assert {(cell.task, cell.network, cell.devices, cell.exchange) for cell in found} == {
        ("training", "mnist-hidden-100", devices, exchange)
        for devices, exchange in ((1, ""), (2, "sync"), (2, "async"))
    }
    assert {plan.cells[key].devices for key in plan.artefacts["steptime_trainings"]} == {1}
    monkeypatch.setattr(exchanges, "of_adapter", lambda adapter: ("sync", "async", "mixed"))
    several |= {"devices": [1, 2, 3, 4], "exchange": ["sync", "mixed"], "scaling": "weak"}
    plan = grid.expand(changed(desktop, **several | {"training": trained}), 4)
    found = {plan.cells[key] for key in plan.artefacts["wuensche2018_fig3"]}
    # Two devices are one group, and three are not groups of two.
    assert {(cell.devices, cell.exchange) for cell in found} == {
        *((1, ""), (2, "sync"), (3, "sync"), (4, "sync"), (4, "mixed"))
    }
    with pytest.raises(configuration.ConfigurationError, match="write `devices: .1, 2.`"):
        grid.expand(changed(desktop, parts={"sums": ["fcn5"]}), 2)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"devices": [8]}, "asks for 8 devices, and local-cpu has 4 CPUs.*: write no more than 4"),
        (
            {"devices": [2], "threads": {"table": [4], "figure": [1]}},
            "asks for 2 devices of 4 threads each, and local-cpu has 4 CPUs: write `all`",
        ),
        ({"devices": [3]}, "The mini-batch of fcn5, 64, cannot be shared out evenly to 3 devices"),
        (
            {"devices": [2], "exchange": ["sync", "async"]},
            r"environments \(torch-.*\) shares gradients by",
        ),
        (
            {"devices": [1, 2, 3], "exchange": ["sync", "mixed"]},
            "asks for `mixed` between 2 or 3 devices, .*: write an even number from 4 on .*, or `sync`, which is",
        ),
    ],
)
def test_devices_that_cannot_be_are_told(together, values, sentence):
    with pytest.raises(configuration.ConfigurationError, match=sentence):
        together(**values)


def test_ranks_are_shared_out_to_the_nodes_of_a_platform(together, desktop, monkeypatch):
    node = {"device": "cpu", "cores": 2, "memory_gib": 1, "cluster": {"nodes": 2}}
    monkeypatch.setitem(desktop.platforms, "pair", node)
    cells = together(platforms=["pair"], devices=[1, 2, 4])
    # A rank has CPUs of its node alone.
    most = {
        each.devices: max(cell.threads for cell in cells if cell.devices == each.devices)
        for each in cells
    }
    assert most == {1: 2, 2: 2, 4: 1}
    for devices, words in ((3, "out to 2 nodes: write a multiple of 2"), (6, "pair has 4 CPUs")):
        with pytest.raises(configuration.ConfigurationError, match=words):
            together(platforms=["pair"], devices=[devices])
    monkeypatch.setitem(desktop.platforms, "pair", node | {"device": "gpu", "devices": 1})
    with pytest.raises(configuration.ConfigurationError, match="ranks on GPUs are of one node"):
        together(platforms=["pair"], environments=[TORCH_ON_GPU], devices=[2])
