"""The share of the machine's peak that every network reaches in every framework, as a table and a roofline figure."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shared.precisions import USUAL, marked
from steptime import networks
from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.render import figures, words
from steptime.render.columns import Column, Row, columns, dash
from steptime.render.frameworks import Frameworks
from steptime.render.tables import COUNT, FLAG, TEXT
from steptime.render.words import (
    machine_name,
    mark_notes,
    origin,
    plural,
    processes,
    remarks,
    significant,
    why,
)
from steptime.statistics.words import FASTEST

COLUMNS = [*common.NAMED, "marks", "seconds", "low", "high", "flops_per_step", "bytes_per_step"]
COLUMNS += ["intensity", "flops_per_second", "peak_flops_per_second", "peak_bytes_per_second"]
COLUMNS += ["share_of_peak", "no_peak", "peak_disturbed", "best"]
TYPES = {
    "no_peak": TEXT,
    "flops_per_step": COUNT,
    "bytes_per_step": COUNT,
    "peak_disturbed": FLAG,
    "best": FLAG,
}
LOW_PEAK = (
    "measured while other programs, or other guests of the host, had CPU time, so it may be too low: `make again` "
    "measures it once more"
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; times in seconds, speeds per second) and the layout."""
    data = shares(inputs)
    common.describe(
        inputs,
        "Operations per step follow from the specification: 2 for each multiply-add of the matrix products and "
        "convolutions, forward and backward. Element-wise work counts for nothing, and an algorithm that needs fewer "
        "operations (Winograd's convolution) counts as if it needed them all.",
        "Operations per byte: operations divided by the least bytes that a step must move through memory when every "
        "layer touches each of its arrays once, a model of the specification (Williams et al. 2009). The true number "
        "is lower.",
        "The peak is that of a library's matrix product, measured by the rule `peak`; it is not a data sheet's number, "
        "and a share may be over 100 %. Bold: shown to be the fastest.",
        processes(inputs.measured.cells),
    )
    inputs.page.facts += _peak_facts(inputs.peaks)
    return data, columns(data, SHOWN, INDEX, common.PLACES)


def shares(inputs: Inputs) -> pd.DataFrame:
    rows, catalogue, peaks = common.cells_of(inputs), inputs.networks, inputs.peaks
    specs = {name: networks.specify(name, catalogue) for name in rows["network"].unique()}
    shown = [_row(cell, specs[cell["network"]], peaks) for cell in rows.to_dict("records")]
    return pd.DataFrame(shown, columns=COLUMNS)


def _row(cell: Row, spec: dict[str, Any], peaks: dict[str, Any]) -> Row:
    flops = networks.flops_per_step(spec, cell["batch"])
    moved = networks.bytes_per_step(spec, cell["batch"], cell["precision"])
    peak, no_peak = _peak_of(cell, peaks)
    timed = cell["status"] == "ok" and pd.notna(cell["seconds"])
    speed = flops / cell["seconds"] if timed else None
    return {name: cell[name] for name in COLUMNS if name in cell} | {
        "marks": ", ".join(cell["marks"]),
        "flops_per_step": flops,
        "bytes_per_step": moved,
        "intensity": flops / moved,
        "flops_per_second": speed,
        "peak_flops_per_second": peak.get("flops_per_second"),
        "peak_bytes_per_second": peak.get("bytes_per_second"),
        "share_of_peak": speed / peak["flops_per_second"] if speed and peak else None,
        "no_peak": no_peak,
        "peak_disturbed": peak.get("disturbed", False),
        "best": cell["word"] == FASTEST,
    }


def _peak_of(cell: Row, peaks: dict[str, Any]) -> tuple[Row, str]:
    """Returns the peak that a cell is compared with, or {} and why there is none."""
    platform = cell["platform"]
    machine = machine_name(platform)
    if platform not in peaks:
        return {}, f"no peak of {machine} is measured"
    if cell["machine_id"] != peaks[platform]["machine_id"]:
        return {}, (
            f"the peak of {machine} is another machine's: on the one that measured the results, run "
            f"`rm results/peaks/{platform}.json && snakemake steptime_efficiency`"
        )
    known = peaks[platform]["threads"].get(str(cell["threads"]))
    if known:
        peak = _in_precision(known, cell["precision"])
        return peak, "" if peak else f"no peak of {cell['precision']} is known of {machine}"
    if reason := peaks[platform].get("reason"):
        return {}, f"the peak of {machine} is not known: {reason}"
    return {}, f"no peak of {machine} is measured for {plural(cell['threads'], 'thread')}"


