"""Makes one row per result from its samples: its time, the interval of that time, and what a reader must know."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from shared.statistics import median
from steptime.cells.mixed import MixedRowsError
from steptime.machine import interference
from steptime.plain import plural
from steptime.plan.cell import IDENTITY
from steptime.statistics import intervals, words
from steptime.statistics.spreads import KIND, combined, is_odd, spread_of
from steptime.statistics.words import Statistics

# The letters of a reason that tables show, since longer ones would fill them, and the words for where the rest is.
MOST_LETTERS = 500
SHORTENED = " ... (shortened: the shard or the proof has it whole)"
FACTS = ["framework", "framework_version", "machine_id", "timed_region", "parameters"]
FACTS += ["flops_per_step", "proof_id", "started_at"]
# What was measured besides the time, and which value represents the repeats of a cell: one disturbed repeat is enough
# for a mark, and for measuring the cell again.
MEASURED: dict[str, Callable[[list[Any]], Any]] = {
    "effective_threads": median,
    "waiting_threads": median,
    "foreign_cpus": max,
    "steal_share": max,
    "throttled_seconds": max,
    "frequency_ratio": min,
    "peak_memory_bytes": median,
    "peak_device_memory_bytes": median,
    "bytes_exchanged": median,
    "exchange_seconds": median,
    "staleness": median,
    "proven_loss": max,
    "proven_change": max,
    "proven_gradients": any,
}
COLUMNS = [*IDENTITY, *FACTS, "status", "reason", "seconds", "low", "high", "samples", "repeats"]
# What claims compare of each process, by its number, as in `medians`.
BY_REPEAT = {name: f"{name}_by_repeat" for name in ("effective_threads", "peak_memory_bytes")}
COLUMNS += ["looks", "medians", "means", *BY_REPEAT.values(), *MEASURED, "marks", "word"]
# Effective threads per thread asked for. Above OVERSUBSCRIBED a cell used more threads than it should; below IDLE, some
# of its threads did nothing, or were kept from working.
OVERSUBSCRIBED, IDLE = 1.1, 0.7
# The last third of a run's samples by the first, above which its step did not stay as fast.
DRIFT = 1.2
FAR_APART = (
    1.25  # times of the slowest process of a result by the fastest's, from which on both are told
)
CROWDED = 0.5  # threads waiting for a CPU per thread asked for; TensorFlow's pools come to 0.2 on an idle machine

Row = dict[str, Any]


def summarise(
    frame: pd.DataFrame,
    logical_cores: Mapping[str, int] | None = None,
    planned: Sequence[int] = (),
    statistics: Statistics | None = None,
) -> pd.DataFrame:
    """Returns one row per cell, in the order in which the cells first appear; columns are COLUMNS.

    `frame` has one row per sample, or a row without samples for a cell that failed; `logical_cores` gives the number of
    logical CPUs of each machine_id. Times are seconds per mini-batch.

    `status` is ok where any repeat is ok and none is `not_equivalent`: all repeats run the same code, and the first one
    proves most. `reason` names the repeats that are not ok. `repeats` counts those that are ok, `samples` counts their
    samples, `medians` and `means` are theirs by number. A disturbed run counts only where fewer than two others are
    left.

    `seconds` is the geometric mean of the medians, `low` and `high` its 95 % interval (`statistics.intervals`); None
    for a single repeat, which says nothing of a second one. `word` is a word of `statistics.words`, None where there is
    nothing to compare with. `statistics` is what the whole run says of these results; by default, what these rows say.
    `planned` are the trials after which the run chose the results to measure again (`plan.interim`): `looks` of each
    row. Raises MixedRowsError.
    """
    _refuse_regions(frame)
    frame = frame.assign(variant=frame["variant"].fillna(""), mode=frame["mode"].fillna(""))
    # Plain rows: a frame for each cell takes ten times as long, which is minutes for thousands of cells.
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in _plain_rows(frame):
        cells.setdefault(tuple(row[name] for name in IDENTITY), []).append(row)
    cell_rows = [
        _summary(rows, logical_cores or {}) | {"looks": list(planned)} for rows in cells.values()
    ]
    _set_versions(cell_rows)
    summary = pd.DataFrame(cell_rows, columns=COLUMNS)
    # The index has the rows of `cell_rows`, in their order.
    statistics = statistics or words.estimate(summary)
    for cell in cell_rows:
        _set_interval(cell, statistics)
        cell["word"] = statistics.words.get(words.key(cell))
    return pd.DataFrame(cell_rows, columns=COLUMNS)


def _refuse_regions(frame: pd.DataFrame) -> None:
    """Raises MixedRowsError when samples time different regions."""
    timed = frame[(frame["status"] == "ok") & frame["timed_region"].notna()]
    # On one device there is nothing to exchange.
    named = zip(timed["timed_region"], timed["environment"], strict=True)
    regions = {region_text(region).replace("exchange, ", ""): name for region, name in named}
    if len(regions) > 1:
        (one, first), (other, second) = sorted(regions.items())[:2]
        raise MixedRowsError(
            f"These rows time different regions and cannot share one table: {first} times '{one}', "
            f"{second} times '{other}'; measure both with the same region."
        )


def region_text(region: Any) -> str:
    """Returns the timed region as words, 'forward, loss, backward', from a list or from a text with commas."""
    parts = region.split(",") if isinstance(region, str) else region
    return ", ".join(part.strip() for part in parts)


def _marks(cell: Row, logical: int | None) -> list[str]:
    """Returns the marks of a result that is ok; `logical` is the number of its machine's logical CPUs."""
    threads, effective = cell["threads"], cell["effective_threads"]
    on_cpu, disturbed = cell["device"] == "cpu", interference.disturbed(cell)
    is_known = on_cpu and pd.notna(effective)
    above = on_cpu and logical is not None and threads > logical
    # A neighbour makes threads wait too, and has a mark of its own.
    alone = on_cpu and not disturbed and not above
    # Where dropout moves a row's own losses, a cell of its place may have shown each gradient.
    gradients, losses = cell["proven_gradients"], (cell["proven_loss"], cell["proven_change"])
    narrow_only = losses == (None, None) and not gradients
    marks = {
        "oversubscribed": is_known and effective > OVERSUBSCRIBED * threads,
        "more threads than CPUs": above,
        "crowded": alone and (cell["waiting_threads"] or 0) > CROWDED * threads,
        "idle threads": is_known and effective < IDLE * min(threads, logical or threads),
        "disturbed": disturbed,
        "throttled": (cell.get("throttled_seconds") or 0) > 0,
        "proven narrow only": narrow_only,
        "proven in part": gradients is False and not narrow_only,
    }
    return [mark for mark, applies in marks.items() if applies]


