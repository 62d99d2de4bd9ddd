"""What is asked of files that others have made before they are taken: that they can be what they say they are.

Each function raises what its caller shows: one sentence with the file, what is wrong with it, and what to do.
"""

import json
import lzma
import math
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format

from steptime.cells import shard
from steptime.cells.schema import STATUSES, TIMES, constant_of

FETCH = "fetch it once more from the machine that made it, or leave it out"
# What may be negative or no number: a diverged loss is told as it was.
LOSSES = ("first_loss", "last_loss", "loss", "test_loss")
# What a row says of itself where it is ok.
TOLD = (
    "network_digest",
    "worker_digest",
    "proof_digest",
    "environment_digest",
    "sampling_digest",
    "parameters",
    "timed_region",
    "started_at",
    "ended_at",
    "job",
)
EARLIEST, LATEST = (time.replace(tzinfo=UTC) for time in (datetime.min, datetime.max))
# Of a mini-batch, or of an epoch: a clock sees none that is shorter.
LEAST_SECONDS, MOST_SECONDS = 1e-9, 86400
# A right framework's loss may be off by as much as itself, where it has all but gone after a step or two.
MOST_OFF = 4.0
# Of a file that is read whole; the largest of ours have some MiB.
MOST_BYTES = 2**28
# Of a file of arrays, unpacked: the images of CIFAR-10 are 147 MiB, and no reference is as large.
MOST_UNPACKED = 2**31


class UntrustedError(shard.ShardError):
    """A file that cannot be what it says it is; the text is the whole message for the user."""


def regular(paths: Iterable[Path]) -> None:
    """Refuses what is no plain file, as a pipe that would be waited for, and names that no terminal should print."""
    for path in paths:
        if odd := [part for part in path.parts if not part.isprintable()]:
            raise UntrustedError(
                f"The name {odd[0]!r} in {str(path)!r} has control characters: rename it, or leave it out."
            )
        try:
            found = path.stat()
        except OSError as error:
            raise UntrustedError(
                f"{path} leads nowhere ({error.strerror}): remove it there, or leave it out."
            ) from error
        if not stat.S_ISREG(found.st_mode):
            raise UntrustedError(f"{path} is no plain file: remove it there, or leave it out.")
        if path.suffix != ".npz" and found.st_size > MOST_BYTES:
            raise UntrustedError(
                f"{path} is larger than {MOST_BYTES >> 20} MiB, which nothing of its kind is: {FETCH}."
            )


def record(path: Path) -> dict[str, Any]:
    """The content of a proof, a manifest, or what else is a JSON object."""
    try:
        content = json.loads(path.read_text())
        texts = list(_texts(content))
    except (OSError, ValueError, RecursionError) as error:
        raise UntrustedError(f"{path} is broken ({short(error)}): {FETCH}.") from error
    if not isinstance(content, dict):
        raise UntrustedError(f"{path} is broken (it holds no record): {FETCH}.")
    for text in texts:
        if not text.isprintable():
            raise UntrustedError(f"{path} holds control characters ({text[:40]!r}): {FETCH}.")
    return content


def peak(path: Path) -> dict[str, Any]:
    """What a machine reaches, as `machine.peak` and `machine.gpu_peak` write it."""
    content = record(path)
    try:
        known = content["threads"].items()
        told = isinstance(content["machine_id"], str) and all(
            count.isdecimal() and _reached(speeds) for count, speeds in known
        )
    except (KeyError, TypeError, AttributeError, OverflowError):
        told = False
    if not told:
        raise UntrustedError(f"{path} does not say what a machine reaches: {FETCH}.")
    return content


def _reached(speeds: dict[str, Any]) -> bool:
    """Whether the speeds that are known of a number of threads are numbers, of what they say."""
    numbers = [speeds["flops_per_second"], speeds["bytes_per_second"], speeds["product"]]
    numbers += [speeds["streams"]["copy"], *speeds.get("precisions", {}).values()]
    numbers += [*speeds.get("transfers", {}).values()]
    numbers += [peer["bytes_per_second"] for peer in speeds.get("peers", [])]
    named = [speeds["blas"], speeds["stream"], speeds.get("no_peers", "")]
    return all(math.isfinite(each) and each > 0 for each in numbers) and all(
        isinstance(each, str) for each in named
    )


