"""Carries results from one machine to another: packs them into one file, and takes them into this checkout.

    workflow/scripts/launch carry.pack pack --to results.tar.gz
    workflow/scripts/launch carry.pack take --from results.tar.gz    (or a checkout, or a results folder)

A pack is checked first, and then taken as a whole or not at all.
"""

import argparse
import filecmp
import lzma
import os
import re
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from steptime import project, run
from steptime.atomic import atomic_write
from steptime.cells import checked, footers, shard
from steptime.cells.expected import Expected
from steptime.cells.mixed import refuse_several
from steptime.machine import placement
from steptime.plain import few
from steptime.plan import configuration
from steptime.plan.cell import FOLDER, carried, key_of, proof_name
from steptime.reading import InputError

RESULTS = Path("results")
# What represents a machine that is not at hand, besides its shards; in the order in which they are made of one another.
KINDS = {
    "environments": "environments/*.json",
    "metadata": "metadata/*.json",
    "proofs": "proofs/*.json",
    "references": "references/*.npz",
    "carried": "references/carried/*.npz",
    "peaks": "peaks/{platform}.json",
    "topology": "topology/{platform}.json",
    "datasets": "datasets/*/*.npz",
    "cells": "cells/{platform}/*/*.parquet",
}


class PackError(InputError):
    """Results cannot be taken as they are; the text says which, why, and what to do."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Carry results from one machine to another.")
    commands = parser.add_subparsers(dest="command", required=True)
    pack_parser = commands.add_parser("pack")
    pack_parser.add_argument("--to", required=True, type=Path, help="the .tar.gz file to write")
    pack_parser.add_argument("--platform", default="*", help="only what was measured on this one")
    take_parser = commands.add_parser("take")
    take_parser.add_argument(
        "--from", required=True, type=Path, dest="source", help="such a file, or a folder"
    )
    for command in (pack_parser, take_parser):
        command.add_argument("--platforms", help="your own file of platforms")
    options = parser.parse_args()
    try:
        chosen = {"platforms": options.platforms} if options.platforms else {}
        if not run.is_under_way():
            run.TOLD.update(platforms=configuration.platforms(project.ROOT, chosen))
        if options.command == "pack":
            count = pack(RESULTS, options.to, options.platform)
            print(f"{options.to} holds {count} shards.")
        else:
            expected = Expected(configuration.without_grid(project.ROOT))
            count = take(options.source, RESULTS, expected)
            print(f"{count} new shards were taken from {options.source}.")
    except OSError as error:
        sys.exit(str(error))


def pack(results: Path, target: Path, platform: str = "*") -> int:
    """Writes the shards below `results`, and what they were made with, into one file; returns how many shards.

    Raises PackError where there is none and for a target that is no file, and what `check` raises.
    """
    files = files_of(results, platform)
    shards = files["cells"]
    if not shards:
        raise PackError(f"There is no shard in {results}/{FOLDER}: measure something first.")
    check(results, shards)
    if os.path.lexists(target) and not target.is_file():
        # A device would be replaced by a file of its name.
        raise PackError(
            f"{target} is there and no file: name one to write, such as results.tar.gz."
        )
    with atomic_write(target) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for paths in files.values():
            for path in paths:
                archive.add(path, Path("results") / path.relative_to(results))
    return len(shards)


def take(source: Path, results: Path, expected: Expected | None = None) -> int:
    """Copies what `source` has and `results` lacks; returns how many new shards. Raises PackError, and as `check`."""
    with opened(source) as there:
        return _take(there, results, expected)


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """Yields the results folder that `source` is or holds. Raises PackError."""
    if not (source.is_dir() or source.is_file()):
        raise PackError(
            f"There is nothing at {source}: name a file of `make pack`, a checkout or its results folder."
        )
    with tempfile.TemporaryDirectory() as folder:
        there = source / "results" if (source / "results").is_dir() else source
        name = str(there)
        if source.is_file():
            _unpack(source, Path(folder))
            there, name = Path(folder) / "results", f"{source}: results"
        try:
            yield there
        except InputError as error:
            # Names files as the user does, not where they were unpacked, and no cell to measure there.
            text = str(error).replace(str(there), name)
            raise type(error)(
                re.sub(r"(or )?measure its cell again with `.*?`", f"\\1{checked.FETCH}", text)
            ) from error


def _unpack(source: Path, folder: Path) -> None:
    try:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
    except OSError as error:
        raise PackError(
            f"{source} cannot be unpacked in {folder.parent} ({error.strerror or shard.short(error)}): name another "
            "place with TMPDIR, or fetch it once more."
        ) from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise PackError(
            f"{source} is no file of `make pack`, or was cut off ({shard.short(error)}): fetch it once more."
        ) from error


def files_of(results: Path, platform: str = "*") -> dict[str, list[Path]]:
    """Returns the files of each kind below a results folder, of one platform or of all."""
    patterns = {kind: pattern.format(platform=platform) for kind, pattern in KINDS.items()}
    files = {kind: sorted(results.glob(pattern)) for kind, pattern in patterns.items()}
    # Only the data sets of these trainings: they are large.
    trained = {footers.row(path).get("dataset") for path in files["cells"]}
    files["datasets"] = [path for path in files["datasets"] if path.parent.name in trained]
    # A carried reference that came out the same here would be packed twice.
    files["carried"] = [path for path in files["carried"] if not _is_same_here(path)]
    return files


def _is_same_here(path: Path) -> bool:
    """Tells whether a carried reference is, byte for byte, that of its own folder."""
    own = path.parent.parent / path.name
    return own.exists() and filecmp.cmp(own, path, shallow=False)


def check(results: Path, shards: list[Path]) -> dict[str, str]:
    """Checks shards and returns the kind of machine of each platform.

    Raises ShardError for a shard that cannot be read, UntrustedError for one that cannot be what it says, PackError for
    one without its proof, and MixedRowsError for two kinds of machine in one platform.
    """
    unproven: list[Path] = []
    machines: dict[str, dict[str, list[Path]]] = {}
    proofs = {
        (path.name, content.get("proof_id")): content.get("status")
        for path in results.glob(KINDS["proofs"])
        for content in [checked.record(path)]
    }
    for path in shards:
        row, _, footer = checked.parts(path)
        kind = shard.kind_of_machine(path, row, footer)
        machines.setdefault(path.parent.parent.name, {}).setdefault(kind, []).append(path)
        known = row["proof_id"]
        verdicts = [proofs[file, known] for file in proofs_of(row) if (file, known) in proofs]
        # What a proof refuses has no time.
        if not verdicts or (row["status"] == "ok" and verdicts[0] != "ok"):
            unproven.append(path)
    if unproven:
        raise PackError(
            f"{len(unproven)} shards have no proof beside them that their network is the specified one, such as "
            f"{few(unproven)}: fetch the folder results/proofs of the machine that measured them too, or leave "
            "them out."
        )
    refuse_several(machines)
    return {platform: next(iter(kinds)) for platform, kinds in machines.items()}


def proofs_of(row: dict[str, Any]) -> tuple[str, str]:
    """Returns the names that a row's proof may have: the usual one, and one with its id, beside another proof."""
    name = proof_name(row)
    return f"{name}.json", f"{name}.{row['proof_id']}.json"


