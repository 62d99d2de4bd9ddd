"""Table and figure of the memory that training takes, by mini-batch size, and of the sizes that would fit a GPU."""

from statistics import linear_regression
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import common, curves
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import LINE
from steptime.render import figures
from steptime.render.columns import dash, laid_out
from steptime.render.tables import TEXT, Entry
from steptime.render.words import origin, significant, why

COLUMNS = [*LINE, "network_label", "framework", "framework_label", "batch", "status", "reason"]
COLUMNS += ["peak_memory_bytes", "memory_of", "fixed_bytes", "sample_bytes", "no_line"]
TYPES = {"memory_of": TEXT, "no_line": TEXT}
ONE_SIZE = (
    "one mini-batch size was measured, and a line needs two: more under figure_batches of the grid"
)
FLAT = "memory does not grow between the sizes that were measured, so no line tells where it ends"
# How many times the largest size that was measured a line is believed.
FAR = 4
TOO_FAR = (
    f"the line reaches it above {FAR} times the sizes that were measured, where it is no evidence"
)
PANEL_INCHES = 2.7
NOTES = (
    "On CPUs: the most resident memory of the worker's process up to its last sample: arrays, workspaces, and the "
    "framework's own code, which no GPU holds. A framework's workspaces on a GPU are others. On a GPU: the most of "
    "its own memory that came to be used, by NVML, with what CUDA takes for itself.",
    "Largest mini-batch: where the straight line through the sizes that were measured reaches a limit. It was not "
    "run; ≥ and < are sizes that were.",
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; bytes) and the layout."""
    data = lines_of(inputs)
    common.describe(inputs, *NOTES)
    return data, _layout(data, limits_of(inputs))


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: a panel for each network that has several mini-batch sizes.

    Where none has, a panel for each network. A GPU's memory is a limit of GPUs alone.
    """
    return draw(lines_of(inputs), limits_of(inputs), inputs, [NOTES[0], *origin(inputs.measured)])


def draw(
    data: pd.DataFrame, limits: dict[str, float], inputs: Inputs, notes: list[str]
) -> tuple[pd.DataFrame, figures.Drawing]:
    """Returns the rows that are drawn and the drawing."""
    known = data[data["peak_memory_bytes"].notna()]
    several = known.groupby("network_label")["batch"].transform("nunique") > 1
    drawn = known[several] if several.any() else known
    on_gpu = drawn["memory_of"].eq("the GPU")
    labels = list(dict.fromkeys(drawn["network_label"]))
    styles = curves.styles_of(drawn, inputs.frameworks, "framework_label")
    own_axes = {"sharex": False, "sharey": False}
    with figures.panels(len(labels), PANEL_INCHES, 0.8, 2, **own_axes) as (drawing, panels):
        for label, axes in zip(labels, panels, strict=False):
            own = drawn[drawn["network_label"] == label]
            _panel(axes, own, limits if on_gpu.any() else {}, styles)
            axes.set_title(label, fontsize=9.5)
        for axes in panels[::2]:
            axes.set_ylabel("most memory (GiB), less is better")
        figures.title(drawing, inputs.entry["title"])
        words = (
            "" if on_gpu.all() else "On CPUs: the process's memory, with the framework's own code."
        )
        figures.caption(drawing, words, notes, curves.keys(styles), 3)
    return drawn, drawing


def limits_of(inputs: Inputs) -> dict[str, float]:
    """Returns the memory of each GPU of the paper by its name, in GiB; where the paper says GB, it means GiB."""
    printed, platforms = inputs.printed, inputs.catalogue["platforms"]
    gpus = {name: known["name"] for name, known in platforms.items() if known["device"] == "gpu"}
    rows = printed[(printed["column"] == "Memory") & printed["platform"].isin(gpus)]
    return {gpus[row["platform"]]: row["number"] for row in rows.to_dict("records")}


def lines_of(inputs: Inputs) -> pd.DataFrame:
    """Returns one row (COLUMNS) for each cell, with the line of memory over the mini-batch, by least squares, that it
    is on.

    Memory is the most that the process took; on a GPU, the most of the GPU's. `fixed_bytes` is the line at no sample,
    `sample_bytes` what each sample adds; `no_line` says why there is no line.
    """
    cells = common.whole(inputs.measured.cells)
    on_gpu = cells["device"] == "gpu"
    taken = cells["peak_device_memory_bytes"].where(on_gpu, cells["peak_memory_bytes"])
    cells["peak_memory_bytes"] = taken.astype(float).where(cells["status"] == "ok")
    cells["memory_of"] = on_gpu.map({True: "the GPU", False: "the process"})
    rows = common.labelled(cells, inputs.frameworks, inputs.networks)
    lines = [_with_line(group) for _, group in rows.groupby(LINE, sort=False, dropna=False)]
    return pd.concat(lines)[COLUMNS] if lines else pd.DataFrame(columns=COLUMNS)


