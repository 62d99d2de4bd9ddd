"""A whole run of the grid `ci` with real frameworks, and what a second one does."""

import json
import re

import pandas as pd
import pytest
import yaml
from examples import CATALOGUE as NETWORKS

from steptime.artefacts import timeline
from steptime.cells import shard
from steptime.environments import build, pins

pytestmark = pytest.mark.alone

GRID = ("--config", "grid=ci", "--")


@pytest.fixture(scope="module")
def cells(whole_run):
    rows = [shard.read(path)[0].to_pandas().iloc[0] for path in whole_run[0].shards().values()]
    return pd.DataFrame(rows)


def test_every_cell_is_measured(cells):
    assert len(cells) == 3 * (3 + 1)
    told = cells[["environment", "network", "status", "reason"]]
    assert cells["status"].tolist() == ["ok"] * len(cells), told


def test_every_network_has_the_papers_size_and_learns(cells):
    for _, cell in cells.iterrows():
        assert cell["parameters"] == NETWORKS[cell["network"]]["parameters"]
        assert cell["last_loss"] < cell["first_loss"]


def test_the_first_loss_is_the_same_number_in_every_framework(cells):
    """Same start values, same batch: at full size, the frameworks agree before any of them has been updated."""
    losses = cells.groupby(["network", "batch"])["first_loss"]
    assert ((losses.max() - losses.min()) / losses.mean()).max() < 1e-4


def test_a_network_is_trained_on_real_digits_in_every_framework(whole_run):
    root = whole_run[0].root
    paths = list((root / "results/cells").glob("*/training/*-r1.parquet"))
    rows = [shard.read(path)[0].to_pylist()[-1] for path in paths]
    assert sorted(row["framework"] for row in rows) == ["mxnet", "tensorflow", "torch"]
    for row in rows:
        assert (row["status"], row["stopped"], row["epoch"]) == ("ok", "epochs", 1), row["reason"]
        assert row["dataset_label"] == "MNIST, 5,000 of its training images"
        assert row["accuracy"] > 0.6
    for path, row in zip(paths, rows, strict=True):
        said = whole_run[0].inspect(path)
        words = f"{100 * row['accuracy']:.2f} % of the test images right: all epochs were trained"
        assert words in said and re.search(r"resident_bytes: [\d,]{9,} to [\d,]{9,}", said), said
    words = (root / "results/tables/shatnawi2018_table3.md").read_text()
    assert words.count("accuracy not reached: ") == 3
    assert "MNIST, 5,000 of its training images" in words


def test_the_pins_of_every_environment_are_closed(whole_run):
    """Nothing was installed that the environment's file does not pin."""
    for path in (whole_run[0].root / "results/environments").glob("*.json"):
        manifest = json.loads(path.read_text())
        wanted = pins.load(whole_run[0].root / "envs" / f"{manifest['environment']}.yaml")
        assert build.unpinned(manifest["packages"], wanted) == []


def test_every_cell_has_a_proof(cells, whole_run):
    for _, cell in cells.iterrows():
        name = f"{cell['environment']}.{cell['mode']}-{cell['network']}.json"
        assert (
            json.loads((whole_run[0].root / "results/proofs" / name).read_text())["proof_id"]
            == cell["proof_id"]
        )


def test_threads_are_real(cells):
    assert (cells["effective_threads"] <= 1.1 * cells["threads"]).all(), cells[
        ["environment", "effective_threads"]
    ]


def test_no_two_cells_overlap(whole_run):
    frames = [shard.read(path)[0].to_pandas() for path in whole_run[0].shards().values()]
    spans = timeline.spans_of(pd.concat(frames))
    assert timeline.sentence(spans) == "No two of 12 runs overlapped."
    assert len(pd.read_csv(whole_run[0].root / "results/figures/steptime_timeline.csv")) == 12
    # The parts of a cell that the worker itself timed lie within its span.
    parts = [frame.iloc[0] for frame in frames]
    least = {
        row["started_at"]: row["import_seconds"] + row["build_seconds"] + row["wall_seconds"]
        for row in parts
    }
    assert (spans["seconds"] >= spans["started_at"].map(least)).all()


def test_every_artefact_is_there_and_the_table_is_printed(whole_run):
    checkout, printed = whole_run
    for table in ("table1", "table2", "table3", "table4"):
        for ending in ("parquet", "csv", "md", "html"):
            assert (checkout.root / f"results/tables/shi2016_{table}.{ending}").stat().st_size
    for ending in ("svg", "png", "csv"):
        assert (checkout.root / f"results/figures/shi2016_fig1e.{ending}").stat().st_size
    # Of one mini-batch it would be a dot.
    assert not (checkout.root / "results/figures/shi2016_fig1a.svg").exists()
    # Three of them are trainings.
    assert "[15/15  done about " in printed
    frameworks = ("PyTorch 2.13.0 ", "TensorFlow 2.21.0 ", "MXNet 1.9.1 ", "overall")
    for words in (*frameworks, "15 of 15 runs measured in", "results/report/index.html"):
        assert words in printed


def test_a_second_run_does_nothing_and_says_so(whole_run):
    assert "Nothing to be done" in whole_run[0].run(*GRID, "all")


def test_one_figure_measures_only_its_own_cells(whole_run, new_checkout):
    jobs = new_checkout().planned(*GRID, "shi2016_fig1d")
    assert (jobs["measure_cell"], jobs["prove_network"], jobs["shi2016_fig1d"]) == (6, 3, 1)
    assert "shi2016_table4" not in jobs


def test_one_thread_is_one_thread(whole_run):
    """Measured beside the cells of the run: its grid has as many threads as CPUs."""
    checkout, _ = whole_run
    grid = yaml.safe_load((checkout.root / "config/grids/ci.yaml").read_text())
    grid |= {"networks": ["lstm32"], "threads": {"table": [1], "figure": [1]}}
    grid |= {"table_batches": {"lstm32": 8}, "figure_batches": {"lstm32": [8]}}
    (checkout.root / "one.yaml").write_text(yaml.safe_dump(grid))
    before = set(checkout.shards())
    checkout.run("--config", "grid=one.yaml", "--", "results/merged/shi2016_fig1e.parquet")
    added = {name: path for name, path in checkout.shards().items() if name not in before}
    rows = [shard.read(path)[0].slice(0, 1).to_pylist()[0] for path in added.values()]
    assert len(rows) == 3 and {row["threads"] for row in rows} == {1}
    assert all(row["effective_threads"] <= 1.1 for row in rows), rows
