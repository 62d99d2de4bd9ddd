"""Writes a table as Parquet, CSV, Markdown, HTML and LaTeX: one way for every table of every paper.

`data` are the tidy rows (Parquet, CSV), `layout` is what a reader sees: `Entry` objects or plain text, with indexes of
one level or several.
"""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, FileSystemLoader

DESCRIPTION = b"steptime"

DASH = "–"
# Whose numbers a row has, and what separates the footnotes of one place: plain text has no line's end in it.
OURS, PAPER = "ours", "paper"
SEPARATOR = "\n"
LINES_OF_A_PAGE = 40
LETTERS_OF_A_LINE = 90
# In letters: from where on a column of a longtable is not made wider, what its narrowest gets, and what each for notes.
WIDE, NARROW, SPARE = 24, 12, 2
# The type of columns that are no numbers, so that an empty one is like a full one: here of those that name a cell. Each
# module declares those of its own in TYPES.
TEXT, COUNT, FLAG = pa.large_string(), pa.int64(), pa.bool_()
OF_CELLS = dict.fromkeys(
    ["source", "platform", "environment", "environment_label", "mode", "precision", "device"], TEXT
)
OF_CELLS |= dict.fromkeys(["task", "network", "network_label", "variant", "dataset", "label"], TEXT)
OF_CELLS |= dict.fromkeys(["framework", "framework_label", "framework_version", "exchange"], TEXT)
OF_CELLS |= dict.fromkeys(["status", "reason", "marks"], TEXT)
OF_CELLS |= dict.fromkeys(["batch", "devices", "threads", "repeats", "seed"], COUNT)
# With more columns than these its letters are smaller.
MANY_COLUMNS = 9
# A template is read once.
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
)

# What would end a cell of a table or begin HTML.
MARKDOWN = str.maketrans({letter: f"\\{letter}" for letter in "\\|<"})
# What would make a link of words in brackets. A bracket alone makes none, and stands in commands as `devices: [1, 2]`.
LINK = re.compile(r"\](?=[(\[:])")
LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#{}"},
        # Names and paths have no space at which a line could end.
        **{"_": r"\_\allowbreak{}", "/": r"/\allowbreak{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{"–": "--", "−": "$-$", "±": r"$\pm$", "÷": r"$\div$", "×": r"$\times$"},
        **{"≤": r"$\leq$", "≥": r"$\geq$", "<": "$<$", ">": "$>$", "τ": r"$\tau$"},
    }
)


@dataclass(frozen=True)
class Entry:
    """One entry of a table; `kind` are classes of the page's style: 'ours', 'theirs', 'ratio', 'words'."""

    text: str = ""
    footnotes: tuple[str, ...] = ()
    best: bool = False
    kind: str = ""

    def markdown(self, letters: Mapping[str, str]) -> str:
        text = in_markdown(self.text)
        text = f"**{text}**" if self.best else text
        marks = ",".join(letters[note] for note in self.footnotes)
        return f"{text}<sup>{marks}</sup>" if marks else text

    def latex(self, letters: Mapping[str, str]) -> str:
        text = self.text.translate(LATEX)
        text = rf"\textbf{{{text}}}" if self.best else text
        marks = ",".join(letters[note] for note in self.footnotes)
        return rf"{text}\textsuperscript{{{marks}}}" if marks else text

    @property
    def classes(self) -> str:
        names = [self.kind, "best" if self.best else "", "dash" if self.text == DASH else ""]
        return " ".join(name for name in names if name)


@dataclass
class Page:
    """The words around a table: its heading, its caption with facts on the measurement, and the notes below it."""

    artefact: str
    title: str
    caption: str
    paper: str
    facts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def write(
    prefix: Path,
    data: pd.DataFrame,
    layout: pd.DataFrame,
    page: Page,
    types: Mapping[str, pa.DataType] = OF_CELLS,
) -> None:
    """Writes `<prefix>.parquet`, `.csv`, `.md`, `.html` and `.tex`; `types` are of columns besides OF_CELLS."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    layout = layout.map(lambda value: value if isinstance(value, Entry) else Entry(str(value)))
    # Not `with_suffix`: a prefix may end in a version, as torch-1.4.
    known = {**OF_CELLS, **types}
    table = pa.table({name: _column(data[name], known.get(name)) for name in data})
    write_parquet(table, layout, page, Path(f"{prefix}.parquet"))
    data.to_csv(f"{prefix}.csv", index=False)
    for ending, made_of in (("md", markdown), ("html", web_page), ("tex", latex)):
        Path(f"{prefix}.{ending}").write_text(made_of(layout, page), encoding="utf-8")


def write_parquet(table: pa.Table, layout: pd.DataFrame, page: Page, path: Path) -> None:
    """Writes the tidy rows, with the page's words and the layout as JSON in the metadata."""
    stored = {
        "page": asdict(page),
        "names": list(layout.index.names),
        "index": list(map(_levels, layout.index)),
        "columns": list(map(_levels, layout.columns)),
        "entries": [[astuple(entry) for entry in row] for row in layout.itertuples(index=False)],
    }
    words = {DESCRIPTION: json.dumps(stored).encode()}
    pq.write_table(table.replace_schema_metadata(words), path)


