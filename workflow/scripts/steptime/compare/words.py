"""A comparison in words: its answer in one sentence, its page, its table."""

import math
from typing import Any

import pandas as pd

from steptime.render.columns import Column, Row, columns, dash
from steptime.render.tables import DASH, Entry, Page
from steptime.render.words import marked, plural, significant, spread, status_reason
from steptime.say import filled
from steptime.statistics.verdicts import EQUAL, ERROR, FASTER, NOT_DECIDED, SLOWER, mean_of

# The heading of what makes a comparison worth less.
CAVEATS = "Before you rely on it:"
# One side has a time, the other none.
LOST, GAINED = "lost", "gained"
# Axes that a line names where cells of a comparison differ in them.
VARYING = {
    "one_environment": "Environment",
    "one_mode": "Mode",
    "one_platform": "Platform",
    "device": "Device",
    "devices": "Devices",
    "precision": "Precision",
}
WORDS = {LOST: "without a time now", GAINED: "with a time only now"}
NO_INTERVAL = "fewer than two processes of both, so nothing is known of how much they differ: set `repeats` in the grid"


def lost(one: str, other: str) -> str:
    """Returns the verdict on a cell without an interval, from its status on either side."""
    if (one == "ok") == (other == "ok"):
        return NOT_DECIDED if one == "ok" else ""
    return LOST if one == "ok" else GAINED


def answer(
    one: str,
    other: str,
    data: pd.DataFrame,
    margin: float,
    in_turn: bool = True,
    chance: float = ERROR,
) -> str:
    """Says what came of the comparison, in one sentence.

    `in_turn`: both sides were measured in one run. `chance`: with which the interval of several results may miss.
    """
    with_ratio = data[data["known"].notna()]
    known = [*with_ratio["known"]]
    counts = data.loc[data["verdict"] != "", "verdict"].value_counts()
    equal = f"{EQUAL} within {100 * margin:g} %"
    names = {FASTER: FASTER, SLOWER: SLOWER, EQUAL: equal, NOT_DECIDED: NOT_DECIDED} | WORDS
    names |= {verdict: verdict for verdict in counts.index if verdict not in names}
    parts = [f"{counts[verdict]} {word}" for verdict, word in names.items() if verdict in counts]
    runs = "" if in_turn else " of two runs"
    of_cells = f"geometric mean of {plural(len(known), 'result')}{runs}; {', '.join(parts)}"
    if not known:
        return f"Whether {other} is faster or slower than {one} is not known ({', '.join(parts) or 'no time'})."
    where = _where(data)
    mean = mean_of(known)
    ratio, low, high = mean.interval[0], *mean.within(chance)
    if len(known) == 1:
        # One interval for one result, here and in its line.
        ratio, low, high = with_ratio.iloc[0][["ratio", "ratio_low", "ratio_high"]]
    ends = sorted(each.interval[0] for each in known)
    by_result = f", {ends[0]:.2f} to {ends[-1]:.2f} by result" if len(known) > 1 else ""
    takes = f"takes {times(ratio, low, high)} times as long{by_result} ({of_cells})."
    if low <= 1 <= high:
        return f"No difference between {other} and {one} is shown{where}: {other} {takes}"
    return f"{other} is {SLOWER if low > 1 else FASTER} than {one}{where}: it {takes}"


def _where(data: pd.DataFrame) -> str:
    platforms = {*data["one_platform"], *data["other_platform"]}
    return f" on {platforms.pop()}" if len(platforms) == 1 else ""


def times(ratio: float, low: float, high: float) -> str:
    """Writes a ratio with the wider side of its interval: '1.21 ± 0.03'."""
    half = max(high - ratio, ratio - low)
    decimals = 2 if half >= 0.005 else 3
    return f"{ratio:.{decimals}f} ± {half:.{decimals}f}"


def page(answer: str, one: str, other: str, caveats: list[str], margin: float) -> Page:
    """Returns the words around the table."""
    facts = [CAVEATS, *caveats] if caveats else []
    notes = [
        f"The ratio is the time of {other} divided by that of {one}, by medians: above 1 is slower. Its error comes "
        "from all results at as many threads. The ratio of means is shown where it is outside of the interval.",
        f"Slower: the interval is above 1. Faster: below 1. Equal: within {100 * margin:g} % of 1. All else is not "
        "decided. The intervals hold together: the chance that any of them misses is at most 5 %. Within one run, a "
        "pair has the interval and the word of the run's own table.",
    ]
    caption = f"Time of one training step of the same network in {one} and in {other}."
    return Page("compare", answer, caption, "steptime", facts=facts, notes=notes)


def layout(data: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Returns the table that a reader sees, a line for each cell."""
    shown = [
        Column(f"{one}, s", lambda row: _time(row, "one")),
        Column(f"{other}, s", lambda row: _time(row, "other")),
        Column("Ratio", _ratio),
        Column("Verdict", _verdict),
    ]
    index: dict[str, Any] = {"Network": lambda row: row["variant"] or row["network"]}
    index |= {"Mini-batch": "batch", "Threads": "threads"}
    index |= {heading: name for name, heading in VARYING.items() if data[name].nunique() > 1}
    return columns(data, shown, index)


def _verdict(row: Row) -> Entry:
    word = WORDS.get(row["verdict"], row["verdict"]) or DASH
    return Entry(word, best=row["verdict"] == SLOWER, kind="words")


def _varying(row: dict[str, str], data: pd.DataFrame) -> list[str]:
    return [str(row[name]) for name in VARYING if data[name].nunique() > 1]


def _time(row: dict, side: str) -> Entry:
    if pd.isna(row[f"{side}_seconds"]):
        return dash(status_reason(row[f"{side}_status"], row[f"{side}_reason"] or ""))
    marks = marked({"marks": row[f"{side}_marks"]})
    seconds = row[f"{side}_seconds"]
    text = f"{significant(seconds)} {spread(seconds, row[f'{side}_low'], row[f'{side}_high'])}"
    return Entry(text, tuple(marks), kind="ours")


def _ratio(row: dict) -> Entry:
    if row["ratio"] is None or math.isnan(row["ratio"]):
        return Entry(DASH)
    if row["known"] is None:
        return Entry(significant(row["ratio"]), (NO_INTERVAL,), kind="ratio")
    limits = f"{significant(row['ratio_low'])} to {significant(row['ratio_high'])}"
    text = f"{significant(row['ratio'])} ({limits})"
    if not row["ratio_low"] <= row["ratio_of_means"] <= row["ratio_high"]:
        text += f", of means {significant(row['ratio_of_means'])}"
    return Entry(text, kind="ratio")


def terminal(answer: str, notes: list[str], data: pd.DataFrame, one: str, other: str) -> str:
    """Returns what the terminal shows: the answer, what else differs, and a line for each cell."""
    caveats = ["", CAVEATS, *(filled(each, "  ") for each in notes)]
    lines = [filled(answer), *(caveats if notes else []), ""]
    width = 54 if _varying(VARYING, data) else 34
    for row in data.to_dict("records"):
        where = [row["variant"] or row["network"], f"batch {row['batch']}"]
        where += [plural(row["threads"], "thread"), *_varying(row, data)]
        marks_of_both = f"{row['one_marks']}, {row['other_marks']}".split(", ")
        marks = ", ".join(dict.fromkeys(filter(None, marks_of_both)))
        verdict = WORDS.get(row["verdict"], row["verdict"]) or "no time on either side"
        lines.append(
            f"  {', '.join(where):{width}} {_ratio(row).text:24} {verdict}{f'   [{marks}]' if marks else ''}"
        )
    return "\n".join([*lines, ""])
