"""The catalogue: every table and figure of the papers, by name, with its state in this grid.

python -m report.catalogue --targets '{"shi2016_table4": {"cells": 36, "state": "made"}}' --grid quick \
    --papers resources/papers --frameworks ... --networks ... --output-prefix results/tables/catalogue
"""

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from steptime.artefacts import common
from steptime.artefacts.evidence import Paper, read_papers
from steptime.render import tables
from steptime.render.tables import Entry

COLUMNS = ["paper", "name", "title", "sources", "target", "state", "cells", "why"]
MADE, PRINTED, NO_CELLS, NOT_MADE = (
    "made",
    "printed numbers only",
    "no cells in this grid",
    "not made",
)
NO_DATA = "data set not configured"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="artefacts.catalogue", description="List every table and figure of the papers."
    )
    parser.add_argument(
        "--targets", type=json.loads, required=True, help="the papers' artefacts by name, JSON"
    )
    parser.add_argument("--grid", required=True, help="name of the grid")
    parser.add_argument("--papers", type=Path, required=True, help="the folder of the papers' data")
    parser.add_argument(
        "--output-prefix",
        type=Path,
        required=True,
        help="path of the outputs without their endings",
    )
    common.run(_make, parser)


def build(
    papers: list[Paper], targets: dict[str, dict[str, Any]], grid: str
) -> tuple[pd.DataFrame, pd.DataFrame, tables.Page]:
    """The tidy rows (COLUMNS), the layout and the page.

    `targets` has, for each rule of a paper, the number of `cells` of the grid that it is made of, and `state`.
    """
    rows = [row for paper in papers for row in _of_paper(paper, targets)]
    data = pd.DataFrame(rows, columns=COLUMNS).astype({"cells": "Int64"})
    page = common.page(
        "catalogue",
        "Every table and figure of the papers",
        "What the papers print, the name under which it is asked for, and whether this grid makes it.",
    )
    counts = data["state"].value_counts()
    said = ", ".join(
        f"{counts[state]} {state}"
        for state in (MADE, PRINTED, NO_CELLS, NO_DATA, NOT_MADE)
        if state in counts
    )
    page.facts = [f"{len(data)} tables and figures: {said}.", f"Grid: {grid}."]
    page.notes = [
        "snakemake <name> makes one; snakemake --list-target-rules lists them all.",
        "Printed numbers only: nothing of it is measured here yet, and ours joins when the grid has cells for it.",
        "Data set not configured: it shows images whose files must be named under data in config/config.yaml.",
    ]
    return data, _layout(data, {paper.name: paper for paper in papers}), page


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
        words = [Entry(row["title"], kind="words long"), Entry(row["target"], kind="words")]
        body.append([*words, state, Entry(cells), Entry(row["why"], kind="words long")])
    index = pd.MultiIndex.from_arrays(
        [[papers[name].catalogue["short"] for name in data["paper"]], data["sources"]],
        names=["Paper", "Table or figure"],
    )
    columns = ["What it shows", "Name", "State", "Cells", "Why not"]
    return pd.DataFrame(body, index=index, columns=columns, dtype=object)


def _make(options: argparse.Namespace) -> None:
    tables.write(
        options.output_prefix, *build(read_papers(options.papers), options.targets, options.grid)
    )


if __name__ == "__main__":
    main()
