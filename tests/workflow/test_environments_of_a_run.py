"""Environments of a whole run, with uv and with a stand-in for conda, which the profile uses where one is on PATH.

The stand-in says nothing of conda's own solver.
"""

import os
import re
import sys

import pytest

from steptime.cells import shard
from steptime.environments import installer

GRID = ("--config", "grid=faults", "--", "steptime_times")
# Answers what Snakemake and environments/build.py ask of conda; it knows nothing of channels and their packages. It is
# older than Snakemake asks for and can make no environment of a file: the workflow's own programs need neither.
STAND_IN = """#!/bin/sh
case "$1 $2" in
"info --json") echo '{{"conda_prefix": "{prefix}", "platform": "linux-64"}}' ;;
"--version ") echo "conda 23.1.0" ;;
"config --get") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
"env create") echo "LibMambaUnsatisfiableError" >&2; exit 1 ;;
"create --yes")
    case "$6" in
    *broken-1.0) echo "PackagesNotFoundError: not available from current channels: python=3.11" >&2; exit 1 ;;
    esac
    {uv} venv --no-project --quiet --python {python} "$6" ;;
esac
"""


@pytest.fixture
def good_only(new_checkout):
    """A checkout whose grid asks for the mode `good` alone."""
    checkout = new_checkout("faults")
    checkout.configure(modes={"standin": ["good"]})
    return checkout


@pytest.fixture
def conda(tmp_path):
    """A folder for PATH with the stand-in."""
    program, activate = tmp_path / "bin/conda", tmp_path / "bin/activate"
    program.parent.mkdir()
    program.write_text(
        STAND_IN.format(prefix=tmp_path, uv=installer.find_uv(), python=sys.executable)
    )
    program.chmod(0o755)
    activate.write_text('export PATH="$1/bin:$PATH" CONDA_PREFIX="$1"\n')
    return program.parent


def test_an_environment_that_conda_cannot_make_stops_no_other(
    good_only, conda, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(conda), prepend=os.pathsep)
    good_only.variables["STEPTIME_ENVIRONMENTS"] = str(tmp_path / "environments")
    good_only.run(*GRID)
    found = {
        name.split(".good")[0]: shard.read(path)[0].slice(0, 1).to_pylist()[0]
        for name, path in good_only.shards().items()
    }
    assert found["standin-1.0"]["status"] == "ok"
    assert found["broken-1.0"]["status"] == "install_failed"
    assert "conda could not supply python=3.11" in found["broken-1.0"]["reason"]
    table = (good_only.root / "results/tables/steptime_times.md").read_text()
    assert (
        "does not install: conda could not supply python=3.11" in table and "standin 1.0" in table
    )
    assert not any((good_only.root / ".snakemake/conda").glob("*"))
    assert not (good_only.root / ".venv").exists()


def test_all_environments_are_made_and_told_of_though_one_does_not_install(new_checkout):
    checkout = new_checkout("faults")
    grid = checkout.root / "config/grids/zoo.yaml"
    # Of frameworks that this catalogue has not.
    grid.write_text(re.sub(r"(?m)^modes: .*\n", "", grid.read_text()))
    done = checkout.launch("environments.every", "--cores", "2")
    assert done.returncode == 0, done.stderr
    assert re.search(r"standin-1\.0 +│ ok +│ 3\.11", done.stdout), done.stdout
    assert re.search(r"broken-1\.0 +│ install_failed │", done.stdout)
    assert "1 of 2 environments are ready." in done.stdout
    assert "steptime-no-such-package" in re.sub(r"[\s│]", "", done.stdout)


@pytest.mark.seldom
def test_only_a_changed_pin_times_again_and_only_its_own_environment(good_only, conda, monkeypatch):
    good_only.run(*GRID)
    path = os.environ["PATH"]

    def with_conda(there: bool) -> None:
        monkeypatch.setenv("PATH", f"{conda}{os.pathsep}{path}" if there else path)

    with_conda(True)
    assert good_only.planned(*GRID) == {}
    moved = good_only.root.with_name(f"{good_only.root.name}-moved")
    good_only.root.rename(moved)
    good_only.root = moved
    assert good_only.planned(*GRID) == {}
    with_conda(False)
    assert good_only.planned(*GRID) == {}
    spec = moved / "envs/standin-1.0.yaml"
    text = spec.read_text()
    for there in (False, True):
        with_conda(there)
        spec.write_text(f"# why\n{text}")
        assert good_only.planned(*GRID) == {}
        spec.write_text(text.replace("numpy==2.4.6", "numpy==2.4.5"))
        jobs = good_only.planned(*GRID)
        assert {
            name: jobs[name] for name in ("build_environment", "prove_network", "measure_cell")
        } == {"build_environment": 1, "prove_network": 1, "measure_cell": 1}
