"""The table of the software: what ran here beside what the paper ran, by lineage."""

import re

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import taken, was_told
from steptime.render.columns import Column, Row, laid_out
from steptime.render.tables import TEXT, Entry
from steptime.render.words import marked, raw_data, why

# Our property, its heading, and why a build may not have it.
PROPERTIES = [
    ("framework_version", "Version", "the framework did not start, so its version is not known"),
    ("blas", "BLAS, oneDNN", "this build does not say which linear algebra library it uses"),
    ("registers", "Registers", "no compiled library of this environment was seen to multiply"),
    ("cuda", "CUDA", "this build is without CUDA"),
    ("cudnn", "cuDNN", "this build is without cuDNN"),
    ("python", "Python", "the framework did not start, so its Python is not known"),
]
COLUMNS = ["lineage", "environment", "framework", "property", "ours", "theirs_property", "theirs"]
COLUMNS += ["theirs_framework", "status", "reason", "marks"]
TYPES = dict.fromkeys(["lineage", "property", "theirs_property", "theirs_framework"], TEXT)
# How libraries of products name themselves, and what a table says of each.
NAMED = [
    (re.compile(r"(OpenBLAS \S+) .*runs (\w+)"), r"\1 (\2)"),
    (re.compile(r"Intel\(R\) .*Math Kernel Library Version (\S+?)-Product .*"), r"MKL \1"),
    (re.compile(r"Intel\(R\) MKL-DNN v(\S+) .*"), r"oneDNN \1"),
]


def _named(text: str) -> str:
    """Writes each library once, with its name, its version and the kind of code that it runs."""
    names = text.split("; ")
    for pattern, short in NAMED:
        names = [pattern.sub(short, name) for name in names]
    return "; ".join(dict.fromkeys(names))


OURS = Column("", "ours", _named, lambda row: row["reason"], "ours words", marked)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS, texts) and the layout; `compared` pairs printed columns with ours."""
    printed, frameworks, compared = inputs.printed, inputs.frameworks, inputs.entry["compared"]
    theirs = {(row["framework"], row["column"]): row["value"] for row in printed.to_dict("records")}
    by_lineage = {frameworks[name].lineage: name for name in printed["framework"].unique()}
    columns = list(printed["column"].unique())
    pairs = [(*entry, compared.get(entry[1])) for entry in PROPERTIES]
    pairs += [("", "", "", column) for column in columns if column not in compared.values()]
    cells = inputs.measured.cells.drop_duplicates(["environment", "framework"])
    ours = [(frameworks[cell["framework"]].lineage, cell) for cell in cells.to_dict("records")]
    known = {lineage for lineage, _ in ours}
    ours += [(lineage, {}) for lineage in by_lineage if lineage not in known]
    ours.sort(key=lambda own: (frameworks.lineage(own[0]).order, own[1].get("environment", "")))
    rows = [
        _row(inputs, cell, lineage, by_lineage.get(lineage, ""), theirs, pair)
        for lineage, cell in ours
        for pair in pairs
    ]
    data = pd.DataFrame(rows, columns=COLUMNS)
    inputs.page.notes = [raw_data(inputs.measured), *inputs.page.notes]
    return data, _layout(data, inputs.catalogue["short"], columns)


def _row(
    inputs: Inputs,
    cell: Row,
    lineage: str,
    their_framework: str,
    theirs: dict[tuple[str, str | None], str],
    pair: tuple[str, str, str, str | None],
) -> Row:
    key, heading, why_missing, their_column = pair
    frameworks, measured = inputs.frameworks, inputs.measured
    row = {
        "lineage": frameworks.lineage(lineage).label,
        "property": heading,
        "theirs_property": their_column,
        "theirs": theirs.get((their_framework, their_column)),
        "theirs_framework": frameworks[their_framework].label if their_framework else None,
        "status": "ok",
        "reason": "",
        "marks": "",
    }
    if not cell:
        return row
    row |= {"environment": cell["environment"], "framework": frameworks[cell["framework"]].label}
    known = measured.software.get(cell["environment"], {})
    value = known.get(key)
    if key == "registers" and value and any(map(was_told, known.get("settings", {}).values())):
        return row | {"ours": taken(value), "marks": "told of AVX2"}
    if value or not key:
        return row | {"ours": value}
    rows = measured.cells[measured.cells["environment"] == cell["environment"]]
    failed = rows[rows["status"] == "install_failed"]
    if len(failed):
        return row | {"status": "install_failed", "reason": why(failed.iloc[0])}
    return row | {"status": "missing", "reason": why_missing}


def _layout(data: pd.DataFrame, short: str, printed_columns: list[str]) -> pd.DataFrame:
    lines: dict[tuple[str, str, str], dict[tuple[str, str], Entry]] = {}
    for row in data.to_dict("records"):
        measured = pd.notna(row["environment"])
        named = (row["framework"], row["environment"]) if measured else ("", "")
        entries = lines.setdefault((row["lineage"], *named), {})
        if measured and row["property"]:
            entries["Here", row["property"]] = OURS.entry(row)
        if pd.notna(row["theirs"]):
            entries[short, "Framework"] = Entry(row["theirs_framework"], kind="words")
            entries[short, row["theirs_property"]] = Entry(row["theirs"], kind="words")
    headings = [("Here", heading) for _, heading, _ in PROPERTIES]
    headings += [(short, heading) for heading in ["Framework", *printed_columns]]
    return laid_out(lines.items(), ["Lineage", "Framework here", "Environment"], headings)
