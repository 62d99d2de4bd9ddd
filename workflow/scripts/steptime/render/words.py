"""How numbers, machines and software are written in every table and figure."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from shared import precisions
from steptime.merge.measured import Measured, was_told
from steptime.merge.summary import shortened
from steptime.plain import machine_name, plural
from steptime.plan import interim
from steptime.plan.cell import PLAIN
from steptime.render.columns import Row
from steptime.render.frameworks import Frameworks

STATUS_WORDS = {
    "ok": "ok",
    "unsupported": "not supported",
    "install_failed": "does not install",
    "not_equivalent": "not the same training step",
    "out_of_memory": "out of memory",
    "timeout": "over the time limit",
    "crashed": "crashed",
    "diverged": "diverged",
    "not_reached": "accuracy not reached",
}

NOTHING_MEASURED = "Not measured in this run; the grid does not include it."

MARK_WORDS = {
    "oversubscribed": "used more CPU than it was given: over 1.1 busy threads per thread requested",
    "more threads than CPUs": "more threads than the machine has CPUs",
    "crowded": "more threads at work than CPUs: over 0.5 threads per thread requested waited for a CPU",
    "idle threads": "left CPUs idle: fewer than 0.7 busy threads per thread requested",
    "disturbed": "another program or another guest of the host used CPU time meanwhile, or the clock slowed down: "
    "`make again` measures these results once more",
    "throttled": "a CPU quota of a container or a batch system, or its GPU's power or heat, held it back while it was "
    "timed",
    "without AVX": "the framework's own compiled code multiplies in 128-bit registers: it was built without AVX",
    "told of AVX2": "a library of products takes older code on this processor by itself, and was told to use AVX2",
    "reference BLAS": "matrix products by the reference BLAS, which is made for no processor in particular",
    "proven narrow only": "proven as a narrow network only, not at the size that was timed",
    "proven in part": "losses, first changes and updates were proven at the size that was timed, gradients were not",
    "drifting": "a run's step took over 1.2 times as long at its end as at its beginning, or the other way round",
    "mean apart": "the mean of its samples is outside of the interval of their median: some steps take far longer",
    "two speeds": "its runs differ far more than those of other results, as if it had two speeds",
}

ERROR_RATE = (
    "Slower: the interval is above 1. Equal: it is within 5 % of 1. All else is not decided, as is what was disturbed. "
    "The intervals of a table hold together: the chance that any of them misses is at most 5 %, and so is the chance "
    "that any word is wrong."
)


def significant(value: float, digits: int = 3) -> str:
    """Returns a positive number to `digits` significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    # Rounding may carry into a new digit (0.9996), which then needs one decimal less.
    rounded = round(value, decimals)
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(decimals, 0)}f}"


def beside_one(value: float) -> str:
    """Writes a number with three digits, or five near 1; ">1" where these do not tell on which side it is."""
    digits = 3
    while float(text := significant(value, digits)) == 1 and value != 1 and digits < 5:
        digits += 1
    is_one = float(text) == 1 and value != 1
    return (">1" if value > 1 else "<1") if is_one else text


def limits(low: float, high: float) -> str:
    """Writes the ends of a ratio's interval: '0.982 to 1.07'."""
    return f"{beside_one(low)} to {beside_one(high)}"


def ranged(ratio: float, low: float, high: float) -> str:
    """Returns a ratio with its interval, if any: '1.21 (1.10 to 1.33)'."""
    return significant(ratio) + ("" if pd.isna(low) else f" ({limits(low, high)})")


def spread(median: float, low: float | None, high: float | None) -> str:
    """Writes the larger half of an interval by its median: '±0.6 %', a factor from 100 % on; '' without one."""
    if low is None or high is None or math.isnan(low):
        return ""
    share = 100 * max(high - median, median - low) / median
    if share >= 99.5:
        return f"within a factor of {significant(max(high / median, median / low))}"
    return f"±{share:.1f} %" if share < 9.95 else f"±{share:.0f} %"


def milliseconds(seconds: float) -> str:
    """Writes seconds as milliseconds, without the unit."""
    return significant(1e3 * seconds)


def percent(share: float) -> str:
    """Writes a share without decimals: '95 %'."""
    return f"{100 * share:.0f} %"


def count(value: int) -> str:
    """Writes a whole number with its thousands set apart."""
    return f"{value:,}"


