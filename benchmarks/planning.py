"""CPU seconds of planning: `snakemake -n -q` for 10,000 runs or more, and one artefact by name out of 20,000.

    .venv/bin/python benchmarks/planning.py

The grid is `desktop` with enough repeats. Limits of the project: 10 and 4 CPU-seconds.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from steptime.plan import configuration, grid  # noqa: E402


def cpu_seconds(command: list[str]) -> float:
    """User and system seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Prints one line per case."""
    snakemake = str(Path(sys.executable).with_name("snakemake"))
    desktop = yaml.safe_load((ROOT / "config/grids/desktop.yaml").read_text())
    desktop["threads"] = {"table": [1, 2], "figure": [2]}
    with tempfile.TemporaryDirectory() as folder:

        def written(repeats: int) -> tuple[Path, int]:
            """Writes a grid; returns its path, and how many runs it has on as many CPUs as are planned for."""
            path = Path(folder) / f"{repeats}.yaml"
            path.write_text(yaml.safe_dump(desktop | {"repeats": repeats}))
            return path, len(grid.expand(configuration.load(ROOT, {"grid": str(path)}), 2).cells)

        # Of some cells there is one run, however many repeats are asked for.
        one, two = (written(repeats)[1] for repeats in (1, 2))
        for wanted, target, limit in ((10_000, [], 10), (20_000, ["shi2016_fig1d"], 4)):
            path, runs = written(1 + -(-(wanted - one) // (two - one)))
            command = [snakemake, *target, "-n", "-q", "--cores", "2", "--config", f"grid={path}"]
            used = cpu_seconds(command)
            what = target[0] if target else "all"
            print(f"{runs:,} runs, {what}: {used:.1f} CPU-s, limit {limit}", flush=True)


if __name__ == "__main__":
    main()
