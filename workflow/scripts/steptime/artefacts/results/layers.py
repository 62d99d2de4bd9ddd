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

SECONDS, FORWARD = ["seconds", "low", "high"], ["forward", "forward_low", "forward_high"]
COLUMNS = [*common.NAMED, "marks", "layer", "times", *SECONDS, "share", *FORWARD]
# For each of these, a framework has one time for each layer.
RUNNER = ["platform", "environment", "mode", "precision", "threads"]
BETWEEN, WHOLE = "between layers", "the whole step"
# Above this share between layers, such as of what a compiler joins, the layers alone explain nothing.
MOST_BETWEEN = 0.3
# How many layers of a bar have names, and how many differences an explanation names.
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
        "Forward: the same of the layer in use, where nothing is dropped and batch normalisation takes the statistics "
        "that a training has left. What is no forward pass is backward and update.",
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
    """Returns the tidy rows (COLUMNS): of each network and framework the layers, the time between, and the whole."""
    cells = common.cells_of(inputs)
    cells = cells.assign(marks=cells["marks"].map(", ".join))
    passes = _passes(inputs)
    rows: list[Row] = []
    for place, own in cells.groupby(RUNNER, sort=False):
        known = {row["network"]: row for row in own.to_dict("records")}
        for network in known:
            parts = {
                name: entry["part_of"]
                for name, entry in inputs.networks.items()
                if entry.get("part_of", {}).get("network") == network
            }
            if parts:
                rows += _of_network(known, passes.get(place, {}), network, parts)
    data = pd.DataFrame(rows, columns=COLUMNS)
    order = {name: at for at, name in enumerate(inputs.networks)}
    return data.sort_values("network", key=lambda names: names.map(order), kind="stable")


def _passes(inputs: Inputs) -> dict[Any, dict[str, Row]]:
    """Returns the timed forward passes, by RUNNER and then network, each of its largest mini-batch."""
    found: dict[Any, dict[str, Row]] = {}
    for measured in inputs.passes:
        cells = common.whole(measured.cells)
        timed = cells[cells["seconds"].notna()].sort_values("batch")
        for place, own in timed.groupby(RUNNER, sort=False):
            rows = found.setdefault(place, {})
            rows.update((row["network"], row) for row in own.to_dict("records"))
    return found


def _of_network(
    known: Mapping[str, Row], passes: Mapping[str, Row], network: str, parts: dict[str, Any]
) -> list[Row]:
    whole = known[network] | _forward(passes, [(1.0, network)])
    layers = [
        _layer(known, passes, whole, name, part) for name, part in parts.items() if part["times"]
    ]
    total = whole | {"layer": WHOLE, "times": 0, "share": 1.0}
    between = whole | {"layer": BETWEEN, "times": 0} | dict.fromkeys([*SECONDS, *FORWARD])
    if lacking := [row for row in [whole, *layers] if pd.isna(row["seconds"])]:
        between |= {"status": "not asked for", "reason": f"no time: {why(lacking[0])}"}
    else:
        between |= _sum([(1.0, whole), *((-1.0, row) for row in layers)])
    rows = [*layers, between]
    for row in rows:
        timed = pd.notna(row["seconds"]) and pd.notna(whole["seconds"])
        row["share"] = row["seconds"] / whole["seconds"] if timed else None
    return [*rows, total]


def _layer(
    known: Mapping[str, Row],
    passes: Mapping[str, Row],
    whole: Row,
    name: str,
    part: dict[str, Any],
) -> Row:
    """Returns the row of a layer, with the seconds of all layers like it together."""
    absent = {"status": "not asked for", "reason": f"no time of {name}"}
    shares = {name: 1.0} | {each: -share for each, share in part["less"].items()}
    weights = [(part["times"] * share, each) for each, share in shares.items()]
    row = whole | {"layer": part["layer"], "times": part["times"]}
    row |= dict.fromkeys([*SECONDS, *FORWARD])
    row["marks"] = known.get(name, absent).get("marks", "")
    for _, each in weights:
        used = known.get(each, absent)
        if used["status"] != "ok":
            return row | {"status": used["status"], "reason": used["reason"]}
    row |= {"status": "ok", "reason": None} | _forward(passes, weights)
    return row | _sum([(weight, known[each]) for weight, each in weights])


def _forward(passes: Mapping[str, Row], weights: list[tuple[float, str]]) -> Row:
    """Returns FORWARD of a weighted sum of networks; {} where one of them has no timed pass."""
    if any(each not in passes for _, each in weights):
        return dict.fromkeys(FORWARD)
    sums = _sum([(weight, passes[each]) for weight, each in weights])
    return dict(zip(FORWARD, sums.values(), strict=True))