def _take(source: Path, results: Path, expected: Expected | None) -> int:
    files = files_of(source)
    shards = files["cells"]
    if not shards:
        raise PackError(
            f"There is no shard in {source}/{FOLDER}: name a checkout, its results folder or a packed file."
        )
    for kind, paths in files.items():
        checked.regular(paths)
        for path in paths:
            if kind in ("references", "carried"):
                checked.reference(path)
            elif path.suffix == ".npz":
                checked.arrays(path)
            elif kind == "peaks":
                checked.peak(path)
            elif kind != "cells":
                checked.record(path)
    there = check(source, shards)
    here: dict[str, str] = {}
    # A folder does not come to hold several kinds of machine: one shard tells.
    for path in {path.parent.parent.name: path for path in files_of(results)["cells"]}.values():
        row, _, footer = shard.read_parts(path)
        here[path.parent.parent.name] = shard.kind_of_machine(path, row, footer)
    if expected:
        _refuse_others(source, shards, expected)
    for platform, kind in there.items():
        if here.get(platform, kind) != kind and not placement.entry(platform).get("equal_machines"):
            raise PackError(
                f"The platform '{platform}' is another machine there ({kind}) than here ({here[platform]}): rename "
                f"its folder in {source}/{FOLDER} and add that name to the platforms, or write "
                f"`equal_machines: true` into its entry if the difference does not matter."
            )
    own = {path: results / path.relative_to(source) for path in shards}
    known = [path for path in shards if own[path].exists()]
    differ = [path for path in known if not filecmp.cmp(path, own[path], shallow=False)]
    if clashing := [path.relative_to(source) for path in differ]:
        raise PackError(
            f"{len(clashing)} cells were measured both there and here, such as {few(clashing)}: remove "
            "the ones that are not to stay, or give that machine a name of its own (rename its folder in "
            f"{source}/{FOLDER}, and add the name to the platforms)."
        )
    sources: dict[Path, Path] = {}
    for kind, path in ((kind, path) for kind, paths in files.items() for path in paths):
        target = _place(path, results / path.relative_to(source))
        # What did not install there may here: it is tried.
        failed = kind == "environments" and checked.record(path).get("status", "ok") != "ok"
        if not target.exists() and not failed:
            sources.setdefault(target, path)
    _copy(sources)
    return len(shards) - len(known)


