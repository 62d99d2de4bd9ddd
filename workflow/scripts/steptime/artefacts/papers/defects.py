"""Table of the networks that authors' scripts trained in place of those they describe, and what the difference costs.

A caveat of a paper may name a `variant` of a network, which is timed beside the network itself. The printed time,
divided by the variant's time as a share of the network's, is the time that the network would have had.
"""

import math
from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import PAPER, TEXT, Entry
from steptime.render.words import limits, ranged, significant
from steptime.statistics.intervals import difference
from steptime.statistics.ratios import DISTURBED, mean_of_result

COLUMNS = ["network", "framework", "variant", "environment", "mode", "platform", "threads"]
COLUMNS += ["ratio", "low", "high", "printed_seconds", "seconds", "seconds_low", "seconds_high"]
COLUMNS += ["their_order", "our_order", "state"]
TYPES = dict.fromkeys(["their_order", "our_order", "state"], TEXT)
KEPT, TURNED, OPEN = "kept", "another", "not decided"
SAME = ["platform", "environment", "mode", "precision", "batch", "threads", "devices"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS), one for each variant, environment and thread count, and the layout."""
    caveats = inputs.catalogue["caveats"]
    rows = [row for each in caveats if "variant" in each for row in _rows(each, inputs)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    machine = inputs.catalogue["platforms"][inputs.catalogue["compared_with"]]["name"]
    apart = dict.fromkeys(each["text"] for each in caveats if "variant" not in each)
    common.describe(
        inputs,
        "Factor: the time of what the script trained divided by that of the network, both measured here by one "
        "environment, with the 95 % interval. Both are proven to be what they are called.",
        f"Printed: the shortest time on the {machine}. It divided by the factor is what the network itself would have "
        "taken, as far as the factor was the same there.",
        f"Order: the paper's frameworks by their shortest times. It is {KEPT} or {TURNED} where both ends of the "
        "interval say so.",
        f"Not timed, since the network is the same and another step was timed: {'; '.join(apart)}.",
    )
    labels = {name: entry.get("label", name) for name, entry in inputs.networks.items()}
    named = data.assign(
        label=data["network"].map(labels),
        script=[inputs.frameworks[name].label for name in data["framework"]],
        here=data["environment"]
        + "."
        + data["mode"]
        + ", "
        + data["threads"].map("{} threads".format),
    )
    return data, columns(
        named, SHOWN, {"Network": "label", "Script of": "script", "Trained": "variant"}
    )


def _rows(caveat: dict[str, Any], inputs: Inputs) -> list[Row]:
    """Returns a row for each environment and thread count that timed both a network and its variant."""
    cells, spreads = inputs.measured.cells, inputs.measured.statistics.times
    cells = cells[(cells["status"] == "ok") & (cells["network"] == caveat["network"])]
    whole = {tuple(row[name] for name in SAME): row for row in _named(cells, "")}
    rows = []
    for row in _named(cells, caveat["variant"]):
        base = whole.get(tuple(row[name] for name in SAME))
        if base is None:
            continue
        means = [mean_of_result(each, spreads) for each in (row, base)]
        ratio, low, high = row["seconds"] / base["seconds"], math.nan, math.nan
        is_disturbed = DISTURBED in {*row["marks"], *base["marks"]}
        if means[0] and means[1] and not is_disturbed:
            ratio, low, high = difference(means[0], means[1]).interval
        known = {"ratio": ratio, "low": low, "high": high}
        names = {name: row[name] for name in ("environment", "mode", "platform", "threads")}
        rows.append(caveat | names | known | _as_stated(caveat, known, inputs))
    return rows


def _named(cells: pd.DataFrame, variant: str) -> list[Row]:
    return cells[cells["variant"] == variant].to_dict("records")


def _as_stated(caveat: dict[str, Any], factor: dict[str, float], inputs: Inputs) -> Row:
    """Returns the printed time, the described network's time, and the order of frameworks by each."""
    printed = inputs.printed
    printed = printed[printed["network"] == caveat["network"]]
    printed = printed[printed["platform"] == inputs.catalogue["compared_with"]]
    times = printed.groupby("framework")["number"].min().dropna()
    if caveat["framework"] not in times:
        return {}
    own = times[caveat["framework"]]
    ends = [own / factor[name] for name in ("ratio", "high", "low")]
    orders = [_order(dict(times) | {caveat["framework"]: end}, inputs) for end in (own, *ends)]
    before, after, *at_ends = orders
    # What is not known, and what may be the printed time itself, turns no order.
    is_open = before in at_ends or not (factor["low"] > 1 or factor["high"] < 1)
    is_kept = {*at_ends, after} == {before} and not math.isnan(factor["low"])
    state = KEPT if is_kept else OPEN if is_open else TURNED
    return {
        "printed_seconds": own,
        **dict(zip(("seconds", "seconds_low", "seconds_high"), ends, strict=True)),
        "their_order": before,
        "our_order": after,
        "state": state,
    }


def _order(times: dict[str, float], inputs: Inputs) -> str:
    ordered = sorted(times.items(), key=lambda entry: entry[1])
    return ", ".join(inputs.frameworks[name].label for name, _ in ordered)


def _would_be(row: Row) -> Entry:
    if pd.isna(row["seconds"]):
        return Entry()
    text = significant(row["seconds"])
    if not pd.isna(row["seconds_low"]):
        text += f" ({limits(row['seconds_low'], row['seconds_high'])})"
    return Entry(text, kind="ours")


SHOWN = [
    Column("Timed here by", "here", kind="words"),
    Column("Factor", lambda row: ranged(row["ratio"], row["low"], row["high"]), kind="ours"),
    Column("Printed (s)", "printed_seconds", significant, kind=PAPER),
    Column("Would have been (s)", _would_be),
    Column("Order printed", "their_order", kind="words"),
    Column("Order then", "our_order", kind="words"),
    Column("The order is", "state", kind="words"),
]
