"""Rows that a reader of the report filters and sorts: what page.js and the template need of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

DIGITS = 6  # of the numbers in the page; the files have them all


@dataclass(frozen=True)
class Column:
    """A column: the frame's column that it shows, its heading, how page.js writes its values, whether rows are chosen
    by it.

    Values are 'text', 'words' for long text, 'count', 'number', 'share', 'mebibytes' or 'interval'.
    """

    name: str
    title: str
    kind: str
    filtered: bool = False


def build(rows: pd.DataFrame, columns: Sequence[Column], name: str, caption: str) -> dict[str, Any]:
    """Returns the table: name, caption, number of rows, filters and, as JSON, columns and rows."""
    return {
        "name": name,
        "caption": caption,
        "count": len(rows),
        "filters": filters(rows, columns),
        "json": Markup(as_json(rows, columns)),
    }


def as_json(rows: pd.DataFrame, columns: Sequence[Column]) -> str:
    """Returns the columns' titles and kinds, and the rows as lists, as JSON that is safe in a script element."""
    values = zip(*(map(plain, rows[column.name]) for column in columns), strict=True)
    described = [{"title": column.title, "kind": column.kind} for column in columns]
    content = {"columns": described, "rows": list(values)}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def filters(rows: pd.DataFrame, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Returns the title of each filter, the place of its column, and the values to choose from."""
    choices = []
    for place, column in enumerate(columns):
        if column.filtered:
            values = [plain(value) for value in rows[column.name].unique()]
            values = sorted(values) if column.kind == "count" else values
            choices.append({"title": column.title, "place": place, "values": values})
    return choices


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: integers whole, other numbers with DIGITS digits, None for what is missing."""
    if isinstance(value, str | list) or value is None:
        return value
    if pd.isna(value):
        return None
    return int(value) if float(value).is_integer() else float(f"{value:.{DIGITS}g}")
