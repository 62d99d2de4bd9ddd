"""Prints a table of times in the terminal."""

from pathlib import Path
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steptime.render.tables import DASH, OURS, PAPER, SEPARATOR, letters_of, read_page
from steptime.render.words import significant, spread

NARROWEST, WIDEST = 100, 120


def show(path: Path) -> None:
    """Prints ours, network by network, and below each framework what the paper printed for the same thread
    count, and where the table lies in a form with everything that it says.
    """
    console = Console()
    console.width = min(max(console.width, NARROWEST), WIDEST)
    data, page = pd.read_parquet(path), read_page(path)
    ours = data[data["source"] == OURS]
    places = ours[["column_group", "column", "platform", "threads", "devices"]].drop_duplicates()
    places = places.sort_values(["platform", "devices", "threads"]).to_dict("records")
    compared = ours["theirs_platform"].dropna().unique()
    theirs = data[
        (data["source"] == PAPER) & data["platform"].isin(compared) & data["theirs"].notna()
    ]
    letters = letters_of(
        note for notes in ours["footnote"] for note in notes.split(SEPARATOR) if note
    )
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, title_justify="left")
    table.add_column("Network", style="bold", no_wrap=True)
    table.add_column("Framework", no_wrap=True)
    for place in places:
        table.add_column(f"{place['column_group']}\n{place['column']}", justify="right")
    for (label, batch), rows in ours.groupby(["network_label", "batch"], sort=False):
        heading = f"{label}, batch {batch}"
        block = theirs[(theirs["network_label"] == label) & (theirs["batch"] == batch)]
        for lineage, of_lineage in rows.groupby("lineage", sort=False):
            for framework, cells in of_lineage.groupby("framework_label", sort=False):
                table.add_row(
                    heading, framework, *[_ours(cells, place, letters) for place in places]
                )
                heading = ""
            for framework, cells in block[block["lineage"] == lineage].groupby(
                "framework_label", sort=False
            ):
                printed = [_theirs(cells, of_lineage, place) for place in places]
                table.add_row("", Text(f"  {framework}", style="dim"), *printed)
        table.add_section()
    console.print(f"\n[bold]{page.paper}: {page.title}[/bold]")
    console.print(page.caption, highlight=False)
    console.print(table)
    for note, letter in letters.items():
        console.print(f"  {letter}  {note}.", style="dim", highlight=False, markup=False)
    if len(theirs):
        where = ", ".join(compared)
        text = f"Indented: what {page.paper} printed for as many threads of their {where}, with ours ÷ theirs."
        console.print(text, style="dim", highlight=False)
    for fact in page.facts:
        console.print(fact, style="dim", highlight=False, markup=False)
    console.print(f"Whole table: {path.with_suffix('.html')}", highlight=False)


def _ours(cells: pd.DataFrame, place: dict[str, Any], letters: dict[str, str]) -> Text:
    here = cells[
        (cells["column_group"] == place["column_group"]) & (cells["column"] == place["column"])
    ]
    if here.empty:
        return Text("")
    row = here.iloc[0]
    text = Text(justify="right")
    if pd.isna(row["ours"]):
        text.append(DASH)
    else:
        text.append(significant(row["ours"]), style="bold green" if row["best"] else "")
        text.append(f" {spread(row['ours'], row['low'], row['high'])}", style="dim")
    marks = ",".join(letters[note] for note in row["footnote"].split(SEPARATOR) if note)
    return text.append(f" {marks}", style="yellow") if marks else text


def _theirs(cells: pd.DataFrame, ours: pd.DataFrame, place: dict[str, Any]) -> Text:
    here = cells[cells["threads"] == place["threads"]]
    if here.empty:
        return Text("")
    at_place = (ours["platform"] == place["platform"]) & (ours["threads"] == place["threads"])
    ratios = ours.loc[at_place, "ratio"].dropna()
    # Beside several modes of ours, one ratio would not say of which it is; the table's other forms have each.
    ratio = f" ({significant(ratios.iloc[0], 2)})" if len(ratios) == 1 else ""
    return Text(f"{here['printed'].iloc[0]}{ratio}", style="dim", justify="right")
