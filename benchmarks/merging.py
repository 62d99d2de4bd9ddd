"""Seconds and memory of merging shards of 20 samples into a table: 2,500, 5,000 and 10,000 of them.

    .venv/bin/python benchmarks/merging.py

Limits of the project: 10,000 within 5 s and 1 GiB, and twice as many take about twice as long.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow" / "scripts"))

from steptime import machine  # noqa: E402
from steptime.cells import shard  # noqa: E402
from steptime.plan import configuration, grid, written  # noqa: E402
from steptime.plan.cell import shard_path  # noqa: E402

COUNTS = [int(text) for text in sys.argv[1:]] or [2_500, 5_000, 10_000]
ARTEFACT = "steptime_times"
PACKAGES = {f"package-{number}": "1.0" for number in range(60)}


def write_grid(path: Path, cells: int) -> grid.Plan:
    """A grid with at least so many cells of the artefact; its plan."""
    content = yaml.safe_load((ROOT / "config/grids/desktop.yaml").read_text())
    content |= {"threads": {"table": [1, 2], "figure": [2]}, "repeats": -(-cells // 36)}
    path.write_text(yaml.safe_dump(content))
    return grid.expand(configuration.load(ROOT, {"grid": str(path)}), 2)


def write_shards(folder: Path, cells: list[grid.Cell]) -> None:
    """A shard of 20 samples for each cell, with this machine's description and 60 packages in its footer."""
    described = machine.describe()
    for number, cell in enumerate(cells):
        facts = cell.facts() | {
            "variant": "",
            "status": "ok",
            "reason": "",
            "machine_id": "0",
            "environment_digest": "0",
        }
        samples = [
            {"sample": sample, "steps": 3, "seconds": 0.01 * (1 + number % 7) + 1e-5 * sample}
            for sample in range(20)
        ]
        software = {"framework_version": "1.0", "packages": PACKAGES}
        footer = {
            "machine": described,
            "software": software,
            "job": {"cell": cell.facts()},
            "worker": {},
        }
        shard.write(folder / shard_path(cell.key), facts, samples, footer)


def main() -> None:
    """Prints one line per number of shards."""
    for wanted in COUNTS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for linked in ("config", "envs", "workflow"):
                (folder / linked).symlink_to(ROOT / linked)
            plan = write_grid(folder / "grid.yaml", wanted)
            cells = [plan.cells[key] for key in plan.artefacts[ARTEFACT]]
            written.write(plan, folder / "plan.json")
            write_shards(folder, cells)
            command = [sys.executable, "-m", "steptime.merge.cells", "--artefact", ARTEFACT]
            command += ["--plan", "plan.json", "--output", "merged.parquet"]
            began = time.monotonic()
            process = subprocess.Popen(
                command, cwd=folder, env=os.environ | {"PYTHONPATH": "workflow/scripts"}
            )
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.monotonic() - began
            assert status == 0
            print(
                f"{len(cells)} shards: {seconds:.2f} s, {used.ru_utime + used.ru_stime:.2f} CPU-s, "
                f"{used.ru_maxrss / 2**20:.2f} GiB"
            )


if __name__ == "__main__":
    main()
