"""Prints all that a shard knows: the cell, its samples, the machine, the software and how it was run.

workflow/scripts/steptime measure.inspect results/shards/local-cpu/torch-2.13.eager-fcn5-b64-t1-d1-r1.parquet
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.tree import Tree

from measure import shard
from worker.statistics import median, median_interval


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print what a shard knows.")
    parser.add_argument("shard", type=Path)
    path = parser.parse_args().shard
    try:
        table, footer = shard.read(path)
    except shard.ShardError as error:
        sys.exit(str(error))
    Console().print(tree(path.stem, table.to_pylist(), footer))


def tree(title: str, rows: list[dict[str, Any]], footer: dict[str, Any]) -> Tree:
    """The content of a shard as a tree for the terminal."""
    root = Tree(title)
    per_sample = ("sample", "steps", "seconds")
    cell = {name: value for name, value in rows[0].items() if name not in per_sample}
    _add(root.add("cell"), cell | {"ended_at": footer.get("ended_at")})
    seconds = [row["seconds"] for row in rows if row["seconds"] is not None]
    if seconds:
        low, high = median_interval(seconds)
        samples = root.add(
            f"{len(seconds)} samples: median {median(seconds):.6g} s, 95 % interval {low:.6g} to {high:.6g} s"
        )
        samples.add(" ".join(f"{value:.6g}" for value in seconds))
    for name in ("worker", "machine", "software", "job"):
        _add(root.add(name), footer[name])
    return root


def _add(branch: Tree, content: dict[str, Any]) -> None:
    for name, value in content.items():
        if isinstance(value, dict):
            _add(branch.add(name), value)
        elif value not in (None, "", []):
            branch.add(f"{name}: {value}")


if __name__ == "__main__":
    main()
