"""The table of what frameworks can do: as the paper says it, and as it is read here from those that are installed."""

from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Frameworks
from steptime.render.tables import DASH, Entry, Page

COLUMNS = ["source", "lineage", "framework", "label", "environment", "property", "value", "note"]
OURS, PAPER = "ours", "paper"
LONG = 24  # letters from which a value is broken into lines


def build(
    abilities: pd.DataFrame,
    printed: pd.DataFrame,
    paper: dict[str, Any],
    frameworks: Frameworks,
    artefact: dict[str, Any],
    page: Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, texts) and the layout: a line for each framework of the paper, below it those of ours.

    `abilities` is what `papers.abilities.read` returns; the artefact's `here` says which of them is which property.
    """
    rows = _their_rows(printed, frameworks, artefact) + _our_rows(abilities, frameworks, artefact)
    data = pd.DataFrame(rows, columns=COLUMNS)
    order = {name: at for at, name in enumerate(dict.fromkeys(data["lineage"]))}
    data = data.sort_values(
        "lineage", key=lambda lineages: lineages.map(order), kind="stable", ignore_index=True
    )
    page.notes = [
        "What is said of a framework here holds for the one build that is installed; its footnotes say how it "
        "was read, and a dash is what was not read.",
        *page.notes,
    ]
    return data, _layout(data, paper["short"], list(artefact["here"]))


def _their_rows(
    printed: pd.DataFrame, frameworks: Frameworks, artefact: dict[str, Any]
) -> list[dict[str, Any]]:
    # One of the two headings of a printed value is the framework, the other the property.
    return [
        {
            "source": PAPER,
            "lineage": frameworks[row["framework"]].lineage,
            "framework": row["framework"],
            "label": row["row"] if row["column"] in artefact["here"] else row["column"],
            "property": row["column"] if row["column"] in artefact["here"] else row["row"],
            "value": row["value"],
            "note": row["note"],
        }
        for row in printed.to_dict("records")
    ]


def _our_rows(
    abilities: pd.DataFrame, frameworks: Frameworks, artefact: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            "source": OURS,
            "lineage": frameworks[found["framework"]].lineage,
            "framework": found["framework"],
            "label": f"{frameworks[found['framework']].label} {found['version']}".strip(),
            "environment": environment,
            "property": name,
            "value": found[key].text,
            "note": found[key].note,
        }
        for environment, found in abilities.to_dict("index").items()
        for name, key in artefact["here"].items()
    ]


def _layout(data: pd.DataFrame, short: str, properties: list[str]) -> pd.DataFrame:
    table: dict[tuple[str, str], dict[str, Entry]] = {}
    for row in data.to_dict("records"):
        ours = row["source"] == OURS
        notes = (row["note"].rstrip("."),) if row["note"] else ()
        kind = f"{row['source']} words" + (" long" if len(row["value"]) > LONG else "")
        entry = Entry(row["value"] or DASH, notes, kind=kind)
        table.setdefault((row["label"], "here" if ours else short), {})[row["property"]] = entry
    index = pd.MultiIndex.from_tuples(table, names=["Framework", "Source"])
    return pd.DataFrame(
        [[entries[name] for name in properties] for entries in table.values()],
        index,
        properties,
        object,
    )