def _column(values: pd.Series, wanted: pa.DataType | None) -> pa.Array:
    """Returns a column in the type that is wanted; else what is empty or whole becomes numbers."""
    kept = pa.Array.from_pandas(values)
    kept = kept.combine_chunks() if isinstance(kept, pa.ChunkedArray) else kept
    if not (wanted or pa.types.is_null(kept.type) or pa.types.is_integer(kept.type)):
        return kept
    try:
        return kept.cast(wanted or pa.float64())
    except pa.ArrowInvalid:
        return kept


def read_page(path: Path) -> Page:
    return Page(**_stored(path)["page"])


def read_layout(path: Path) -> pd.DataFrame:
    """Returns the layout as `write_parquet` stored it, each heading a tuple."""
    stored = _stored(path)
    body = [
        [Entry(text, tuple(footnotes), *more) for text, footnotes, *more in row]
        for row in stored["entries"]
    ]
    index, across = _headings(stored["index"], stored["names"]), _headings(stored["columns"])
    return pd.DataFrame(body, index=index, columns=across, dtype=object)


def _headings(keys: list[list[str]], names: list[str | None] | None = None) -> pd.MultiIndex:
    """Returns headings of several levels, also for none."""
    if keys:
        return pd.MultiIndex.from_tuples(map(tuple, keys), names=names)
    return pd.MultiIndex.from_arrays([[] for _ in names or [None]], names=names)


