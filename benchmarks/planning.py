"""CPU seconds of planning: `snakemake -n -q` for 10,000 cells, and one artefact by name out of 20,000.

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
    grid = yaml.safe_load((ROOT / "config/grids/desktop.yaml").read_text())
    # 3 environments, 6 networks at 2 thread counts, and 2 more mini-batch sizes of 2 networks.
    cells = 3 * (6 * 2 + 2 * 2)
    with tempfile.TemporaryDirectory() as folder:
        for wanted, target, limit in ((10_000, [], 10), (20_000, ["shi2016_fig1d"], 4)):
            path = Path(folder) / f"{wanted}.yaml"
            path.write_text(
                yaml.safe_dump(
                    grid
                    | {"repeats": -(-wanted // cells), "threads": {"table": [1, 2], "figure": [2]}}
                )
            )
            used = cpu_seconds(
                [snakemake, *target, "-n", "-q", "--cores", "2", "--config", f"grid={path}"]
            )
            print(
                f"{wanted} cells, {target[0] if target else 'all'}: {used:.1f} CPU-s, limit {limit}"
            )


if __name__ == "__main__":
    main()
