"""The matrix products of a network's dense layers, in each order in which their factors may lie in memory."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import parts
from steptime.artefacts.inputs import Inputs
from steptime.render import figures
from steptime.render.columns import laid_out
from steptime.render.tables import Entry
from steptime.render.words import facts, raw_data, significant

ONE, TWO = "one call", "two calls"
COLUMNS = [*parts.COLUMNS, "value"]
NT, TN, CALLS = "NT", "TN", "calls"
WAYS = {
    NT: ("o", "#D55E00", "NT: the second factor lies transposed"),
    TN: ("s", "#0072B2", "TN: the first factor lies transposed"),
    CALLS: ("^", "#009E73", "gradient and update: two calls by one call"),
}
SPEED, BY_NN, BY_ONE = "NN, GFLOP/s", "÷ NN", "two calls ÷ one"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (parts.COLUMNS and `value`: the time by that of NN, or of two calls by one) and the layout."""
    data = with_ratios(parts.read(inputs))
    inputs.page.facts = facts(inputs.measured)
    inputs.page.notes = [
        "Weights that lie (in, out) make a layer a product NN, the gradient of its inputs NT and that of its weights "
        "TN; weights that lie (out, in) let the first two change places. Ratios are of times: above 1 is slower than "
        "NN of the same sizes, or than one call.",
        "One call: the product is added to the weights by the library itself (beta = 1), as the paper advises. Two "
        "calls: the gradient, then the update.",
        parts.off_by(data),
        *inputs.page.notes,
        raw_data(inputs.measured),
    ]
    return data[COLUMNS], _layout(data)


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn, those of the most threads of a platform, and the drawing."""
    data = with_ratios(parts.read(inputs))
    most = data.groupby("platform")["threads"].transform("max")
    data = data[data["threads"] == most]
    drawn = data[data["part"] != ""].assign(way=data["way"].replace({TWO: CALLS}))
    place = ", ".join(parts.column_of(place) for place in parts.places_of(data))
    printed = inputs.entry["printed_ratio"]
    drawing, handles = parts.dots(
        drawn[drawn["way"].isin(WAYS)],
        WAYS,
        f"{inputs.entry['title']}: {place}",
        "time, divided by that of NN or of one call",
        {1: "", printed: f"{printed}: the paper, GPU"},
    )
    notes = [inputs.entry["caption"], *parts.remarks(data), *facts(inputs.measured)]
    figures.notes_below(drawing, [*notes, raw_data(inputs.measured)], handles, 1)
    return drawn[COLUMNS], drawing


def with_ratios(data: pd.DataFrame) -> pd.DataFrame:
    """The rows with `value`: the time by that of the product NN of the same sizes; of two calls, by that of one."""
    known = parts.by_way(data)
    values = []
    for row in data.to_dict("records"):
        key = (row["part"], row["framework_label"], (row["platform"], row["threads"]))
        base = known.get(key, {}).get(ONE if row["way"] == TWO else "NN")
        found = None if row["way"] == ONE else parts.ratio(row, base)
        values.append(found[0] if found else None)
    return data.assign(value=pd.Series(values, data.index, dtype=float))


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    known = parts.by_way(data)
    roles: dict[str, str] = {}
    for row in data[data["part"] != ""].itertuples():
        if row.way not in (ONE, TWO):
            roles.setdefault(row.part, row.role)
    headings = (SPEED, f"NT {BY_NN}", f"TN {BY_NN}", BY_ONE)
    columns = [
        (parts.column_of(place), name) for place in parts.places_of(data) for name in headings
    ]
    lines: dict[tuple[str, str, str], dict[Any, Entry]] = {}
    for (part, label, place), ways in known.items():
        entries = zip(headings, _entries(ways), strict=True)
        line = lines.setdefault((part, roles[part], label), {})
        line |= {(parts.column_of(place), name): entry for name, entry in entries}
    return laid_out(lines.items(), ["Product", "What it is", "Framework"], columns)


def _entries(ways: dict[str, dict[str, Any]]) -> list[Entry]:
    """The columns of one product in one framework and place."""
    base, failed = ways.get("NN"), ways.get("")
    speed = significant(base["gflops"]) if base and base["repeats"] else ""
    found = [parts.entry(base, failed, speed)]
    for way in (NT, TN):
        known = parts.ratio(ways.get(way), base)
        found.append(parts.entry(ways.get(way), failed, known[1] if known else ""))
    if TWO not in ways and not failed:
        # Only the gradient of weights is followed by an update.
        return [*found, Entry()]
    known = parts.ratio(ways.get(TWO), ways.get(ONE))
    lacking = next(
        (ways[way] for way in (ONE, TWO) if way in ways and not ways[way]["repeats"]), None
    )
    return [*found, parts.entry(lacking or ways.get(TWO), failed, known[1] if known else "")]