def _in_precision(known: Row, precision: str) -> Row:
    """Returns a peak whose products have this precision and not float32; {} where none was measured."""
    if precision == USUAL:
        return known
    speed = known.get("precisions", {}).get(precision)
    return known | {"flops_per_second": speed} if speed else {}


def _peak_facts(peaks: dict[str, Any]) -> list[str]:
    return [
        f"Peak of {words.machine_name(platform)} with {plural(int(threads), 'thread')}: "
        f"{significant(known['flops_per_second'] / 1e9)} GFLOP/s (matrix product of {known['product']} x "
        f"{known['product']} float32, {known['blas']}), {significant(known['bytes_per_second'] / 1e9)} GB/s (STREAM "
        f"{known['stream']})" + (f", {LOW_PEAK}." if known.get("disturbed") else ".")
        for platform, peak in peaks.items()
        for threads, known in peak["threads"].items()
    ]


def share_of(row: Row) -> Any:
    """Returns the share of the peak that a row reaches, or a dash with its reason."""
    if pd.notna(row["share_of_peak"]):
        return row["share_of_peak"]
    return dash(why(row) if pd.isna(row["flops_per_second"]) else row["no_peak"])


def percent(share: float) -> str:
    """Writes a share with two digits, above the peak with three: '0.56 %', '103 %'."""
    return f"{significant(100 * share, 2 if share < 1 else 3)} %"


def peak_remarks(row: Row) -> list[str]:
    """Returns the remarks of a row whose share of a peak is shown."""
    return [*remarks(row), *([f"of a peak that was {LOW_PEAK}"] if row["peak_disturbed"] else [])]


def gflops(value: float) -> str:
    """Writes a number of operations in units of 10^9."""
    return significant(value / 1e9)


