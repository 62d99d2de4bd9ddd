"""Makes every environment of the catalogue, or those that are named, and prints what came out of each.

    workflow/scripts/launch environments.every --cores all
    workflow/scripts/launch environments.every --cores all theano-1.0 chainer-7.8

Snakemake makes them, so that an environment that is there is not made again. One that cannot be installed stops no
other.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from steptime import project
from steptime.environments import pins
from steptime.machine import placement
from steptime.plan import configuration

# The grid that has all environments.
GRID = "zoo"
MANIFESTS, LOGS = Path("results/environments"), Path("logs/environments")
TOOK = re.compile(r"^took (\d+) s$", re.MULTILINE)
NARROWEST = 100


def main() -> None:
    """Runs the command line; exits with 0 where each named environment was made, or where none is named."""
    parser = argparse.ArgumentParser(description="Make the frameworks' environments.")
    parser.add_argument("--cores", default="all", help="how many are made at a time")
    parser.add_argument("names", nargs="*", help="frameworks or environments; none: all")
    options = parser.parse_args()
    names = chosen(options.names)
    code = make(names, options.cores)
    rows = [describe(name) for name in names]
    output = Console()
    output.width = max(output.width, NARROWEST)
    output.print(table(rows))
    stand = sum(row["state"] == "ok" for row in rows)
    output.print(f"{stand} of {len(rows)} environments are ready.", highlight=False)
    if code:
        sys.exit(f"Snakemake ended with {code}: the same command goes on from here.")
    sys.exit(1 if options.names and stand < len(rows) else 0)


def chosen(names: list[str]) -> list[str]:
    """Returns the environments that are named, or all. Raises InputError for an unknown name."""
    loaded = configuration.load(project.ROOT, {"grid": GRID}, placement.is_here)
    devices = {loaded.platforms[name]["device"] for name in loaded.grid["platforms"]}
    meant = (loaded.environments_of(name, devices) for name in names)
    names = [name for each in meant for name in each] or loaded.grid["environments"]
    for name in names:
        pins.load(project.path(f"envs/{name}.yaml"), loaded.entry_of(name).get("prepare", ""))
    return list(dict.fromkeys(names))


def make(names: list[str], cores: str) -> int:
    """Runs Snakemake to make the environments; returns its exit code."""
    command = [sys.executable, "-m", "snakemake", "--cores", cores]
    command += ["--config", f"grid={GRID}", "--"]
    return subprocess.run([*command, *map(str, map(manifest, names))]).returncode


def manifest(name: str) -> Path:
    """Returns the path of an environment's manifest."""
    return MANIFESTS / f"{name}.json"


def describe(name: str) -> dict[str, Any]:
    """Returns an environment's state, Python, seconds that it took to make, bytes on the disk, and reason."""
    if not manifest(name).exists():
        return {"name": name, "state": "not made", "reason": f"see {LOGS / name}.log"}
    content = json.loads(manifest(name).read_text())
    log = LOGS / f"{name}.log"
    took = TOOK.search(log.read_text(errors="replace")) if log.exists() else None
    added = "; ".join(f"{part}: {what}" for part, what in content.get("prepared", {}).items())
    return {
        "name": name,
        "state": content["status"],
        "python": content["python"],
        "seconds": int(took[1]) if took else None,
        "bytes": size(project.environment(name)),
        "reason": content["reason"] or added,
    }


def size(folder: Path) -> int:
    """Returns the bytes that a folder's files take on the disk; files that uv linked to its cache count in full."""
    paths = (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(os.lstat(path).st_blocks * 512 for path in paths)


def table(rows: list[dict[str, Any]]) -> Table:
    drawn = Table(header_style="bold", pad_edge=False)
    for heading in ("Environment", "State", "Python", "Seconds", "MiB"):
        numbers = heading in ("Seconds", "MiB")
        drawn.add_column(heading, justify="right" if numbers else "left", no_wrap=True)
    drawn.add_column("Reason, and what is there besides packages", overflow="fold")
    for row in rows:
        seconds, used = row.get("seconds"), row.get("bytes")
        took = "" if seconds is None else str(seconds)
        mib = f"{used / 2**20:.0f}" if used else ""
        cells = row["name"], row["state"], row.get("python") or "", took, mib, row["reason"]
        drawn.add_row(*cells, style="" if row["state"] == "ok" else "yellow")
    return drawn


if __name__ == "__main__":
    main()
