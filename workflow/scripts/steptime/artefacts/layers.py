"""Where a step's time goes: each layer timed alone, as often as the network has it, beside the whole step."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from scipy.special import ndtri

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.render import figures
from steptime.render.columns import Row, dash, laid_out
from steptime.render.tables import Entry
from steptime.render.words import (
    mark_notes,
    marked,
    milliseconds,
    origin,
    percent,
    processes,
    why,
)

COLUMNS = [*common.NAMED, "marks", "layer", "times", "seconds", "low", "high", "share"]
# Of which a framework has one time for each layer.
PLACE = ["platform", "environment", "mode", "precision", "threads", "batch"]
BETWEEN, WHOLE = "between layers", "the whole step"
# Above this share between layers, such as of what a compiler joins, the layers alone explain nothing.
MOST_BETWEEN = 0.3
# So many layers of a bar have names, and an explanation so many differences.
DRAWN, NAMED = 6, 3
CHANCE = 0.05
NO_INTERVAL = "fewer than two undisturbed runs"
BAR_INCHES = 0.32
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
OTHERS = "other layers"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; seconds of all layers that are alike, with 95 % intervals) and the layout."""
    data = rows_of(inputs)
    common.describe(
        inputs,
        "Each layer is a network of its own, at its own size: a bias or a scale in front, so that its input has a "
        "gradient, then the layer with what follows it and has no weights, then a mean and a softmax. Its seconds are "
        "forward, backward and update, times how often the network has it, less half of what a scale and a softmax "
        "take alone at each of its ends. The last layer has the network's own loss in it.",
        "Between layers: the step less all of them, such as sums of branches. Below nought, layers take less time in "
        "the network than alone.",
        "Intervals are those of the parts, added as independent ones.",
        processes(inputs.measured.cells),
    )
    lines: dict[Any, dict[str, Entry]] = {}
    for row in data.to_dict("records"):
        line = lines.setdefault((common.of_network(row), row["layer"], row["times"]), {})
        line[row["framework_label"]] = _entry(row)
    named = [
        ((network, layer, f"{times}" if times else ""), entries)
        for (network, layer, times), entries in lines.items()
    ]
    return data, laid_out(named, ["Network", "Layer", "Times"], list(data["framework_label"]))


def rows_of(inputs: Inputs) -> pd.DataFrame:
    """The tidy rows (COLUMNS): of each network and framework its layers, what is between them, and the whole."""
    cells = common.cells_of(inputs)
    cells = cells.assign(marks=cells["marks"].map(", ".join))
    rows: list[Row] = []
    for _, own in cells.groupby([*PLACE[:-1]], sort=False):
        known = {row["network"]: row for row in own.to_dict("records")}
        for network in known:
            parts = {
                name: entry["part_of"]
                for name, entry in inputs.networks.items()
                if entry.get("part_of", {}).get("network") == network
            }
            if parts:
                rows += _of_network(known, network, parts)
    data = pd.DataFrame(rows, columns=COLUMNS)
    order = {name: at for at, name in enumerate(inputs.networks)}
    return data.sort_values("network", key=lambda names: names.map(order), kind="stable")


def _of_network(known: Mapping[str, Row], network: str, parts: dict[str, Any]) -> list[Row]:
    whole = known[network]
    layers = [_layer(known, whole, name, part) for name, part in parts.items() if part["times"]]
    total = whole | {"layer": WHOLE, "times": 0, "share": 1.0}
    between = whole | {"layer": BETWEEN, "times": 0} | dict.fromkeys(("seconds", "low", "high"))
    if lacking := [row for row in [whole, *layers] if pd.isna(row["seconds"])]:
        between |= {"status": "not asked for", "reason": f"no time: {why(lacking[0])}"}
    else:
        terms = [(1.0, whole), *((-1.0, row) for row in layers)]
        between |= _sum(terms)
    rows = [*layers, between]
    for row in rows:
        timed = pd.notna(row["seconds"]) and pd.notna(whole["seconds"])
        row["share"] = row["seconds"] / whole["seconds"] if timed else None
    return [*rows, total]


