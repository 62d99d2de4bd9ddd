"""Puts files that artefacts consist of into a page that holds many of them: their tables, drawings and data."""

import os
import re
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
    """What stands in the body of a table's own page (see `render.tables.web_page`), its heading two levels down."""
    _, _, rest = path.read_text(encoding="utf-8").partition("<main>")
    body, _, _ = rest.partition("</main>")
    return Markup(re.sub(r"<(/?)h1>", r"<\1h3>", body))


def drawing(path: Path, name: str, title: str) -> Markup:
    """A figure's SVG as an element. Names inside it get `name` before them, since a page may hold many drawings."""
    svg = re.sub(
        r"^.*?(?=<svg)|<metadata>.*?</metadata>",
        "",
        path.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'(<svg [^>]*?)width="[\d.]+pt" height="[\d.]+pt"', r"\1", svg, count=1)
    label = Markup('<svg role="img" aria-label="{}"').format(title)
    return Markup(svg.replace("<svg", label, 1))


def data(path: Path, title: str) -> tuple[Markup, int]:
    """The numbers behind a figure as a table, without the columns that are empty, and how many rows it leaves out."""
    rows = layouts.read_csv(path)
    rows = rows.loc[:, (rows != "").any()]
    html = rows.head(MOST_ROWS).to_html(index=False, border=0, justify="unset", classes="data")
    caption = Markup("<caption>{}: the numbers</caption>").format(title)
    html = html.replace("<th>", '<th scope="col">').replace("<thead>", f"{caption}<thead>", 1)
    return Markup(html), max(len(rows) - MOST_ROWS, 0)


def artefact(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The entry with its title, links to its files and, where it is made, what of it stands in the page."""
    shown = {
        "title": entry["about"].rstrip("."),
        "table": None,
        "drawing": None,
        "data": None,
        "left_out": 0,
        "facts": [],
    }
    if not entry["missing"]:
        files = {
            Path(file).suffix: Path(file) for file in entry["files"] if _kind(file) == "figures"
        }
        tables = {
            Path(file).suffix: Path(file) for file in entry["files"] if _kind(file) == "tables"
        }
        if tables:
            shown["table"] = table(tables[".html"])
            words = layouts.read_page(tables[".parquet"])
            shown |= {"title": words.title, "facts": [words.caption, *words.facts]}
        if files:
            shown["drawing"] = drawing(files[".svg"], f"drawing-{entry['name']}", entry["about"])
            shown["data"], shown["left_out"] = data(files[".csv"], entry["about"].rstrip("."))
    return entry | shown | {"links": [link(file, folder) for file in entry["files"]]}


def rows_of(entry: dict[str, Any]) -> Path:
    """The rows of an artefact that is a table."""
    return next(
        Path(file)
        for file in entry["files"]
        if _kind(file) == "tables" and file.endswith(".parquet")
    )


def link(file: str, folder: Path) -> dict[str, str]:
    return {
        "to": os.path.relpath(file, folder),
        "file": file,
        "kind": _kind(file),
        "ending": Path(file).suffix[1:],
    }


def _kind(file: str) -> str:
    return Path(file).parent.name
