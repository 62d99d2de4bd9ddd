"""What Snakemake is told of turns, of a cluster, and of environments that failed."""

from types import SimpleNamespace

import pytest
from examples import CELL
from snakemake.exceptions import WorkflowError

from steptime.flow.needed import Needed
from steptime.flow.planned import Planned
from steptime.flow.resources import Cluster, Turns


def cells(*axes):
    """Cells by their keys, in the order of the plan: (network, repeat)."""
    return {
        f"{network}-r{repeat}": SimpleNamespace(network=network, batch=64, repeat=repeat)
        for network, repeat in axes
    }


def test_what_a_cell_needs_is_made_right_before_the_first_that_needs_it():
    """Of what is ready, the job of the highest turn starts first."""
    steps = cells(("fcn5", 1), ("lstm32", 1), ("fcn5", 2))
    plan = SimpleNamespace(cells=steps | cells(("mnist", 1)))
    turns = Turns(SimpleNamespace(plan=plan, steps=steps, cell_of=lambda key: None))
    proof = [turns.of_proof(SimpleNamespace(network=name)) for name in ("fcn5", "lstm32", "gone")]
    assert proof == [4, 3, 0] and turns.references["fcn5", "64"] == 4
    assert (turns.before_cells, turns.after_steps, turns.after_trial) == (5, 2, 2)


NODE = {"cores": 8, "memory_gib": 32, "cluster": {"partition": "long", "extra": ""}}


def test_a_cluster_is_asked_for_what_its_entry_says_and_this_machine_for_nothing():
    platforms = {"node": NODE, "here": {"cores": 2, "memory_gib": 4}}
    planned = SimpleNamespace(
        configuration=SimpleNamespace(platforms=platforms),
        platforms=platforms,
        grid={"limits": {"seconds": 600}},
    )
    asked = Cluster(planned).asked()
    on = {name: SimpleNamespace(platform=name) for name in platforms}
    told = {name: {key: value(on[name]) for key, value in asked.items()} for name in platforms}
    assert told["node"] == {
        "slurm_partition": "long",
        "mem_mb": 32 * 1024,
        "cpus_per_task": 8,
        "slurm_extra": "--exclusive",
        "runtime": 20,
    }
    assert told["here"] == dict.fromkeys(told["node"]) | {"mem_mb": 0}
    planned.platforms = {"here": platforms["here"]}
    assert Cluster(planned).asked() == {}


@pytest.mark.parametrize(
    ("targets", "again"),
    [
        ({"environments"}, True),
        # As `make environments ONLY=torch-9.9` asks.
        ({"results/environments/torch-9.9.json"}, True),
        ({"results/environments/jax-9.9.json"}, False),
        ({"all"}, False),
        (set(), False),
    ],
)
def test_who_asks_for_environments_has_what_failed_tried_again(
    targets, again, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    manifest = tmp_path / "results/environments/torch-9.9.json"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    failed = SimpleNamespace(manifest=lambda name: True, is_installed=lambda name: False)
    engine = SimpleNamespace(asked_targets=lambda: targets)
    needed = Needed(SimpleNamespace(engine=engine, plan=None, current=failed), None)
    found = needed._environment_again(SimpleNamespace(environment="torch-9.9"))
    assert bool(found) is again


def test_a_cell_that_a_grid_does_not_have_is_one_sentence():
    planned = SimpleNamespace(plan=SimpleNamespace(cells={"p/step/x": CELL}), grid_name="own")
    wildcards = SimpleNamespace(platform="p", task="step", cell="y")
    with pytest.raises(WorkflowError, match="no cell p/step/y in the grid 'own', whose first is p"):
        Planned.cell_of(planned, wildcards)
