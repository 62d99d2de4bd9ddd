"""Carries results from one machine to another: packs them into one file, and takes them into this checkout.

    launch cells.pack pack --to results.tar.gz
    launch cells.pack take --from results.tar.gz        (or another checkout, or its results folder)

What is taken is looked at first, and either all of it is taken or nothing.
"""

import argparse
import filecmp
import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steptime import machine, project
from steptime.cells import migrate, shard
from steptime.machine import placement
from steptime.merge import MixedRowsError
from steptime.merge.cells import refuse_several
from steptime.plan import configuration, run
from steptime.plan.cell import FOLDER, axes_of, proof_name

RESULTS = Path("results")
# Beside its shards, what stands for a machine that is not at hand; in the order in which one is made of the other.
KINDS = {
    "environments": "environments/*.json",
    "proofs": "proofs/*.json",
    "references": "references/*.npz",
    "peaks": "peaks/{platform}.json",
    "topology": "topology/{platform}.json",
    "datasets": "datasets/*/*.npz",
    "cells": "cells/{platform}/*/*.parquet",
}
MOST_NAMED = 3


class PackError(Exception):
    """Results that cannot be taken as they are; the text says which, why, and what to do."""


def main() -> None:
    """Command line."""
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
            print(f"{options.to} holds {pack(RESULTS, options.to, options.platform)} shards.")
        else:
            print(f"{take(options.source, RESULTS)} new shards were taken from {options.source}.")
    except (
        PackError,
        MixedRowsError,
        configuration.ConfigurationError,
        shard.ShardError,
        OSError,
        tarfile.TarError,
    ) as error:
        sys.exit(str(error))


def pack(results: Path, target: Path, platform: str = "*") -> int:
    """Writes the shards below `results`, and what they were made with, into one file; the number of shards.

    Raises PackError where there is none, and what `check` raises for those that nobody could take.
    """
    files = found(results, platform)
    shards = files["cells"]
    if not shards:
        raise PackError(f"There is no shard in {results}/{FOLDER}: measure something first.")
    check(results, shards)
    with tarfile.open(target, "w:gz") as archive:
        for paths in files.values():
            for path in paths:
                archive.add(path, Path("results") / path.relative_to(results))
    return len(shards)


def take(source: Path, results: Path) -> int:
    """Copies what `source` has and `results` lacks; the number of new shards. Raises what `check` raises."""
    with opened(source) as there:
        return _take(there, results)


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The results folder that `source` is or holds, in the form of this version. Raises PackError."""
    if not source.exists():
        raise PackError(
            f"There is nothing at {source}: name a file of `make pack`, a checkout or its results folder."
        )
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "results"
        if source.is_dir():
            found_there = source / "results" if (source / "results").is_dir() else source
            if not migrate.outdated(found_there):
                yield found_there
                return
            # Another's results stay as they are.
            shutil.copytree(found_there, there)
        else:
            with tarfile.open(source) as archive:
                archive.extractall(folder, filter="data")
        migrate.migrate(there)
        yield there


def found(results: Path, platform: str = "*") -> dict[str, list[Path]]:
    """The files of each kind below a results folder, of one platform or of all."""
    files = {
        kind: sorted(results.glob(pattern.format(platform=platform)))
        for kind, pattern in KINDS.items()
    }
    # Not every data set that lies here: they are large.
    trained = {_axes(path)["dataset"] for path in files["cells"]}
    files["datasets"] = [path for path in files["datasets"] if path.parent.name in trained]
    return files


def _axes(path: Path) -> dict[str, Any]:
    """The axes of the cell of a shard, from where it lies."""
    try:
        return axes_of("/".join((*path.parts[-3:-1], path.stem)))
    except ValueError as error:
        raise PackError(
            f"{path} has not the name of a shard ({error}): give it one, or remove it."
        ) from error


def check(results: Path, shards: list[Path]) -> dict[str, str]:
    """The kind of machine of each platform, the first where it has several that are equal.

    Raises ShardError for a shard that cannot be read or is of another version, PackError for one without its proof,
    and MixedRowsError for two kinds of machine in one platform.
    """
    unproven: list[Path] = []
    machines: dict[str, dict[str, list[Path]]] = {}
    for path in shards:
        row, _, footer = shard.read_parts(path)
        machines.setdefault(path.parent.parent.name, {}).setdefault(
            machine.kind(footer["machine"], row["device"]), []
        ).append(path)
        name = proof_name(row | {"network": row["variant"] or row["network"]})
        proof = results / "proofs" / f"{name}.json"
        if not proof.exists() or json.loads(proof.read_text()).get("proof_id") != row["proof_id"]:
            unproven.append(path)
    if unproven:
        raise PackError(
            f"{len(unproven)} shards have no proof beside them that their network is the specified one, such as "
            f"{_named(unproven)}: fetch the folder results/proofs of the machine that measured them too."
        )
    refuse_several(machines)
    return {platform: next(iter(kinds)) for platform, kinds in machines.items()}


def _take(source: Path, results: Path) -> int:
    files = found(source)
    shards = files["cells"]
    if not shards:
        raise PackError(
            f"There is no shard in {source}/{FOLDER}: name a checkout, its results folder or a packed file."
        )
    there, here = check(source, shards), _kinds_here(results)
    for platform, kind in there.items():
        if here.get(platform, kind) != kind and not placement.entry(platform).get("equal_machines"):
            raise PackError(
                f"The platform '{platform}' is another machine there ({kind}) than here ({here[platform]}): rename "
                f"its folder in {source}/{FOLDER} and add that name to the platforms, or write "
                f"`equal_machines: true` into its entry if the difference does not matter."
            )
    new = [path for path in shards if not (results / path.relative_to(source)).exists()]
    clashing = [
        path.relative_to(source)
        for path in set(shards) - set(new)
        if not filecmp.cmp(path, results / path.relative_to(source), shallow=False)
    ]
    if clashing:
        raise PackError(
            f"{len(clashing)} cells were measured both there and here, such as {_named(sorted(clashing))}: remove the "
            "ones that are not to stay, or give that machine a name of its own (rename its folder in "
            f"{source}/{FOLDER}, and add the name to the platforms)."
        )
    for paths in files.values():
        for path in paths:
            target = results / path.relative_to(source)
            if not target.exists() and not _failed_there(path):
                target.parent.mkdir(parents=True, exist_ok=True)
                # Under another name first: an interrupt must not leave half a shard. With a new time, so that what
                # is made of others is newer than they are.
                aside = target.with_name(f".{target.name}.part")
                shutil.copyfile(path, aside)
                aside.replace(target)
    return len(new)


def _failed_there(path: Path) -> bool:
    """Whether it is the manifest of an environment that did not install there: here it may, so it is tried."""
    if path.parent.name != "environments":
        return False
    return json.loads(path.read_text()).get("status", "ok") != "ok"


def _kinds_here(results: Path) -> dict[str, str]:
    """The kind of machine of each platform, of one shard of it: a folder does not come to hold several."""
    firsts = {path.parent.parent.name: path for path in found(results)["cells"]}
    parts = {platform: shard.read_parts(path) for platform, path in firsts.items()}
    return {
        platform: machine.kind(footer["machine"], row["device"])
        for platform, (row, _, footer) in parts.items()
    }


def _named(paths: list[Path]) -> str:
    return ", ".join(map(str, paths[:MOST_NAMED])) + (", ..." if len(paths) > MOST_NAMED else "")


if __name__ == "__main__":
    main()
