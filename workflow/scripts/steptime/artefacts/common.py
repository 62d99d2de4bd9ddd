"""How rows are named and ordered in the tables and figures of all networks."""

from typing import Any

import pandas as pd

from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, Entry
from steptime.render.words import environment_labels, version_order


def labelled(rows: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]) -> pd.DataFrame:
    """`rows` in the order of the catalogue of networks, then of frameworks, with `network_label`, `framework_label`.

    Needs the columns network (a variant by its own name), environment, framework, framework_version, mode;
    where there is `batch`, it stands after the network in the order, `precision`, `platform`, `threads` and `devices`
    last.
    """
    named = rows.assign(
        network_label=[catalogue[name].get("label", name) for name in rows["network"]],
        framework_label=environment_labels(frameworks, rows),
    )
    place = pd.DataFrame(
        {
            "network": rows["network"].map(list(catalogue).index),
            **({"batch": rows["batch"]} if "batch" in rows else {}),
            "framework": [frameworks[name].order for name in rows["framework"]],
            "environment": rows["environment"].map(version_order),
            # The first mode seen is the framework's default.
            "mode": rows["mode"].map({mode: at for at, mode in enumerate(rows["mode"].unique())}),
        }
    )
    further = [name for name in ("precision", "platform", "threads", "devices") if name in rows]
    place = place.join(rows[further])
    return named.loc[place.sort_values(list(place), kind="stable").index].reset_index(drop=True)


def dash(reason: str) -> Entry:
    """A place without a number, and why."""
    return Entry(DASH, (reason.rstrip("."),), kind="ours")


def whole_name(row: dict[str, Any]) -> str:
    """The name in the catalogue of a row's network: its variant where it is one."""
    return row["variant"] or row["network"]
