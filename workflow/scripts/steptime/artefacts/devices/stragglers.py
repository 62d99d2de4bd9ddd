"""Table of several ranks, one of which is slow: each one's speed where they wait for one another, and where not."""

import pandas as pd

from shared.operations import ALONE, SLOW
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import parts
from steptime.plan.cell import IDENTITY
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import TEXT
from steptime.render.words import percent, significant

COLUMNS = [*IDENTITY, "network_label", "framework", "framework_label", "lacking"]
COLUMNS += ["first_alone", "last_alone", "first_beside", "last_beside", "first_keeps", "last_keeps"]
TYPES = {"lacking": TEXT}


def _rank(heading: str, name: str) -> Column:
    return Column(f"{heading}, steps/s", name, significant, _lacking, "ours")


def _lacking(row: Row) -> str:
    return row["lacking"] or "it was not timed"


SHOWN = [
    _rank("First rank alone", "first_alone"),
    _rank("Last rank alone", "last_alone"),
    _rank("First rank", "first_beside"),
    _rank("Slow last rank", "last_beside"),
    Column("First rank keeps", "first_keeps", percent, _lacking),
    Column("Slow last rank keeps", "last_keeps", percent, _lacking),
]
INDEX = {"Network": common.of_network, "Framework": "framework_label", "Devices": common.ranks_of}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; steps a second by a rank's own clock, and shares of them) and the layout."""
    operations = parts.read(inputs)
    rows = [_row(cell) for _, cell in operations.groupby(IDENTITY, sort=False, dropna=False)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    common.describe(
        inputs,
        "Alone: every rank has its CPUs for itself. Slow: as many programs that do nothing but compute are on the CPUs "
        "of the last rank as it has threads, so that it has half of them. Blocks of both take turns.",
        "Each rank's steps are counted until its own last one is done: what the first rank then waits for at the end "
        "of a block is not in it.",
        "sync: all ranks make one update together, and wait for the slowest. async: each makes its own. "
        "mixed: groups of two do, in each of which both wait for the slower one.",
    )
    return data, columns(data, SHOWN, INDEX)


def _row(cell: pd.DataFrame) -> Row:
    result = {name: cell.iloc[0].get(name) for name in COLUMNS}
    last = f"rank {cell['devices'].iloc[0] - 1}"
    seconds = cell.set_index(["part", "role"])["seconds"].to_dict()
    for rank, part in (("first", "rank 0"), ("last", last)):
        known = {
            name: 1 / seconds[part, state] if seconds.get((part, state)) else None
            for name, state in (("alone", ALONE), ("beside", SLOW))
        }
        result |= {f"{rank}_{name}": value for name, value in known.items()}
        if known["alone"] and known["beside"]:
            result[f"{rank}_keeps"] = known["beside"] / known["alone"]
    return result
