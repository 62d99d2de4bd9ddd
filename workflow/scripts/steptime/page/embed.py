"""Puts the files of artefacts, their tables and drawings, into a page that holds many of them."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from steptime.render import tables as layouts

HERE = Path(__file__).parent
METADATA = re.compile(r"<metadata>.*</metadata>", re.DOTALL)
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
PLAIN = " !$()*+,-./:;=?@[]_|~{}"  # in the address of an image, besides letters and digits


def render(template: str, **facts: Any) -> str:
    loader = FileSystemLoader([HERE, HERE.parent / "render"])
    templates = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return templates.get_template(template).render(**facts)


def drawing(path: Path, title: str) -> Markup:
    """Returns a figure's SVG as an image: names inside it are its own. Coordinates are rounded to a hundredth."""
    text = METADATA.sub("", path.read_text("utf-8"))
    text = " ".join(text.split()).replace("> <", "><")
    svg = quote(re.sub(r"(\d{2,}\.\d\d)\d+", r"\1", text), PLAIN)
    return Markup('<img alt="{}" src="data:image/svg+xml,{}">').format(title, svg)


def notes(path: Path) -> list[str]:
    """Returns the notes that `render.figures` wrote into the metadata of a figure's SVG."""
    description = ElementTree.parse(path).find(f".//{DESCRIPTION}")
    return (description.text or "").splitlines() if description is not None else []


def artefact(entry: dict[str, Any], folder: Path, common: Collection[str]) -> dict[str, Any]:
    """Returns the entry with title, links and what the page shows of it, without `common` lines.

    `empty` tells whether its table has no number of ours; None without a table for such numbers.
    """
    shown: dict[str, Any] = {"title": entry["about"].rstrip("."), "facts": [], "empty": None}
    shown |= dict.fromkeys(("rows", "table", "drawing", "notes"))
    words = None
    if not entry["missing"]:
        files = {(Path(file).parent.name, Path(file).suffix): Path(file) for file in entry["files"]}
        if rows := files.get(("tables", ".parquet")):
            words = layouts.read_page(rows)
            facts, below = (
                [line for line in lines if line not in common]
                for lines in (words.facts, words.notes)
            )
            layout, own = layouts.read_layout(rows), replace(words, facts=facts, notes=below)
            shown["table"] = Markup(layouts.web_page(layout, own, "table.html.jinja"))
            shown |= {"rows": rows, "short": words.paper}
            if ours := [entry.text for entry in layout.to_numpy().ravel() if "ours" in entry.kind]:
                shown["empty"] = not {*ours} - {"", layouts.DASH}
            shown |= {"title": words.title, "facts": [words.caption, *facts]}
        if svg := files.get(("figures", ".svg")):
            shown["drawing"] = drawing(svg, entry["about"])
            # What the table says besides, it says itself.
            of_table = {*words.facts, *words.notes} if words else set()
            shown["notes"] = [note for note in notes(svg) if note not in {*of_table, *common}]
    return entry | shown | {"links": [link(file, folder) for file in entry["files"]]}


def common_words(artefacts: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the sentences around three tables or more, which a page says once."""
    files = (Path(file) for entry in artefacts if not entry["missing"] for file in entry["files"])
    pages = [layouts.read_page(file) for file in files if file.suffix == ".parquet"]
    counts = Counter(line for page in pages for line in {*page.facts, *page.notes})
    return [line for line, count in counts.items() if count >= 3]


def link(file: str, folder: Path) -> dict[str, str]:
    return {
        "to": os.path.relpath(file, folder),
        "file": file,
        "kind": Path(file).parent.name,
        "ending": Path(file).suffix[1:],
    }
