"""The catalogue: every table and figure of the papers, by name, with its state in this grid."""

from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.claims.papers import Paper, read_papers
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import COUNT, TEXT, Entry

COLUMNS = ["paper", "name", "title", "sources", "target", "state", "cells", "why"]
TYPES = dict.fromkeys(["paper", "name", "title", "sources", "target", "state", "why"], TEXT)
TYPES |= {"cells": COUNT}
NOT_MADE = "not made"
SHOWN = [
    Column("What it shows", "title", kind="words long"),
    Column("State", lambda row: Entry(row["state"], (), row["state"] == NOT_MADE, "words")),
    Column("Results", lambda row: None if pd.isna(row["cells"]) else row["cells"] or None),
    Column("Why not", "why", kind="words long"),
]
# Several are made of one table of a paper; their names tell them apart.
INDEX: dict[str, Any] = {
    "Paper": "short",
    "Table or figure": "sources",
    "Name": lambda row: row["target"] or row["name"],
}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout; `targets` has `state` and number of `cells` of each rule."""
    papers, page = read_papers(inputs.paths("papers")), inputs.page
    targets, grid = (inputs.facts["targets"][name] for name in ("targets", "grid"))
    rows = [row for paper in papers for row in _of_paper(paper, targets)]
    data = pd.DataFrame(rows, columns=COLUMNS).astype({"cells": "Int64"})
    counts = data["state"].value_counts().items()
    by_state = ", ".join(f"{count} {state}" for state, count in counts)
    page.facts = [f"{len(data)} tables and figures: {by_state}.", f"Grid: {grid}."]
    page.notes = [
        "snakemake <name> makes one; snakemake --list-target-rules lists them all.",
        "Printed numbers only: nothing of it is measured here yet, and ours joins when the grid asks for it. "
        "Until then a figure is made only where it is asked for by its name.",
        "No machine within reach: it shows how the machines are built, which only a run on them sees.",
        "Data set not configured, file not named: it shows what must be named in config/config.yaml: images under "
        "data, statistics of searches under popularity.",
    ]
    short = data["paper"].map({paper.name: paper.catalogue["short"] for paper in papers})
    return data, columns(data.assign(short=short), SHOWN, INDEX)


def _of_paper(paper: Paper, targets: dict[str, Row]) -> list[Row]:
    rows = []
    for name, entry in paper.catalogue["artefacts"].items():
        target = f"{paper.name}_{name}"
        state = {key: targets[target][key] for key in ("state", "cells")}
        rows.append(_named(name, entry, entry["sources"][0]) | state | {"target": target})
    for name, entry in paper.catalogue.get("not_made", {}).items():
        state = {"state": NOT_MADE, "why": entry["why"]}
        rows.append(_named(name, entry, entry["source"]) | state)

    def as_printed(row: Row) -> tuple[bool, bool, str]:
        """Sorts tables first, then figures, then what else is made of the paper."""
        name = row["name"]
        return not name.startswith("table"), not name.startswith("fig"), name

    return [{"paper": paper.name} | row for row in sorted(rows, key=as_printed)]


def _named(name: str, entry: dict[str, Any], source: str) -> Row:
    nothing = {"target": "", "cells": None, "why": ""}
    return nothing | {"name": name, "title": entry["title"], "sources": source}
