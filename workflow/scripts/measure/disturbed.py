"""Prints the shards of cells that were measured while something else was at work, for measuring them again.

snakemake --force $(workflow/scripts/steptime measure.disturbed)
"""

import sys
from pathlib import Path

from measure import shard
from measure.interference import MOST_FOREIGN_CPUS, MOST_STEAL_SHARE


def main() -> None:
    """Prints one path a line; exits with 1 when there is none."""
    paths = [path for path in sorted(Path("results/shards").rglob("*.parquet")) if disturbed(path)]
    if not paths:
        sys.exit("No cell was measured under disturbance: there is nothing to measure again.")
    print("\n".join(map(str, paths)))


def disturbed(path: Path) -> bool:
    """Whether the cell of a shard was measured above the limits of `measure.interference`."""
    rows, _ = shard.read(path)
    foreign, stolen = (rows[name][0].as_py() or 0.0 for name in ("foreign_cpus", "steal_share"))
    return foreign > MOST_FOREIGN_CPUS or stolen > MOST_STEAL_SHARE


if __name__ == "__main__":
    main()
