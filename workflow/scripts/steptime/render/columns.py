"""Tables as lists of columns: each has a heading, says what of a row it shows and how, and why there may be nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from steptime.render.tables import DASH, Entry

Row: TypeAlias = dict[str, Any]
Heading: TypeAlias = str | tuple[str, str]


def dash(reason: str) -> Entry:
    """Returns an entry without a number of ours; the footnote says why."""
    return Entry(DASH, (reason.rstrip("."),), kind="ours")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    `heading` may depend on the row, where the rows of one line are in different places. `shown` is the name of the
    row's value, or makes it: a value, or a finished entry. `text` writes the value. Where there is none, `why_not` is
    the reason, '' for an empty place. `remarks` makes footnotes; a value is bold where its row's `best` is true.
    """

    heading: Heading | Callable[[Row], Heading]
    shown: str | Callable[[Row], Any]
    text: Callable[[Any], str] = str
    why_not: str | Callable[[Row], str] = ""
    kind: str = ""
    remarks: Callable[[Row], Sequence[str]] | None = None
    best: str = ""

    def entry(self, row: Row) -> Entry:
        value = self.shown(row) if callable(self.shown) else row[self.shown]
        if isinstance(value, Entry):
            return value
        if pd.isna(value):
            why_not = self.why_not(row) if callable(self.why_not) else self.why_not
            return dash(why_not) if why_not else Entry()
        remarks = tuple(self.remarks(row)) if self.remarks else ()
        return Entry(self.text(value), remarks, bool(self.best and row[self.best]), self.kind)


def columns(
    data: pd.DataFrame, shown: Sequence[Column], index: Mapping[str, Any], order: Sequence[str] = ()
) -> pd.DataFrame:
    """Returns the layout of tidy rows: `index` says by heading what names a line.

    Each row is a line; where headings depend on rows, all rows with the same names are one line. Columns are in the
    order of their first row, or with `order` sorted by the rows' values of these names.
    """
    rows = data.to_dict("records")
    made_of_rows = any(callable(column.heading) for column in shown)
    lines: dict[Any, dict[Heading, Entry]] = {}
    for at, row in enumerate(rows):
        name = tuple(row[each] if isinstance(each, str) else each(row) for each in index.values())
        line = lines.setdefault((name if made_of_rows else at, name), {})
        line |= {heading_of(column, row): column.entry(row) for column in shown}
    if order:
        rows = data.sort_values(list(order), kind="stable").to_dict("records")
        headings = [heading_of(column, row) for column in shown for row in rows]
    else:
        headings = [heading_of(column, row) for row in rows for column in shown]
    names = [name for _, name in lines]
    fixed = [column.heading for column in shown if not callable(column.heading)]
    return laid_out(zip(names, lines.values(), strict=True), list(index), headings or fixed)


def heading_of(column: Column, row: Row) -> Heading:
    return column.heading(row) if callable(column.heading) else column.heading


def laid_out(
    lines: Iterable[tuple[Any, Mapping[Any, Entry]]],
    names: Sequence[str],
    headings: Iterable[Heading] = (),
) -> pd.DataFrame:
    """Returns the layout of lines, each a name and its entries by heading; `headings` are in order."""
    known = list(lines)
    ordered = list(dict.fromkeys(headings or (each for _, entries in known for each in entries)))
    body = [[entries.get(heading, Entry()) for heading in ordered] for _, entries in known]
    keys = [name if isinstance(name, tuple) else (name,) for name, _ in known]
    levels = [[key[at] for key in keys] for at in range(len(names))]
    index = pd.MultiIndex.from_arrays(levels, names=list(names))
    down = index if len(names) > 1 else index.get_level_values(0)
    grouped = ordered and isinstance(ordered[0], tuple)
    across = pd.MultiIndex.from_tuples(ordered) if grouped else pd.Index(ordered, dtype=object)
    return pd.DataFrame(body, index=down, columns=across, dtype=object)