def _layer(known: Mapping[str, Row], whole: Row, name: str, part: dict[str, Any]) -> Row:
    """Returns the row of a layer, all of its kind together."""
    absent = {"status": "not asked for", "reason": f"no time of {name}"}
    used = [known.get(each, absent) for each in (name, *part["less"])]
    row = whole | {"layer": part["layer"], "times": part["times"]}
    row |= dict.fromkeys(("seconds", "low", "high")) | {"marks": used[0].get("marks", "")}
    for each in used:
        if each["status"] != "ok":
            return row | {"status": each["status"], "reason": each["reason"]}
    weights = [1.0, *(-share for share in part["less"].values())]
    terms = [(part["times"] * weight, each) for weight, each in zip(weights, used, strict=True)]
    return row | {"status": "ok", "reason": None} | _sum(terms)


def _sum(terms: list[tuple[float, Row]]) -> Row:
    """Returns seconds of a sum of independent results, with its interval; without one where a result has none."""
    seconds = math.fsum(weight * row["seconds"] for weight, row in terms)
    if any(pd.isna(row["low"]) for _, row in terms):
        return {"seconds": seconds, "low": None, "high": None}
    half = math.hypot(*(weight * (row["high"] - row["low"]) / 2 for weight, row in terms))
    return {"seconds": seconds, "low": seconds - half, "high": seconds + half}


def _entry(row: Row) -> Entry:
    if pd.isna(row["seconds"]):
        return dash(why(row))
    half = "" if pd.isna(row["low"]) else f" ± {milliseconds((row['high'] - row['low']) / 2)}"
    share = "" if row["layer"] == WHOLE else f", {percent(row['share'])}"
    text = f"{milliseconds(row['seconds'])}{half} ms{share}".replace("-", "−")
    return Entry(text, tuple(marked(row)), kind="ours")


def explained(data: pd.DataFrame, slow: str, fast: str) -> list[str]:
    """Says by which layers one of two environments takes longer, from the tidy rows of a network in both.

    Differences are shares of the faster one's step. Those are named whose interval is without nought; all intervals
    together are right in 95 % (Bonferroni).
    """
    sides = [
        data[data["environment"] == name].set_index(["layer", "times"]) for name in (slow, fast)
    ]
    wholes = [side.loc[(WHOLE, 0)] for side in sides]
    names = [f"{whole['framework_label']}" for whole in wholes]
    network = wholes[0]["network_label"]
    for side, name in zip(sides, names, strict=True):
        lacking = side[side["low"].isna()]
        if len(lacking):
            layer, row = lacking.index[0][0], lacking.iloc[0]
            reason = why(row) if row["status"] != "ok" else NO_INTERVAL
            return [f"{network} in {name} is not explained: {layer} has no interval ({reason})."]
    ratio = wholes[0]["seconds"] / wholes[1]["seconds"]
    error = math.hypot(*(_half(whole) / whole["seconds"] for whole in wholes))
    said = f"{network}: {names[0]} takes {ratio:.2f} "
    said += f"({ratio * (1 - error):.2f} to {ratio * (1 + error):.2f}) times as long as {names[1]}"
    for side, name in zip(sides, names, strict=True):
        share = side.loc[(BETWEEN, 0), "share"]
        if abs(share) > MOST_BETWEEN:
            return [
                f"{said}.",
                f"Why is not shown: in {name} the layers alone come to {1 - share:.2f} of the step, so too much lies "
                "between them, such as operations that a compiler joins.",
            ]
    differences = _differences(*sides)
    shown = [each for each in differences if each[1] - each[2] > 0 or each[1] + each[2] < 0][:NAMED]
    if not shown:
        return [f"{said}.", "No layer's difference is shown to be more than chance."]
    parts = [
        f"{layer} {'adds' if share > 0 else 'saves'} {abs(share):.2f} "
        f"({abs(share) - half:.2f} to {abs(share) + half:.2f})"
        for layer, share, half in shown
    ]
    return [f"{said}: {'; '.join(parts)}; the rest is not shown."]


