"""The same network through the versions of each framework, as a table and a figure."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY, PLACE
from steptime.reading import InputError
from steptime.render import figures, tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    facts,
    plural,
    processes,
    raw_data,
    significant,
    status_reason,
    version_order,
)

COLUMNS = [
    "series",
    "version",
    "place",
    *IDENTITY,
    "network_label",
    "framework",
    "status",
    "reason",
]
COLUMNS += ["marks", "seconds", "low", "high", "newest_seconds", "ratio", "vector"]
# Of Okabe and Ito (Color Universal Design, 2008); networks of one family are alike.
DRAWN = {
    "FCN": ("#0072B2", "#56B4E9"),
    "CNN": ("#D55E00", "#E69F00"),
    "RNN": ("#009E73", "#8FD3B6"),
}
MARKERS = ("o", "s", "^", "D")
PANELS = 3
PANEL_INCHES = 2.5
BUILT_WITHOUT = "without AVX"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(inputs.measured, inputs.frameworks, inputs.networks, inputs.page)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the drawing."""
    return draw(inputs.table[0], inputs.networks)


def build(
    measured: Measured, frameworks: Frameworks, catalogue: dict[str, Any], page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS; seconds per mini-batch) and the layout; fills the page's facts and notes.

    A series is a framework of which at least two environments have cells, in one mode where an environment has several;
    `place` counts its versions from 0, and `ratio` is the time divided by that of the newest version that has one.
    Rows are of each platform's highest thread count. Raises InputError where no framework has two versions.
    """
    cells = measured.cells.assign(
        network=[common.whole_name(cell) for cell in measured.cells.to_dict("records")]
    )
    cells = common.labelled(cells, frameworks, catalogue)
    cells = cells[cells["threads"] == cells.groupby("platform")["threads"].transform("max")]
    several = cells.groupby("environment")["mode"].nunique().gt(1)
    rows = []
    for framework, of_framework in cells.groupby("framework", sort=False):
        by_mode = several[of_framework["environment"].unique()].any()
        for mode, of_series in (
            of_framework.groupby("mode", sort=False) if by_mode else [("", of_framework)]
        ):
            versions = sorted(of_series["environment"].unique(), key=version_order)
            if len(versions) < 2:
                continue
            label = frameworks[framework].label + (f", {mode}" if mode else "")
            for cell in of_series.to_dict("records"):
                place = versions.index(cell["environment"])
                version = cell["environment"].rpartition("-")[2]
                marks = ", ".join(cell["marks"])
                rows.append(
                    cell | {"series": label, "version": version, "place": place, "marks": marks}
                )
    if not rows:
        raise InputError(
            "No framework of this grid has two versions: add an older environment to the grid."
        )
    data = pd.DataFrame(rows).sort_values(["series", "place"], kind="stable")
    timed = data[data["seconds"].notna()]
    like = ["series", *PLACE]
    newest = timed.groupby(like)["seconds"].last().rename("newest_seconds")
    data = data.merge(newest, on=like, how="left")
    data["ratio"] = data["seconds"].astype(float) / data["newest_seconds"].astype(float)
    page.facts = facts(measured)
    page.notes = [processes(measured.cells), raw_data(measured)]
    return data.reindex(columns=COLUMNS), _layout(data)


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    networks = list(dict.fromkeys(zip(data["network_label"], data["batch"], strict=True)))
    body, index = [], []
    for (series, platform), of_series in data.groupby(["series", "platform"], sort=False):
        for version, rows in of_series.groupby("version", sort=False):
            cells = {(row["network_label"], row["batch"]): row for row in rows.to_dict("records")}
            for line in ("seconds", "ratio"):
                index.append(
                    (series, platform, version, "time (s)" if line == "seconds" else "÷ newest")
                )
                body.append([_entry(cells.get(network), line) for network in networks])
    return pd.DataFrame(
        body,
        index=pd.MultiIndex.from_tuples(index, names=["Framework", "Platform", "Version", ""]),
        columns=[f"{label}, batch {batch}" for label, batch in networks],
        dtype=object,
    )


def _entry(row: dict[str, Any] | None, line: str) -> Entry:
    if row is None:
        return Entry()
    if pd.isna(row["seconds"]):
        return (
            common.dash(status_reason(row["status"], row["reason"]))
            if line == "seconds"
            else Entry()
        )
    if line == "ratio":
        return Entry(significant(row["ratio"], 2), kind="ratio")
    return Entry(
        significant(row["seconds"]),
        tuple(MARK_WORDS[mark] for mark in row["marks"].split(", ") if mark),
        kind="ours",
    )


def draw(data: pd.DataFrame, catalogue: dict[str, Any]) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn and the figure: a panel for each series, a line for each network."""
    looks = _looks(data, catalogue)
    panels = list(data.groupby(["series", "platform"], sort=False))
    columns = min(PANELS, max(2, len(panels)))
    lines = -(-len(panels) // columns)
    with figures.canvas(lines, columns, height=0.6 + PANEL_INCHES * lines, sharex=False) as (
        drawing,
        axes,
    ):
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax, ((series, platform), rows) in zip(axes.flat, panels, strict=False):
            _panel(
                ax,
                series if data["platform"].nunique() == 1 else f"{series}, {platform}",
                rows,
                looks,
            )
        axes.flat[0].set_yscale("log")
        figures.plain_logarithms(axes.flat[0].yaxis)
        for ax in axes[:, 0] if lines > 1 else axes[:1]:
            ax.set_ylabel("time ÷ newest version's")
        threads = ", ".join(plural(int(count), "thread") for count in data["threads"].unique())
        title = f"The same networks through the versions of a framework, {threads}"
        figures.title(drawing, title)
        handles = [
            figures.key(label, color=colour, marker=marker)
            for label, (colour, marker) in looks.items()
        ]
        hollow = figures.key(
            BUILT_WITHOUT, color="#444444", marker="o", markerfacecolor="white", linestyle=""
        )
        figures.notes_below(drawing, _notes(data), [*handles, hollow], 4)
    return data, drawing


def _looks(data: pd.DataFrame, catalogue: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each network, by its label."""
    names = dict(zip(data["network_label"], data["network"], strict=True))
    count = dict.fromkeys(DRAWN, 0)
    looks = {}
    for at, (label, name) in enumerate(names.items()):
        entry = catalogue[name]
        family = entry.get("family") or catalogue[entry["variant_of"]]["family"]
        colours = DRAWN[family]
        looks[label] = (colours[count[family] % len(colours)], MARKERS[at % len(MARKERS)])
        count[family] += 1
    return looks


def _panel(ax: Axes, title: str, rows: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    versions = rows.drop_duplicates("place")
    for label, (colour, marker) in looks.items():
        timed = rows[(rows["network_label"] == label) & rows["ratio"].notna()]
        ax.plot(timed["place"], timed["ratio"].astype(float), color=colour, linewidth=1.3, zorder=2)
        for row in timed.to_dict("records"):
            face = "white" if BUILT_WITHOUT in row["marks"] else colour
            ax.plot(
                row["place"],
                row["ratio"],
                marker=marker,
                color=colour,
                markerfacecolor=face,
                markersize=5,
                zorder=3,
            )
    ax.axhline(1, color="#222222", linewidth=0.8, zorder=1)
    ax.set_xticks(versions["place"], versions["version"])
    ax.set_xlim(-0.4, rows["place"].max() + 0.4)
    ax.set_title(title, fontsize=9.5)


def _notes(data: pd.DataFrame) -> list[str]:
    notes = [
        "Each line is divided by the time of the newest version that has one: above 1, the older version is slower. "
        "Hollow: the compiled code multiplies in 128-bit registers, since it was built without AVX."
    ]
    reasons: dict[str, list[str]] = {}
    for row in data[data["seconds"].isna()].to_dict("records"):
        reason = status_reason(row["status"], row["reason"]).rstrip(".")
        reasons.setdefault(f"{row['series']} {row['version']}: {reason}", []).append(
            row["network_label"]
        )
    return notes + [f"{reason} ({', '.join(networks)})." for reason, networks in reasons.items()]
