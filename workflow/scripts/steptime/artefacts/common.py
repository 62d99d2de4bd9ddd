"""What the artefacts that belong to no paper share: how rows are named and ordered, and the command line's errors."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Frameworks, InputError
from steptime.cells.shard import ShardError
from steptime.merge import MixedRowsError
from steptime.plan.configuration import ConfigurationError
from steptime.render.tables import DASH, Entry, Page
from steptime.render.words import environment_label, version_order

PROJECT = "steptime"


def run(
    make: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser, *made: str
) -> None:
    """Parses the command line and makes the artefact; a mistake in the inputs ends in one sentence, exit status 1.

    `made` are the kinds that the command line says a place for: "table", "figure".
    """
    for kind in made:
        parser.add_argument(
            f"--{kind}-prefix", type=Path, required=True, help=f"path of the {kind} without endings"
        )
    parser.add_argument(
        "--frameworks", type=Path, required=True, help="labels and colours of frameworks, YAML"
    )
    parser.add_argument(
        "--networks", type=Path, required=True, help="the catalogue of networks, YAML"
    )
    try:
        make(parser.parse_args())
    except (ConfigurationError, InputError, MixedRowsError, ShardError) as error:
        sys.exit(str(error))


def page(artefact: str, title: str, caption: str) -> Page:
    """The words around a table of the project itself."""
    return Page(artefact, title, caption, PROJECT)


def labelled(rows: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]) -> pd.DataFrame:
    """`rows` in the order of the catalogue of networks, then of frameworks, with `network_label`, `framework_label`.

    Needs the columns network (a variant by its own name), environment, framework, framework_version, adapter_mode;
    where there is `batch`, it stands after the network in the order, `platform` and `threads` last.
    """
    modes = rows.groupby("framework")["adapter_mode"].nunique().gt(1).to_dict()
    named = rows.assign(
        network_label=[catalogue[name].get("label", name) for name in rows["network"]],
        framework_label=[
            environment_label(frameworks, row, modes[row["framework"]])
            for row in rows.to_dict("records")
        ],
    )
    place = pd.DataFrame(
        {
            "network": rows["network"].map(list(catalogue).index),
            **({"batch": rows["batch"]} if "batch" in rows else {}),
            "framework": [frameworks[name].order for name in rows["framework"]],
            "environment": rows["environment"].map(version_order),
            # The first mode seen is the framework's default.
            "mode": rows["adapter_mode"].map(
                {mode: at for at, mode in enumerate(rows["adapter_mode"].unique())}
            ),
        }
    )
    place = place.join(rows[[name for name in ("platform", "threads") if name in rows]])
    return named.loc[place.sort_values(list(place), kind="stable").index].reset_index(drop=True)


def dash(reason: str) -> Entry:
    """A place without a number, and why."""
    return Entry(DASH, (reason.rstrip("."),), kind="ours")


def whole_name(row: dict[str, Any]) -> str:
    """The name in the catalogue of a row's network: its variant where it is one."""
    return row["variant"] or row["network"]
