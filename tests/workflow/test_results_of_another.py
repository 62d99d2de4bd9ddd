"""Results of another network, adapter, machine or folder are named or measured anew, and never shown as this one's."""

import json
import shutil

import numpy as np
import pytest
import yaml

from steptime.cells import shard

GRID = {
    "environments": ["standin-1.0"],
    "platforms": ["local-cpu"],
    "networks": ["tiny"],
    "modes": {"standin": ["good"]},
    "threads": {"table": [1], "figure": [1]},
    "sampling": {"budget_seconds": 0.5, "precision": 0.05, "least_samples": 5},
    "limits": {"seconds": 60},
}
ADAPTER = "workflow/scripts/worker/frameworks/standin/__init__.py"
# The jobs that read rows and measure nothing.
MADE_OF_ROWS = {"compare_results", "merge_cells", "steptime_times", "total"}
WHAT = ("--config", "grid=mine.yaml", "platforms=far.yaml", "--", "steptime_times")
CARRIED = ("cells", "references", "proofs", "environments")
# 100 x 240 + 240 and 240 x 80 + 80: the narrow network stays as it was.
WIDER = {"parameters: 21800": "parameters: 43520", "hidden: 120": "hidden: 240"}
TWICE = {'if self.mode == "wrong"': 'if self.mode in ("wrong", "good")'}


def configured(checkout, needs=None, **changes):
    """The checkout with a grid of one cell; the machine of the platform `far` is as `needs` say."""
    far = {"label": "Far", "device": "cpu", "cores": 1} | (needs or {})
    (checkout.root / "far.yaml").write_text(yaml.safe_dump({"far": far}))
    (checkout.root / "mine.yaml").write_text(yaml.safe_dump(GRID | changes))
    return checkout


def edit(checkout, name, changes):
    """Replaces texts in one of its files."""
    path = checkout.root / name
    for old, new in changes.items():
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))


def row_of(path):
    return shard.read_parts(path)[0]


def carry(checkout, *arguments):
    """`make pack` or `make merge`."""
    return checkout.launch("carry.pack", *arguments, "--platforms", "far.yaml")


@pytest.fixture(scope="module")
def there(new_checkout):
    """A checkout in which the cell was measured, on this machine and as one of the platform `far`."""
    checkout = configured(new_checkout("faults"), platforms=["local-cpu", "far"])
    checkout.run(*WHAT)
    return checkout


@pytest.fixture(scope="module")
def packed(there, tmp_path_factory):
    """What was measured there, as it is carried."""
    path = tmp_path_factory.mktemp("packed") / "all.tar.gz"
    assert carry(there, "pack", "--to", path).returncode == 0
    return path


@pytest.fixture
def here(new_checkout):
    return configured(new_checkout("faults"))


def test_a_wider_network_is_measured_though_snakemake_remembers_nothing(there, here):
    """As after `git clean`, or in a fresh clone with copied results."""
    here.copy_badly(there, *CARRIED)
    assert "measure_cell" not in here.planned(*WHAT)
    edit(here, "config/networks.yaml", WIDER)
    assert here.planned(*WHAT)["measure_cell"] == 1
    here.run(*WHAT)
    (path,) = (here.root / "results/cells/local-cpu").rglob("*.parquet")
    assert row_of(path)["parameters"] == 43520
    # That was enough.
    assert here.planned(*WHAT) == {}


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("config/networks.yaml", WIDER, "another network"),
        (ADAPTER, TWICE, "another adapter"),
        ("config/frameworks.yaml", {'NUM_THREADS: "{threads}"': 'NUM_THREADS: "1"'}, "variables"),
        ("envs/standin-1.0.yaml", {"numpy==2.4.6": "numpy==2.4.5"}, "another pins"),
    ],
)
def test_results_of_something_else_are_not_taken_and_not_shown(
    there, here, packed, name, changes, words
):
    edit(here, name, changes)
    refused = carry(here, "take", "--from", packed)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1, refused.stderr
    assert words in refused.stderr and "Nothing was taken" in refused.stderr
    assert not (here.root / "results/cells").exists()
    # Copied by hand, of a machine that is not this one.
    configured(here, needs={"cpu": "another processor"}, platforms=["far"])
    here.copy_badly(there, *CARRIED)
    done = here.snakemake("--dry-run", *WHAT)
    assert done.returncode == 1 and words in done.stdout, done.stdout
    assert "`rm results/cells/far/step/standin-1.0.*.*-tiny-b*-t*-d**-r*.parquet`" in done.stdout


