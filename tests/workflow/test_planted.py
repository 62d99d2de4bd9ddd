"""Faults of measuring, planted for real: a kept thread, a missing wait, a busy neighbour; and a conda that fails."""

import os
import subprocess
import sys

import pandas as pd
import pytest

from environments import installer
from measure import machine, shard

# Answers what Snakemake and environments/build.py ask of conda; it knows nothing of channels and their packages.
STAND_IN_CONDA = """#!/bin/sh
case "$1 $2" in
"info --json") echo '{{"conda_prefix": "{prefix}", "platform": "linux-64"}}' ;;
"--version ") echo "conda 26.7.1" ;;
"config --get") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
"env create") mkdir -p "$8/bin" ;;
"create --yes")
    case "$6" in
    *broken-1.0) echo "PackagesNotFoundError: not available from current channels: python=3.11" >&2; exit 1 ;;
    esac
    {uv} venv --no-project --quiet --python {python} "$6" ;;
esac
"""


@pytest.fixture(scope="module")
def planted(new_checkout):
    checkout = new_checkout("threads")
    done = checkout.snakemake("--config", "grid=threads", "--", "shi2016_table4")
    assert done.returncode == 0, done.stdout
    table = pd.read_parquet(checkout.root / "results/tables/shi2016_table4.parquet")
    ours = table[table["source"] == "ours"].set_index("adapter_mode")
    return checkout, ours


def test_a_thread_variable_that_stays_at_one_is_marked(planted):
    checkout, ours = planted
    assert ours.loc["graph", "effective_threads"] < 1.1
    assert "idle threads" in ours.loc["graph", "marks"]
    assert "used less CPU than it was given" in (checkout.root / "results/tables/shi2016_table4.md").read_text()
    (path,) = (path for name, path in checkout.shards().items() if ".graph-" in name)
    assert shard.read(path)[1]["worker"]["ready"]["threads"] == 1


def test_an_adapter_that_does_not_wait_for_mxnet_s_engine_has_no_time(planted):
    checkout, ours = planted
    assert ours.loc["early", "status"] == "not_equivalent" and pd.isna(ours.loc["early", "ours"])
    words = "not the same training step: a synchronisation is missing: "
    assert words in (checkout.root / "results/tables/shi2016_table4.md").read_text()


def test_a_busy_neighbour_is_marked_wherever_the_cell_is_shown(new_checkout):
    checkout = new_checkout("faults")
    grid = checkout.root / "config/grids/faults.yaml"
    grid.write_text(
        grid.read_text()
        .replace("[standin-1.0, broken-1.0]", "[standin-1.0]")
        .replace(grid.read_text().partition("{standin: ")[2].partition("}")[0], "[good]")
    )
    targets = ("shi2016_table4", "shi2016_fig1a", "startup", "ratios")
    neighbour = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"],
        preexec_fn=lambda: os.sched_setaffinity(0, machine.cpus_for(1)),
    )
    try:
        done = checkout.snakemake("--config", "grid=faults", "--", *targets)
    finally:
        neighbour.kill()
        neighbour.wait()
    assert done.returncode == 0, done.stdout
    assert "(disturbed: something else was at work)" in done.stdout
    for shown in ("tables/shi2016_table4", "figures/shi2016_fig1a", "tables/startup", "tables/ratios"):
        rows = pd.read_csv(checkout.root / f"results/{shown}.csv")
        rows = rows[rows["environment"] == "standin-1.0"]
        assert len(rows) and rows["marks"].str.contains("disturbed").all(), shown
    named = [str(path.relative_to(checkout.root)) for path in checkout.shards().values()]
    assert selected(checkout) == named


def selected(checkout):
    """What `make again` would measure once more."""
    done = subprocess.run(
        ["workflow/scripts/steptime", "measure.disturbed", "--grid", "faults"],
        cwd=checkout.root,
        env=checkout.environment() | {"STEPTIME_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == bool(done.stdout) and "Traceback" not in done.stderr
    return done.stdout.split()


def test_an_environment_that_conda_cannot_make_stops_no_other(new_checkout, monkeypatch, tmp_path):
    """With a stand-in for conda on PATH, which the profile then uses by itself."""
    checkout = new_checkout("faults")
    grid = checkout.root / "config/grids/faults.yaml"
    grid.write_text(grid.read_text().replace(grid.read_text().partition("{standin: ")[2].partition("}")[0], "[good]"))
    conda, activate = tmp_path / "bin/conda", tmp_path / "bin/activate"
    conda.parent.mkdir()
    conda.write_text(STAND_IN_CONDA.format(prefix=tmp_path, uv=installer.find_uv(), python=sys.executable))
    conda.chmod(0o755)
    activate.write_text('export PATH="$1/bin:$PATH" CONDA_PREFIX="$1"\n')
    monkeypatch.setenv("PATH", str(conda.parent), prepend=os.pathsep)
    monkeypatch.setattr(
        checkout, "environment", lambda: os.environ | {"STEPTIME_ENVIRONMENTS": str(tmp_path / "environments")}
    )
    done = checkout.snakemake("--config", "grid=faults", "--", "shi2016_table4")
    assert done.returncode == 0, done.stdout
    found = {
        name.split(".good")[0]: shard.read(path)[0].slice(0, 1).to_pylist()[0]
        for name, path in checkout.shards().items()
    }
    assert found["standin-1.0"]["status"] == "ok"
    assert found["broken-1.0"]["status"] == "install_failed"
    assert "conda could not supply python=3.11" in found["broken-1.0"]["reason"]
    table = (checkout.root / "results/tables/shi2016_table4.md").read_text()
    assert "does not install: conda could not supply python=3.11" in table and "standin 1.0" in table
