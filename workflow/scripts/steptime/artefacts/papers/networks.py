"""The table of the networks: the specifications beside what the paper printed, each difference explained."""

import math
from typing import Any

import pandas as pd

from steptime import networks as specifications
from steptime.artefacts.inputs import Inputs
from steptime.render.columns import Column, Row, laid_out
from steptime.render.tables import FLAG, TEXT, Entry
from steptime.render.words import count, significant

COLUMNS = ["network", "label", "batch", "quantity", "unit", "ours", "theirs", "ratio", "same"]
COLUMNS += ["note"]
TYPES = dict.fromkeys(["quantity", "unit", "note"], TEXT)
TYPES |= {"same": FLAG}
QUANTITIES = {"Input": "values", "Output": "values", "Layers": "layers", "Parameters": "parameters"}
OPERATIONS = "Operations per step"
MILLION = 1_000_000


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS) and the layout; numbers of parameters are compared in whole millions."""
    networks, paper, page = inputs.networks, inputs.catalogue, inputs.page
    theirs = {(row["network"], row["column"]): row for row in inputs.printed.to_dict("records")}
    rows = [
        row
        for base in paper["networks"]
        for name in networks
        if name == base or networks[name].get("variant_of") == base
        for row in _rows(name, base, networks, theirs)
    ]
    data = pd.DataFrame(rows, columns=COLUMNS)
    data = data.astype(dict.fromkeys(["batch", "ours", "theirs"], "Int64"))
    variants = {
        name: entry
        for name, entry in networks.items()
        if entry.get("variant_of") in paper["networks"]
    }
    page.notes = [
        f"Ratios are ours divided by what {paper['short']} printed. Parameters are trainable ones, counted "
        "from the specifications in config/networks.yaml.",
        *[f"{name} is {own['variant_of']} with {own['why']}." for name, own in variants.items()],
        *page.notes,
    ]
    return data, _layout(data, paper["short"])


def _rows(
    name: str, base: str, networks: dict[str, Any], theirs: dict[tuple[str, str], Row]
) -> list[Row]:
    spec = specifications.specify(name, networks)
    entry = specifications.resolve(name, networks)
    source = spec["input"]
    # A sequence of words is given by its vocabulary in the paper, not by its length.
    width = source["vocabulary"] if source["kind"] == "tokens" else source["shape"][-1]
    ours = {
        "Input": math.prod(source["shape"]) if source["kind"] == "image" else width,
        "Output": specifications.count_classes(spec),
        "Layers": specifications.count_layers(spec),
        "Parameters": specifications.count_parameters(spec),
        OPERATIONS: specifications.flops_per_step(spec, entry["batch"]),
    }
    label = entry["label"] if name == base else name
    common = {"network": name, "label": label, "batch": entry["batch"]}
    return [
        common
        | {"quantity": quantity, "unit": QUANTITIES.get(quantity, "operations"), "ours": value}
        | _comparison(value, theirs.get((base, quantity)), quantity, name == base)
        for quantity, value in ours.items()
    ]


def _comparison(ours: int, printed: Row | None, quantity: str, is_base: bool) -> Row:
    if printed is None:
        return {"theirs": None, "ratio": None, "same": None, "note": ""}
    theirs = int(printed["number"])
    same = ours // MILLION == theirs // MILLION if quantity == "Parameters" else ours == theirs
    note = "" if same else printed["note"] or f"the paper prints {count(theirs)}"
    if not same and quantity == "Parameters" and not is_base:
        note = (
            f"a variant with another number of parameters than the paper prints ({count(theirs)})"
        )
    return {"theirs": theirs, "ratio": ours / theirs, "same": same, "note": note}


def _layout(data: pd.DataFrame, short: str) -> pd.DataFrame:
    def note(row: Row) -> list[str]:
        return [row["note"]] if row["note"] else []

    ours = Column("", "ours", count, kind="ours", remarks=note)
    theirs = Column("", "theirs", _printed, "the paper does not print it")
    ratio = Column("", "ratio", significant, kind="ratio")
    lines: dict[tuple[str, str], dict[Any, Entry]] = {}
    for row in data.to_dict("records"):
        entries, quantity = lines.setdefault((row["label"], f"{row['batch']}"), {}), row["quantity"]
        if quantity == OPERATIONS:
            entries["Here", OPERATIONS] = Entry(f"{significant(row['ours'] / 1e9)} G", kind="ours")
            continue
        entries["Here", quantity] = ours.entry(row)
        entries[short, quantity] = theirs.entry(row)
        if quantity == "Parameters":
            entries["Ours ÷ theirs", quantity] = ratio.entry(row)
    headings = [("Here", quantity) for quantity in [*QUANTITIES, OPERATIONS]]
    headings += [(short, quantity) for quantity in QUANTITIES]
    headings += [("Ours ÷ theirs", "Parameters")]
    return laid_out(lines.items(), ["Network", "Mini-batch"], headings)


def _printed(value: int) -> str:
    """Writes a number in the paper's own words: '55 millions', '3.8 billions'."""
    if value >= 1000 * MILLION:
        return f"{value / (1000 * MILLION):g} billions"
    return f"{value / MILLION:g} millions" if value >= MILLION else count(value)