def _with_line(rows: pd.DataFrame) -> pd.DataFrame:
    known = rows[rows["peak_memory_bytes"].notna()]
    line: dict[str, Any] = {"fixed_bytes": None, "sample_bytes": None, "no_line": ""}
    if known.empty:
        line["no_line"] = why(rows.iloc[0])
    elif known["batch"].nunique() < 2:
        line["no_line"] = ONE_SIZE
    else:
        # Without a linear algebra library, which rounds otherwise on another processor.
        slope, fixed = linear_regression(list(known["batch"]), list(known["peak_memory_bytes"]))
        flat = slope <= 0
        line |= {"no_line": FLAT} if flat else {"fixed_bytes": fixed, "sample_bytes": slope}
    return rows.assign(**line)


def _layout(data: pd.DataFrame, limits: dict[str, float]) -> pd.DataFrame:
    headings = [("Measured", "mini-batches"), ("Measured", "GiB"), ("Line", "none, GiB")]
    headings += [("Line", "each sample, MiB")]
    what = "Largest in as much as a GPU has"
    headings += [(what, f"{gib:g} GiB ({name})") for name, gib in limits.items()]
    lines = []
    for _, rows in data.groupby(LINE, sort=False, dropna=False):
        first = rows.iloc[0]
        name = (first["network_label"], first["framework_label"], common.place_of(first))
        entries = _entries(rows.sort_values("batch"), limits)
        lines.append((name, dict(zip(headings, entries, strict=True))))
    return laid_out(lines, ["Network", "Framework", "Place"], headings)


def _entries(rows: pd.DataFrame, limits: dict[str, float]) -> list[Entry]:
    known, line = rows[rows["peak_memory_bytes"].notna()], rows.iloc[0]
    batches = ", ".join(str(batch) for batch in rows["batch"])
    taken = ", ".join(significant(value / 2**30) for value in known["peak_memory_bytes"])
    entries = [Entry(batches), Entry(taken, kind="ours") if taken else dash(line["no_line"])]
    if line["no_line"]:
        entries += [dash(line["no_line"])] * 2
    else:
        fixed, sample = line["fixed_bytes"] / 2**30, line["sample_bytes"] / 2**20
        entries += [Entry(significant(fixed).replace("-", "−")), Entry(significant(sample))]
    return entries + [_largest(known, line, gib) for gib in limits.values()]


def _largest(known: pd.DataFrame, line: pd.Series, gib: float) -> Entry:
    """Returns the largest mini-batch by the line; without a line, or far beyond what was measured, a bound."""
    if known.empty:
        return dash(line["no_line"])
    if not line["no_line"]:
        largest = int((gib * 2**30 - line["fixed_bytes"]) // line["sample_bytes"])
        if largest <= FAR * known["batch"].max():
            return Entry(f"{largest:,}") if largest > 0 else dash("not even one sample")
    held = known.loc[known["peak_memory_bytes"] <= gib * 2**30, "batch"]
    text = f"≥ {held.max():,}" if len(held) else f"< {known['batch'].min():,}"
    return Entry(text, ((line["no_line"] or TOO_FAR).rstrip("."),))


def _panel(axes: Axes, rows: pd.DataFrame, limits: dict[str, float], styles: curves.Styles) -> None:
    figures.batch_axis(axes, sorted(rows["batch"].unique()))
    if limits:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for name, gib in limits.items():
        axes.axhline(gib, color=figures.GREY, linewidth=0.8, linestyle="--", zorder=1)
        text, at = f"memory of a GPU: {name}, {gib:g} GiB", (axes.get_xlim()[0], gib)
        figures.say(axes, text, at, (3, 2), fontsize=6.5, color=figures.GREY)
    known = rows.assign(gib=rows["peak_memory_bytes"] / 2**30)
    within = [name for name in LINE if name in ("platform", "threads", "devices", "exchange")]
    curves.draw(axes, known, "batch", "gib", styles, "framework_label", within)
    if not limits:
        axes.set_ylim(bottom=0)
