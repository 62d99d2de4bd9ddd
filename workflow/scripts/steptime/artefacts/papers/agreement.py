"""Compares our results with what the papers printed: the order of the frameworks, and how slow each network is."""

from collections.abc import Callable, Collection
from itertools import combinations, cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import times
from steptime.claims.evidence import measured_times, our_times, their_times
from steptime.claims.papers import read_papers
from steptime.merge.measured import Measured
from steptime.merge.others import Grid
from steptime.render import figures, tables
from steptime.render.columns import Column, Row, columns
from steptime.render.frameworks import Frameworks
from steptime.render.tables import COUNT, TEXT, Entry
from steptime.render.words import facts, origin, plural, raw_data
from steptime.statistics import intervals
from steptime.statistics.pairs import Pair, both_ways, key
from steptime.statistics.ratios import mean_of_result
from steptime.statistics.verdicts import ERROR, FASTER, SLOWER, chance_of_none

COLUMNS = ["paper", "network", "device", "frameworks", "their_order", "our_order", "our_frameworks"]
COLUMNS += ["same_pairs", "apart_pairs", "decided_pairs", "pairs", "tau", "points", "no_tau"]
TYPES = dict.fromkeys(["paper", "their_order", "our_order", "no_tau"], TEXT)
TYPES |= dict.fromkeys(
    ["frameworks", "same_pairs", "apart_pairs", "decided_pairs", "pairs", "points"], COUNT
)
FEWEST = 3  # frameworks of an order for which a correlation of ranks says anything
EVERY = "every network"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h")
RATIOS = ((1, "ours = theirs"), (10, "10 times as fast"), (100, "100 times as fast"))
APART = "with a script of the authors that trained another network or timed something else"
NOTHING = "no time was measured here for a network, framework and thread count that a paper printed"
# What the points that are joined have in common.
LINE = ["paper", "network", "framework", "device"]


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    cells = measured_times([Grid(steps=[inputs.measured])])
    drawn, told = [], []
    for paper in read_papers(inputs.paths("papers")):
        theirs = their_times(paper, inputs.frameworks)
        ours = our_times(paper, cells, inputs.frameworks)
        names = {"paper": paper.name, "short": paper.catalogue["short"]}
        drawn.append(points(theirs, ours).assign(**names))
        told.extend(times.other_scripts(drawn[-1], paper.catalogue, inputs))
    both = pd.concat(drawn, ignore_index=True)
    return draw(both, inputs, *told)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS), one for each paper, kind of device and common network, and the layout."""
    papers, measured = read_papers(inputs.paths("papers")), inputs.measured
    frameworks, catalogue, page = inputs.frameworks, inputs.networks, inputs.page
    cells = measured_times([Grid(steps=[measured])])
    rows = []
    found = both_ways(measured.statistics.pairs)
    for paper in papers:
        theirs = their_times(paper, frameworks)
        ours = our_times(paper, cells, frameworks)
        apart = times.caveats(paper.catalogue, frameworks)
        for device in dict.fromkeys(theirs["device"]):
            them, us = (side[side["device"] == device] for side in (theirs, ours))
            ours_of = dict(iter(us.groupby("network")))
            by_network = {
                name: _of_network(of_them, ours_of[name], measured, found, apart)
                for name, of_them in them.groupby("network", sort=False)
                if name in ours_of
            }
            if len(by_network) > 1:
                by_network[EVERY] = _of_all([*by_network.values()], points(them, us))
            rows += [
                {"paper": paper.name, "network": name, "device": device} | row
                for name, row in by_network.items()
            ]
    _decide(rows)
    data = pd.DataFrame(rows, columns=COLUMNS)
    page.facts = facts(measured)
    page.notes = [
        "A framework's place is its shortest time over platforms and thread counts. We take the environment nearest "
        "to the paper's version, or the fastest where that was not measured: PyTorch for Torch. τ is "
        "Kendall's rank correlation (1: the same order, −1: the opposite one). It has no interval: an order of "
        "three or four frameworks is met by chance too often.",
        "A pair counts where one of our two times is shown to be slower; its word is that of the table of ratios.",
        "Every network: τ of all times for the same network, framework and thread count. Below "
        f"{FEWEST} common frameworks, a correlation of ranks says nothing, and only the pairs are counted.",
        "Machines and versions are others, and mini-batches where the grid says so: agreement is asked, not expected.",
        raw_data(measured),
    ]
    shorts = {paper.name: paper.catalogue["short"] for paper in papers}
    return data, _layout(data.assign(short=data["paper"].map(shorts)), frameworks, catalogue)


def points(theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Returns places with a time on both sides, the shortest in seconds: `theirs`, `ours`. `_batch` may differ."""
    place = ["network", "framework", "threads", "device"]
    shortest = [
        _shortest(times, place)[["seconds", "batch"]].set_axis([name, f"{name}_batch"], axis=1)
        for name, times in (("theirs", theirs), ("ours", ours))
    ]
    return pd.concat(shortest, axis=1, join="inner").reset_index()


