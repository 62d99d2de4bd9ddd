"""Refuses what must not be in one table: shards under wrong names, and shards of several machines."""

from pathlib import Path
from typing import Any

from steptime import machine
from steptime.machine import placement
from steptime.plain import few
from steptime.plan.cell import key_of, shard_path
from steptime.reading import InputError


class MixedRowsError(InputError):
    """Rows that must not share one table."""


def under_another_name(path: Path, row: dict[str, Any]) -> str:
    """Writes a sentence about a shard whose row is of another cell than its path says; '' where it is not."""
    results, platform = path.parents[3], path.parents[1].name
    held = Path(shard_path(key_of(row | {"platform": platform}), str(results)))
    if held == path:
        return ""
    advice = "remove it, for that cell has a shard" if held.exists() else "give it that name"
    return f"The shard {path} holds the cell of {held}: {advice}."


def stranger(path: Path, here: dict[str, Any]) -> str | None:
    """Says why shards of this machine cannot be in one folder with a platform's, in a sentence; None where they can."""
    # Where a cell is measured: what reads shards is loaded while the framework is.
    from steptime.cells import shard

    platform = path.parent.parent
    other = next((other for other in platform.glob("*/*.parquet") if other != path), None)
    if other is None or placement.entry(platform.name).get("equal_machines"):
        return None
    try:
        row, _, footer = shard.read_parts(other)
        there = shard.kind_of_machine(other, row, footer)
    except shard.ShardError:
        # The merge names it, with the command that helps.
        return None
    kind = machine.kind(here, row["device"])
    if there == kind:
        return None
    return (
        f"{platform} holds cells of another machine, {there}; this one is {kind}: move that folder to "
        f"{platform.with_name('NAME')} and add NAME to config/platforms.yaml and to 'platforms' of the grid. "
        "Nothing was measured."
    )


def refuse_several(machines: dict[str, dict[str, list[Path]]]) -> None:
    """Raises MixedRowsError where a platform's shards, by kind of machine, are of machines that are not equal."""
    for platform, paths_by_kind in machines.items():
        if len(paths_by_kind) == 1 or placement.entry(platform).get("equal_machines"):
            continue
        (most, _), *others = sorted(paths_by_kind.items(), key=lambda entry: -len(entry[1]))
        strangers = [path for _, paths in others for path in paths]
        folders = dict.fromkeys(str(path.parent.parent.with_name("NAME")) for path in strangers)
        raise MixedRowsError(
            f"The platform '{platform}' has cells of {len(paths_by_kind)} machines, {most} and "
            f"{', '.join(kind for kind, _ in others)}, which cannot share one column: move the {len(strangers)} of "
            f"the others ({few(strangers, ' ')}) to {' and '.join(folders)} and add NAME to "
            "config/platforms.yaml and to 'platforms' of the grid, remove them to measure their cells on this "
            f"machine, or write `equal_machines: true` into the entry of {platform} if the difference does not matter."
        )
