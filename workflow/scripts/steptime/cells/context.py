"""What a shard tells besides its cell: the workflow, and whether this machine's cells may lie beside those there."""

import os
import subprocess
from pathlib import Path
from typing import Any

from steptime import machine
from steptime.machine import placement

# A cell waits no longer for what git says of a large or far checkout.
GIT_SECONDS = 20
ROOT = Path(__file__).resolve().parents[4]


def stranger(path: Path, here: dict[str, Any]) -> str | None:
    """Why this machine's cells cannot lie beside the shards of a platform, as a sentence; None where they can."""
    from steptime.cells import shard

    platform = path.parent.parent
    if placement.entry(platform.name).get("equal_machines"):
        return None
    other = next((other for other in platform.glob("*/*.parquet") if other != path), None)
    if other is None:
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


def workflow() -> dict[str, Any]:
    """The workflow's commit, with "-dirty" where the checkout differs, and the files that do, but for ignored ones.

    Outside a git checkout, the commit is what the file .commit says, or None.
    """
    # As a hook of git's sets them, they name another checkout.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    try:
        described, changed = (
            subprocess.run(
                ["git", *command],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
                env=environment,
                timeout=GIT_SECONDS,
            ).stdout
            for command in (
                ["rev-parse", "--show-prefix", "--short=12", "HEAD"],
                ["status", "--porcelain", "--untracked-files=normal"],
            )
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return _written()
    prefix, commit = described.splitlines()
    # A checkout without git's folder, in the work tree of something else.
    if prefix:
        return _written()
    files = [line[3:] for line in changed.splitlines()]
    return {"commit": commit + ("-dirty" if files else ""), "changed": files}


def _written() -> dict[str, Any]:
    """What the file .commit says of a tree that was copied without git's folder."""
    try:
        written = (ROOT / ".commit").read_text().strip()
    except (OSError, UnicodeDecodeError):
        written = ""
    return {"commit": written or None, "changed": None}