def correlation(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Computes Kendall's tau-b (SciPy); NaN where one side is constant."""
    # Only where it is needed: it takes a third of a second.
    from scipy.stats import kendalltau

    return float(kendalltau(theirs, ours).statistic)


def _shortest(times: pd.DataFrame, place: str | list[str]) -> pd.DataFrame:
    """Returns the shortest time of each place; the place is the index."""
    timed = times[times["seconds"].notna()].sort_values("seconds")
    return timed.drop_duplicates(place).set_index(place)


def _of_network(
    theirs: pd.DataFrame,
    ours: pd.DataFrame,
    measured: Measured,
    found: dict[tuple[str, str], Pair],
    apart: Collection[tuple[str, str]],
) -> Row:
    printed = theirs.groupby("framework", sort=False)["seconds"].min().dropna()
    timed, network = _shortest(ours, "framework"), theirs["network"].iloc[0]
    names = [name for name in printed.index if name in timed.index]
    seconds = timed["seconds"]
    cells = {name: _cell(measured, timed.loc[name]) for name in names}
    compared = [
        {
            "differ": _differ(cells[one], cells[other], measured, found),
            "same": (printed[one] < printed[other]) == (seconds[one] < seconds[other]),
            "apart": any((network, name) in apart for name in (one, other)),
        }
        for one, other in combinations(names, 2)
        if printed[one] != printed[other]
    ]
    ordered = sorted(names, key=seconds.__getitem__)
    row = {
        "frameworks": len(names),
        "their_order": " ".join(sorted(names, key=printed.__getitem__)),
        "our_order": " ".join(ordered),
        "our_frameworks": " ".join(timed.loc[ordered, "own"]),
        "pairs": len(names) * (len(names) - 1) // 2,
        "compared": compared,
        "points": len(names),
    }
    too_few = f"too few: {plural(len(names), 'framework')} in common"
    return row | _tau(printed[names], seconds[names], too_few)


def _tau(theirs: pd.Series, ours: pd.Series, too_few: str) -> Row:
    if len(theirs) < FEWEST:
        return {"no_tau": too_few}
    return {"tau": correlation(theirs.to_numpy(), ours.to_numpy(float)), "no_tau": ""}


def _cell(measured: Measured, time: pd.Series) -> pd.Series:
    """Returns the cell that one of our times belongs to."""
    cells = measured.cells
    same = cells["variant"].fillna("").eq("")
    for name in ("environment", "mode", "network", "platform", "batch", "devices", "task"):
        same &= cells[name] == time[name]
    same &= (cells["threads"] == time["threads"]) | (time["device"] != "cpu")
    return cells[same].iloc[0]


def _differ(
    one: pd.Series, other: pd.Series, measured: Measured, found: dict[tuple[str, str], Pair]
) -> bool | float:
    """Tells whether two results differ, by the word of their pair.

    Where they were not measured in one place, returns a number: the chance of so large a difference if there were none,
    and 1 where nothing is known.
    """
    pair = found.get((key(one), key(other)))
    if pair is not None:
        return pair.word in (FASTER, SLOWER)
    means = [mean_of_result(cell, measured.statistics.times) for cell in (one, other)]
    if means[0] is None or means[1] is None:
        return 1.0
    return chance_of_none(intervals.difference(means[0], means[1]))


def _decide(rows: list[Row]) -> None:
    """Counts in place which pairs of each row are decided; pairs of two places share one error rate."""
    pairs = [pair for row in rows if row["network"] != EVERY for pair in row["compared"]]
    apart = sum(not isinstance(pair["differ"], bool) for pair in pairs)
    for pair in pairs:
        differ = pair["differ"]
        pair["decided"] = differ if isinstance(differ, bool) else differ <= ERROR / apart
    for row in rows:
        own = [pair for pair in row.pop("compared") if pair["decided"]]
        for what in ("same", "apart", "decided"):
            row[f"{what}_pairs"] = sum(bool(pair[what]) for pair in own)


def _of_all(networks: list[Row], both: pd.DataFrame) -> Row:
    row = {
        "pairs": sum(entry["pairs"] for entry in networks),
        "compared": [pair for entry in networks for pair in entry["compared"]],
        "points": len(both),
        "frameworks": both["framework"].nunique(),
    } | dict.fromkeys(("their_order", "our_order", "our_frameworks"), "")
    too_few = f"too few: {plural(len(both), 'time')} for the same threads"
    return row | _tau(both["theirs"], both["ours"], too_few)


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


def _why(row: Row) -> tuple[str, ...]:
    if not row["pairs"]:
        return ("fewer than two frameworks in common",)
    left = row["pairs"] - row["decided_pairs"]
    undecided = (f"{left} of {plural(row['pairs'], 'pair')} not decided",) if left else ()
    apart = row["apart_pairs"]
    return (*undecided, *([f"{apart} of {row['decided_pairs']} {APART}"] if apart else []))


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def draw(both: pd.DataFrame, inputs: Inputs, *told: str) -> tuple[pd.DataFrame, Figure]:
    """Returns the points (`points`, paper, short) and the figure; the sentences of `told` are among its notes."""
    frameworks, catalogue, measured = inputs.frameworks, inputs.networks, inputs.measured
    with figures.canvas(height=4.6) as (drawing, axes):
        if len(both):
            _frame(axes, both)
            _points(axes, both, frameworks, catalogue)
        line = "points of one network and framework are joined, one for each number of threads"
        figures.headings(axes, "Our times against the papers'", [line])
        axes.set_xlabel("time per mini-batch as printed (s)")
        axes.set_ylabel("time per mini-batch here (s)")
        _network_keys(axes, both, catalogue)
        words = [] if len(both) else [f"Nothing is drawn: {NOTHING}."]
        words += ["Outlined: GPUs."] if "gpu" in set(both["device"]) else []
        words += [times.SOME_OTHER_SCRIPTS] if told else []
        notes = [
            "PyTorch is taken for Torch. The paper's shortest time where several of its machines have one.",
            *_other_batches(both, catalogue),
            *told,
            *origin(measured),
        ]
        figures.caption(drawing, " ".join(words), notes, _handles(both, frameworks), 3)
    return both, drawing


def _frame(axes: Axes, both: pd.DataFrame) -> None:
    limits = [both["theirs"].min() / 1.8, both["theirs"].max() * 1.8]
    heights = [both["ours"].min() / 1.8, both["ours"].max() * 1.8]
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=heights)
    figures.plain_logarithms(axes.xaxis)
    figures.plain_logarithms(axes.yaxis)
    for ratio, name in RATIOS:
        ends = [max(limits[0], heights[0] * ratio), min(limits[1], heights[1] * ratio)]
        if ends[0] >= ends[1]:
            continue
        grey: dict[str, Any] = {"color": figures.GREY, "linewidth": 1, "linestyle": ":"}
        axes.plot(ends, [end / ratio for end in ends], **grey, zorder=1)
        style = {"ha": "right", "va": "top", "color": "#6A6A6A", "path_effects": figures.HALO}
        figures.say(axes, name, (ends[1], ends[1] / ratio), (-4, -4), **style)


