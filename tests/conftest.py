"""Makes the workflow's programs importable, as the launcher does, and gives tests checkouts of their own."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml

# The golden run's small matrix products take ten times as long with a pool of threads; read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow" / "scripts"))
# No test waits for the cells of a run beside it, nor do they for it, nor does another `make test` of this checkout.
LOCKS = tempfile.TemporaryDirectory(prefix="steptime-locks-")
os.environ["STEPTIME_LOCKS"] = LOCKS.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has the longest begin first, so that no other process waits for it in the end."""
    items.sort(key=lambda item: item.path.name != "test_slurm.py")


def hear_interrupts() -> None:
    """For a new process: what the background of a shell starts is born deaf to Ctrl-C, what `nohup` starts to the end
    of a terminal; a run at a terminal is not.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="module")
def _forks() -> Iterator[None]:
    """Ends with each file of tests what its runs of Snakemake are forked from."""
    yield
    forked.end()


class Checkout:
    """A copy of the project in a folder of its own, in which Snakemake is run as a user would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.variables: dict[str, str] = {}

    def command(self, *arguments: str) -> list[str]:
        """The command line of a Snakemake run."""
        return [str(forked.SNAKEMAKE), "--cores", "2", *arguments]

    def environment(self) -> dict[str, str]:
        """Environment variables: the project's own framework environments are used, so that each is made once."""
        own = {"STEPTIME_ENVIRONMENTS": str(ROOT / ".environments")}
        return own | os.environ | self.variables

    def snakemake(self, *arguments: str, seconds: int = 2400) -> subprocess.CompletedProcess[str]:
        """Runs Snakemake; both output streams come as `stdout`."""
        return self.fork(self.command(*arguments), self.root, seconds)

    def fork(
        self, command: list[str], folder: Path, seconds: int = 2400
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command of Snakemake's in a folder."""
        with tempfile.NamedTemporaryFile("r") as output:
            code = forked.run(command, folder, self.environment(), Path(output.name), seconds)
            return subprocess.CompletedProcess(command, code, output.read())

    def run(self, *arguments: str, seconds: int = 2400) -> str:
        """Runs Snakemake, which must end well; returns what it printed."""
        done = self.snakemake(*arguments, seconds=seconds)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def configure(self, **values: Any) -> None:
        """Sets keys of the grid `faults`."""
        path = self.root / "config/grids/faults.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | values))

    def choose(self, *modes: str, **values: Any) -> None:
        """Has the grid `faults` ask for these modes of the stand-in, and for no environment that does not install."""
        self.configure(environments=["standin-1.0"], modes={"standin": list(modes)}, **values)

    def planned(self, *arguments: str) -> dict[str, int]:
        """Number of jobs by rule in a dry run."""
        listed = self.snakemake("--dry-run", "--quiet", "host", *arguments)
        assert listed.returncode == 0, listed.stdout
        return {
            rule: int(count)
            for rule, count in re.findall(r"^(\w+) +(\d+)$", listed.stdout, re.MULTILINE)
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begins a Snakemake run in a process group of its own; both output streams come as `stdout`."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=hear_interrupts,
        )

    def await_doing(self, words: str) -> None:
        """Waits until a program of a run has written that it does this."""
        runs, end = self.root / ".snakemake/steptime", time.monotonic() + 600
        while not any(words in path.read_text() for path in runs.glob("*/doing")):
            assert time.monotonic() < end, words
            time.sleep(0.1)

    def shards(self) -> dict[str, Path]:
        """Shards of timed steps by "environment.mode.precision-network-..."."""
        return {path.stem: path for path in (self.root / "results/cells").glob("*/step/*.parquet")}

    def times(self) -> dict[str, int]:
        """When each shard was written."""
        return {name: path.stat().st_mtime_ns for name, path in self.shards().items()}

    def copy_badly(self, other: "Checkout", *kinds: str) -> None:
        """Takes results of another checkout as `cp -r` does, in the worst order: new times, those of `kinds` from the
        oldest on, each older than what it was made of.
        """
        for age, kind in enumerate(kinds):
            shutil.copytree(
                other.root / "results" / kind,
                self.root / "results" / kind,
                copy_function=shutil.copyfile,
            )
            for path in (self.root / "results" / kind).rglob("*.*"):
                os.utime(path, (age, age))

    def launch(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the workflow, as rules and make do."""
        return subprocess.run(
            ["workflow/scripts/launch", *map(str, words)],
            cwd=self.root,
            env=self.environment() | {"STEPTIME_PYTHON": sys.executable} | variables,
            capture_output=True,
            text=True,
        )

    def leftovers(self) -> list[Path]:
        """Files that were not written to their end."""
        return list((self.root / "results").rglob(".*.partial"))


@pytest.fixture(autouse=True)
def another_program(monkeypatch):
    """Each test is a program of its own: none knows the platforms that one before it was told."""
    # Tests of a framework's own Python do without the workflow's packages.
    from steptime import run

    monkeypatch.setattr(run, "TOLD", {})


@pytest.fixture(scope="session")
def new_checkout(tmp_path_factory):
    """Makes a checkout, with the folder tests/cases/<case> laid over it; `x.yaml.more` is appended to `x.yaml`."""

    def make(case: str | None = None) -> Checkout:
        root = tmp_path_factory.mktemp(case or "checkout")
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).exists() and not name.startswith("tests/"):
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                # A link to a folder stays one.
                shutil.copy2(ROOT / name, target, follow_symlinks=False)
        if case:
            shutil.copytree(ROOT / "tests/cases" / case, root, dirs_exist_ok=True)
            for extra in root.glob("config/*.yaml.more"):
                with extra.with_suffix("").open("a") as file:
                    file.write("\n" + extra.read_text())
        return Checkout(root)

    return make
