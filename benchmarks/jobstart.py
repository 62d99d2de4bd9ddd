"""Seconds that Snakemake takes to begin one cell inside a cluster's job, for a grid of 10 cells and one of 10,000.

    .venv/bin/python benchmarks/jobstart.py

A job starts Snakemake twice, each time with the whole workflow and one target. Limit of the project: the large grid
takes at most 1.5 times the CPU seconds of the small one. The two are started in turn, and the medians are compared.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[1]
STARTS = 7
ENVIRONMENT = yaml.safe_load((ROOT / "config/frameworks.yaml").read_text())["torch"][
    "environments"
][0]


def grid(cells: int) -> dict:
    """A grid of as many cells, all of one network and platform."""
    content = yaml.safe_load((ROOT / "config/grids/desktop.yaml").read_text())
    content.pop("figure_batches")
    return content | {
        "environments": [ENVIRONMENT],
        "platforms": ["server-cpu"],
        "networks": ["fcn5"],
        "threads": {"table": [1], "figure": [1]},
        "repeats": cells,
    }


def start(path: Path) -> tuple[float, float]:
    """Wall and CPU seconds of the command of a job, up to where it would run the cell's own program."""
    wildcards = (
        f"platform=server-cpu,environment={ENVIRONMENT},mode=eager,network=fcn5,batch=64,"
        "threads=1,devices=1,repeat=1"
    )
    command = [
        str(Path(sys.executable).with_name("snakemake")),
        *(
            "--target-jobs",
            f"measure_cell:{wildcards}",
            "--allowed-rules",
            "measure_cell",
            "--mode",
            "remote",
        ),
        *(
            "--force",
            "--nolock",
            "--no-hooks",
            "--max-inventory-time",
            "0",
            "--ignore-incomplete",
            "--dry-run",
        ),
        *("--workflow-profile", "none", "--cores", "2", "--quiet", "all"),
        *("--config", f"grid={path}", "platforms=config/platforms.example.yaml"),
    ]
    began, before = time.monotonic(), psutil.Process().cpu_times()
    subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = psutil.Process().cpu_times()
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return time.monotonic() - began, used


def main() -> None:
    """Prints one line per grid, and the ratio."""
    seconds: dict[int, list[tuple[float, float]]] = {10: [], 10_000: []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(STARTS):
            for cells, found in seconds.items():
                path = Path(folder) / f"{cells}.yaml"
                path.write_text(yaml.safe_dump(grid(cells)))
                found.append(start(path))
    for cells, found in seconds.items():
        wall, cpu = (statistics.median(values) for values in zip(*found, strict=True))
        print(f"{cells} cells: {cpu:.2f} CPU-s, {wall:.2f} s")
    small, large = (statistics.median(cpu for _, cpu in found) for found in seconds.values())
    print(f"ratio {large / small:.2f}, limit 1.5")


if __name__ == "__main__":
    main()
