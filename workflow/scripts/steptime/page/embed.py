"""Puts files that artefacts consist of into a page that holds many of them: their tables, drawings and data."""

import re
from pathlib import Path

import pandas as pd
from markupsafe import Markup

MOST_ROWS = 100  # of a figure's data in the page; the file has them all


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
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = rows.loc[:, (rows != "").any()]
    html = rows.head(MOST_ROWS).to_html(index=False, border=0, justify="unset", classes="data")
    caption = Markup("<caption>{}: the numbers</caption>").format(title)
    html = html.replace("<th>", '<th scope="col">').replace("<thead>", f"{caption}<thead>", 1)
    return Markup(html), max(len(rows) - MOST_ROWS, 0)