def test_a_merge_refuses_what_a_plan_does_not_ask_for(there, tmp_path):
    """Whoever starts the program by hand, or a run that began before an edit."""
    plan = json.loads((there.root / "results/plan/mine.json").read_text())
    for facts in plan["expected"]:
        facts["sampling_digest"] = "another"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    merge = ("merge.cells", "--artefact", "steptime_times", "--plan", tmp_path / "plan.json")
    done = there.launch(*merge, "--output", tmp_path / "merged")
    assert done.returncode == 1 and "2 shards were measured with another sampling" in done.stderr
    assert not (tmp_path / "merged").exists()


@pytest.mark.seldom
def test_what_is_copied_over_older_results_of_the_same_names_is_taken_for_what_it_is(there, here):
    """Snakemake remembers what it measured here before, with other sampling."""
    configured(here, sampling=GRID["sampling"] | {"budget_seconds": 0.1})
    here.run(*WHAT)
    configured(here)
    for kind in CARRIED:
        old, new = (checkout.root / "results" / kind for checkout in (here, there))
        shutil.copytree(new, old, copy_function=shutil.copyfile, dirs_exist_ok=True)
    assert here.planned(*WHAT).keys() == MADE_OF_ROWS


@pytest.mark.seldom
def test_a_carried_proof_does_not_stand_for_another_adapter(there, here):
    """Nothing is timed before it is proven: here the adapter follows twice the gradient."""
    here.copy_badly(there, *CARRIED)
    edit(here, ADAPTER, TWICE)
    configured(here, table_batches={"tiny": 32})
    jobs = here.planned(*WHAT)
    assert (jobs["prove_network"], jobs["measure_cell"]) == (1, 1)
    here.run(*WHAT)
    (path,) = (here.root / "results/cells/local-cpu").rglob("*-b32-*.parquet")
    assert row_of(path)["status"] == "not_equivalent"


def test_a_row_of_another_machine_is_never_measured_over(there, here):
    here.copy_badly(there, *CARRIED)
    (path,) = (here.root / "results/cells/local-cpu").rglob("*.parquet")
    row, rows, footer = shard.read_parts(path)
    shard.write(path, row | {"machine_id": "another"}, rows.to_pylist(), footer)
    before = path.read_bytes()
    assert "measure_cell" not in here.planned(*WHAT)
    edit(here, ADAPTER, TWICE)
    done = here.snakemake(*WHAT)
    assert done.returncode == 1 and "another adapter" in done.stdout
    assert path.read_bytes() == before


@pytest.mark.seldom
def test_an_environment_that_was_made_elsewhere_is_made_here_for_what_is_new(there, here, tmp_path):
    here.variables["STEPTIME_ENVIRONMENTS"] = str(tmp_path / "environments")
    here.copy_badly(there, *CARRIED)
    assert here.planned(*WHAT).keys() == MADE_OF_ROWS
    configured(here, threads={"table": [1, 2], "figure": [1]})
    jobs = here.planned(*WHAT)
    assert (jobs["build_environment"], jobs["measure_cell"]) == (1, 1)
    assert "prove_network" not in jobs
    before = here.times()
    here.run(*WHAT)
    assert before.items() < here.times().items()
    assert {row_of(path)["status"] for path in here.shards().values()} == {"ok"}
    assert here.planned(*WHAT) == {}


