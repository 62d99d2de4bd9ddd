"""Prints in lines what lies in results/, for who cannot look at it: cells, proofs, peaks, and what `gpu-check` said.

.venv/bin/python benchmarks/gpu_run/summary.py out/check.txt
"""

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def main() -> None:
    """Command line."""
    shards = [pq.read_table(path).to_pylist() for path in Path("results/cells").rglob("*.parquet")]
    shards.sort(key=lambda rows: rows[0]["started_at"])
    print(
        f"{len(shards)} cells: seconds of a step (median, samples), of the cell, memory and use of the GPU, loss and "
        "gradients off by"
    )
    print(*map(cell, shards), sep="\n")
    print(*proofs(), *peaks(), sep="\n")
    checked = Path(sys.argv[1])
    for line in checked.read_text().splitlines() if checked.exists() else ():
        print(short(line, 200))


def cell(rows: list[dict[str, Any]]) -> str:
    """A line for a cell."""
    row = rows[0]
    name = f"  {row['environment']} {row['mode']} {row['precision']} {row['network']} b{row['batch']} #{row['repeat']}:"
    took = (row["ended_at"] - row["started_at"]).total_seconds()
    if row["status"] != "ok":
        return f"{name} {row['status']} after {took:.0f} s: {short(row['reason'])}"
    used, share = row["peak_device_memory_bytes"], row["device_utilisation"]
    seen = [f"{used >> 20} MiB" if used else "-", "-" if share is None else f"{share:.2f}"]
    seen += [
        "-" if row[key] is None else f"{row[key]:.1g}" for key in ("proven_loss", "proven_change")
    ]
    median = statistics.median(each["seconds"] for each in rows)
    return f"{name} {median:.4g} ({len(rows)}), {took:.0f} s, {', '.join(seen)}"


def proofs() -> Iterator[str]:
    """How many proofs passed, and why the others did not."""
    files = [path for path in Path("results/proofs").rglob("*.json") if ".details" not in path.name]
    found = [json.loads(path.read_text()) for path in sorted(files)]
    yield f"{sum(each['status'] == 'ok' for each in found)} of {len(found)} proofs passed"
    for each in found:
        if each["status"] != "ok":
            name = f"{each['environment']} {each['mode']} {each['network']}"
            yield f"  {name}: {each['status']}: {short(each['reason'])}"


def peaks() -> Iterator[str]:
    """What each GPU reached by itself."""
    for path in sorted(Path("results/peaks").glob("*.json")):
        found = json.loads(path.read_text())
        each = next(iter(found["threads"].values()), {})
        said = {
            name: each.get(name) for name in ("precisions", "bytes_per_second", "transfers", "blas")
        }
        yield f"peak of {path.stem}: {short(found.get('reason') or said, 400)}"


def short(text: Any, most: int = 150) -> str:
    """In one line, and not too long."""
    text = " ".join(str(text).split())
    return text if len(text) <= most else text[: most - 3] + "..."


if __name__ == "__main__":
    main()
