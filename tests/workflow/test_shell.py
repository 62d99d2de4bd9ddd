"""What a user's shell may hold when `make` is called there: variables for other programs, odd names, no home."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steptime.plan import configuration, grid, written

HOSTILE = {
    "MPLBACKEND": "none of them",
    "PYTHONHOME": "nowhere",
    "PYTHONINSPECT": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONWARNINGS": "error",
    "HOME": "/proc",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "CDPATH": "/",
}


@pytest.fixture(scope="module")
def made(new_checkout):
    """A checkout whose .venv stands, with the packages of the Python that runs the tests."""
    checkout = new_checkout("faults")
    tools = checkout.root / ".venv/bin"
    tools.mkdir(parents=True)
    for name in ("python", "snakemake"):
        there = Path(sys.executable).with_name(name)
        (tools / name).write_text(f'#!/bin/sh\nexec "{there}" "$@"\n')
        (tools / name).chmod(0o755)
    listed = (checkout.root / "requirements.lock").read_bytes()
    sums = subprocess.run(["cksum"], input=listed, capture_output=True, check=True).stdout.decode()
    (tools.parent / ".steptime-lock").write_text(f"{sums.strip()} {checkout.root}\n")
    return checkout


def make(checkout, *arguments, **variables):
    kept = {
        name: value
        for name, value in checkout.environment().items()
        if name not in ("XDG_CACHE_HOME", "MAKEFLAGS", "MAKELEVEL")
    }
    return subprocess.run(
        ["make", *arguments],
        cwd=checkout.root,
        env=kept | {"STEPTIME_PYTHON": sys.executable} | variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_variables_of_the_shell_do_not_reach_snakemake_and_the_programs(made, tmp_path):
    """Another Python's packages, an ASCII locale, a home that nobody may write to."""
    for name in ("yaml", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('of another Python')")
    variables = HOSTILE | {"PYTHONPATH": str(tmp_path)}
    listed = make(made, "CORES=1 --list-rules", "GRID=faults", **variables)
    assert listed.returncode == 0 and "measure_cell" in listed.stdout, listed.stdout
    assert (made.root / ".cache/snakemake").is_dir()
    known = configuration.load(made.root, {"grid": "faults"})
    written.write(grid.expand(known, 1), made.root / "results/plan/faults.json")
    again = make(made, "again", "GRID=faults", **variables)
    assert again.returncode == 0 and "nothing to measure again" in again.stdout, again.stdout
    shown = [made.root / "workflow/scripts/launch", "render.terminal_probe"]
    (made.root / "workflow/scripts/steptime/render/terminal_probe.py").write_text("print('±')")
    printed = subprocess.run(shown, env=os.environ | variables, capture_output=True)
    assert printed.stdout == "±\n".encode(), printed.stderr


def test_a_reader_who_has_seen_enough_gets_no_traceback(made):
    """As `make compare A=... B=... | head -1`."""
    launch = made.root / "workflow/scripts/launch"
    (made.root / "workflow/scripts/steptime/render/many.py").write_text("print('line\\n' * 10**6)")
    command = ["bash", "-c", '"$0" render.many | head -1; exit "${PIPESTATUS[0]}"', launch]
    done = subprocess.run(command, env=made.environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (141, "line\n", "")


def test_names_with_spaces_and_quotes_reach_a_program_whole(made):
    source = 'of o\'Brien "$(x)" & co.tar.gz'
    done = make(made, "merge", "FROM=" + source.replace("$", "$$"))
    assert done.returncode != 0 and source in done.stdout, done.stdout
    for words in (["pack"], ["merge", "FROM=none"]):
        done = make(made, *words, "PLATFORMS=my own.yaml")
        assert "my own.yaml" in done.stdout and "unrecognized" not in done.stdout, done.stdout
    grid = made.root / "config/grids/my own grid.yaml"
    grid.write_text((made.root / "config/grids/faults.yaml").read_text())
    listed = make(made, "CORES=1 --list-rules", "GRID=my own grid")
    assert listed.returncode == 0, listed.stdout


def test_pip_set_up_for_another_folder_does_not_lead_the_packages_there(made, tmp_path):
    """The steps of bootstrap.sh with stand-ins for the tools; what pip would have been told is kept."""
    root = made.root
    python = tmp_path / "a python"
    seen = tmp_path / "seen"
    python.write_text(
        "#!/bin/sh\n"
        f'env >>"{seen}"\n'
        'case "$*" in "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python;; esac\n'
    )
    python.chmod(0o755)
    (root / ".venv").rename(root / "kept")
    try:
        wishes = {"PIP_USER": "1", "PIP_TARGET": "t", "PIP_PREFIX": "p", "PYTHONPATH": "q"}
        done = make(made, "venv", f"PYTHON={python}", **wishes)
    finally:
        subprocess.run(["rm", "-rf", root / ".venv"], check=True)
        (root / "kept").rename(root / ".venv")
    assert done.returncode == 0, done.stdout
    lines = set(seen.read_text().splitlines())
    assert "PIP_USER=0" in lines
    assert not [line for line in lines if line.startswith(("PIP_TARGET", "PIP_PREFIX"))]
    assert not lines & {"PYTHONPATH=q", "PIP_USER=1"}


def test_what_make_does_not_know_starts_nothing(made):
    """Of `make GIRD=today`, the default grid would be measured."""
    for words, said in (
        (["GIRD=today"], "did you mean GRID?"),
        (["PAPER=x"], "`make paper`"),
        (["paper", "PAPER=x"], "Name a paper of dai2019 shatnawi2018 "),
    ):
        done = make(made, "-n", *words)
        assert done.returncode == 2 and said in done.stdout and "snakemake" not in done.stdout
    # A plan of another grid was written before.
    done = make(made, "again", "GRID=fault")
    assert done.returncode and "did you mean 'faults'?" in done.stdout, done.stdout
    asked = make(made, "-n", "ONLY=torch jax", "NETWORKS=fcn5", "MINUTES=30")
    wanted = "--config 'only=torch jax' 'only_networks=fcn5' 'minutes=30'"
    assert wanted in " ".join(asked.stdout.split()), asked.stdout
