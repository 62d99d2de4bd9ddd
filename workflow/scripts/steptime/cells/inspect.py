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

# Columns that say what else the machine did, and from where on it was too much.
OTHERS = {
    "foreign_cpus": f"at most {interference.MOST_FOREIGN_CPUS}",
    "steal_share": f"at most {interference.MOST_STEAL_SHARE}",
    "throttled_seconds": "none",
    "frequency_ratio": f"at least {interference.LEAST_FREQUENCY_RATIO}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Print what a shard knows.")
    parser.add_argument("shard", type=Path)
    path = parser.parse_args().shard
    if path.suffix != ".parquet" or not path.exists():
        known = sorted(map(str, Path("results").glob(f"{FOLDER}/*/*/*.parquet")))
        near = difflib.get_close_matches(str(path), known, 3, 0)
        advice = f"the nearest are {', '.join(near)}." if near else "measure something first."
        sys.exit(f"There is no shard {path}: {advice}")
    try:
        trusted.regular([path])
        table, footer = shard.read(path)
        shown = _plain(tree(path, table.to_pylist(), footer))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        # Of a footer that says something else than those that were written here.
        raise shard.without_columns(path) from None
    Console(highlight=False, markup=False).print(shown)


def tree(path: Path, rows: list[dict[str, Any]], footer: dict[str, Any]) -> Tree:
    """Returns the content of a shard as a tree for the terminal."""
    task = rows[0]["task"]
    row = {name: rows[0][name] for name in schema.constant_of(task)}
    root = Tree(str(path))
    if row["status"] != "ok":
        root.add(f"{row['status']}: {row['reason']}")
    TASKS[task].rows.show(root, row, rows)
    hidden = {*OTHERS, *(name for name in row if name.endswith("_digest"))}
    known = {name: value for name, value in row.items() if value is not None}
    _add(root.add("row"), {name: known[name] for name in known if name not in hidden})
    verdict = "too much: disturbed" if interference.disturbed(row) else "within the limits"
    branch = root.add(f"what else the machine did: {verdict}")
    _add(branch, {f"{name} ({limit})": row[name] for name, limit in OTHERS.items()})
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
    _add(root.add("workflow"), footer["workflow"])
    if "seeds" in footer:
        _add(root.add("seeds"), footer["seeds"])
    _add(root.add("how it was asked for"), footer["job"])
    _add(root.add("what the worker said"), footer["worker"])
    return root


def _plain(shown: Tree) -> Tree:
    """Returns the tree with words that no terminal obeys, wherever they are from."""
    shown.label = plain(str(shown.label))
    for branch in shown.children:
        _plain(branch)
    return shown


def _resources(root: Tree, series: dict[str, Any]) -> None:
    """Of what was noted again and again, the least and the most."""
    every = f"every {series['interval_seconds']:g} s"
    branch = root.add(f"resources: {len(series['rows'])} notes, {every}")
    for name, values in zip(series["columns"], zip(*series["rows"], strict=True), strict=False):
        known = [value for value in values if value is not None]
        _add(branch, {name: f"{_text(min(known))} to {_text(max(known))}" if known else None})


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
