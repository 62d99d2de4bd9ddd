"""Table of what the known settings of each framework are worth, compared with its own tutorial's way."""

from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import PLACE, PLAIN
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import TEXT
from steptime.render.words import ERROR_RATE, marked, processes, significant, why, why_or
from steptime.statistics.intervals import Ratio
from steptime.statistics.ratios import to_bases
from steptime.statistics.words import EQUAL, FASTEST, NOT_DECIDED, SHORTEST, key, words_of

COLUMNS = [*common.NAMED, "plain_seconds", "plain_marks", "seconds", "marks"]
COLUMNS += ["ratio", "low", "high", "verdict", "plain_verdict", "lacking"]
TYPES = {"verdict": TEXT, "lacking": TEXT}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout: a row for each result in mode `plain`, beside the fastest other
    mode.

    `verdict` and `plain_verdict` are words of `statistics.words`; the second one compares plain results alone.
    """
    cells, statistics = common.whole(inputs.measured.cells), inputs.measured.statistics
    is_plain = cells["mode"] == PLAIN
    # The heading names the mode.
    named = cells[is_plain].assign(mode="")
    plain = common.labelled(named, inputs.frameworks, inputs.networks).assign(mode=PLAIN)
    word_of = words_of(plain, statistics.pairs)
    best = cells[~is_plain].sort_values("seconds").drop_duplicates([*PLACE, "environment"])
    tuned = {_place(row): row for row in best.to_dict("records")}
    rows = plain.to_dict("records")
    bases = [tuned.get(_place(row)) for row in rows]
    ratios = to_bases(rows, bases, statistics.ratios)
    compared = [
        _row(row, base, word_of.get(key(row)), ratio)
        for row, base, ratio in zip(rows, bases, ratios, strict=True)
    ]
    data = pd.DataFrame(compared, columns=COLUMNS)
    common.describe(
        inputs,
        *([winners(data)] if len(data) else []),
        *_settings(inputs, data),
        "A ratio compares runs of the same trials; a time is the mean over all runs.",
        ERROR_RATE,
        processes(inputs.measured.cells),
    )
    fastest = {BEST: data["verdict"] == FASTEST, PLAINLY: data["plain_verdict"] == FASTEST}
    return data, columns(data.assign(**fastest), SHOWN, INDEX)


def winners(rows: pd.DataFrame) -> str:
    """Says whether another framework would be the fastest of each network without the settings."""
    other, same, open_ = (list[str]() for _ in range(3))
    for _, place in rows.groupby(PLACE, sort=False, dropna=False):
        network = place["network_label"].iloc[0]
        tuned, plain = (_leading(place, name) for name in ("verdict", "plain_verdict"))
        if not tuned or not plain or (tuned & plain and tuned != plain) or len(tuned) > 1:
            open_.append(network)
        elif tuned == plain:
            same.append(network)
        else:
            other.append(f"{' or '.join(sorted(plain))} on {network}")
    sentences = [
        f"Without the settings the fastest would be {', '.join(other)}." if other else "",
        f"Without the settings the fastest is the same on {', '.join(same)}." if same else "",
        f"It is not decided on {', '.join(open_)}." if open_ else "",
    ]
    return " ".join(filter(None, sentences))


def _leading(place: pd.DataFrame, verdict: str) -> set[str]:
    """Returns the frameworks of a place that are not slower than any other."""
    leading = place[verdict].isin([FASTEST, SHORTEST, EQUAL, NOT_DECIDED])
    return set(place.loc[leading, "framework_label"])


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*PLACE, "environment"))


def _row(row: Row, base: Row | None, word: str | None, ratio: Ratio | None) -> Row:
    compared = {name: row[name] for name in common.NAMED}
    compared |= {"plain_seconds": row["seconds"], "plain_marks": ", ".join(row["marks"])}
    known = base or {"seconds": None, "marks": [], "word": None}
    compared |= {"seconds": known["seconds"], "marks": ", ".join(known["marks"])}
    compared |= {"verdict": known["word"], "plain_verdict": word}
    compared |= {"lacking": why(base) if base else "not timed in another mode"}
    if ratio:
        compared |= dict(zip(("ratio", "low", "high"), ratio.inverse.interval, strict=True))
    elif base and pd.notna(row["seconds"]) and pd.notna(base["seconds"]):
        compared["ratio"] = row["seconds"] / base["seconds"]
    return compared


def _settings(inputs: Inputs, data: pd.DataFrame) -> list[str]:
    """Returns a line for each setting of the frameworks that are shown."""
    known, shown = inputs.entry["settings"], list(dict.fromkeys(data["framework"]))
    lines = [f"{inputs.frameworks[name].label}: {line}." for name in shown for line in known[name]]
    return [*lines, *(f"All: {line}." for line in known["all"])]


def _lacking(row: Row) -> str:
    return str(row["lacking"])


def _plain_marked(row: Row) -> list[str]:
    return marked({"marks": row["plain_marks"]})


BEST, PLAINLY = "is_fastest", "plain_fastest"
SHOWN = [
    Column("Best known settings, s", "seconds", significant, _lacking, "ours", marked, BEST),
    Column("Plain, s", "plain_seconds", significant, why, "ours", _plain_marked, PLAINLY),
    Column("Plain / best known", common.ratio_of, str, why_or(_lacking), "ours"),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label", "Place": common.place_of}
