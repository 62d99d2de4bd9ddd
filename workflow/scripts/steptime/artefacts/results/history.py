"""Table and figure of a network through a framework's versions: its time, start, memory and vector registers."""

from collections import Counter
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import startup
from steptime.environments.libraries import registers
from steptime.plan.cell import IDENTITY, PLACE
from steptime.reading import InputError
from steptime.render import figures
from steptime.render.columns import Column
from steptime.render.tables import FLAG, TEXT
from steptime.render.words import (
    mark_notes,
    marked,
    origin,
    plural,
    processes,
    significant,
    version_order,
    why,
)

COLUMNS = ["series", "version", "place", *IDENTITY, "network_label", "framework", "status"]
COLUMNS += ["reason", "marks", "seconds", "low", "high", "newest_seconds", "ratio", "released"]
COLUMNS += ["startup_seconds", "peak_memory_bytes", "vector", "at_run_time"]
TYPES = dict.fromkeys(["series", "version", "place", "released", "vector"], TEXT)
TYPES |= {"at_run_time": FLAG}
# Colours of Okabe and Ito (Color Universal Design, 2008); networks of one family are alike.
DRAWN = {
    "FCN": ("#0072B2", "#56B4E9"),
    "CNN": ("#D55E00", "#E69F00"),
    "RNN": ("#009E73", "#8FD3B6"),
    "Transformer": ("#CC79A7", "#7F4A6B"),
}
# For networks of another family, such as users' own.
OTHER = ("#000000", "#777777")
MARKERS = ("o", "s", "^", "D")
PANEL_INCHES = 2.1
# What is drawn of each version, from left to right, with the number that its bytes are divided by.
DRAWN_COLUMNS = {
    "ratio": ("time ÷ newest", 1),
    "startup_seconds": ("start (s)", 1),
    "peak_memory_bytes": ("memory (MiB)", 2**20),
}
# How full a marker is: the wider the registers, the fuller.
FILLED = {"SSE": 0.0, "AVX": 0.35, "AVX2": 0.35, "AVX-512": 1.0}
REGISTERS = {"SSE": "128 bits", "AVX2": "256 bits", "AVX-512": "512 bits"}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; seconds, bytes) of each platform's highest thread count, and the layout.

    A series is a framework with two environments or more, in one mode where an environment has several. `place` counts
    its versions from 0; `ratio` divides the time by the newest version's. Raises InputError where there is no series.
    """
    measured, frameworks = inputs.measured, inputs.frameworks
    cells = common.whole(measured.cells)
    cells["released"] = cells["environment"].map(inputs.releases)
    begun = startup.medians(inputs)
    begun = begun.rename(columns={"total_seconds": "startup_seconds"})
    cells = cells.merge(begun[[*IDENTITY, "startup_seconds"]], on=IDENTITY, how="left")
    cells = common.of_most_threads(common.labelled(cells, frameworks, inputs.networks))
    several = cells.groupby("environment")["mode"].transform("nunique") > 1
    by_mode = several.groupby(cells["framework"]).transform("any")
    labels = cells["framework"].map(lambda name: frameworks[name].label)
    data = cells.assign(
        series=labels.where(~by_mode, labels + ", " + cells["mode"]),
        version=cells["environment"].str.rpartition("-")[2],
        marks=cells["marks"].str.join(", "),
        order=cells["environment"].map(version_order),
    )
    orders = data.groupby("series")["order"]
    data["place"] = orders.transform(lambda order: pd.factorize(order, sort=True)[0]).astype(int)
    data = data[orders.transform("nunique") > 1]
    if data.empty:
        raise InputError(
            "No framework of this grid has two versions: add an older environment to the grid."
        )
    data = data.sort_values(["series", "place"], kind="stable")
    like = ["series", *PLACE]
    newest = data[data["seconds"].notna()].groupby(like)["seconds"].last().rename("newest_seconds")
    data = data.merge(newest, on=like, how="left")
    data["ratio"] = data["seconds"].astype(float) / data["newest_seconds"].astype(float)
    common.describe(
        inputs,
        "Released: the day on which the index of packages had the version's first file. Start: seconds from the import "
        "to the end of the first step. Memory: the most that the process held at a time. Registers: the widest that "
        "the framework's compiled libraries multiply in; at run time: some of them can make code while they run.",
        processes(measured.cells),
    )
    return data.reindex(columns=COLUMNS), _layout(data)


LINES = [
    Column("time (s)", "seconds", significant, why, "ours", marked),
    common.number("÷ newest", "ratio", kind="ratio"),
    common.number("start (s)", "startup_seconds"),
    common.number("memory (MiB)", "peak_memory_bytes", 2**-20, 3),
]
NAMES = ["Framework", "Platform", "Version", "Released", "Registers"]


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    groups = []
    for (series, platform), of_series in data.groupby(["series", "platform"], sort=False):
        for version, rows in of_series.groupby("version", sort=False):
            records = rows.to_dict("records")
            known = next((row for row in records if row["vector"]), records[0])
            day = "" if pd.isna(known["released"]) else known["released"]
            groups.append(((series, platform, version, day, registers(known)), records))
    return common.stacked(groups, LINES, NAMES, map(common.of_network, data.to_dict("records")))


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the figure: a line of panels for each series, a line for each network."""
    data = inputs.table[0]
    styles = _styles(data, inputs.networks)
    days = pd.to_datetime(data["released"])
    years = days.dt.year + (days.dt.day_of_year - 1) / 365.25
    unknown = data["released"].isna().groupby(data["series"]).transform("any")
    # A version is at its day, in years, or at its number where a day of the series is not known.
    data = data.assign(at=years.where(~unknown, data["place"]).astype(float))
    panels = list(data.groupby(["series", "platform"], sort=False))
    height = 0.6 + PANEL_INCHES * len(panels)
    shared: dict[str, Any] = {"sharex": "row", "sharey": "col", "squeeze": False}
    with figures.canvas(len(panels), len(DRAWN_COLUMNS), height, **shared) as (drawing, axes):
        for line, ((series, platform), rows) in zip(axes, panels, strict=True):
            label = series if data["platform"].nunique() == 1 else f"{series}, {platform}"
            for ax, (column, (words, divisor)) in zip(line, DRAWN_COLUMNS.items(), strict=True):
                values = rows[column].astype(float) / divisor
                _panel(ax, rows.assign(drawn=values), styles)
                ax.set_title(f"{label}: {words}", fontsize=8)
            line[0].axhline(1, color="#222222", linewidth=0.8, zorder=1)
        for ax in axes[0]:
            ax.set_yscale("log")
            figures.plain_logarithms(ax.yaxis)
        dated = data[data["released"].notna()]["at"]
        for ax, (_, rows) in zip(axes[:, 0], panels, strict=True):
            _place_axis(ax, rows, dated)
        threads = ", ".join(plural(int(count), "thread") for count in data["threads"].unique())
        figures.title(drawing, f"The same networks through the versions of a framework, {threads}")
        handles = curves.keys(styles)
        grey: dict[str, Any] = {"color": "#444444", "marker": "o", "linestyle": ""}
        handles += [
            figures.key(words, **grey, markerfacecolor=_filled("#444444", FILLED[vector]))
            for vector, words in REGISTERS.items()
        ]
        words = figures.starred(data, "Above 1, the older version is slower; less is better.")
        figures.caption(drawing, words, [*_notes(data), *origin(inputs.measured)], handles, 5)
    return data.drop(columns="at"), drawing