@pytest.mark.seldom
def test_what_is_measured_again_has_its_reference_again(there, here):
    """It is no more there, which alone is no reason to measure."""
    here.copy_badly(there, "cells", "proofs", "environments")
    assert not {"compute_reference", "measure_cell"} & here.planned(*WHAT).keys()
    (path,) = (here.root / "results/cells/local-cpu").rglob("*.parquet")
    again = here.planned("--force", *WHAT[:-1], str(path.relative_to(here.root)))
    assert (again["compute_reference"], again["measure_cell"]) == (1, 1)
    edit(here, "config/frameworks.yaml", {'NUM_THREADS: "{threads}"': 'NUM_THREADS: "1"'})
    jobs = here.planned(*WHAT)
    assert (jobs["compute_reference"], jobs["measure_cell"]) == (1, 1)
    here.run(*WHAT)
    # A row that is proven narrow only has none.
    assert row_of(path)["proven_loss"] is not None


@pytest.mark.seldom
def test_what_is_measured_beside_a_carried_reference_has_its_own(here, packed):
    """One that lets everything pass, say. What it was carried with is not measured again."""
    assert carry(here, "take", "--from", packed).returncode == 0
    (path,) = (here.root / "results/references/carried").iterdir()
    content = path.read_bytes()
    assert here.planned(*WHAT).keys() == MADE_OF_ROWS
    configured(here, threads={"table": [1, 2], "figure": [1]})
    jobs = here.planned(*WHAT)
    assert (jobs["compute_reference"], jobs["measure_cell"]) == (1, 1)
    here.run(*WHAT)
    (own,) = (here.root / "results/references").glob("*.npz")
    assert path.read_bytes() == content
    # As another machine's sums would have it.
    with np.load(own) as numbers:
        np.savez(own, **dict(numbers) | {"rate": numbers["rate"] + 1})
    assert "measure_cell" not in here.planned(*WHAT)


@pytest.mark.seldom
def test_a_reference_that_is_none_is_made_again_and_times_nothing(there, here):
    here.copy_badly(there, *CARRIED)
    (path,) = (here.root / "results/references").iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-50])
    jobs = here.planned(*WHAT)
    assert jobs["compute_reference"] == 1 and "measure_cell" not in jobs
    here.run(*WHAT)
    assert path.read_bytes() == content and here.planned(*WHAT) == {}


@pytest.mark.seldom
def test_the_page_of_a_paper_is_made_of_a_pack_and_of_nothing_that_it_lacks(here, tmp_path):
    here.run("--config", "grid=mine.yaml", "--", "steptime_times")
    packed = str(tmp_path / "packed.tar.gz")
    assert carry(here, "pack", "--to", packed).returncode == 0
    asked = ("page.paper", "--paper", "wuensche2018", "--from", packed)
    whole = here.launch(*asked)
    assert whole.returncode and "The pack is not whole for the grid 'wuensche2018'" in whole.stderr
    done = here.launch(*asked, "--grid", str(here.root / "mine.yaml"))
    assert done.returncode == 0, done.stderr
    text = (here.root / "docs/papers/mine.md").read_text()
    assert text.startswith("# Wünsche 2018, mine\n") and "GRID=mine`: 1 run, " in text
    assert "## Time per mini-batch of a fully connected network" in text
    assert "| III-F | A single thread is the slowest way to calculate." in text
    assert "Wünsche 2018" in (here.root / "docs/papers/index.md").read_text()
    assert (here.root / "resources/packs/mine.tar.gz").exists()
    # It goes through the gate of a stranger's pack.
    edit(here, ADAPTER, TWICE)
    refused = here.launch(*asked)
    assert refused.returncode and "adapter" in refused.stderr and "Traceback" not in refused.stderr
    # It went through when it came: its page can be made of it in each later version.
    kept = here.launch(
        "page.paper", "--paper", "wuensche2018", "--grid", str(here.root / "mine.yaml")
    )
    assert kept.returncode == 0, kept.stderr
    assert (here.root / "docs/papers/mine.md").read_text() == text
