"""neon 2.6, from a folder with its source that the user names: no index of packages has it.

Nothing is compiled: its backend for the CPU is Python on NumPy.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from steptime.environments.prepare import InstallError

SOURCE = "STEPTIME_NEON"
WANTED = "2.6.0"


def prepare(prefix: Path, run: Callable) -> dict[str, str]:
    """Copies neon's Python modules below `prefix` and writes down the version that its set-up names."""
    named = os.environ.get(SOURCE)
    if not named:
        raise InstallError(
            f"neon is in no index of packages: clone NervanaSystems/neon, its public repository, and set {SOURCE} to "
            "the folder of the clone"
        )
    source = Path(named).expanduser()
    found = source / "setup.py"
    version = (
        re.search(r"^VERSION *= *'([\d.]+)'", found.read_text(), re.M) if found.is_file() else None
    )
    if version is None or not (source / "neon/backends/nervanacpu.py").is_file():
        raise InstallError(
            f"the folder that {SOURCE} names is not the source of neon: it has no setup.py and neon/ of it"
        )
    if version[1] != WANTED:
        raise InstallError(
            f"the folder that {SOURCE} names holds neon {version[1]}, not {WANTED}: check that version out"
        )
    (packages,) = prefix.glob("lib/python3*/site-packages")
    shutil.copytree(
        source / "neon", packages / "neon", ignore=shutil.ignore_patterns("tests", "__pycache__")
    )
    # What its own set-up does; neon does not start without.
    (packages / "neon/version.py").write_text(f"VERSION = {WANTED!r}\n")
    return {"neon": f"{WANTED}, from a folder with its source"}
