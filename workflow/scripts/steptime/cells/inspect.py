"""Prints all that a shard knows: what came out, of what, how, on which machine, with which software.

workflow/scripts/launch cells.inspect results/cells/local-cpu/step/...
"""

import argparse
import difflib
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.tree import Tree

from steptime import machine
from steptime.cells import schema, shard, trusted
from steptime.machine import interference
from steptime.plain import plain
from steptime.plan.cell import FOLDER
from steptime.tasks import TASKS

# Columns by the heading under which they stand, with what they are; the rest of a row stands in the title.
CELL = {
    "environment": "environment",
    "framework_version": "version of the framework",
    "mode": "mode",
    "precision": "precision",
    "task": "task",
    "network": "network",
    "variant": "variant",
    "dataset_label": "data set",
    "dataset_sha256": "sums of its images",
    "seed": "seed",
    "target_accuracy": "accuracy asked for",
    "most_epochs": "epochs at most",
    "budget_seconds": "seconds after which no epoch begins",
    "batch": "mini-batch",
    "threads": "threads asked for",
    "device": "device",
    "devices": "devices",
    "exchange": "exchange between devices",
    "repeat": "repeat",
    "platform": "platform",
    "optimiser": "optimiser",
    "parameters": "trainable parameters",
    "flops_per_step": "floating-point operations of a step",
    "proof_id": "proof that it is this network",
}
COURSE = {
    "started_at": "started (UTC)",
    "ended_at": "ended (UTC)",
    "import_seconds": "seconds to import the framework",
    "build_seconds": "seconds to build the network",
    "ready_seconds": "seconds from the start of all processes until they have built it",
    "first_step_seconds": "seconds of the first step",
    "warmup_steps": "steps of the warm-up",
    "warmup_seconds": "seconds of the warm-up",
    "timed_region": "timed",
    "wall_seconds": "seconds of the samples",
    "cpu_seconds": "CPU seconds of the samples",
    "effective_threads": "threads at work, in the mean",
    "waiting_threads": "threads that waited for a CPU, in the mean",
    "involuntary_switches": "times that the kernel took a CPU away",
    "peak_memory_bytes": "most memory, bytes",
    "peak_device_memory_bytes": "most memory of the device, bytes",
    "device_utilisation": "utilisation of the device",
    "energy_joules": "energy of the device, J",
    "host_energy_joules": "energy of the processors, J",
    "first_loss": "first loss",
    "last_loss": "last loss",
}
OTHERS = {
    "foreign_cpus": f"CPUs at work for others (at most {interference.MOST_FOREIGN_CPUS})",
    "steal_share": f"share of time for other guests of the host (at most {interference.MOST_STEAL_SHARE})",
    "throttled_seconds": "seconds for which a CPU quota, or its GPU's power or heat, held it back",
    "frequency_ratio": f"clock rate after by that before (at least {interference.LEAST_FREQUENCY_RATIO})",
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print what a shard knows.")
    parser.add_argument("shard", type=Path)
    path = parser.parse_args().shard
    if not path.exists() or path.is_dir():
        known = sorted(map(str, Path("results").glob(f"{FOLDER}/*/*/*.parquet")))
        near = difflib.get_close_matches(str(path), known, 3, 0)
        advice = f"the nearest are {', '.join(near)}." if near else "measure something first."
        sys.exit(f"There is no shard {path}: {advice}")
    try:
        trusted.regular([path])
        table, footer = shard.read(path)
        shown = _plain(tree(path, table.to_pylist(), footer))
    except shard.ShardError as error:
        sys.exit(str(error))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        # Of a footer that says something else than those that were written here.
        sys.exit(str(shard.without_columns(path)))
    Console(highlight=False, markup=False).print(shown)


def tree(path: Path, rows: list[dict[str, Any]], footer: dict[str, Any]) -> Tree:
    """The content of a shard as a tree for the terminal."""
    task = rows[0]["task"]
    others = {name for other in TASKS.values() if other.name != task for name in other.columns}
    row = {name: rows[0][name] for name in schema.constant_of(task) if name not in others}
    root = Tree(str(path))
    if row["status"] != "ok":
        root.add(f"{row['status']}: {row['reason']}")
    TASKS[task].rows.show(root, row, rows)
    _columns(root.add("cell"), row, CELL)
    _columns(root.add("course"), row, COURSE)
    verdict = "too much: disturbed" if interference.disturbed(row) else "within the limits"
    _columns(root.add(f"what else the machine did: {verdict}"), row, OTHERS)
    if "resources" in footer:
        _resources(root, footer["resources"])
    if footer.get("devices"):
        _add(root.add("its GPUs"), footer["devices"])
    described = footer["machine"]
    branch = root.add(f"machine {row['machine_id']}: {machine.kind(described, row['device'])}")
    _add(branch, described)
    software = dict(footer["software"])
    packages = software.pop("packages")
    branch = root.add("software")
    _add(branch, software)
    branch.add("packages: " + ", ".join(f"{name} {version}" for name, version in packages.items()))
    if "left_out" in footer:
        left_out = dict(footer["left_out"])
        rows = left_out.pop("rows")
        branch = root.add("measured as well and not used")
        _add(branch, left_out)
        branch.add("samples: " + " ".join(f"{row['seconds']:.6g}" for row in rows))
    _add(root.add("workflow"), footer["workflow"])
    if "seeds" in footer:
        _add(root.add("seeds"), footer["seeds"])
    _add(root.add("how it was asked for"), footer["job"])
    _add(root.add("what the worker said"), footer["worker"])
    return root


def _plain(shown: Tree) -> Tree:
    """The tree with words that no terminal obeys, wherever they are from."""
    shown.label = plain(str(shown.label))
    for branch in shown.children:
        _plain(branch)
    return shown


def _resources(root: Tree, series: dict[str, Any]) -> None:
    """Of what was noted again and again, the least and the most."""
    branch = root.add(
        f"resources: {len(series['rows'])} notes, every {series['interval_seconds']:g} s"
    )
    for name, values in zip(series["columns"], zip(*series["rows"], strict=True), strict=False):
        known = [value for value in values if value is not None]
        _add(branch, {name: f"{_text(min(known))} to {_text(max(known))}" if known else None})


def _columns(branch: Tree, row: dict[str, Any], names: dict[str, str]) -> None:
    _add(branch, {text: row[name] for name, text in names.items() if name in row})


def _add(branch: Tree, content: dict[str, Any]) -> None:
    """The names and values below a branch; an empty one says so where that tells something."""
    for name, value in content.items():
        if isinstance(value, dict):
            _add(branch.add(name), value)
        elif isinstance(value, list):
            branch.add(f"{name}: {', '.join(map(str, value)) or 'none'}")
        elif value is None:
            branch.add(f"{name}: not known")
        elif value != "":
            branch.add(f"{name}: {_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    # Parameters and bytes are read more easily so, seeds are not.
    return f"{value:,}" if isinstance(value, int) and value >= 10**6 else str(value)


if __name__ == "__main__":
    main()
