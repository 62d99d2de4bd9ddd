"""Table of which framework trains which network: whether it was proven to be the same one, or why not."""

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results import proofs
from steptime.render.columns import Column, columns

COLUMNS = [*proofs.COLUMNS[:10], "proof_id"]
TYPES = proofs.TYPES


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS), one for each proof on one device, and the layout, frameworks across."""
    data = proofs.rows_of(inputs)
    data = data[data["devices"] == 1][COLUMNS].reset_index(drop=True)
    inputs.page.notes = ["A footnote says why a framework has no proof of a network."]
    return data, columns(data, SHOWN, {"Network": "network_label"})


SHOWN = [Column(lambda row: row["framework_label"], proofs.verdict)]
