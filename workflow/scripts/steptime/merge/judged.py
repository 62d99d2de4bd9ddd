"""Refuses rows when they are merged, although they were `ok` when they were measured.

A proof that has become stricter refuses rows that were measured before. And whatever a worker said of itself, the first
loss is a number that all frameworks must have in common.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np

from shared import limits
from shared.grouping import GROUPED
from shared.precisions import marked
from steptime.cells import checked
from steptime.plain import plural
from steptime.plan.cell import carried, key_of, proof_name, reference_path, shard_path

Row = dict[str, Any]
# Cells of one place run the same code on the same numbers, whatever their threads and repeat.
PLACE = ["platform", "environment", "mode", "precision", "task", "network", "variant", "batch"]
PLACE += ["devices", "exchange", "worker_digest"]


def by_proof(row: Row) -> Row:
    """Returns a row as today's proof judges it, which may have become stricter since the row was measured."""
    proof = _proof(proof_name(row))
    refused = (
        row["status"] == "ok"
        and proof.get("status") == "not_equivalent"
        and proof.get("environment_digest") == row["environment_digest"]
    )
    if not refused:
        return row
    return row | {"status": "not_equivalent", "reason": str(proof.get("reason", ""))}


def by_losses(rows: list[Row]) -> list[Row]:
    """Returns rows of cells, and refuses those whose first loss is wrong for their network, mini-batch and start
    values.

    The reference says which loss is right: two frameworks that make the same mistake would outvote a right one. Without
    a reference, the majority of at least three frameworks says it, each with one voice.
    """
    groups = defaultdict(list)
    for number, row in enumerate(rows):
        # Where ranks do not wait for one another, the first loss depends on who was first.
        waits = row["exchange"] not in GROUPED
        is_timed = row["status"] == "ok" and row.get("first_loss") is not None
        if is_timed and waits:
            named = row["variant"] or row["network"], row["batch"], row["precision"]
            groups[(*named, row.get("seed"), row["devices"])].append(number)
    judged = list(rows)
    for (_, _, precision, _, devices), numbers in groups.items():
        # It is of one device: where several share the mini-batch, batch normalisation gives another loss.
        known = _reference(rows[numbers[0]]) if devices == 1 else None
        known = known or _agreed([rows[number] for number in numbers], precision)
        if not known:
            continue
        wanted, limit, whose = known
        for number in numbers:
            loss = rows[number]["first_loss"]
            if not abs(loss - wanted) <= limit:
                reason = f"its first loss is {loss:.9g}, and {wanted:.9g} in {whose}"
                judged[number] = rows[number] | {"status": "not_equivalent", "reason": reason}
    return judged


def by_place(rows: list[Row], siblings: Iterable[Row] = ()) -> list[Row]:
    """Returns rows of cells without the times of each place of which a row, here or in `siblings`, is refused."""
    refused = {_place(row): row for row in [*siblings, *rows] if row["status"] == "not_equivalent"}
    judged = []
    for row in rows:
        other = refused.get(_place(row))
        if other and row["status"] == "ok":
            threads = plural(other["threads"], "thread")
            reason = f"with {threads} in repeat {other['repeat']}: {other['reason']}"
            row = row | {"status": "not_equivalent", "reason": reason}
        judged.append(row)
    return judged


def by_gradients(
    rows: list[Row],
    siblings: Iterable[Row] = (),
    shown_by: Mapping[str, str] = MappingProxyType({}),
) -> list[Row]:
    """Returns rows of cells; `proven_gradients` says whether any cell of the same place has shown each gradient.

    `siblings` are rows of other cells. `shown_by` names, by key, the cell of this run that shows the gradients for
    another cell; it is None until that cell is measured.
    """
    shown = {
        _place(row)
        for row in [*rows, *siblings]
        if row["status"] == "ok" and row.get("proven_gradients")
    }
    waiting = {
        _place(row)
        for row in rows
        if (key := shown_by.get(key_of(row))) and not Path(shard_path(key)).exists()
    }
    judged = []
    for row in rows:
        if row.get("proven_gradients") is not None:
            is_open = _place(row) in waiting and _place(row) not in shown
            row = row | {"proven_gradients": None if is_open else _place(row) in shown}
        judged.append(row)
    return judged


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] or "" for name in PLACE)


@cache
def _proof(name: str) -> dict[str, Any]:
    path = Path(f"results/proofs/{name}.json")
    return checked.record(path) if path.exists() else {}


def _reference(row: Row) -> tuple[float, float, str] | None:
    """Returns first loss, limit of its error, and whose loss it is; from this machine's reference if there is one."""
    network, batch, precision = row["variant"] or row["network"], row["batch"], row["precision"]
    path = Path(reference_path({"network": network, "batch": batch, "precision": precision}))
    # Nothing computes one again that was carried here and is of another network.
    of = f"{row.get('network_digest')} {batch}{marked(precision, ' ')} "
    return _of_file(path, precision) or _of_file(carried(path), precision, of)


def _of_file(path: Path, precision: str, of: str = "") -> tuple[float, float, str] | None:
    """Returns the same from a file; None where it is missing, has no numbers, or does not say that it is `of` this."""
    try:
        with np.load(path, allow_pickle=False) as content:
            if str(content["reason"]) or (of and not str(content["of"]).startswith(of)):
                return None
            loss, spread = float(content["losses"][0]), float(content["spreads"][0])
            labels = int(content["labels"])
            own = limits.of_loss(loss, labels=labels, precision=precision) + spread
            # What drops at random has no loss of its own.
            limit = np.inf if content["dropout"] else own
    except Exception:
        # None, or a broken one.
        return None
    return loss, limit, f"the reference {path}"


def _agreed(rows: list[Row], precision: str) -> tuple[float, float, str] | None:
    """Returns the same as most frameworks agree on it; None where they do not."""
    voices = defaultdict(list)
    for row in rows:
        voices[row["framework"]].append(row["first_loss"])
    losses = [median(voice) for voice in voices.values()]
    middle = median(losses)
    # Both may be off.
    limit = 2 * limits.of_loss(middle, precision=precision)
    agreeing = sum(abs(loss - middle) <= limit for loss in losses)
    if len(losses) < 3 or 2 * agreeing <= len(losses):
        return None
    return middle, limit, f"{agreeing} of {len(losses)} frameworks"
