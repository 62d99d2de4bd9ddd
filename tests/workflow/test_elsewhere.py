"""The workflow outside of its checkout: results in a folder of their own, carried to another, and as a module."""

import os
import shutil
import time

import pytest

GRID = """
environments: [standin-1.0]
platforms: [local-cpu]
networks: [tiny]
threads: {table: [1], figure: [1]}
sampling: {budget_seconds: 0.5, precision: 0.05, least_samples: 5}
limits: {seconds: 30}
"""
TARGET = "results/tables/steptime_times.md"
MODULE = """
import json

module steptime:
    snakefile: "CHECKOUT/workflow/Snakefile"
    config: {"grid": "config/tiny.yaml"}

use rule * from steptime as st_*

rule say:
    input: "results/tables/steptime_times.md"
    output: "said.txt"
    shell: "echo done > {output}"
"""


class Folder:
    """A folder to work in that holds nothing but a configuration."""

    def __init__(self, root, checkout):
        self.root, self.checkout = root, checkout
        (root / "config").mkdir(parents=True)
        (root / "config/tiny.yaml").write_text(GRID)
        (root / "config/config.yaml").write_text("grid: config/tiny.yaml\n")

    def snakemake(self, *arguments, snakefile=None):
        """Runs Snakemake from beside this folder, with a Snakefile of the checkout; gives what it printed."""
        snakefile = snakefile or self.checkout.root / "Snakefile"
        named = ("--directory", str(self.root), "--snakefile", str(snakefile))
        done = self.checkout.fork(self.checkout.command(*arguments, *named), self.root.parent)
        assert done.returncode == 0, done.stdout
        return done.stdout


def state(folder):
    """Every file below a folder, with its time; without what Python and Snakemake keep for themselves."""
    return {
        path: path.lstat().st_mtime_ns
        for path in folder.rglob("*")
        if not {"__pycache__", ".snakemake"} & set(path.parts) and not path.is_dir()
    }


@pytest.fixture(scope="module")
def elsewhere(new_checkout, tmp_path_factory):
    """A folder in which cells were measured by --directory, the checkout before and after, and what was printed."""
    checkout = new_checkout("faults")
    folder = Folder(tmp_path_factory.mktemp("elsewhere") / "work", checkout)
    before = state(checkout.root)
    printed = folder.snakemake(TARGET)
    return folder, before, state(checkout.root), printed


def test_everything_is_made_in_the_folder_that_is_named(elsewhere):
    folder, before, after, printed = elsewhere
    assert (folder.root / TARGET).exists(), printed
    assert list((folder.root / "results").rglob("standin-1.0.good*.parquet"))
    assert before == after


def test_carried_results_are_up_to_date_in_another_folder(elsewhere, tmp_path):
    """Nothing that differs between two folders or checkouts may decide what is made again."""
    folder = elsewhere[0]
    other = Folder(tmp_path / "other", folder.checkout)
    for name in ("results", ".snakemake", "logs"):
        shutil.copytree(folder.root / name, other.root / name, copy_function=shutil.copy2)
    moved = shutil.copytree(folder.checkout.root, tmp_path / "checkout", symlinks=True)
    planned = other.snakemake("--dry-run", TARGET, snakefile=moved / "workflow/Snakefile")
    assert "Nothing to be done" in planned, planned


def test_another_workflow_has_it_as_a_module(elsewhere, tmp_path):
    """It measures, though `onstart` of a module is not called and no profile there keeps a host for a cell."""
    checkout = elsewhere[0].checkout
    own = Folder(tmp_path / "own", checkout)
    (own.root / "config/config.yaml").unlink()
    snakefile = own.root / "Snakefile"
    snakefile.write_text(MODULE.replace("CHECKOUT", str(checkout.root)))
    printed = own.snakemake("say", snakefile=snakefile)
    assert (own.root / "said.txt").exists()
    assert "[1/1 " in printed and "standin-1.0" in printed


@pytest.mark.seldom
def test_reading_the_rules_changes_no_file(elsewhere):
    folder = elsewhere[0]
    # As a clock that was set back leaves it: a real run gives it the present time.
    tomorrow = time.time() + 86400
    os.utime(folder.root / "results/environments/standin-1.0.json", (tomorrow, tomorrow))
    before = state(folder.root) | state(folder.checkout.root)
    for question in (["--dry-run", TARGET], ["--list-target-rules"], ["--lint"]):
        folder.snakemake(*question)
        after = state(folder.root) | state(folder.checkout.root)
        assert not dict(before.items() ^ after.items()), question