def _plain_rows(frame: pd.DataFrame) -> Iterable[Row]:
    """Returns the rows that `_summary` reads, with None for what is missing."""
    names = [*IDENTITY, *FACTS, *MEASURED, "repeat", "status", "reason", "seconds"]
    known = {
        name: frame[name].astype(object).where(frame[name].notna(), None)
        for name in names
        if name in frame
    }
    return (dict(zip(known, values, strict=True)) for values in zip(*known.values(), strict=True))


def shortened(text: str) -> str:
    """Returns a reason as tables show it: whole, or its beginning and where to find the whole."""
    if len(text) <= MOST_LETTERS:
        return text
    return text[: MOST_LETTERS - len(SHORTENED)].rstrip() + SHORTENED


def _summary(rows: list[Row], logical_cores: Mapping[str, int]) -> Row:
    row: Row = {name: rows[0][name] for name in IDENTITY}
    row |= {
        fact: next((each[fact] for each in rows if each[fact] is not None), None)
        for fact in FACTS
        if fact in rows[0]
    }
    timed = [each for each in rows if each["status"] == "ok" and each["seconds"] is not None]
    failed = _first_of_repeats(each for each in rows if each["status"] != "ok")
    refused = [each for each in failed if each["status"] == "not_equivalent"]
    timed, failed = ([], refused) if refused else (timed, failed)
    timed, left_out = _undisturbed(timed)
    repeats: dict[int, list[float]] = {}
    for each in timed:
        repeats.setdefault(int(each["repeat"]), []).append(each["seconds"])
    row |= dict.fromkeys(("seconds", "low", "high"))
    row |= {"samples": len(timed), "repeats": len(repeats), "marks": []}
    row["medians"] = {number: median(repeats[number]) for number in sorted(repeats)}
    row["means"] = {number: fmean(repeats[number]) for number in row["medians"]}
    firsts = _first_of_repeats(timed)
    for name, of_repeats in MEASURED.items():
        values = [first[name] for first in firsts if first.get(name) is not None]
        row[name] = of_repeats(values) if values else None
    for name, column in BY_REPEAT.items():
        row[column] = {first["repeat"]: first[name] for first in firsts if first.get(name)}
    if not repeats:
        worst = (failed or rows)[0]
        row["status"], row["reason"] = str(worst["status"]), shortened(worst["reason"] or "")
        return row
    row["status"], row["reason"] = "ok", ""
    if failed:
        named = "; ".join(f"{each['status']}: {each['reason'] or ''}" for each in failed)
        count = len(_first_of_repeats(rows))
        row["reason"] = f"{len(failed)} of {count} repeats failed ({shortened(named)})"
    if left_out:
        without = f"{plural(left_out, 'disturbed run')} left out"
        row["reason"] = "; ".join(filter(None, [row["reason"], without]))
    medians = list(row["medians"].values())
    logs = intervals.logs_of(medians)
    row["seconds"] = math.exp(math.fsum(logs) / len(logs)) if len(logs) > 1 else medians[0]
    logical = logical_cores.get(row.get("machine_id") or "")
    row["marks"] = _marks(row, logical)
    row["marks"] += ["drifting"] if any(map(_drifts, repeats.values())) else []
    return row


