"""Compares our results with what the papers printed: the order of the frameworks, and how slow each network is."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts.agreement_figure import draw
from steptime.artefacts.evidence import (
    measured_times,
    our_times,
    read_papers,
    their_times,
)
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.merge.others import Grid
from steptime.render import tables
from steptime.render.columns import Column, Row, columns
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, raw_data
from steptime.statistics import intervals
from steptime.statistics.intervals import Ratio
from steptime.statistics.ratios import Pair, of_pairs
from steptime.statistics.spreads import KIND, known, spread_of
from steptime.statistics.verdicts import ERROR, chance_of_none, holm

COLUMNS = ["paper", "network", "device", "frameworks", "their_order", "our_order", "our_frameworks"]
COLUMNS += ["same_pairs", "decided_pairs", "pairs", "tau", "points", "no_tau"]
FEWEST = 3  # frameworks of an order for which a correlation of ranks says anything
EVERY = "every network"


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing."""
    drawn, cells = [], measured_times([Grid(steps=[inputs.measured])])
    for paper in read_papers(inputs.paths("papers")):
        theirs = their_times(paper, inputs.frameworks, inputs.networks)
        ours = our_times(paper, cells, inputs.frameworks, inputs.networks)
        names = {"paper": paper.name, "short": paper.catalogue["short"]}
        drawn.append(points(theirs, ours).assign(**names))
    both = pd.concat(drawn, ignore_index=True)
    return draw(both, inputs.frameworks, inputs.networks, inputs.measured)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout.

    There is a row for each paper, kind of device and common network.

    A framework's place in an order is its shortest time over platforms and thread counts. A pair is decided where our
    two times are shown to differ, with a chance of 5 % at most that any pair here is wrongly so, and the paper's
    differ; `same_pairs` are of these. Kendall's tau is that of the two orders; it has no interval: with three or four
    frameworks it takes too few values. The row of every network correlates all times of the same network, framework,
    kind of device and thread count.
    """
    papers, measured = read_papers(inputs.paths("papers")), inputs.measured
    frameworks, catalogue, page = inputs.frameworks, inputs.networks, inputs.page
    rows, cells = [], measured_times([Grid(steps=[measured])])
    ratios = of_pairs(measured.cells, measured.statistics.ratios)
    for paper in papers:
        theirs = their_times(paper, frameworks, catalogue)
        ours = our_times(paper, cells, frameworks, catalogue)
        for device in dict.fromkeys(theirs["device"]):
            both = [times[times["device"] == device] for times in (theirs, ours)]
            shared = [
                name for name in both[0]["network"].unique() if (both[1]["network"] == name).any()
            ]
            found = [
                _of_network(
                    both[0][both[0]["network"] == name],
                    both[1][both[1]["network"] == name],
                    measured,
                    ratios,
                )
                for name in shared
            ]
            rows += [
                {"paper": paper.name, "network": name, "device": device} | row
                for name, row in zip(shared, found, strict=True)
            ]
            if len(found) > 1:
                rows.append(
                    {"paper": paper.name, "network": EVERY, "device": device}
                    | _of_all(found, points(*both))
                )
    _decide(rows)
    data = pd.DataFrame(rows, columns=COLUMNS)
    page.facts = facts(measured)
    page.notes = [
        "A framework's place is its shortest time over platforms and thread counts. The environment nearest to the "
        "paper's version stands for it, or the fastest where that was not measured: PyTorch for Torch. τ is "
        "Kendall's rank correlation (1: the same order, −1: the opposite one). It has no interval: an order of "
        "three or four frameworks is met by chance too often.",
        "A pair counts where our two times are shown to differ, with a chance of 5 % at most that any pair is wrong.",
        "Every network: τ of all times for the same network, framework and thread count. Below "
        f"{FEWEST} common frameworks, a correlation of ranks says nothing, and only the pairs are counted.",
        "Machines and versions are others, and mini-batches where the grid says so: agreement is asked, not expected.",
        raw_data(measured),
    ]
    shorts = {paper.name: paper.catalogue["short"] for paper in papers}
    return data, _layout(data.assign(short=data["paper"].map(shorts)), frameworks, catalogue)


def points(theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Times of the same network, framework and thread count: `theirs` and `ours`, seconds; the shortest of several.

    `theirs_batch` and `ours_batch` are the mini-batch sizes, which may differ.
    """
    place = ["network", "framework", "threads", "device"]
    shortest = []
    for name, times in (("theirs", theirs), ("ours", ours)):
        kept = (
            times[times["seconds"].notna()]
            .sort_values("seconds")
            .drop_duplicates(place)
            .set_index(place)
        )
        shortest.append(
            kept[["seconds", "batch"]].set_axis([name, f"{name}_batch"], axis="columns")
        )
    return pd.concat(shortest, axis=1, join="inner").reset_index()


