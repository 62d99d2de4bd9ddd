"""Measures one cell as a job of the workflow does, for the benchmarks beside it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow" / "scripts"))

from steptime import tasks  # noqa: E402
from steptime.plan import configuration, exchanges, grid  # noqa: E402
from steptime.plan.cell import proof_name  # noqa: E402


def prove(cells: Iterable[grid.Cell]) -> None:
    """Makes the environments and the proofs that these cells need."""
    snakemake = [
        str(Path(sys.executable).with_name("snakemake")),
        "--cores",
        "all",
        "--quiet",
        "all",
    ]
    wanted = sorted({proof_path(cell) for cell in cells})
    subprocess.run([*snakemake, "--config", "grid=ci", "--", *wanted], cwd=ROOT, check=True)


def proof_path(cell: grid.Cell) -> str:
    """Path of the proof that a cell needs."""
    return f"results/proofs/{proof_name(cell.facts())}.json"


def job_of(loaded: configuration.Configuration, cell: grid.Cell) -> dict[str, Any]:
    """The job of a cell, as the rule `measure_cell` writes it, less the digests."""
    framework = loaded.entry_of(cell.environment)
    adapter = exchanges.adapter_of(framework["adapter"], cell.devices, cell.exchange)
    return tasks.job_of(loaded, cell) | {"adapter": adapter, "variables": framework["variables"]}


def measure(cell: grid.Cell, job: dict[str, Any], shard: Path) -> None:
    """Runs the job's command, which writes the shard, and beside it what the framework prints; exits where it fails."""
    command = [
        "workflow/scripts/launch",
        "cells.measure",
        *("--job", json.dumps(job), "--networks", "config/networks.yaml"),
        *("--manifest", f"results/environments/{cell.environment}.json"),
        *("--proof", proof_path(cell)),
        *("--shard", str(shard), "--log", str(shard.with_suffix(".log"))),
    ]
    environment = os.environ | {"STEPTIME_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)