def _place_axis(ax: Axes, rows: pd.DataFrame, dated: pd.Series) -> None:
    """Labels the axis with years where all days of the series are known, else with the names of its versions."""
    if rows["released"].notna().all():
        ax.set_xlim(dated.min() - 0.4, dated.max() + 0.4)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        return
    versions = rows.drop_duplicates("place")
    ax.set_xticks(versions["place"], versions["version"])
    ax.set_xlim(-0.4, rows["place"].max() + 0.4)


def _filled(colour: str, share: float) -> tuple[float, ...]:
    """Returns a colour mixed with white; `share` is the colour's part."""
    return tuple(1 - share * (1 - part) for part in to_rgb(colour))


def _styles(data: pd.DataFrame, catalogue: dict[str, Any]) -> curves.Styles:
    """Returns colour and marker of each network, by its label."""
    names = dict(zip(data["network_label"], data["network"], strict=True))
    count, styles = Counter[str](), {}
    for at, (label, name) in enumerate(names.items()):
        entry = catalogue[name]
        family = entry.get("family") or catalogue[entry["variant_of"]]["family"]
        colours = DRAWN.get(family, OTHER)
        colour = colours[count[family] % len(colours)]
        styles[label] = {"color": colour, "marker": MARKERS[at % len(MARKERS)]}
        count[family] += 1
    return styles


def _panel(ax: Axes, rows: pd.DataFrame, styles: curves.Styles) -> None:
    for label, style in styles.items():
        timed = rows[(rows["network_label"] == label) & rows["ratio"].notna()]
        ax.plot(timed["at"], timed["drawn"], color=style["color"], linewidth=1.1, zorder=2)
        for row in timed.to_dict("records"):
            face = _filled(style["color"], FILLED.get(row["vector"], 1.0))
            ax.plot(row["at"], row["drawn"], **style, markerfacecolor=face, markersize=4, zorder=3)
    figures.stars(ax, rows[rows["ratio"].notna()], "at", "drawn")


def _notes(data: pd.DataFrame) -> list[str]:
    notes = [
        "Times are divided by that of the newest version that has one. A version "
        "is at the day of its release; where no day is known, in its order. The wider the registers in which "
        "the compiled code multiplies, the fuller the marker; a hollow one is a build without AVX."
    ]
    untimed = data[data["seconds"].isna()]
    named = data.assign(framework_label=data["series"] + " " + data["version"])
    missing = curves.not_drawn(
        untimed, lambda row: f"{row['series']} {row['version']}", at="network_label"
    )
    return [*notes, *mark_notes(named), *missing]
