"""Carries results from one machine to another: packs them into one file, and takes them into this checkout.

    python -m merge.carry pack --to results.tar.gz
    python -m merge.carry take --from results.tar.gz        (or another checkout, or its results folder)

What is taken is looked at first, and either all of it is taken or nothing.
"""

import argparse
import filecmp
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from steptime import machine
from steptime.cells import shard
from steptime.machine import placement
from steptime.merge import MixedRowsError
from steptime.merge.shards import refuse_several
from steptime.plan import configuration

RESULTS = Path("results")
# Beside its shards, what stands for a machine that is not at hand; in the order in which one is made of the other.
KINDS = {
    "environments": "environments/*.json",
    "proofs": "proofs/*.json",
    "peaks": "peaks/{platform}.json",
    "topology": "topology/{platform}.json",
    "datasets": "datasets/*/*.npz",
    "shards": "shards/{platform}/*.parquet",
    "training": "training/{platform}/*.parquet",
}
# The kinds that are measured.
MEASURED = ("shards", "training")
MOST_NAMED = 3


class CarryError(Exception):
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
        placement.publish(configuration.platforms(Path(), chosen))
        if options.command == "pack":
            print(f"{options.to} holds {pack(RESULTS, options.to, options.platform)} shards.")
        else:
            print(f"{take(options.source, RESULTS)} new shards were taken from {options.source}.")
    except (
        CarryError,
        MixedRowsError,
        configuration.ConfigurationError,
        shard.ShardError,
        OSError,
        tarfile.TarError,
    ) as error:
        sys.exit(str(error))


def pack(results: Path, target: Path, platform: str = "*") -> int:
    """Writes the shards below `results`, and what they were made with, into one file; the number of shards.

    Raises CarryError where there is none, and what `check` raises for those that nobody could take.
    """
    files = found(results, platform)
    shards = measured(files)
    if not shards:
        raise CarryError(f"There is no shard in {results}/shards: measure something first.")
    check(results, shards)
    with tarfile.open(target, "w:gz") as archive:
        for paths in files.values():
            for path in paths:
                archive.add(path, Path("results") / path.relative_to(results))
    return len(shards)


def take(source: Path, results: Path) -> int:
    """Copies what `source` has and `results` lacks; the number of new shards. Raises what `check` raises."""
    if not source.exists():
        raise CarryError(
            f"There is nothing at {source}: name a file of `make pack`, a checkout or its results folder."
        )
    if source.is_dir():
        return _take(source / "results" if (source / "results").is_dir() else source, results)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
        return _take(Path(folder) / "results", results)


def found(results: Path, platform: str = "*") -> dict[str, list[Path]]:
    """The files of each kind below a results folder, of one platform or of all."""
    files = {
        kind: sorted(results.glob(pattern.format(platform=platform)))
        for kind, pattern in KINDS.items()
    }
    # Not every data set that lies here: they are large.
    trained = [path.name for path in files["training"]]
    files["datasets"] = [
        path
        for path in files["datasets"]
        if any(f"-on-{path.parent.name}-b" in name for name in trained)
    ]
    return files


def measured(files: dict[str, list[Path]]) -> list[Path]:
    """What was measured among the files of all kinds: shards of cells and of trainings."""
    return [path for kind in MEASURED for path in files[kind]]


def check(results: Path, shards: list[Path]) -> dict[str, str]:
    """The kind of machine of each platform, the first where it has several that are equal.

    Raises ShardError for a shard that cannot be read or is of another version, CarryError for one without its proof,
    and MixedRowsError for two kinds of machine in one platform.
    """
    unproven: list[Path] = []
    machines: dict[str, dict[str, list[Path]]] = {}
    for path in shards:
        table, footer = shard.read(path)
        row = table.select([*shard.NAMING, "proof_id"]).slice(0, 1).to_pylist()[0]
        machines.setdefault(path.parent.name, {}).setdefault(
            machine.kind(footer["machine"]), []
        ).append(path)
        name = f"{row['environment']}.{row['adapter_mode']}-{row['variant'] or row['network']}.json"
        proof = results / "proofs" / name
        if not proof.exists() or json.loads(proof.read_text()).get("proof_id") != row["proof_id"]:
            unproven.append(path)
    if unproven:
        raise CarryError(
            f"{len(unproven)} shards have no proof beside them that their network is the specified one, such as "
            f"{_named(unproven)}: fetch the folder results/proofs of the machine that measured them too."
        )
    refuse_several(machines)
    return {platform: next(iter(kinds)) for platform, kinds in machines.items()}


def _take(source: Path, results: Path) -> int:
    files = found(source)
    shards = measured(files)
    if not shards:
        raise CarryError(
            f"There is no shard in {source}/shards: name a checkout, its results folder or a packed file."
        )
    there, here = check(source, shards), _kinds_here(results)
    for platform, kind in there.items():
        if here.get(platform, kind) != kind and not placement.entry(platform).get("equal_machines"):
            raise CarryError(
                f"The platform '{platform}' is another machine there ({kind}) than here ({here[platform]}): rename "
                f"its folders in {source}/shards and {source}/training and add that name to the platforms, or write "
                f"`equal_machines: true` into its entry if the difference does not matter."
            )
    new = [path for path in shards if not (results / path.relative_to(source)).exists()]
    clashing = [
        path.relative_to(source)
        for path in set(shards) - set(new)
        if not filecmp.cmp(path, results / path.relative_to(source), shallow=False)
    ]
    if clashing:
        raise CarryError(
            f"{len(clashing)} cells were measured both there and here, such as {_named(sorted(clashing))}: remove the "
            f"ones that are not to stay, or give that machine a name of its own (rename its folders in {source}/shards "
            f"and {source}/training, and add the name to the platforms)."
        )
    for paths in files.values():
        for path in paths:
            target = results / path.relative_to(source)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                # Under another name first: an interrupt must not leave half a shard. With a new time, so that what
                # is made of others is newer than they are.
                aside = target.with_name(f".{target.name}.part")
                shutil.copyfile(path, aside)
                aside.replace(target)
    return len(new)


def _kinds_here(results: Path) -> dict[str, str]:
    """The kind of machine of each platform, of one shard of it: a folder does not come to hold several."""
    firsts = {path.parent.name: path for path in measured(found(results))}
    return {
        platform: machine.kind(shard.read(path)[1]["machine"]) for platform, path in firsts.items()
    }


def _named(paths: list[Path]) -> str:
    return ", ".join(map(str, paths[:MOST_NAMED])) + (", ..." if len(paths) > MOST_NAMED else "")


if __name__ == "__main__":
    main()
