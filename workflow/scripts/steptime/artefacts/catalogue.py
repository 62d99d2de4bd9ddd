"""The catalogue: every table and figure of the papers, by name, with its state in this grid."""

from typing import Any

import pandas as pd

from steptime.artefacts.evidence import Paper, read_papers
from steptime.artefacts.inputs import Inputs
from steptime.render import tables
from steptime.render.tables import Entry

COLUMNS = ["paper", "name", "title", "sources", "target", "state", "cells", "why"]
MADE, PRINTED, NO_CELLS, NOT_MADE = (
    "made",
    "printed numbers only",
    "no cells in this grid",
    "not made",
)
NO_MACHINE = "no machine within reach"
NO_DATA, NO_FILE = "data set not configured", "file not named"


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    asked = inputs.facts["targets"]
    papers = read_papers(inputs.paths("papers"))
    return build(papers, asked["targets"], asked["grid"], inputs.page)


def build(
    papers: list[Paper], targets: dict[str, dict[str, Any]], grid: str, page: tables.Page
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout; fills the page's facts and notes.

    `targets` has, for each rule of a paper, the number of `cells` of the grid that it is made of, and `state`.
    """
    rows = [row for paper in papers for row in _of_paper(paper, targets)]
    data = pd.DataFrame(rows, columns=COLUMNS).astype({"cells": "Int64"})
    counts = data["state"].value_counts()
    said = ", ".join(
        f"{counts[state]} {state}"
        for state in (MADE, PRINTED, NO_CELLS, NO_MACHINE, NO_DATA, NO_FILE, NOT_MADE)
        if state in counts
    )
    page.facts = [f"{len(data)} tables and figures: {said}.", f"Grid: {grid}."]
    page.notes = [
        "snakemake <name> makes one; snakemake --list-target-rules lists them all.",
        "Printed numbers only: nothing of it is measured here yet, and ours joins when the grid has cells for it.",
        "No machine within reach: it shows how the machines are built, which only a run on them sees.",
        "Data set not configured, file not named: it shows what must be named in config/config.yaml: images under "
        "data, statistics of searches under popularity.",
    ]
    return data, _layout(data, {paper.name: paper for paper in papers})


def _of_paper(paper: Paper, targets: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for name, entry in paper.catalogue["artefacts"].items():
        target = f"{paper.name}_{name}"
        found = targets[target]
        rows.append(
            {
                "name": name,
                "title": entry["title"],
                "sources": entry["sources"][0],
                "target": target,
                "state": found["state"],
                "cells": found["cells"],
                "why": "",
            }
        )
    for name, entry in paper.catalogue.get("not_made", {}).items():
        rows.append(
            {"name": name, "title": entry["title"], "sources": entry["source"], "state": NOT_MADE}
        )
        rows[-1] |= {"target": "", "cells": None, "why": entry["why"]}
    # As in the paper: its tables, then its figures, and what else is made of it.
    order = {"table": 0, "fig": 1}
    rows.sort(
        key=lambda row: (
            next((at for kind, at in order.items() if row["name"].startswith(kind)), 2),
            row["name"],
        )
    )
    return [{"paper": paper.name} | row for row in rows]


def _layout(data: pd.DataFrame, papers: dict[str, Paper]) -> pd.DataFrame:
    body = []
    for row in data.to_dict("records"):
        cells = "" if pd.isna(row["cells"]) or not row["cells"] else str(row["cells"])
        state = Entry(row["state"], best=row["state"] == NOT_MADE, kind="words")
        words = Entry(row["title"], kind="words long")
        body.append([words, state, Entry(cells), Entry(row["why"], kind="words long")])
    index = pd.MultiIndex.from_arrays(
        # Several are made of one table of a paper; their names tell them apart.
        [
            [papers[name].catalogue["short"] for name in data["paper"]],
            data["sources"],
            data["target"].where(data["target"] != "", data["name"]),
        ],
        names=["Paper", "Table or figure", "Name"],
    )
    columns = ["What it shows", "State", "Cells", "Why not"]
    return pd.DataFrame(body, index=index, columns=columns, dtype=object)
