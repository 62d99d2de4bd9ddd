"""Results of an older version are not measured again: a run says what to do, and then has nothing to measure."""

import subprocess
import sys
import tarfile

import pytest
import yaml
from conftest import ROOT

GRID = {
    "environments": ["torch-2.13"],
    "platforms": ["local-cpu"],
    "networks": ["fcn5"],
    "threads": {"table": [1, 2], "figure": [2]},
    "figure_batches": {"fcn5": [32, 64]},
    "sampling": {"budget_seconds": 1.5, "precision": 0.02, "least_samples": 3},
    "training": {"networks": ["mnist"], "threads": [1], "seeds": 1, "budget_seconds": 60},
    "limits": {"seconds": 900},
}
PACKED = ROOT / "tests/data/schema1.tar.gz"
WHAT = ("--config", "grid=old.yaml", "--", "all")


@pytest.fixture
def checkout(new_checkout):
    made = new_checkout()
    (made.root / "old.yaml").write_text(yaml.safe_dump(GRID))
    return made


def launch(checkout, *arguments):
    """Runs one of the workflow's programs by hand."""
    subprocess.run(
        ["workflow/scripts/launch", *map(str, arguments)],
        cwd=checkout.root,
        env=checkout.environment() | {"STEPTIME_PYTHON": sys.executable},
        check=True,
    )


def test_old_results_are_told_of_and_need_no_measuring_once_they_are_migrated(checkout):
    with tarfile.open(PACKED) as archive:
        archive.extractall(checkout.root, filter="data")
    refused = checkout.snakemake("--dry-run", *WHAT)
    assert refused.returncode == 1 and "run `make migrate`" in refused.stdout
    assert "Traceback" not in refused.stdout
    launch(checkout, "cells.migrate")
    check(checkout)


def test_a_pack_of_an_older_version_needs_no_measuring(checkout):
    launch(checkout, "cells.pack", "take", "--from", PACKED)
    check(checkout)


def check(checkout):
    jobs = checkout.planned(*WHAT)
    assert jobs["merge_cells"]
    assert not {"measure_cell", "prove_network", "build_environment"} & set(jobs)
    # A dry run writes nothing.
    assert not (checkout.root / "results/plan").exists()