def correlation(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Kendall's tau-b (SciPy); NaN where one side is constant."""
    # Only where it is needed: it takes a third of a second.
    from scipy.stats import kendalltau

    return float(kendalltau(theirs, ours).statistic)


def _of_network(
    theirs: pd.DataFrame, ours: pd.DataFrame, measured: Measured, ratios: dict[Pair, Ratio]
) -> dict[str, Any]:
    printed = theirs.groupby("framework", sort=False)["seconds"].min().dropna()
    timed = (
        ours[ours["seconds"].notna()]
        .sort_values("seconds")
        .drop_duplicates("framework")
        .set_index("framework")
    )
    names = [name for name in printed.index if name in timed.index]
    cells = {name: _cell(measured, timed.loc[name]) for name in names}
    compared = [
        {
            "chance": _chance(cells[one], cells[other], measured, ratios),
            "same": (printed[one] < printed[other])
            == (timed.loc[one, "seconds"] < timed.loc[other, "seconds"]),
        }
        for one, other in combinations(names, 2)
        if printed[one] != printed[other]
    ]
    ordered = sorted(names, key=lambda name: timed.loc[name, "seconds"])
    row = {
        "frameworks": len(names),
        "their_order": " ".join(sorted(names, key=lambda name: printed[name])),
        "our_order": " ".join(ordered),
        "our_frameworks": " ".join(timed.loc[ordered, "own"]),
        "pairs": len(names) * (len(names) - 1) // 2,
        "compared": compared,
        "points": len(names),
        "no_tau": "",
    }
    if len(names) < FEWEST:
        return row | {"no_tau": f"too few: {plural(len(names), 'framework')} in common"}
    them, us = printed[names].to_numpy(), timed.loc[names, "seconds"].to_numpy(float)
    return row | {"tau": correlation(them, us)}


def _cell(measured: Measured, time: pd.Series) -> pd.Series:
    """The cell that a time of ours is of."""
    cells = measured.cells
    same = cells["variant"].fillna("").eq("")
    for name in ("environment", "mode", "network", "platform", "batch", "devices", "task"):
        same &= cells[name] == time[name]
    same &= (cells["threads"] == time["threads"]) | (time["device"] != "cpu")
    return cells[same].iloc[0]


def _chance(
    one: pd.Series, other: pd.Series, measured: Measured, ratios: dict[Pair, Ratio]
) -> float:
    """How probable so large a difference of two results would be if there were none; 1 where nothing is known."""
    known_ratio = ratios.get((one.name, other.name))
    if known_ratio is None:
        if min(one["repeats"], other["repeats"]) < 2:
            return 1.0
        # Not measured in one place, so not trial by trial.
        known_ratio = intervals.difference(_time(one, measured), _time(other, measured))
    return chance_of_none(known_ratio)


def _time(cell: pd.Series, measured: Measured) -> Ratio:
    logs = intervals.logs_of(list(cell["medians"].values()))
    prior = measured.statistics.times.get(tuple(cell[name] for name in KIND))
    return intervals.ratio_of(logs, known(spread_of(logs), prior))


def _decide(rows: list[dict[str, Any]]) -> None:
    """Counts in place which pairs of each row are decided; all pairs of the table are paid for together."""
    pairs = {id(pair): pair for row in rows for pair in row["compared"]}
    shown = holm([pair["chance"] for pair in pairs.values()], ERROR)
    decided = {at for at, is_shown in zip(pairs, shown, strict=True) if is_shown}
    for row in rows:
        own = [pair for pair in row.pop("compared") if id(pair) in decided]
        row |= {"decided_pairs": len(own), "same_pairs": sum(bool(pair["same"]) for pair in own)}


def _of_all(found: list[dict[str, Any]], both: pd.DataFrame) -> dict[str, Any]:
    them, us = both["theirs"].to_numpy(), both["ours"].to_numpy()
    row = {
        "pairs": sum(entry["pairs"] for entry in found),
        "compared": [pair for entry in found for pair in entry["compared"]],
        "points": len(both),
        "frameworks": both["framework"].nunique(),
        "their_order": "",
        "our_order": "",
        "our_frameworks": "",
        "no_tau": "",
    }
    if len(both) < FEWEST:
        return row | {"no_tau": f"too few: {plural(len(both), 'time')} for the same threads"}
    return row | {"tau": correlation(them, us)}


def _layout(data: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]) -> pd.DataFrame:
    def order(column: str, label: Callable[[str], str]) -> Callable[[Row], str]:
        return lambda row: " < ".join(map(label, row[column].split()))

    def theirs(name: str) -> str:
        return frameworks.lineage(name).label

    def pairs(row: Row) -> Entry:
        same = f"{row['same_pairs']} of {row['decided_pairs']}"
        return Entry(same if row["decided_pairs"] else tables.DASH, _why(row))

    shown = [
        Column("Their order", order("their_order", theirs), kind="words"),
        Column("Our order", order("our_frameworks", frameworks.standing), kind="ours words"),
        Column("Pairs in the same order", pairs),
        Column("Kendall's τ", "tau", _number, lambda row: row["no_tau"]),
        Column("Points", "points"),
    ]
    index: dict[str, Any] = {
        "Paper": "short",
        "Device": lambda row: row["device"].upper(),
        "Network": lambda row: catalogue.get(row["network"], {}).get("label", row["network"]),
    }
    return columns(data, shown, index)


def _why(row: dict[str, Any]) -> tuple[str, ...]:
    if not row["pairs"]:
        return ("fewer than two frameworks in common",)
    left = row["pairs"] - row["decided_pairs"]
    return (f"{left} of {plural(row['pairs'], 'pair')} undecided",) if left else ()


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
