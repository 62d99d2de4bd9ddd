"""Results go from one machine to another whole, proven and without a clash, or not at all."""

import json
import os
import re
import resource
import shutil
import tarfile
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import CELL, DIGESTS

from steptime import machine, run
from steptime.carry import pack
from steptime.cells import shard
from steptime.cells.mixed import MixedRowsError
from steptime.plan.cell import key_of, shard_path

DAWN, HOUR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1)
# What the row of a run that is ok says of itself.
TOLD = DIGESTS | {"parameters": 1, "timed_region": "sync"}
TOLD |= {"started_at": DAWN, "ended_at": DAWN + HOUR}
HERE = machine.describe()
OTHER = HERE | {"cpu": {"model": "Another CPU", "logical_cores": 8}}


def results(root: Path, platform: str, batches: list[int], described=HERE, seconds=0.1) -> Path:
    """A results folder with a shard per batch and a training of each, a proof, a manifest and two data sets."""
    facts = CELL | {"platform": platform, "environment": "e-1", "mode": "m", "network": "n"}
    facts |= {"proof_id": "p", "machine_id": "1"} | TOLD
    for batch in batches:
        for axes in ({"task": "step"}, {"task": "training", "dataset": "digits"}):
            cell = facts | axes | {"batch": batch}
            path = Path(shard_path(key_of(cell), str(root)))
            footer = {"machine": described, "job": {"variables": {}}}
            shard.write(path, cell, [{"steps": 1, "seconds": seconds}], footer)
    for kind, name, content in (
        ("proofs", "e-1.m-n", {"proof_id": "p", "status": "ok"}),
        ("environments", "e-1", {}),
    ):
        (root / kind).mkdir(parents=True, exist_ok=True)
        (root / kind / f"{name}.json").write_text(json.dumps(content))
    for dataset in ("digits", "others"):
        (root / "datasets" / dataset).mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(root / "datasets" / dataset / "train.npz", "w") as arrays:
            arrays.writestr("of", root.name)
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


def spoil_proof(there: Path) -> None:
    (there / "proofs/e-1.m-n.json").write_text('{"proof_id": "another"}')


def cut(there: Path) -> None:
    path = next(there.rglob("far/training/*-b2-*"))
    path.write_bytes(path.read_bytes()[:-9])


def spoil_all(there: Path) -> None:
    for path in there.rglob("*.parquet"):
        path.unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_clash, "2 cells were measured both there and here, such as cells/near/step/"),
        (spoil_proof, "4 shards have no proof beside them"),
        (cut, "The shard .*far/training/.* is broken"),
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


def shard_of(there: Path) -> Path:
    return next(there.rglob("far/step/*-b2-*"))


def rewrite(path: Path, footer: bytes | None = None, seconds: float | None = None) -> None:
    """Changes the times of a shard, or what its footer says."""
    table = pq.read_table(path, partitioning=None)
    metadata = footer or table.schema.metadata[shard.FOOTER]
    if seconds:
        at = table.schema.names.index("seconds")
        table = table.set_column(at, "seconds", pa.array([seconds] * len(table), pa.float64()))
    pq.write_table(table.replace_schema_metadata({shard.FOOTER: metadata}), path)


def put_times(there: Path) -> None:
    rewrite(shard_of(there), seconds=0.05)


def put(name: str, content: bytes):
    return lambda there: (there / name).write_bytes(content)


def put_footer(content: bytes):
    return lambda there: rewrite(shard_of(there), footer=content)


def put_peak(there: Path) -> None:
    (there / "peaks").mkdir()
    (there / "peaks/far.json").write_text('{"machine_id": "m", "threads": {"1": {"gflops": 1}}}')


def refer(root: Path, limits: float = 1e-5, place: str = "references") -> Path:
    """A reference of the network at one of its mini-batches."""
    (root / place).mkdir(parents=True, exist_ok=True)
    path = root / place / "n-b2.npz"
    np.savez(path, reason="", spreads=[limits], limits=[limits], blurs=[0.0])
    return path


def refer_nothing(there: Path) -> None:
    np.savez(refer(there), spreads=[1e-5])


def put_copy(there: Path) -> None:
    """A process that is there twice."""
    path = shard_of(there)
    shutil.copy(path, path.with_name(path.name.replace("-r1", "-r2")))


def put_renamed(there: Path) -> None:
    path = shard_of(there)
    path.rename(path.with_name(path.name.replace("-t1-", "-t2-")))


def put_link(there: Path) -> None:
    (there / "cells/far/step/e-1.m.float32-n-b9-t1-d1-r1.parquet").symlink_to("nowhere")


