"""Puts files that artefacts consist of into a page that holds many of them: their tables, drawings and data."""

import base64
import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from steptime.render import tables as layouts

HERE = Path(__file__).parent
MOST_ROWS = 100  # of a figure's data in the page; the file has them all


def render(template: str, **facts: Any) -> str:
    """A page by one of the templates in this folder."""
    templates = Environment(
        loader=FileSystemLoader([HERE, HERE.parent / "render"]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template(template).render(**facts)


def table(path: Path) -> Markup:
    """A table, of the entries that lie with its rows, its heading two levels down."""
    page, layout = layouts.read_page(path), layouts.read_layout(path)
    return Markup(layouts.in_html("table.html.jinja", layout, page, "h3"))


def drawing(path: Path, title: str) -> Markup:
    """A figure's SVG as an image by itself: what it names inside is its own."""
    svg = base64.b64encode(path.read_bytes()).decode()
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(title, svg)


def data(path: Path) -> dict[str, Any]:
    """The numbers behind a figure, without the columns that are empty, and how many rows are left out."""
    rows = layouts.read_csv(path)
    rows = rows.loc[:, (rows != "").any()]
    shown = rows.head(MOST_ROWS).to_numpy().tolist()
    return {"headings": list(rows), "rows": shown, "left_out": max(len(rows) - MOST_ROWS, 0)}


def artefact(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The entry with its title, links to its files and, where it is made, what of it stands in the page."""
    title = entry["about"].rstrip(".")
    shown = {
        "title": title,
        "rows": None,
        "table": None,
        "drawing": None,
        "data": None,
        "facts": [],
    }
    if not entry["missing"]:
        files = {(_kind(file), Path(file).suffix): Path(file) for file in entry["files"]}
        if rows := files.get(("tables", ".parquet")):
            words = layouts.read_page(rows)
            shown |= {"rows": rows, "table": table(rows), "short": words.paper}
            shown |= {"title": words.title, "facts": [words.caption, *words.facts]}
        if svg := files.get(("figures", ".svg")):
            shown["drawing"] = drawing(svg, entry["about"])
            shown["data"] = data(files["figures", ".csv"])
    return entry | shown | {"links": [link(file, folder) for file in entry["files"]]}


def link(file: str, folder: Path) -> dict[str, str]:
    return {
        "to": os.path.relpath(file, folder),
        "file": file,
        "kind": _kind(file),
        "ending": Path(file).suffix[1:],
    }


def _kind(file: str) -> str:
    return Path(file).parent.name