def _stored(path: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(pq.read_schema(path).metadata[DESCRIPTION])
    return stored


def _levels(key: Any) -> tuple[str, ...]:
    """Returns the levels of a line's or column's heading."""
    return tuple(map(str, key)) if isinstance(key, tuple) else (str(key),)


def in_markdown(text: str) -> str:
    """Escapes a text so that Markdown shows it as it is: it ends no cell, and is no HTML and no link."""
    return LINK.sub(r"\]", text.translate(MARKDOWN))


def markdown(layout: pd.DataFrame, page: Page) -> str:
    """Returns a layout as a Markdown document; headings of several levels become one line, row headings columns."""
    letters = _letters(layout)
    flat = layout.map(lambda entry: entry.markdown(letters))
    flat.columns = [in_markdown(_one_line(column)) for column in flat.columns]
    if any(flat.index.names):
        headings = _sparse(layout.index).map(in_markdown)
        headings.index = flat.index
        flat = pd.concat([headings, flat], axis=1)
    head = [f"## {page.paper}: {page.title}", "", page.caption, ""]
    head += [f"{fact}  " for fact in page.facts]
    table = flat.to_markdown(index=False, disable_numparse=True)
    lines = [*map(in_markdown, head), "", table, ""]
    lines += [f"<sup>{letter}</sup> {in_markdown(text)}.  " for text, letter in letters.items()]
    lines += [""] if letters else []
    lines += [in_markdown(f"- {note}") for note in page.notes]
    return "\n".join(lines) + "\n"


def web_page(layout: pd.DataFrame, page: Page, template: str = "page.html.jinja") -> str:
    """Returns a layout by a template of this folder; footnotes have the artefact's name, since a page holds several."""
    named = any(layout.index.names)
    down = _spans(list(map(_levels, layout.index))) if named else [()] * len(layout)
    across = _spans(list(map(_levels, layout.columns)))
    above = [
        [(text, span) for *_, text, span in filter(None, level)]
        for level in zip(*across, strict=True)
    ]
    return TEMPLATES.get_template(template).render(
        page=page,
        names=layout.index.names if named else [],
        above=above,
        lines=[
            (list(filter(None, headings)), entries)
            for headings, entries in zip(down, layout.itertuples(index=False), strict=True)
        ],
        letters=_letters(layout),
    )


def _spans(keys: list[tuple[str, ...]]) -> list[list[tuple[int, str, int] | None]]:
    """Returns, by key and level: level, heading, its number of keys; None where an earlier heading goes on."""
    spans: list[Any] = [[(level, text, 1) for level, text in enumerate(key)] for key in keys]
    for at in range(len(keys) - 1, 0, -1):
        for level in range(len(keys[at]) - 1):
            if keys[at][: level + 1] == keys[at - 1][: level + 1]:
                _, text, span = spans[at][level]
                spans[at - 1][level], spans[at][level] = (level, text, span + 1), None
    return spans


def latex(layout: pd.DataFrame, page: Page) -> str:
    """Returns a layout of entries as a LaTeX table with booktabs' rules, its caption above, footnotes and notes below.

    A table of more lines than a page is a longtable on landscape pages. Where only table and notes together are longer
    than a page, the notes follow as text: a float is not broken over pages.
    """
    letters = _letters(layout)
    cells = layout.map(lambda entry: entry.latex(letters))
    styler = cells.style.format_index(_escaped, axis="columns").format_index(_escaped, axis="index")
    styler.index.names = [name and _escaped(name) for name in cells.index.names]
    levels = cells.index.nlevels if any(cells.index.names) else 0
    styler = styler if levels else styler.hide(axis="index")
    form = {"hrules": True, "multirow_align": "naive", "multicol_align": "c"}
    caption = _escaped(f"{page.paper}: {page.title}. {page.caption}")
    notes = [rf"\textsuperscript{{{letter}}} {_escaped(text)}." for text, letter in letters.items()]
    notes += [_escaped(note) for note in (*page.facts, *page.notes)]
    small = [r"\par\medskip\footnotesize\raggedright", *[rf"{note}\par" for note in notes]]
    packages = r"% Needs \usepackage{array,booktabs,graphicx,longtable,lscape}."
    if len(layout) > LINES_OF_A_PAGE:
        form |= {"environment": "longtable", "caption": caption, "label": f"tab:{page.artefact}"}
        table = styler.to_latex(**form, column_format=_shared_width(layout, levels)).rstrip()
        size = "tiny" if levels + layout.shape[1] > MANY_COLUMNS else "scriptsize"
        small_columns = rf"\{size}\setlength{{\tabcolsep}}{{2pt}}"
        lines = [packages, r"\begin{landscape}", small_columns, table, *small, r"\end{landscape}"]
        return "\n".join(lines) + "\n"
    columns = "l" * levels + "".join(_alignment(body) for _, body in layout.items())
    fitted = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    named = [rf"\caption{{{caption}}}", rf"\label{{tab:{page.artefact}}}"]
    head = [packages, r"\begin{table}", r"\centering", *named]
    table = styler.to_latex(**form, column_format=columns).rstrip() + "}"
    lines = [*head, fitted, table, *small, r"\end{table}"]
    if len(layout) + sum(1 + len(note) // LETTERS_OF_A_LINE for note in notes) > LINES_OF_A_PAGE:
        lines = [*head, fitted, table, r"\end{table}", "{", *small, "}"]
    return "\n".join(lines) + "\n"


def _alignment(entries: pd.Series) -> str:
    """Returns a column's alignment, as in the page: long words as a paragraph, words left, numbers right."""
    kinds = [entry.kind for entry in entries if entry.text]
    if any("long" in kind for kind in kinds):
        return r">{\raggedright\arraybackslash}p{4cm}"
    return "l" if all("words" in kind for kind in kinds) else "r"


def _shared_width(layout: pd.DataFrame, levels: int) -> str:
    """Returns columns that fill a line together, each by its longest text: a longtable cannot be scaled to the page."""
    headings = [
        (name, layout.index.get_level_values(name), "l") for name in layout.index.names[:levels]
    ]
    bodies = [
        (_one_line(name), [entry.text for entry in body], _alignment(body))
        for name, body in layout.items()
    ]
    widths, sides = [], []
    for name, texts, alignment in (*headings, *bodies):
        words = [*map(str, texts), *name.split()]
        widths.append(SPARE + min(WIDE, max(NARROW, *map(len, words))))
        sides.append("left" if alignment == "r" else "right")
    return "".join(
        rf">{{\ragged{side}\arraybackslash}}p{{\dimexpr {width / sum(widths):.4f}\linewidth-2\tabcolsep\relax}}"
        for side, width in zip(sides, widths, strict=True)
    )


def _escaped(text: str) -> str:
    return str(text).translate(LATEX)


def _letters(layout: pd.DataFrame) -> dict[str, str]:
    """Returns {footnote: letter} in the order of first appearance: a to z, then aa, ab ..."""
    entries = (entry for row in layout.itertuples(index=False) for entry in row)
    notes = dict.fromkeys(note for entry in entries for note in entry.footnotes)
    alphabet = string.ascii_lowercase
    letters = [*alphabet, *map("".join, product(alphabet, repeat=2))]
    return dict(zip(notes, letters, strict=False))


def _sparse(index: pd.Index) -> pd.DataFrame:
    """Returns row headings as columns, empty where the row above has the same."""
    frame = index.to_frame(index=False).astype(str)
    repeated = pd.Series(True, index=frame.index)
    for name in frame:
        repeated &= frame[name] == frame[name].shift()
        frame[name] = frame[name].mask(repeated, "")
    return frame


def _one_line(column: object) -> str:
    return " ".join(part for part in column if part) if isinstance(column, tuple) else str(column)