SHOWN = [
    Column(("One step", "GFLOP"), "flops_per_step", gflops),
    Column(("One step", "FLOP per byte"), "intensity", lambda value: f"≤ {significant(value)}"),
    Column(common.by_threads("share of peak"), share_of, percent, "", "ours", peak_remarks, "best"),
    Column(common.by_threads("GFLOP/s"), "flops_per_second", gflops, why, "ours", remarks, "best"),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label"}


PANELS_IN_A_ROW = 2
PANEL_HEIGHT = 3.3
LEGEND_COLUMNS = 3
NEAR = 1.12  # networks whose intensities are nearer than this share a label


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the figure: a panel for each platform, thread count and precision."""
    data, peaks, frameworks = inputs.table[0], inputs.peaks, inputs.frameworks
    drawn = data[data["share_of_peak"].notna()]
    places = list(drawn.groupby(["platform", "threads", "precision"]))
    columns = min(PANELS_IN_A_ROW, max(1, len(places)))
    with figures.panels(len(places), PANEL_HEIGHT, 0.9, columns) as (drawing, panels):
        figures.title(drawing, "Roofline: the speed of a step, and what the machine can do")
        panels[0].set_ylabel("speed (GFLOP/s), more is better")
        for panel, ((platform, _, precision), here) in zip(panels, places, strict=False):
            known = peaks[platform]["threads"].items()
            own = {threads: _in_precision(peak, precision) for threads, peak in known}
            _panel(panel, here, drawn, own, frameworks)
        low = dict.fromkeys(
            f"The peak of {words.machine_name(platform)} with {plural(threads, 'thread')} was {LOW_PEAK}."
            for (platform, threads, _), _ in places
            if peaks[platform]["threads"][str(threads)].get("disturbed")
        )
        caption = "Roofs: the machine's own fastest matrix product and memory stream"
        caption += "; grey: with other thread counts." if len(places) > 1 else "."
        caption += " A peak was disturbed, so it may be too low." if low else ""
        notes = [*low, *_notes(data, inputs.measured)]
        handles = _handles(drawn, frameworks)
        figures.caption(drawing, figures.starred(drawn, caption), notes, handles, LEGEND_COLUMNS)
    return drawn, drawing


def _panel(
    axes: Axes, here: pd.DataFrame, drawn: pd.DataFrame, peaks: Row, frameworks: Frameworks
) -> None:
    """Draws this thread count's roof in black and its points, and other thread counts' roofs in grey."""
    highest = max(known["flops_per_second"] for known in peaks.values()) / 1e9
    top, lowest = 2 * highest, drawn["flops_per_second"].min() / 1e9
    # Below the lowest point there is room for the names of the networks.
    bottom = lowest / (top / lowest) ** 0.8
    ridges = [known["flops_per_second"] / known["bytes_per_second"] for known in peaks.values()]
    left = min(drawn["intensity"].min() / 2, min(ridges) / 2)
    right = drawn["intensity"].max() * 2.5
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    figures.plain_logarithms(axes.xaxis)
    figures.plain_logarithms(axes.yaxis)
    axes.set_xlabel("operations per byte of memory (FLOP/B)")
    place = here.iloc[0]
    for threads, known in peaks.items():
        _roof(axes, known, (left, right), int(threads) == place["threads"])
    rounded = marked(place["precision"], ", ")
    machine = words.machine_name(place["platform"])
    title = f"{machine}, {plural(place['threads'], 'thread')}{rounded}"
    axes.set_title(title, fontsize=9.5)
    for row in here.to_dict("records"):
        point = row["intensity"], row["flops_per_second"] / 1e9
        axes.plot(*point, **_style(row, drawn, frameworks), markersize=6, zorder=4)
    figures.stars(axes, here.assign(speed=here["flops_per_second"] / 1e9), "intensity", "speed")
    _network_labels(axes, here)


def _roof(axes: Axes, known: Row, limits: tuple[float, float], own: bool) -> None:
    flops, width = known["flops_per_second"] / 1e9, known["bytes_per_second"] / 1e9
    ridge = flops / width
    colour = "#222222" if own else "#BDBDBD"
    thick, order = (1.5, 3) if own else (1.0, 2)
    ends, roof = [limits[0], ridge, limits[1]], [limits[0] * width, flops, flops]
    axes.plot(ends, roof, color=colour, linewidth=thick, zorder=order)
    if own:
        text = f"{significant(flops)} GFLOP/s, {significant(width)} GB/s"
        style = {"color": colour, "path_effects": figures.HALO, "zorder": 5, "ha": "right"}
        figures.say(axes, text, (limits[1], flops), (-3, 4), **style)


def _network_labels(axes: Axes, here: pd.DataFrame) -> None:
    """Writes the networks' names upright at the foot of the panel, those of nearly the same intensity together."""
    intensities = here.groupby("network_label", sort=False)["intensity"].first().sort_values()
    near = intensities < NEAR * intensities.shift()
    style = {"ha": "center", "va": "bottom", "path_effects": figures.HALO, "zorder": 5}
    for _, group in intensities.groupby((~near).cumsum()):
        middle = math.exp(sum(map(math.log, group)) / len(group))
        figures.say(
            axes, ", ".join(group.index), (middle, axes.get_ylim()[0]), (0, 5), rotation=90, **style
        )


def _style(row: Row, drawn: pd.DataFrame, frameworks: Frameworks) -> Row:
    """Returns how a point looks: frameworks differ in colour and marker, their modes and environments in filling."""
    lines = drawn.loc[drawn["framework"] == row["framework"], "framework_label"].unique().tolist()
    turn = lines.index(row["framework_label"])
    return frameworks[row["framework"]].version(turn) | {"linestyle": ""}


def _handles(drawn: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    return [
        figures.key(row["framework_label"], **_style(row, drawn, frameworks))
        for row in drawn.drop_duplicates("framework_label").to_dict("records")
    ]


def _notes(data: pd.DataFrame, measured: Measured) -> list[str]:
    notes = [
        "Operations per byte are an upper limit: every layer touches each of its "
        "arrays once. Mini-batches: "
        + "; ".join(
            f"{label} {', '.join(map(str, sorted(rows['batch'].unique())))}"
            for label, rows in data.groupby("network_label", sort=False)
        )
        + "."
    ]
    missing = curves.not_drawn(
        data[data["share_of_peak"].isna()],
        lambda row: f"{row['framework_label']}, {row['network_label']}",
        words.why_or(lambda row: row["no_peak"]),
        "threads",
    )
    return [*notes, *missing, *mark_notes(data), *origin(measured)]