def size(value: float) -> str:
    """Writes bytes in the unit in which they are 1 to 1000: '512 bytes', '4.00 MB'."""
    if value < 1000:
        return f"{value:.0f} bytes"
    power = min(int(math.log10(value)) // 3, 3)
    return f"{significant(value / 1000**power)} {'kMG'[power - 1]}B"


def gibibytes(value: float | None) -> str:
    """Writes bytes as GiB; '' where not known."""
    return "" if not value else f"{value / 2**30:.0f} GiB"


def status_reason(status: str, reason: str) -> str:
    """Returns the footnote of a dash."""
    words = STATUS_WORDS.get(status, status)
    return f"{words}: {shortened(reason)}" if reason else words


def why(row: Mapping[str, Any]) -> str:
    """Says why a row has no number, from its `status` and `reason`."""
    return status_reason(row["status"], row["reason"])


def why_or(otherwise: str | Callable[[Row], str]) -> Callable[[Row], str]:
    """Returns a function that says why a row has no number: what stopped it, or `otherwise` for a row that ran."""
    reason = otherwise if callable(otherwise) else lambda row: otherwise
    return lambda row: why(row) if row["status"] != "ok" else reason(row)


def marked(row: Mapping[str, Any]) -> list[str]:
    return [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]


def remarks(row: Mapping[str, Any]) -> list[str]:
    """Returns what a reader must know of a row that was timed: its marks, its further processes, its reason."""
    texts = [text for text in (row.get("further"), row["reason"]) if text]
    return [*marked(row), *(text.rstrip(".") for text in texts)]


def environment_labels(frameworks: Frameworks, rows: pd.DataFrame) -> list[str]:
    """Names each row by label and version, and by its mode where there are several: 'PyTorch 2.13.0, eager'.

    Where two names would be the same, the second one has its environment: 'JAX 0.12 (jax-0.12-cuda12)'.
    """
    tuned = rows[rows["mode"] != PLAIN]
    several = tuned.groupby("framework")["mode"].nunique().gt(1).to_dict()
    seen: dict[tuple[str, str], list[str]] = {}
    plain = []
    for row in rows.to_dict("records"):
        version, mode = row["framework_version"], row["mode"]
        if not isinstance(version, str):
            version = re.sub(r"-cuda\d*$", "", row["environment"].partition("-")[2])
        label = f"{frameworks[row['framework']].label} {version.removesuffix('+cpu')}".strip()
        label += f", {mode}" if mode and (mode == PLAIN or several[row["framework"]]) else ""
        label += precisions.marked(row.get("precision", precisions.USUAL), ", ")
        plain.append((label, row.get("device", ""), row["environment"]))
    for *place, environment in sorted(set(plain), key=lambda each: version_order(each[2])):
        seen.setdefault((place[0], place[1]), []).append(environment)
    return [
        label if environment == seen[label, device][0] else f"{label} ({environment})"
        for label, device, environment in plain
    ]


def mark_notes(rows: pd.DataFrame) -> list[str]:
    """Returns one sentence for each mark of a figure's rows (network_label, framework_label, threads, batch, marks)."""
    named = ["framework_label", "network_label"]
    axes = {"threads": "threads", "batch": "mini-batches"}
    at = [axis for axis in axes if axis in rows and rows.groupby(named)[axis].nunique().max() > 1]
    where = f" (at {axes[at[0]]})" if at else ""
    by_mark = rows.assign(mark=rows["marks"].str.split(", ")).explode("mark")
    notes = []
    for mark, marked in by_mark[by_mark["mark"] != ""].groupby("mark", sort=False):
        meaning = MARK_WORDS.get(mark, mark)
        if len(marked) == len(rows) > 1:
            notes.append(f"All are marked: {meaning}.")
            continue
        names = []
        for name, results in marked.groupby(named, sort=False):
            places = map(str, sorted(results[at[0]].unique())) if at else []
            names.append(" at ".join(filter(None, [", ".join(name), ", ".join(places)])))
        notes.append(f"Marked{where}: {'; '.join(names)} ({meaning}).")
    return notes


def run_name(grid: str) -> str:
    """Returns the name of a grid's run for readers."""
    return "default run" if grid == "default" else f"run of {grid}"


def machine_text(platform: str, machine: dict[str, Any]) -> str:
    """Returns one line on a platform's machine: 'this machine: AMD EPYC, 2 cores, 24 GiB, Debian 12'."""
    platform = machine_name(platform)
    if not machine:
        return platform
    cpu = machine.get("cpu", {})
    parts = [cpu.get("model", ""), cores_text(cpu), gibibytes(machine.get("memory_bytes"))]
    parts += [
        f"{gpu['model']} {gibibytes(gpu.get('memory_bytes'))}".strip()
        for gpu in machine.get("gpus", [])
    ]
    parts.append(machine.get("os", ""))
    return f"{platform}: {', '.join(part for part in parts if part)}"


def cores_text(cpu: dict[str, Any]) -> str:
    """Writes the physical cores, and the logical ones where they are more."""
    physical, logical = cpu.get("physical_cores"), cpu.get("logical_cores")
    if not physical and not logical:
        return ""
    if not physical or not logical or physical == logical:
        return plural(logical or physical or 0, "core")
    return f"{plural(physical, 'core')} ({logical} logical)"


def facts(measured: Measured) -> list[str]:
    """Returns facts on measured numbers: the machines, what is timed, when; [] where nothing is."""
    if measured.cells.empty:
        return []
    lines = [
        f"Measured on {machine_text(platform, machine)}."
        for platform, machine in measured.platforms.items()
    ]
    several = measured.cells.groupby("platform", sort=False)["machine_id"].nunique()
    lines += [
        f"{machine_name(platform)} is {number} machines of this kind."
        for platform, number in several.items()
        if number > 1
    ]
    software = measured.cells[["environment", "framework_version"]]
    software = software.drop_duplicates("environment")
    names = [
        f"{name} ({version})" if isinstance(version, str) else name
        for name, version in software.itertuples(index=False)
    ]
    lines.append(f"Environments: {', '.join(names)}.")
    prepared: dict[str, list[str]] = {}
    for environment, known in measured.software.items():
        if known.get("prepared"):
            parts = (f"{part} ({what})" for part, what in known["prepared"].items())
            prepared.setdefault("; ".join(parts), []).append(environment)
    lines += [
        f"{', '.join(own)} {'has' if len(own) == 1 else 'have'} parts that no package supplies: {text}."
        for text, own in prepared.items()
    ]
    settings = {name: known.get("settings", {}) for name, known in measured.software.items()}
    names = [name for name, known in settings.items() if any(map(was_told, known.values()))]
    lines += [f"{', '.join(names)}: {MARK_WORDS['told of AVX2']}."] if names else []
    if measured.timed_region:
        lines.append(f"Timed: {measured.timed_region}.")
    if measured.dates:
        lines.append(f"Date (UTC): {measured.dates}.")
    return lines


def origin(measured: Measured) -> list[str]:
    """Returns the facts of what was measured, and where its rows are."""
    return [*facts(measured), raw_data(measured)]


def version_order(environment: str) -> str:
    """Returns a text that sorts environments by version: 'tensorflow-1.2' before 'tensorflow-1.15'."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(6), environment)


def processes(cells: pd.DataFrame) -> str:
    """Says what the intervals of these results are worth, by the number of processes that measured them."""
    repeats = cells.loc[cells["status"] == "ok", "repeats"]
    alone = int((repeats == 1).sum())
    if not len(repeats) or alone == len(repeats):
        return (
            "One run measured each result, so there are no intervals: nothing is known of how much a second run would "
            "differ (`repeats` in the grid)."
        )
    most = repeats.max()
    number = f"{'up to ' if repeats.min() < most else ''}{most}"
    text = (
        f"Geometric mean of {number} runs per result, in interleaved trials. The 95 % interval includes "
        "process-to-process variation, estimated from all results of the run at this thread count."
    )
    planned: list[int] = next(iter(cells["looks"]), []) if "looks" in cells else []
    if added := sum(interim.is_further(planned, count) for count in repeats):
        text += f" {plural(added, 'result')} got more runs, since their intervals were wide."
    if alone:
        text += f" {plural(alone, 'result')} with one run has no interval."
    return text


def further(cell: Mapping[str, Any]) -> str:
    """Says that a result was measured further times, and why; '' where it was not."""
    if not interim.is_further(cell["looks"], cell["repeats"]):
        return ""
    return (
        f"measured by {cell['repeats']} runs, since its interval was wide after {cell['looks'][0]}"
    )


def seeds(cells: pd.DataFrame) -> str:
    """Says what the intervals of trainings are worth, by the number of seeds."""
    most = cells["repeats"].max()
    if most < 2:
        return "One training by one seed each, which has no interval: another seed takes another number of epochs."
    return (
        f"Trainings by up to {most} seeds each, a process of its own for each; the interval is Student's over the "
        "seeds that reached the accuracy, of logarithms."
    )


def raw_data(measured: Measured) -> str:
    if "epoch" in measured.rows:
        return f"All epochs: {measured.source}; one file for each training: results/cells/."
    return f"All samples: {measured.source}; one file for each run: results/cells/."
