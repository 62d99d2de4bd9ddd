"""Which framework trains which network, as a table: whether each was proven to be the same, or why not."""

import re
from typing import Any

import pandas as pd

from steptime.artefacts import proofs
from steptime.artefacts.inputs import Inputs
from steptime.render.tables import Entry
from steptime.render.words import STATUS_WORDS, status_reason

# What an adapter has besides is no reason, and each column is of one framework.
NOT_DECLARED = re.compile(r"the adapter \S+ has no (?P<missing>[^;]+); it has .*")
COLUMNS = [*proofs.COLUMNS[:10], "proof_id"]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS), one for each proof on one device, and the layout: networks down, frameworks across."""
    data, _ = proofs.table(inputs)
    data = data[data["devices"] == 1][COLUMNS].reset_index(drop=True)
    inputs.page.notes = ["A footnote says why a framework has no proof of a network."]
    return data, _layout(data)


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    body: dict[str, dict[str, Entry]] = {}
    for row in data.to_dict("records"):
        body.setdefault(row["network_label"], {})[row["framework_label"]] = _entry(row)
    columns = list(dict.fromkeys(data["framework_label"]))
    # A proof that the grid does not ask for is no entry.
    rows = [[entries.get(column, Entry()) for column in columns] for entries in body.values()]
    index = pd.Index(list(body), name="Network")
    return pd.DataFrame(rows, index=index, columns=columns, dtype=object)


def _entry(row: dict[str, Any]) -> Entry:
    if row["status"] == "ok":
        return Entry("passed", kind="words")
    told = NOT_DECLARED.sub(r"no \g<missing>", row["reason"])
    reason = status_reason(row["status"], told).rstrip(".")
    return Entry(STATUS_WORDS[row["status"]], (reason,), True, "words")
