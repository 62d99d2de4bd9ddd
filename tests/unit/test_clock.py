"""Times that are yet to come: a clock that was set back."""

import os
import time

from steptime import clock


def test_files_of_the_future_get_one_present_time_and_the_others_keep_theirs(tmp_path):
    """One time for all: none of them becomes older than what it was made of."""
    files = [tmp_path / name for name in ("old", "deep/manifest", "deep/shard")]
    for path, ahead in zip(files, (-100, 3600, 1800), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (time.time() + ahead,) * 2)
    old = files[0].stat().st_mtime_ns
    (tmp_path / "elsewhere").symlink_to(tmp_path / "none")
    assert clock.to_present([tmp_path, tmp_path / "none"]) == 2
    manifest, shard = (path.stat().st_mtime_ns for path in files[1:])
    assert manifest == shard <= time.time_ns()
    assert files[0].stat().st_mtime_ns == old
    assert clock.to_present([tmp_path]) == 0