def _half(row: Any) -> float:
    return float(row["high"] - row["low"]) / 2


def _differences(slow: pd.DataFrame, fast: pd.DataFrame) -> list[tuple[str, float, float]]:
    """(layer, difference, half its interval) as shares of the faster step, the largest first."""
    step, places = fast.loc[(WHOLE, 0), "seconds"], [at for at in fast.index if at[0] != WHOLE]
    wider = ndtri(1 - CHANCE / 2 / len(places)) / ndtri(1 - CHANCE / 2)
    found = [
        (
            f"{times} × {layer}" if times > 1 else layer,
            (slow.loc[(layer, times), "seconds"] - fast.loc[(layer, times), "seconds"]) / step,
            wider * math.hypot(*(_half(side.loc[(layer, times)]) for side in (slow, fast))) / step,
        )
        for layer, times in places
    ]
    return sorted(found, key=lambda each: -abs(each[1]))


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn and the drawing: a panel for each network, a stacked bar for each framework."""
    data = inputs.table[0]
    networks = list(data.groupby(["network_label", "platform", "threads"], sort=False))
    most = max((rows["framework_label"].nunique() for _, rows in networks), default=1)
    own = {"sharex": False, "sharey": False}
    with figures.panels(len(networks), 1.0 + BAR_INCHES * most, 0.5, 1, **own) as (drawing, panels):
        figures.title(drawing, inputs.entry["title"])
        for axes, (_, rows) in zip(panels, networks, strict=True):
            _panel(axes, rows)
        notes = [inputs.entry["caption"], *mark_notes(data), *origin(inputs.measured)]
        said = "Numbers are milliseconds; hatched: between layers."
        figures.caption(drawing, figures.starred(data, said), notes)
    return data, drawing


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Bars of the frameworks, the fastest first, each of its layers in the network's order."""
    layers = rows[~rows["layer"].isin([WHOLE, BETWEEN])]
    largest = layers.groupby("layer")["seconds"].max().nlargest(DRAWN).index
    named = [layer for layer in layers["layer"].unique() if layer in largest]
    whole = rows[rows["layer"] == WHOLE].sort_values("seconds").to_dict("records")
    for place, row in enumerate(whole):
        own = rows[rows["environment"] == row["environment"]]
        own = own[own["mode"] == row["mode"]].set_index("layer")["seconds"]
        others = own.drop([WHOLE, BETWEEN]).drop(named, errors="ignore")
        parts = [(own.get(layer), colour) for layer, colour in zip(named, COLOURS, strict=False)]
        left = 0.0
        for seconds, colour in [*parts, (others.sum(), figures.GREY)]:
            if pd.notna(seconds) and seconds > 0:
                axes.barh(place, seconds, left=left, height=0.7, color=colour, zorder=3)
                left += seconds
        between = own[BETWEEN]
        if pd.notna(between) and between > 0:
            blank: dict[str, Any] = {"color": "white", "edgecolor": figures.GREY, "hatch": "////"}
            axes.barh(place, between, left=left, height=0.7, zorder=3, **blank)
        timed = pd.notna(row["seconds"])
        star = "*" if "disturbed" in row["marks"] else ""
        text = f"{milliseconds(row['seconds'])}{star}" if timed else row["status"]
        end = max(left, row["seconds"]) if timed else left
        figures.say(axes, text, (end, place), (3, 0), va="center")
    figures.name_lines(axes, range(len(whole)), [row["framework_label"] for row in whole], 8)
    axes.set_ylim(len(whole) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.set_title(common.of_network(whole[0]), fontsize=9.5)
    axes.set_xlabel("seconds of a step (less is better)")
    shown = [
        Patch(color=colour, label=layer) for layer, colour in zip(named, COLOURS, strict=False)
    ]
    shown += (
        [Patch(color=figures.GREY, label=OTHERS)] if len(layers["layer"].unique()) > DRAWN else []
    )
    axes.legend(handles=shown, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
