"""The ways in besides make: a Snakemake that was installed by itself, with its own packages and no others."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

# What the programs need and Snakemake does not.
FOREIGN = ("numpy", "pandas", "pyarrow", "scipy", "matplotlib", "rich", "uv")
START = "import sys; from snakemake.cli import main; sys.exit(main())"


def packages_of(name, found):
    """The files and folders of a package and of all that it requires, by name."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return found
    if package.name.lower() in found:
        return found
    tops = {
        file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")
    }
    found[package.name.lower()] = [Path(str(package.locate_file(top))) for top in tops]
    for line in package.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            packages_of(wanted.name, found)
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder with Snakemake's packages and no others, as `pip install snakemake` makes one."""
    folder = tmp_path_factory.mktemp("plain")
    for paths in packages_of("snakemake", {}).values():
        for path in paths:
            if path.exists() and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    assert not any((folder / name).exists() for name in FOREIGN)
    return folder


def snakemake(checkout, folder, *arguments):
    """Runs a Snakemake that finds the packages of a folder alone."""
    return subprocess.run(
        # Without `site`, which would add the other packages of this Python.
        [sys.executable, "-S", "-c", START, "--cores", "2", *arguments],
        cwd=checkout.root,
        env=checkout.environment() | {"PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_snakemake_with_its_own_packages_plans_a_fresh_checkout(new_checkout, plain):
    checkout = new_checkout()
    for arguments in (["--list-target-rules"], ["--dry-run", "--quiet", "host"]):
        done = snakemake(checkout, plain, *arguments)
        assert done.returncode == 0 and "Traceback" not in done.stdout, done.stdout
    assert "measure_cell" in done.stdout and not (checkout.root / ".venv").exists()


@pytest.mark.seldom
def test_it_knows_results_that_were_carried_here(new_checkout, plain):
    """Their shards are read without pyarrow, and their images without NumPy."""
    there, here = new_checkout("faults"), new_checkout("faults")
    grid = ("--config", "grid=faults", "--", "steptime_times")
    for checkout in (there, here):
        checkout.choose("good")
    there.run(*grid)
    here.copy_badly(there, "cells", "references", "proofs", "environments")
    done = snakemake(here, plain, "--dry-run", "--quiet", "host", *grid)
    assert done.returncode == 0 and "merge_cells" in done.stdout, done.stdout
    assert not re.search(r"(?m)^(measure_cell|prove_network) +\d", done.stdout), done.stdout
