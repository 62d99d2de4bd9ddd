"""Results go from one machine to another whole, proven and without a clash, or not at all."""

import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from steptime import machine
from steptime.cells import pack, schema, shard
from steptime.merge import MixedRowsError
from steptime.plan import run
from steptime.plan.cell import key_of, shard_path

HERE = machine.describe()
OTHER = HERE | {"memory_bytes": 2**40}


def results(root: Path, platform: str, batches: list[int], described=HERE, seconds=0.1) -> Path:
    """A results folder with a shard per batch and a training of each, a proof, a manifest and two data sets."""
    facts = {
        "platform": platform,
        "environment": "e-1",
        "mode": "m",
        "precision": "float32",
        "task": "step",
        "network": "n",
        "variant": "",
        "dataset": "",
        "exchange": "",
    }
    facts |= {
        "threads": 1,
        "devices": 1,
        "repeat": 1,
        "status": "ok",
        "proof_id": "p",
        "machine_id": "1",
    }
    for batch in batches:
        for axes in ({"task": "step"}, {"task": "training", "dataset": "digits"}):
            cell = facts | axes | {"batch": batch}
            path = Path(shard_path(key_of(cell), str(root)))
            shard.write(path, cell, [{"seconds": seconds}], {"machine": described})
    for kind, name, content in (
        ("proofs", "e-1.m-n", {"proof_id": "p"}),
        ("environments", "e-1", {}),
    ):
        (root / kind).mkdir(parents=True, exist_ok=True)
        (root / kind / f"{name}.json").write_text(json.dumps(content))
    for dataset in ("digits", "others"):
        (root / "datasets" / dataset).mkdir(parents=True, exist_ok=True)
        (root / "datasets" / dataset / "train.npz").write_bytes(root.name.encode())
    return root


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_what_is_packed_there_is_here_after_the_merge_and_newer_than_what_it_was_made_of(tmp_path):
    there = results(tmp_path / "there", "far", [1, 2])
    here = results(tmp_path / "here", "near", [1])
    before = files(here)
    for path in there.rglob("*-b1-*"):
        os.utime(path, (0, 0))
    (here / "datasets/digits/train.npz").unlink()
    assert pack.pack(there, tmp_path / "all.tar.gz") == 4
    assert pack.take(tmp_path / "all.tar.gz", here) == 4
    # What was measured, and the data set that a training was of where it is lacking; the other is not carried.
    brought = ("cells", "datasets/digits")
    assert files(here) == before | {
        name: data for name, data in files(there).items() if name.startswith(brought)
    }
    made_of = [here / "proofs/e-1.m-n.json", here / "datasets/digits/train.npz"]
    for path in here.rglob("far/*-b1-*"):
        assert path.stat().st_mtime >= max(file.stat().st_mtime for file in made_of)
    # Once more: nothing is new, and that is no mistake.
    assert pack.take(there, here) == 0


def test_an_environment_that_failed_to_install_there_is_tried_here(tmp_path):
    there = results(tmp_path / "there", "far", [1])
    for name, status in (("e-1", "install_failed"), ("e-2", "ok")):
        manifest = there / f"environments/{name}.json"
        manifest.write_text(json.dumps({"status": status}))
    assert pack.take(there, tmp_path / "here") == 2
    taken = [path.name for path in (tmp_path / "here/environments").iterdir()]
    assert taken == ["e-2.json"]


@pytest.mark.parametrize("task", ["step", "training"])
@pytest.mark.parametrize("equal", [False, True])
def test_two_machines_under_one_name_are_refused_unless_they_are_equal(
    tmp_path, monkeypatch, equal, task
):
    there, here = (
        results(tmp_path / "there", "far", [1], OTHER),
        results(tmp_path / "here", "far", [2]),
    )
    shutil.rmtree(there / "cells/far" / task)
    monkeypatch.setitem(run.TOLD, "platforms", {"far": {"equal_machines": equal}})
    if equal:
        assert pack.take(there, here) == 1
    else:
        with pytest.raises(
            pack.PackError, match="'far' is another machine there .*`equal_machines: true`"
        ):
            pack.take(there, here)
        assert len(list(here.rglob("*.parquet"))) == 2


@pytest.mark.parametrize("task", ["step", "training"])
@pytest.mark.parametrize("equal", [False, True])
def test_two_machines_in_one_platform_of_the_other_folder_are_refused_unless_they_are_equal(
    tmp_path, monkeypatch, equal, task
):
    """The stranger is neither the first nor the last of the files; trainings count as timed cells do."""
    there, here = (
        results(tmp_path / "there", "far", [1, 2, 3]),
        results(tmp_path / "here", "near", [1]),
    )
    stranger = next(there.rglob(f"far/{task}/*-b2-*"))
    results(tmp_path / "stranger", "far", [2], OTHER)
    shutil.copy(next((tmp_path / "stranger").rglob(f"far/{task}/*-b2-*")), stranger)
    monkeypatch.setitem(run.TOLD, "platforms", {"far": {"equal_machines": equal}})
    if equal:
        assert pack.pack(there, tmp_path / "all.tar.gz") == 6
        assert pack.take(there, here) == 6
        return
    said = f"'far' has cells of 2 machines, .* move the 1 of the others .{stranger}. to {stranger.parents[2]}/NAME"
    before = files(here)
    with pytest.raises(MixedRowsError, match=said):
        pack.take(there, here)
    with pytest.raises(MixedRowsError, match=said):
        pack.pack(there, tmp_path / "all.tar.gz")
    assert files(here) == before and not (tmp_path / "all.tar.gz").exists()


def spoil_clash(there: Path) -> None:
    results(there, "near", [1], seconds=0.2)


def spoil_trained_clash(there: Path) -> None:
    spoil_clash(there)
    shutil.rmtree(there / "cells/near/step")


def spoil_proof(there: Path) -> None:
    (there / "proofs/e-1.m-n.json").write_text('{"proof_id": "another"}')


def spoil_bytes(there: Path) -> None:
    path = next(there.rglob("far/step/*-b2-*"))
    path.write_bytes(path.read_bytes()[:-9])


def spoil_trained_bytes(there: Path) -> None:
    path = next(there.rglob("far/training/*-b2-*"))
    path.write_bytes(path.read_bytes()[:-9])


def spoil_version(there: Path) -> None:
    path = next(there.rglob("far/training/*-b2-*"))
    footer = json.dumps({"schema": schema.SCHEMA_VERSION + 1})
    pq.write_table(pq.read_table(path).replace_schema_metadata({shard.FOOTER: footer}), path)


def spoil_all(there: Path) -> None:
    for path in there.rglob("*.parquet"):
        path.unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_clash, "2 cells were measured both there and here, such as cells/near/step/"),
        (
            spoil_trained_clash,
            "1 cells were measured both there and here, such as cells/near/training/",
        ),
        (spoil_proof, "4 shards have no proof beside them"),
        (spoil_bytes, "The shard .*far/step/.* is broken"),
        (spoil_trained_bytes, "The shard .*far/training/.* is broken"),
        (
            spoil_version,
            "The shard .*far/training/.* has schema version 3 and this workflow reads 2",
        ),
        (spoil_all, "There is no shard in"),
    ],
)
def test_a_folder_with_something_wrong_is_not_taken_in_part(tmp_path, spoil, said):
    there, here = (
        results(tmp_path / "there", "far", [1, 2]),
        results(tmp_path / "here", "near", [1]),
    )
    spoil(there)
    before = files(here)
    with pytest.raises((pack.PackError, shard.ShardError), match=said):
        pack.take(there, here)
    assert files(here) == before