def _copy(sources: dict[Path, Path]) -> None:
    """Copies files to places that have none, all of them or none. Raises PackError."""
    # Under another name first, all of them. With a new time, so that what is made of others is newer than they are.
    asides = {target: target.with_name(f".{target.name}.part") for target in sources}
    target = None
    try:
        for target, path in sources.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, asides[target])
        for target, aside in asides.items():
            aside.replace(target)
    except BaseException as error:
        for path in (*asides, *asides.values()):
            with suppress(OSError):
                path.unlink()
        if not isinstance(error, OSError):
            raise
        raise PackError(
            f"{target} cannot be written ({error.strerror}): free some space, or see what is in the way, and take it "
            "again. Nothing was taken."
        ) from error


def _place(path: Path, target: Path) -> Path:
    """Returns where to put a file: a reference beside this machine's own, a second proof of a name under its id."""
    if path.parent.name == "references":
        return carried(target)
    if path.parent.name != "proofs" or not target.exists():
        return target
    known = checked.record(path).get("proof_id")
    if known in (None, checked.record(target).get("proof_id")):
        return target
    details = ".details" if path.stem.endswith(".details") else ""
    base = path.stem.removesuffix(details)
    return target.with_name(f"{base.removesuffix(f'.{known}')}.{known}{details}.json")


def _refuse_others(source: Path, shards: list[Path], expected: Expected) -> None:
    """Raises PackError for rows of another network, adapter and so on than this checkout has."""
    others = []
    for path in shards:
        row = footers.row(path) | {"platform": path.parent.parent.name}
        if words := footers.differing(row, expected.of_row(row)):
            others.append(footers.Outdated(key_of(row), words, row))
    if others:
        advice = (
            "measure them there again with this version of steptime, networks and adapters, or take them into a "
            "checkout of theirs. Nothing was taken."
        )
        raise PackError(footers.name_outdated(others, f"{source}/{FOLDER}", advice))


if __name__ == "__main__":
    main()