def arrays(path: Path) -> None:
    """Refuses a file of arrays (.npz) that is cut off or changed, or that holds anything but numbers and texts."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            # Each is read to its end for the second: first its size, and what it says it is.
            broken = _no_arrays(archive, members) or archive.testzip()
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        SyntaxError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        tokenize.TokenError,
    ) as error:
        broken = short(error)
    if broken:
        raise UntrustedError(f"{path} is broken ({_shown(broken)}): {FETCH}.")


def reference(path: Path) -> None:
    """Refuses what is no reference, and one that nothing could fail by."""
    arrays(path)
    try:
        with np.load(path, allow_pickle=False) as content:
            holds = str(content["reason"]) or (
                np.isfinite(content["spreads"][0])
                and np.isfinite(content["limits"] + content["blurs"]).any()
            )
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise UntrustedError(f"{path} is broken (it is no reference): {FETCH}.") from error
    if not holds:
        raise UntrustedError(f"{path} is broken (it has no limit that is finite): {FETCH}.")


def _no_arrays(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> str:
    """What of the members of an archive no array of ours is, '' where all can be."""
    unpacked = sum(member.file_size for member in members)
    if unpacked > MOST_UNPACKED:
        return f"it unpacks to {unpacked / 2**30:.1f} GiB"
    for member in members:
        with archive.open(member) as file:
            # NumPy takes whatever begins so for an array, whatever its name.
            if file.read(len(format.MAGIC_PREFIX)) != format.MAGIC_PREFIX:
                continue
            file.seek(0)
            first = format.read_magic(file) == (1, 0)
            read = format.read_array_header_1_0 if first else format.read_array_header_2_0
            shape, _, kind = read(file)
            if kind.hasobject:
                return f"{member.filename} holds objects, which are code"
            if not kind.itemsize or math.prod(shape) * kind.itemsize != (
                member.file_size - file.tell()
            ):
                return f"{member.filename} is not of the size that it says"
    return ""


def _shown(text: str) -> str:
    """A text for a terminal: what it cannot show is escaped."""
    return text if text.isprintable() else repr(text)


def parts(path: Path) -> tuple[dict[str, Any], pa.Table, dict[str, Any]]:
    """What `shard.read_parts` gives of a shard whose row and footer agree with one another and with what can be
    measured.
    """
    # What is equal in all rows may take no space in the file, and all of the memory: it comes last.
    try:
        found, rows, footer = shard.read_parts(path)
        table, _ = shard.read(path)
        reason = _lie(found, table, rows, footer)
    except (ValueError, OverflowError) as error:
        # Bytes that are no text, times of no calendar.
        reason = short(error)
    if reason:
        raise UntrustedError(f"The shard {path} cannot be what was measured ({reason}): {FETCH}.")
    return found, rows, footer


def _lie(row: dict[str, Any], table: pa.Table, rows: pa.Table, footer: dict[str, Any]) -> str:
    """What of a shard cannot be, '' where all can."""
    if len(table) == 0:
        return "it has no row"
    constant = table.select(constant_of(row["task"])).slice(0, 1).to_pylist()[0]
    if changed := [name for name, value in constant.items() if not _same(name, value, row[name])]:
        return f"its footer has another {changed[0]} than its columns"
    for text in _texts([row, footer]):
        if not text.isprintable():
            return f"a text in it has control characters, {text[:40]!r}"
    if row["status"] not in STATUSES:
        return f"'{row['status']}' is no status"
    if (row["ended_at"] or LATEST) < (row["started_at"] or EARLIEST):
        return "it ended before it began"
    measured = rows.to_pylist()
    for name, value in ((name, value) for each in (row, *measured) for name, value in each.items()):
        if isinstance(value, int | float) and name not in LOSSES:
            if not math.isfinite(value) or value < 0:
                return f"{name} is {value}"
    if row["started_at"] is None:
        return "it does not say when it was measured"
    return _lacking(row, measured, footer) if row["status"] == "ok" else ""


def _lacking(row: dict[str, Any], measured: list[dict[str, Any]], footer: dict[str, Any]) -> str:
    """What a row that is ok cannot lack or have."""
    for each in measured:
        if each.get("lacking"):
            # An operation that the framework has not.
            continue
        if not LEAST_SECONDS <= (each["seconds"] or 0) < MOST_SECONDS:
            return "it is ok without seconds, or with a day of them"
        if not each["steps"]:
            return "it is ok without steps"
    if not row["proof_id"]:
        return "it is ok without a proof"
    told = row | {"job": footer.get("job")}
    if lacking := [name for name in TOLD if name in told and not told[name]]:
        return f"it is ok without {lacking[0]}"
    if (row["proven_loss"] or 0) > MOST_OFF:
        return f"it is ok with a loss that is off by {row['proven_loss']:.3g} of the right one"
    return ""


def _same(name: str, one: Any, other: Any) -> bool:
    if name in TIMES and one is not None and other is not None:
        return other.tzinfo is not None and abs((one - other).total_seconds()) < 1e-3
    if isinstance(one, float) and isinstance(other, int | float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


def _texts(value: Any) -> Iterator[str]:
    """Every text in data of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def short(error: Exception) -> str:
    """What an error says, in one line."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
