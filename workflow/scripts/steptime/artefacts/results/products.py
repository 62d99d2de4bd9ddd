"""The matrix products of a network's dense layers, in each order in which their factors may lie in memory."""

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import parts
from steptime.render.columns import Row
from steptime.render.tables import Entry
from steptime.render.words import significant

ONE, TWO = "one call", "two calls"
COLUMNS = [*parts.COLUMNS, "value"]
TYPES = parts.TYPES
NT, TN, CALLS = "NT", "TN", "calls"
WAYS = {
    NT: ("o", "#D55E00", "NT: the second factor lies transposed"),
    TN: ("s", "#0072B2", "TN: the first factor lies transposed"),
    CALLS: ("^", "#009E73", "gradient and update: two calls by one call"),
}
SPEED, BY_ONE = "NN, GFLOP/s", "two calls ÷ one"
HEADINGS = (SPEED, "NT ÷ NN", "TN ÷ NN", BY_ONE)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (parts.COLUMNS and `value`, see `with_ratios`) and the layout."""
    data = with_ratios(parts.read(inputs))
    common.describe(
        inputs,
        "Weights that lie (in, out) make a layer a product NN, the gradient of its inputs NT and that of its weights "
        "TN; weights that lie (out, in) let the first two change places. Ratios are of times: above 1 is slower than "
        "NN of the same sizes, or than one call.",
        "One call: the product is added to the weights by the library itself (beta = 1), as the paper advises. Two "
        "calls: the gradient, then the update.",
        parts.off_by(data),
    )
    orders = data[(data["part"] != "") & ~data["way"].isin([ONE, TWO])]
    roles = orders.drop_duplicates("part").set_index("part")["role"]
    names = ["Product", "What it is", "Framework"]
    layout = parts.by_place(
        data,
        names,
        HEADINGS,
        lambda part, place, ways: _entries(ways),
        lambda part: (part, roles[part]),
    )
    return data[COLUMNS], layout


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn, of each platform's highest thread count, and the drawing."""
    data = common.of_most_threads(with_ratios(parts.read(inputs)))
    drawn = data[data["part"] != ""].assign(way=data["way"].replace({TWO: CALLS}))
    printed = inputs.entry["printed_ratio"]
    lines = {1: "", printed: f"{printed}: the paper, GPU"}
    axis = "time, divided by that of NN or of one call"
    shown = drawn[drawn["way"].isin(WAYS)]
    return drawn[COLUMNS], parts.dots(inputs, data, shown, WAYS, axis, lines, 1)


def with_ratios(data: pd.DataFrame) -> pd.DataFrame:
    """Adds `value`: the time divided by that of product NN of the same sizes; of two calls, divided by that of one."""
    known = parts.by_way(data)
    values = []
    for row in data.to_dict("records"):
        key = (row["part"], row["framework_label"], (row["platform"], row["threads"]))
        base = known.get(key, {}).get(ONE if row["way"] == TWO else "NN")
        ratio = None if row["way"] == ONE else parts.ratio(row, base)
        values.append(ratio[0] if ratio else None)
    return data.assign(value=pd.Series(values, data.index, dtype=float))


def _entries(ways: parts.Ways) -> list[Entry]:
    """Returns a table's entries for one product in one framework and place."""
    base, failed = ways.get("NN"), ways.get("")
    speed = significant(base["gflops"]) if base and base["repeats"] else ""
    entries = [parts.entry(base, failed, speed)]
    entries += [_ratio(ways.get(way), base, ways.get(way), failed) for way in (NT, TN)]
    if TWO not in ways and not failed:
        # Only the gradient of weights is followed by an update.
        return [*entries, Entry()]
    two, one = ways.get(TWO), ways.get(ONE)
    lacking = next((row for row in (one, two) if row and not row["repeats"]), two)
    return [*entries, _ratio(two, one, lacking, failed)]


def _ratio(row: Row | None, base: Row | None, shown: Row | None, failed: Row | None) -> Entry:
    known = parts.ratio(row, base)
    return parts.entry(shown, failed, known[1] if known else "")