def refuse_proof(there: Path) -> None:
    (there / "proofs/e-1.m-n.json").write_text('{"proof_id": "p", "status": "not_equivalent"}')


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (put("proofs/e-1.m-n.json", b"{"), r"proofs/e-1.m-n.json is broken \(.*\): fetch it once"),
        (put("proofs/e-1.m-n.json", b"[]"), "it holds no record"),
        (put("datasets/digits/train.npz", b"PK"), "train.npz is broken"),
        (put_peak, "far.json does not say what a machine reaches: fetch"),
        (refer_nothing, r"n-b2.npz is broken \(it is no reference\)"),
        (put_footer(b"{"), "far/step/.* is broken"),
        (put_footer(b'{"schema": 2, "row": []}'), "does not have the columns of a shard"),
        (put_copy, r"holds the cell of .*-r1.parquet: remove it, for that cell"),
        (put_renamed, r"b2-t2-d1-r1.parquet holds the cell of .*-t1-d1-r1.parquet: give it that"),
        (put_link, r"b9-t1-d1-r1.parquet is no file: remove it"),
        (put_times, "rows are not those that were written"),
        (refuse_proof, "4 shards have no proof beside them"),
    ],
)
def test_what_is_broken_is_one_sentence_and_not_taken(tmp_path, spoil, said):
    there, here = results(tmp_path / "there", "far", [1, 2]), tmp_path / "here"
    spoil(there)
    with pytest.raises((pack.PackError, shard.ShardError)) as refused:
        pack.take(there, here)
    text = str(refused.value)
    assert re.search(said, text), text
    assert "\n" not in text and "snakemake" not in text
    assert not here.exists()


def test_a_carried_reference_lies_beside_those_of_this_machine_and_is_carried_on(tmp_path):
    """What is measured here is compared with what was computed here."""
    there, here = results(tmp_path / "there", "far", [2]), tmp_path / "here"
    content = refer(there).read_bytes()
    own = refer(here, 2e-5).read_bytes()
    assert pack.take(there, here) == 2
    assert (here / "references/n-b2.npz").read_bytes() == own
    assert (here / "references/carried/n-b2.npz").read_bytes() == content
    names = [path.name for path in pack.files_of(here)["carried"]]
    (here / "references/n-b2.npz").write_bytes(content)
    # One that came out the same is packed once.
    assert (names, pack.files_of(here)["carried"]) == (["n-b2.npz"], [])
    (here / "references/n-b2.npz").unlink()
    assert pack.pack(here, tmp_path / "all.tar.gz") == 2
    assert pack.take(tmp_path / "all.tar.gz", tmp_path / "third") == 2
    assert [
        str(path.relative_to(tmp_path / "third")) for path in tmp_path.glob("third/**/*-b2.npz")
    ] == ["references/carried/n-b2.npz"]


def test_a_broken_archive_is_one_sentence_that_names_no_folder_of_ours(tmp_path):
    there, here = results(tmp_path / "there", "far", [1, 2]), tmp_path / "here"
    packed = tmp_path / "all.tar.gz"
    pack.pack(there, packed)
    whole = packed.read_bytes()
    for path, content in (
        *((packed, whole[: len(whole) * share // 16]) for share in range(1, 16)),
        (packed, whole[:20]),
        (packed, b""),
        (packed, b"no archive"),
        (packed, whole[:500] + bytes(500) + whole[1000:]),
    ):
        path.write_bytes(content)
        with pytest.raises(pack.PackError) as refused:
            pack.take(path, here)
        assert str(path) in str(refused.value) and "\n" not in str(refused.value)
    cut(there)
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(there, "results")
    with pytest.raises(shard.ShardError) as refused:
        pack.take(packed, here)
    assert f"{packed}: results/cells/far/training/" in str(refused.value)
    assert "fetch it once more" in str(refused.value) and not here.exists()


def refuse_names(here: Path, monkeypatch) -> None:
    """The last of them cannot have its name."""
    replace = Path.replace

    def fail(aside, target):
        if "-b2-" in str(target):
            raise OSError(28, "No space left on device")
        return replace(aside, target)

    monkeypatch.setattr(Path, "replace", fail)


def limit_files(here: Path, monkeypatch) -> None:
    """As `ulimit -f` does: shards are larger than what is written before them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))


def put_file(here: Path, monkeypatch) -> None:
    here.mkdir()
    (here / "cells").write_text("")


@pytest.mark.parametrize(
    ("hinder", "said"),
    [
        (refuse_names, "b2-.* cannot be written .No space left on device.: free some space"),
        (limit_files, "cannot be written .File too large.: free some space"),
        (put_file, "cannot be written .*: free some space, or see what is in the way"),
    ],
)
def test_what_cannot_be_written_is_not_taken_in_part(tmp_path, monkeypatch, hinder, said):
    there, here = results(tmp_path / "there", "far", [1, 2]), tmp_path / "here"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    hinder(here, monkeypatch)
    before = files(here)
    try:
        with pytest.raises(pack.PackError, match=said):
            pack.take(there, here)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(here) == before


def test_proofs_of_two_versions_have_names_of_their_own_and_can_be_packed_again(tmp_path):
    there, here = (results(tmp_path / "there", "far", [1]), results(tmp_path / "here", "near", [1]))
    for proof in here.glob("proofs/*"):
        proof.write_text('{"proof_id": "another", "status": "ok"}')
    for path in here.rglob("*.parquet"):
        row, rows, footer = shard.read_parts(path)
        shard.write(path, row | {"proof_id": "another"}, rows.to_pylist(), footer)
    assert pack.take(there, here) == 2
    assert json.loads((here / "proofs/e-1.m-n.p.json").read_text())["proof_id"] == "p"
    assert pack.pack(here, tmp_path / "both.tar.gz") == 4
    assert pack.take(tmp_path / "both.tar.gz", tmp_path / "third") == 4
    assert pack.take(there, here) == 0