def _sum(terms: list[tuple[float, Row]]) -> Row:
    """Returns the seconds of a weighted sum of independent results, with an interval where all of them have one."""
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
    forward = ""
    if pd.notna(row["forward"]):
        forward = f" ({milliseconds(row['forward'])} ms forward)"
    text = f"{milliseconds(row['seconds'])}{half} ms{share}{forward}".replace("-", "−")
    return Entry(text, tuple(marked(row)), kind="ours")


def explained(data: pd.DataFrame, slow: str, fast: str) -> list[str]:
    """Says which layers make the slow one of two environments slower, from the tidy rows of a network in both.

    Differences are shares of the faster one's step. Named are those whose interval does not contain 0; all intervals
    together are right in 95 % of cases (Bonferroni).
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
        f"({abs(share) - half:.2f} to {abs(share) + half:.2f}){forward}"
        for layer, share, half, forward in shown
    ]
    return [f"{said}: {'; '.join(parts)}; the rest is not shown."]


def _half(row: Any, low: str = "low", high: str = "high") -> float:
    return float(row[high] - row[low]) / 2


def _differences(slow: pd.DataFrame, fast: pd.DataFrame) -> list[tuple[str, float, float, str]]:
    """Returns (layer, difference, half its interval, words on forward) as shares of the faster step, largest first."""
    step, places = fast.loc[(WHOLE, 0), "seconds"], [at for at in fast.index if at[0] != WHOLE]
    wider = ndtri(1 - CHANCE / 2 / len(places)) / ndtri(1 - CHANCE / 2)
    found = []
    for layer, times in places:
        rows = [side.loc[(layer, times)] for side in (slow, fast)]
        difference = (rows[0]["seconds"] - rows[1]["seconds"]) / step
        half = wider * math.hypot(*map(_half, rows)) / step
        named = f"{times} × {layer}" if times > 1 else layer
        found.append((named, difference, half, _of_it_forward(rows, step, wider)))
    return sorted(found, key=lambda each: -abs(each[1]))


def _of_it_forward(rows: list[Any], step: float, wider: float) -> str:
    """Says how much of a difference is in the forward pass; '' where it has no interval."""
    if any(pd.isna(row["forward_low"]) for row in rows):
        return ""
    share = (rows[0]["forward"] - rows[1]["forward"]) / step
    half = wider * math.hypot(*(_half(row, *FORWARD[1:]) for row in rows)) / step
    text = f", of which forward {share:.2f} ({share - half:.2f} to {share + half:.2f})"
    return text.replace("-", "−")


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
        said = "Numbers are milliseconds; left of a white line is forward; hatched: between layers."
        figures.caption(drawing, figures.starred(data, said), notes)
    return data, drawing


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Draws a bar for each framework, the fastest first, of its layers in the network's order."""
    layers = rows[~rows["layer"].isin([WHOLE, BETWEEN])]
    largest = layers.groupby("layer")["seconds"].max().nlargest(DRAWN).index
    named = [layer for layer in layers["layer"].unique() if layer in largest]
    whole = rows[rows["layer"] == WHOLE].sort_values("seconds").to_dict("records")
    for place, row in enumerate(whole):
        own = rows[rows["environment"] == row["environment"]]
        own = own[own["mode"] == row["mode"]].set_index("layer")
        own = own[["seconds", "forward"]].astype(float)
        others = own.drop([WHOLE, BETWEEN]).drop(named, errors="ignore")
        parts: list[tuple[Mapping[str, float], str]] = [
            (own.loc[layer], colour)
            for layer, colour in zip(named, COLOURS, strict=False)
            if layer in own.index
        ]
        grey = {"seconds": others["seconds"].sum(), "forward": others["forward"].sum(skipna=False)}
        left = 0.0
        for part, colour in [*parts, (grey, figures.GREY)]:
            seconds, forward = part["seconds"], part["forward"]
            if pd.notna(seconds) and seconds > 0:
                axes.barh(place, seconds, left=left, height=0.7, color=colour, zorder=3)
                if pd.notna(forward) and 0 < forward < seconds:
                    axes.vlines(
                        left + forward,
                        place - 0.35,
                        place + 0.35,
                        color="white",
                        linewidth=1,
                        zorder=4,
                    )
                left += seconds
        between = own.loc[BETWEEN, "seconds"]
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
