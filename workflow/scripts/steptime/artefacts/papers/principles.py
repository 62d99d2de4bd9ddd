"""The table of benchmarking principles: what each asks, what is done of it here, and where it is shown."""

import pandas as pd

from steptime.artefacts.common import describe
from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import IDENTITY
from steptime.render.columns import Column, columns
from steptime.render.tables import TEXT
from steptime.render.words import plural, significant

COLUMNS = ["principle", "asks", "here", "figure", "number", "shown_by", "not_done"]
TYPES = dict.fromkeys(["principle", "asks", "here", "figure", "shown_by", "not_done"], TEXT)
SHOWN = [
    Column("The paper asks", "asks", kind="words long"),
    Column("Here", "here", kind="words long"),
    Column("Measured", "figure", kind="ours words long"),
    Column("Shown by", "shown_by", kind="words long"),
    Column("Not done", "not_done", kind="words long"),
]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout; each of the entry's `principles` names its `figure`."""
    figures = _figures(inputs)
    rows = []
    for entry in inputs.entry["principles"]:
        row = {name: entry[name].strip() for name in ("principle", "asks", "here", "not_done")}
        row["figure"], row["number"] = figures[entry["figure"]]
        rows.append(row | {"shown_by": "; ".join(entry["shown_by"])})
    data = pd.DataFrame(rows, columns=COLUMNS)
    describe(inputs)
    return data, columns(data, SHOWN, {"Principle": "principle"})


def _figures(inputs: Inputs) -> dict[str, tuple[str, float | None]]:
    """Returns what was measured for each `figure` that a principle may name: its words, and the number in them."""
    rows, cells, proofs = inputs.measured.rows, inputs.measured.cells, inputs.proofs
    networks, machines = cells["network"].nunique(), cells["platform"].nunique()
    shown = int(cells["high"].notna().sum())
    passed = sum(proof["status"] == "ok" for proof in proofs)
    once = rows.drop_duplicates([*IDENTITY, "repeat"])
    minutes = once[["import_seconds", "build_seconds", "wall_seconds"]].sum().sum() / 60
    cost = f"{plural(len(once), 'run')} took {significant(minutes)} minutes of workers"
    threads = sorted(cells.loc[cells["device"] == "cpu", "threads"].unique())
    most, kept = int(cells["devices"].max()), int(rows["seconds"].notna().sum())
    sizes = f"{', '.join(map(str, threads))} threads; at most {plural(most, 'device')} at a time; "
    return {
        "networks": (f"{plural(networks, 'network')} of the papers", networks),
        "cells": (f"{shown} of {len(cells)} results have an interval", shown),
        "proofs": (f"{passed} of {len(proofs)} proofs of equal networks passed", passed),
        "spread": _spread(cells),
        "cost": (cost, minutes),
        "sizes": (sizes + plural(machines, "machine"), most),
        "samples": (f"{kept:,} samples are kept, each as it was read", kept),
    }


def _spread(cells: pd.DataFrame) -> tuple[str, float | None]:
    timed = cells.dropna(subset=["seconds", "low", "high"])
    if timed.empty:
        return "no result has an interval", None
    seconds = timed["seconds"].astype(float)
    sides = timed[["low", "high"]].astype(float).sub(seconds, axis=0).abs()
    wider = 100 * sides.max(axis=1) / seconds
    text = f"±{significant(wider.median(), 2)} % is the median interval, ±{significant(wider.max(), 2)} % the widest"
    return text, wider.median()
