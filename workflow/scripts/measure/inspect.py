"""Prints all that a shard knows: what came out, of what, how, on which machine, with which software.

workflow/scripts/steptime measure.inspect results/shards/local-cpu/torch-2.13.eager-fcn5-b64-t1-d1-r1.parquet
"""

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.tree import Tree

from measure import interference, machine, shard
from worker.statistics import ENOUGH, median, median_interval

# Columns by the heading under which they stand, with what they are; the rest of a row stands in the title.
CELL = {
    "environment": "environment",
    "framework_version": "version of the framework",
    "adapter_mode": "mode",
    "network": "network",
    "variant": "variant",
    "batch": "mini-batch",
    "threads": "threads asked for",
    "device": "device",
    "repeat": "repeat",
    "platform": "platform",
    "parameters": "trainable parameters",
    "flops_per_step": "floating-point operations of a step",
    "proof_id": "proof that it is this network",
}
COURSE = {
    "started_at": "started (UTC)",
    "ended_at": "ended (UTC)",
    "import_seconds": "seconds to import the framework",
    "build_seconds": "seconds to build the network",
    "warmup_steps": "steps of the warm-up",
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
    "first_loss": "first loss",
    "last_loss": "last loss",
}
OTHERS = {
    "foreign_cpus": f"CPUs at work for others (at most {interference.MOST_FOREIGN_CPUS})",
    "steal_share": f"share of time for other guests of the host (at most {interference.MOST_STEAL_SHARE})",
    "frequency_ratio": f"clock rate after by that before (at least {interference.LEAST_FREQUENCY_RATIO})",
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print what a shard knows.")
    parser.add_argument("shard", type=Path, nargs="?")
    path = parser.parse_args().shard
    if path is None:
        sys.exit("Name a shard: `make inspect SHARD=results/shards/...`; they lie in results/shards/<platform>/.")
    try:
        table, footer = shard.read(path)
    except shard.ShardError as error:
        sys.exit(str(error))
    Console(highlight=False, markup=False).print(tree(path, table.to_pylist(), footer))


def tree(path: Path, rows: list[dict[str, Any]], footer: dict[str, Any]) -> Tree:
    """The content of a shard as a tree for the terminal."""
    row = rows[0] | {"ended_at": footer.get("ended_at")}
    root = Tree(str(path))
    _outcome(root, row, [(entry["steps"], entry["seconds"]) for entry in rows if entry["seconds"] is not None])
    _columns(root.add("cell"), row, CELL)
    _columns(root.add("course"), row, COURSE)
    verdict = "too much: disturbed" if interference.disturbed(row) else "within the limits"
    _columns(root.add(f"what else the machine did: {verdict}"), row, OTHERS)
    described = footer["machine"]
    branch = root.add(f"machine {row['machine_id']}: {machine.kind(described)}")
    _add(branch, described)
    software = dict(footer["software"])
    packages = software.pop("packages")
    branch = root.add("software")
    _add(branch, software)
    branch.add("packages: " + ", ".join(f"{name} {version}" for name, version in packages.items()))
    _add(root.add("workflow"), footer["workflow"])
    _add(root.add("seeds"), footer["seeds"])
    _add(root.add("how it was asked for"), footer["job"])
    _add(root.add("what the worker said"), footer["worker"])
    return root


def _outcome(root: Tree, row: dict[str, Any], samples: list[tuple[int, float]]) -> None:
    if row["status"] != "ok":
        root.add(f"{row['status']}: {row['reason']}")
    if not samples:
        return
    seconds = [value for _, value in samples]
    low, high = median_interval(seconds)
    what = "its 95 % interval is" if len(seconds) >= ENOUGH else "too few samples for an interval, they lie in"
    text = f"{median(seconds):.6g} s per mini-batch, the median; {what} {low:.6g} to {high:.6g} s"
    branch = root.add(text if row["status"] == "ok" else f"not to be used: {text}")
    branch.add(f"{len(samples)} samples of {samples[0][0]} steps: " + " ".join(f"{value:.6g}" for value in seconds))


def _columns(branch: Tree, row: dict[str, Any], names: dict[str, str]) -> None:
    _add(branch, {text: row[name] for name, text in names.items()})


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
