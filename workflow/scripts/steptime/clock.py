"""Files from the future: what a clock that was set back, or another host's, has left.

Snakemake removes what was just made where one of its inputs is newer, be it a whole night's cell.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from steptime.say import say


def to_present(folders: Iterable[Path]) -> int:
    """Gives files whose time is yet to come the present one, all of them the same; returns how many there were."""
    now = time.time_ns()
    walks = (walked for folder in folders for walked in os.walk(folder))
    files = (os.path.join(top, name) for top, _, names in walks for name in names)
    future = [file for file in files if os.lstat(file).st_mtime_ns > now]
    for file in future:
        os.utime(file, ns=(now, now), follow_symlinks=False)
    if future:
        say(f"{len(future)} files had a time that is yet to come, as of a clock that was set back.")
    return len(future)
