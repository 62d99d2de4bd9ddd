"""The table of proofs: how near every environment and mode came to the golden run of every network."""

from typing import Any

import pandas as pd

from steptime import networks
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.prove.compare import TOLERANCES
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import STATUS_WORDS, count, status_reason

# Columns of the table: the number in the data, its heading, and the limit above which the proof fails.
ERRORS = {
    "loss_error": ("First loss", TOLERANCES["loss"]),
    "later_loss_error": ("Losses of ten steps", TOLERANCES["later_loss"]),
    "one_minus_cosine": ("1 − gradient cosine", 1 - TOLERANCES["cosine"]),
    "update_error": ("Update", TOLERANCES["update"]),
    "after_one_step": ("Parameters after a step", TOLERANCES["parameters"]),
}
COLUMNS = [
    "network",
    "network_label",
    "environment",
    "framework",
    "framework_label",
    "mode",
    "devices",
    "exchange",
    "status",
    "reason",
    "full_parameters",
    "parameters",
    "frozen_parameters",
    *ERRORS,
    "worst_cosine_of",
    "worst_update_of",
    "proof_id",
]


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    return build(
        inputs.proofs, inputs.facts["owners"], inputs.frameworks, inputs.networks, inputs.page
    )


def build(
    proofs: list[dict[str, Any]],
    owners: dict[str, str],
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    page: tables.Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS; errors are relative) and the layout; fills the page's facts and notes.

    `owners` has the framework of each environment.
    """
    rows = pd.DataFrame([_row(proof, owners, catalogue) for proof in proofs])
    data = common.labelled(rows, frameworks, catalogue).reindex(columns=COLUMNS)
    several = data["devices"] > 1
    data.loc[several, "framework_label"] += (
        ", " + data["devices"].astype(str) + " devices, " + data["exchange"]
    )
    data = data.astype(
        dict.fromkeys(["full_parameters", "parameters", "frozen_parameters"], "Int64")
    )
    counts = data["status"].value_counts()
    others = "; ".join(
        f"{number} {STATUS_WORDS[status]}" for status, number in counts.items() if status != "ok"
    )
    page.facts = [
        f"{counts.get('ok', 0)} of {len(data)} proofs passed{f' ({others})' if others else ''}."
    ]
    page.notes = [
        "An error is relative, the worst over all parameter tensors, or steps; the limit stands in the heading. "
        "First loss and losses: of the loss. Update: the length of the difference between the gradients, of the length "
        "of the golden one. Parameters: the length of the difference after one step at the specification's learning "
        "rate, of their own length.",
        "Trained parameters are counted exactly in the narrow version here, and again in the full-size version before "
        "each cell is timed. Frozen ones are a framework's second bias of each LSTM, which is not trained.",
        "The proof_id stands in every row that was timed under the proof. Whole proofs: results/proofs/.",
    ]
    return data, _layout(data)


def _row(
    proof: dict[str, Any], owners: dict[str, str], catalogue: dict[str, Any]
) -> dict[str, Any]:
    details = proof["details"]
    cosine = details.get("worst_cosine")
    return {
        "network": proof["network"],
        "environment": proof["environment"],
        "framework": owners[proof["environment"]],
        "framework_version": None,
        "mode": proof["mode"],
        "devices": proof.get("devices", 1),
        "exchange": proof.get("exchange", ""),
        "status": proof["status"],
        "reason": proof["reason"],
        "full_parameters": networks.count_parameters(networks.specify(proof["network"], catalogue)),
        "parameters": details.get("parameters"),
        "frozen_parameters": details.get("frozen_parameters"),
        "loss_error": details.get("loss_error"),
        "later_loss_error": details.get("later_loss_error"),
        # Rounding may put the cosine of two equal gradients a little above 1.
        "one_minus_cosine": None if cosine is None else max(0.0, 1 - cosine),
        "update_error": details.get("worst_update"),
        "after_one_step": details.get("after1_parameters"),
        "worst_cosine_of": details.get("worst_cosine_of"),
        "worst_update_of": details.get("worst_update_of"),
        "proof_id": proof.get("proof_id"),
    }


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    headings = ["Parameters, full size", "Parameters, narrow", "Frozen"]
    headings += [f"{name} (≤ {limit:.0e})".replace("e-0", "e-") for name, limit in ERRORS.values()]
    body = [_entries(row) for row in data.to_dict("records")]
    index = pd.MultiIndex.from_frame(
        data[["network_label", "framework_label"]], names=["Network", "Framework"]
    )
    return pd.DataFrame(body, index=index, columns=[*headings, "Proof", "proof_id"], dtype=object)


def _entries(row: dict[str, Any]) -> list[Entry]:
    reason = status_reason(row["status"], row["reason"])
    entries = [Entry(count(row["full_parameters"]))]
    for name in ("parameters", "frozen_parameters"):
        entries.append(common.dash(reason) if pd.isna(row[name]) else Entry(count(row[name])))
    for name, (_, limit) in ERRORS.items():
        if pd.isna(row[name]):
            entries.append(common.dash(reason))
        else:
            entries.append(
                Entry(
                    f"{row[name]:.1e}",
                    () if row[name] <= limit else (reason.rstrip("."),),
                    kind="ours",
                )
            )
    verdict = Entry("passed", kind="words")
    if row["status"] != "ok":
        verdict = Entry(STATUS_WORDS[row["status"]], (reason.rstrip("."),), True, "words")
    known = pd.notna(row["proof_id"])
    return [
        *entries,
        verdict,
        Entry(row["proof_id"], kind="words") if known else common.dash(reason),
    ]
