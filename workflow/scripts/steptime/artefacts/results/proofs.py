"""Table of proofs: how near every environment and mode came to the golden run of every network."""

from typing import Any

import pandas as pd

from steptime import networks
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.prove.compare import TOLERANCES
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import COUNT, TEXT, Entry
from steptime.render.words import STATUS_WORDS, count, why

# Columns of the table: the number in the data, its heading, and the limit above which the proof fails.
ERRORS = {
    "loss_error": ("First loss", TOLERANCES["loss"]),
    "later_loss_error": ("Losses of ten steps", TOLERANCES["later_loss"]),
    "one_minus_cosine": ("1 − gradient cosine", 1 - TOLERANCES["cosine"]),
    "update_error": ("Update", TOLERANCES["update"]),
    "after_one_step": ("Parameters after a step", TOLERANCES["parameters"]),
}
# What a proof itself and its details say under the same name.
NAMED = ("network", "environment", "mode", "status", "reason")
DETAILS = ["parameters", "frozen_parameters", "loss_error", "later_loss_error"]
DETAILS += ["worst_cosine_of", "worst_update_of"]
COLUMNS = ["network", "network_label", "environment", "framework", "framework_label", "mode"]
COLUMNS += ["devices", "exchange", "status", "reason", "full_parameters", "parameters"]
COLUMNS += ["frozen_parameters", *ERRORS, "worst_cosine_of", "worst_update_of", "proof_id"]
TYPES = dict.fromkeys(["worst_cosine_of", "worst_update_of", "proof_id"], TEXT)
TYPES |= dict.fromkeys(["full_parameters", "parameters", "frozen_parameters"], COUNT)


def _error(name: str, what: str, limit: float) -> Column:
    def remarks(row: Row) -> list[str]:
        return [] if row[name] <= limit else [why(row).rstrip(".")]

    heading = f"{what} (≤ {limit:.0e})".replace("e-0", "e-")
    return Column(heading, name, lambda error: f"{error:.1e}", why, "ours", remarks)


def verdict(row: Row) -> Entry:
    """Says that a proof has passed, or why not."""
    if row["status"] == "ok":
        return Entry("passed", kind="words")
    return Entry(STATUS_WORDS[row["status"]], (why(row).rstrip("."),), True, "words")


SHOWN = [
    Column("Parameters, full size", "full_parameters", count),
    Column("Parameters, narrow", "parameters", count, why),
    Column("Frozen", "frozen_parameters", count, why),
    *(_error(name, *said) for name, said in ERRORS.items()),
    Column("Proof", verdict),
    Column("proof_id", "proof_id", str, why, "words"),
]
INDEX = {"Network": "network_label", "Framework": "framework_label"}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; errors are relative) and the layout."""
    data, page = rows_of(inputs), inputs.page
    page.notes = [
        "An error is relative, the worst over all parameter tensors, or steps; the limit is in the heading. "
        "First loss and losses: of the loss. Update: the length of the difference between the gradients, of the length "
        "of the golden one. Parameters: the length of the difference after one step at the specification's learning "
        "rate, of their own length.",
        "Trained parameters are counted exactly in the narrow version here, and again in the full-size version before "
        "each result is timed. Frozen ones are a framework's second bias of each LSTM, which is not trained.",
        "Every row that was timed under a proof has its proof_id. Whole proofs: results/proofs/.",
        *common.imported(inputs.networks, data["network"]),
    ]
    return data, columns(data, SHOWN, INDEX)


def rows_of(inputs: Inputs) -> pd.DataFrame:
    """Returns one row (COLUMNS) for each proof; says on the page how many have passed."""
    owners, catalogue = inputs.facts["owners"], inputs.networks
    rows = pd.DataFrame([_row(proof, owners, catalogue) for proof in inputs.proofs])
    data = common.labelled(rows, inputs.frameworks, catalogue).reindex(columns=COLUMNS)
    several = data["devices"] > 1
    data.loc[several, "framework_label"] += (
        ", " + data["devices"].astype(str) + " devices, " + data["exchange"]
    )
    counts = data["status"].value_counts()
    others = "; ".join(
        f"{number} {STATUS_WORDS[status]}" for status, number in counts.items() if status != "ok"
    )
    passed = f"{counts.get('ok', 0)} of {len(data)} proofs passed"
    inputs.page.facts = [f"{passed}{f' ({others})' if others else ''}."]
    whole = ["full_parameters", "parameters", "frozen_parameters"]
    return data.astype(dict.fromkeys(whole, "Int64"))


def _row(proof: Row, owners: dict[str, str], catalogue: dict[str, Any]) -> Row:
    details, cosine = proof["details"], proof["details"].get("worst_cosine")
    known = {name: proof[name] for name in NAMED}
    known |= {name: details.get(name) for name in DETAILS}
    return known | {
        "framework": owners[proof["environment"]],
        "framework_version": None,
        "devices": proof.get("devices", 1),
        "exchange": proof.get("exchange", ""),
        "full_parameters": networks.count_parameters(networks.specify(proof["network"], catalogue)),
        # Rounding may put the cosine of two equal gradients a little above 1.
        "one_minus_cosine": None if cosine is None else max(0.0, 1 - cosine),
        "update_error": details.get("worst_update"),
        "after_one_step": details.get("after1_parameters"),
        "proof_id": proof.get("proof_id"),
    }