def _points(
    axes: Axes, both: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]
) -> None:
    """Draws the points, with the colour of their framework and the marker of their network."""
    markers = _markers(both, catalogue)
    for (_, network, name, device), line in both.sort_values("threads").groupby(LINE, sort=False):
        colour = frameworks.lineage(name).colour
        style: dict[str, Any] = {
            "color": colour,
            "marker": markers[network],
            "linewidth": 1,
            "markersize": 5.5,
        }
        face = colour if device == "cpu" else "white"
        axes.plot(line["theirs"], line["ours"], **style, markerfacecolor=face, zorder=3)


def _markers(both: pd.DataFrame, catalogue: dict[str, Any]) -> dict[str, str]:
    networks = sorted(both["network"].unique(), key=list(catalogue).index)
    return dict(zip(networks, cycle(MARKERS), strict=False))


def _network_keys(axes: Axes, both: pd.DataFrame, catalogue: dict[str, Any]) -> None:
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "", "markersize": 5.5}
    keys = [
        figures.key(catalogue[network]["label"], marker=marker, **grey)
        for network, marker in _markers(both, catalogue).items()
    ]
    axes.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.01, 1.02), labelspacing=0.7)


def _other_batches(both: pd.DataFrame, catalogue: dict[str, Any]) -> list[str]:
    """Returns a sentence on the networks whose mini-batch here is not the paper's."""
    other = both[both["theirs_batch"] != both["ours_batch"]].drop_duplicates("network")
    names = [
        f"{catalogue[row['network']]['label']} {row['ours_batch']} for {row['theirs_batch']}"
        for row in other.to_dict("records")
    ]
    return [f"Other mini-batches here than printed: {', '.join(names)}."] if names else []


def _handles(both: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    lineages = [frameworks.lineage(name) for name in both["framework"].unique()]
    return [
        figures.key(framework.label, color=framework.colour, linewidth=3)
        for framework in sorted(lineages, key=lambda framework: framework.order)
    ]
