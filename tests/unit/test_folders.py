"""A folder that nothing can be planned in, or written to, is one sentence before the first job."""

import errno
import os
import time

import pytest

from steptime.plan import folders
from steptime.plan.schemas import ConfigurationError


def test_a_folder_that_is_there_or_is_yet_to_be_made_is_right(tmp_path):
    folders.check(tmp_path / "none yet")
    (tmp_path / "disk").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    folders.check(tmp_path / "results")
    folders.check_writable([f"{tmp_path}/results/cells/a/b.parquet", f"{tmp_path}/none/c"])


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("a disk that is not mounted", "leads to a disk that is not mounted, where no folder"),
        ("results", "leads to results, where no folder"),
        ("", "is no folder"),
    ],
)
def test_what_snakemake_would_trip_over_is_one_sentence(tmp_path, target, said):
    results = tmp_path / "results"
    if target:
        results.symlink_to(target)
    else:
        results.touch()
    with pytest.raises(ConfigurationError, match=said) as refused:
        folders.check(results)
    assert "\n" not in str(refused.value)


def test_a_full_disk_below_snakemakes_own_folder_is_one_sentence(tmp_path, monkeypatch):
    folders.check_space(tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError, match="No space left on device.: free some space and"):
        folders.check_space(tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


def test_what_holds_nothing_is_removed(tmp_path, capsys):
    for name in ("tables/whole.csv", "tables/empty.csv", "cells/a/step/empty.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1" * name.startswith("tables/whole"))
    (tmp_path / "tables/note").touch()
    folders.remove_empty(tmp_path)
    assert "2 files hold nothing and are made again, such as " in capsys.readouterr().err
    kept = [path.name for path in tmp_path.rglob("*.*")]
    assert sorted(kept) == ["whole.csv"] and (tmp_path / "tables/note").exists()


def test_a_folder_that_is_not_ours_is_named(tmp_path, monkeypatch):
    """As one that root has made, or a file system that is mounted to be read only."""
    (tmp_path / "cells").mkdir()
    monkeypatch.setattr(os, "access", lambda path, how: path != tmp_path / "cells")
    folders.check_writable([f"{tmp_path}/tables/a.csv"])
    with pytest.raises(ConfigurationError, match=f"^{tmp_path}/cells cannot be written to"):
        folders.check_writable([f"{tmp_path}/tables/a.csv", f"{tmp_path}/cells/a/step/b.parquet"])


def test_files_of_the_future_get_one_present_time_and_the_others_keep_theirs(tmp_path):
    """One time for all: none of them becomes older than what it was made of."""
    files = [tmp_path / name for name in ("old", "deep/manifest", "deep/shard")]
    for path, ahead in zip(files, (-100, 3600, 1800), strict=True):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (time.time() + ahead,) * 2)
    old = files[0].stat().st_mtime_ns
    (tmp_path / "elsewhere").symlink_to(tmp_path / "none")
    assert folders.to_present([tmp_path, tmp_path / "none"]) == 2
    manifest, shard = (path.stat().st_mtime_ns for path in files[1:])
    assert manifest == shard <= time.time_ns()
    assert files[0].stat().st_mtime_ns == old
    assert folders.to_present([tmp_path]) == 0
