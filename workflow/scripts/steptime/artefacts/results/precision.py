"""Table and figure of what fewer bits in products are worth in a framework: time, memory and error beside float32."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from shared.precisions import USUAL
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import startup
from steptime.plan.cell import IDENTITY
from steptime.render import figures, words
from steptime.render.columns import Column, Row, columns
from steptime.render.frameworks import Frameworks
from steptime.render.tables import TEXT
from steptime.render.words import significant, why, why_or
from steptime.statistics.ratios import to_bases

COLUMNS = [*common.NAMED, "seconds", "ratio", "low", "high", "peak_memory_bytes"]
COLUMNS += ["proven_loss", "proven_change", "unit", "pays", "marks"]
TYPES = {"unit": TEXT}
PLACE = [name for name in IDENTITY if name != "precision"]
NO_GAIN = "it is the framework's first mode, or not shown to be faster than that"
NOT_SHOWN = "the proof in full was not part of its runs"
NOTES = (
    "Times as fast: the time in float32 in the same framework and mode, divided by that in this precision, with the "
    "95 % interval of the ratio. Memory: the most of the process.",
    "Errors: the loss that is farthest from float64's, as a share of it, and the gradient that is farthest, as a share "
    "of its length, in the process that was timed.",
    "Compiling pays after: the seconds that building and the first step take more than in the framework's first mode, "
    "divided by what each step then takes less.",
)
PANEL_INCHES = 2.9
PANELS_IN_A_ROW = 2


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout: a row for each result, other precisions below float32."""
    data = rows_of(inputs)
    common.describe(inputs, *NOTES, words.processes(inputs.measured.cells))
    return data, columns(data, SHOWN, INDEX)


def rows_of(inputs: Inputs) -> pd.DataFrame:
    """Returns the tidy rows (COLUMNS). `ratio` is how many times as fast a result is as the same one in float32."""
    rows = common.cells_of(inputs).to_dict("records")
    usual = {_place(row): row for row in rows if row["precision"] == USUAL}
    bases = [usual.get(_place(row)) if row["precision"] != USUAL else None for row in rows]
    ratios = to_bases(rows, bases, inputs.measured.statistics.ratios)
    # The first run shows each gradient: of others, weights of float32 hide part of a change.
    starts = {
        tuple(row[name] for name in IDENTITY): row["total_seconds"] - row["import_seconds"]
        for row in startup.medians(inputs).to_dict("records")
    }
    runs = common.whole(inputs.measured.rows)
    runs = runs[runs["repeat"] == 1]
    shown = runs.groupby(IDENTITY, dropna=False)["proven_change"].max().to_dict()
    return pd.DataFrame(
        [
            row
            | {
                "unit": _unit(inputs, row),
                "pays": _pays(row, rows, starts),
                "marks": ", ".join(row["marks"]),
            }
            | {"proven_change": shown.get(tuple(row[name] for name in IDENTITY))}
            | dict(
                zip(("ratio", "low", "high"), ratio.interval if ratio else (None,) * 3, strict=True)
            )
            for row, ratio in zip(rows, ratios, strict=True)
        ],
        columns=COLUMNS,
    )


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: speed over the error of gradients, a panel for each network."""
    data = rows_of(inputs)
    drawn = data[data["seconds"].notna() & data["proven_change"].gt(0)]
    drawn = drawn.assign(speed=1 / drawn["seconds"])
    networks = list(drawn.groupby(["network_label", "threads"], sort=False))
    across = min(PANELS_IN_A_ROW, max(1, len(networks)))
    own = {"sharex": False, "sharey": False}
    with figures.panels(len(networks), PANEL_INCHES, 0.6, across, **own) as (drawing, panels):
        figures.title(drawing, "How fast at which error")
        for panel, (_, rows) in zip(panels, networks, strict=False):
            _panel(panel, rows, inputs.frameworks)
        handles = [
            figures.key(label, **_style(row, drawn, inputs.frameworks))
            for row in drawn.drop_duplicates(["framework", "mode"]).to_dict("records")
            for label in [row["framework_label"].removesuffix(f", {row['precision']}")]
        ]
        said = "A line joins a framework's two precisions. Up is faster, left is nearer to float64."
        notes = [*NOTES[1:], *words.mark_notes(drawn), *words.origin(inputs.measured)]
        figures.caption(drawing, figures.starred(drawn, said), notes, handles, 3)
    return drawn, drawing


def _panel(axes: Axes, rows: pd.DataFrame, frameworks: Frameworks) -> None:
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("error of gradients (share of their length)")
    axes.set_ylabel("mini-batches a second")
    axes.set_title(common.of_network(rows.iloc[0]), fontsize=9.5)
    figures.plain_logarithms(axes.xaxis, LogLocator(numticks=6))
    figures.plain_logarithms(axes.yaxis)
    for _, both in rows.groupby(["environment", "mode"], sort=False):
        style = _style(both.iloc[0].to_dict(), rows, frameworks) | {"linestyle": "-"}
        own = both.sort_values("proven_change")
        axes.plot(own["proven_change"], own["speed"], **style, linewidth=0.8, markersize=6)
    axes.margins(0.15)
    figures.stars(axes, rows, "proven_change", "speed")


def _style(row: Row, drawn: pd.DataFrame, frameworks: Frameworks) -> Row:
    """Returns how a point looks: frameworks differ in colour and marker, modes of one only in filling."""
    modes = drawn.loc[drawn["framework"] == row["framework"], "mode"].unique().tolist()
    return frameworks[row["framework"]].version(modes.index(row["mode"])) | {"linestyle": ""}


def _place(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in PLACE)


def _pays(row: Row, rows: list[Row], starts: dict[tuple[object, ...], float]) -> float | None:
    """Returns after how many steps a mode has made up for its longer start; None where no gain is shown."""
    alike = [name for name in IDENTITY if name != "mode"]
    first = next(each for each in rows if all(each[name] == row[name] for name in alike))
    known = [each["low"] is not None and pd.notna(each["low"]) for each in (first, row)]
    if not all(known) or not row["high"] < first["low"]:
        return None
    began = [starts[tuple(each[name] for name in IDENTITY)] for each in (first, row)]
    more = max(0.0, began[1] - began[0])
    return math.ceil(more / (first["seconds"] - row["seconds"])) if more == more else None


def _unit(inputs: Inputs, row: Row) -> str | None:
    """Returns the CPU's unit that multiplied, as the framework's worker found it; None of float32."""
    known = inputs.measured.software.get(row["environment"], {}).get("settings", {})
    return known.get(f"{row['platform']}, {row['mode']}", {}).get(row["precision"])


SHOWN = [
    Column("Seconds", "seconds", significant, why, "ours", words.marked),
    Column("Times as fast as float32", common.ratio_of, str, kind="ours"),
    common.number("Memory, MB", "peak_memory_bytes", 1e-6, 3),
    Column(
        "Error of the loss",
        "proven_loss",
        lambda value: significant(value, 2),
        why_or(NOT_SHOWN),
        "ours",
    ),
    Column(
        "Error of gradients",
        "proven_change",
        lambda value: significant(value, 2),
        why_or(NOT_SHOWN),
        "ours",
    ),
    Column("Unit", "unit", str),
    Column("Compiling pays after, steps", "pays", lambda steps: f"{steps:.0f}", why_or(NO_GAIN)),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label", "Place": common.place_of}