def _undisturbed(timed: list[Row]) -> tuple[list[Row], int]:
    """Returns the rows of undisturbed runs, where two are left, and how many runs were left out."""
    disturbed = {
        first["repeat"] for first in _first_of_repeats(timed) if interference.disturbed(first)
    }
    quiet = [row for row in timed if row["repeat"] not in disturbed]
    if len({row["repeat"] for row in quiet}) < 2:
        return timed, 0
    return quiet, len(disturbed)


def _drifts(seconds: list[float]) -> bool:
    """Tells whether the last third of a run's samples is slower or faster than the first; of fewer than 18, no."""
    third = len(seconds) // 3
    grown = median(seconds[-third:]) / median(seconds[:third]) if third >= 6 else 1.0
    return not 1 / DRIFT < grown < DRIFT


def _set_interval(cell: Row, statistics: Statistics) -> None:
    """Sets the interval of a result of several processes, in place, and marks a result that has two speeds."""
    if cell["repeats"] < 2:
        return
    medians = list(cell["medians"].values())
    own = spread_of(intervals.logs_of(medians))
    prior = statistics.times.get(tuple(cell[name] for name in KIND))
    cell["seconds"], cell["low"], cell["high"] = intervals.of_repeats(medians, combined(own, prior))
    mean = math.exp(fmean(intervals.logs_of([*cell["means"].values()])))
    if not cell["low"] <= mean <= cell["high"]:
        cell["marks"].append("mean apart")
        cell["reason"] = "; ".join(filter(None, [cell["reason"], f"the mean is {mean:.4g} s"]))
    is_of_two = is_odd(own, prior)
    cell["marks"] += ["two speeds"] if is_of_two else []
    if is_of_two or max(medians) > FAR_APART * min(medians):
        both = f"its processes took {min(medians):.4g} to {max(medians):.4g} s"
        cell["reason"] = "; ".join(filter(None, [cell["reason"], both]))


def _set_versions(cells: list[Row]) -> None:
    """Sets the version of a cell that failed before its framework said it, by another cell of the environment there."""
    known = {
        (cell["platform"], cell["environment"]): cell["framework_version"]
        for cell in cells
        if isinstance(cell["framework_version"], str)
    }
    for cell in cells:
        if not isinstance(cell["framework_version"], str):
            cell["framework_version"] = known.get((cell["platform"], cell["environment"]))


def _first_of_repeats(rows: Iterable[Row]) -> list[Row]:
    firsts: dict[int, Row] = {}
    for row in rows:
        firsts.setdefault(row["repeat"], row)
    return list(firsts.values())
