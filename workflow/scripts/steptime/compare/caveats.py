"""Says what else differs between the two sides of a comparison, and refuses comparisons that mean nothing."""

import json
from typing import Any

import pandas as pd

from steptime.compare.sides import CompareError, Side
from steptime.merge.summary import region_text

Pairs = list[tuple[Any, Any]]
# A step that is slow now and then, such as every tenth or thirtieth, is among so many.
LEAST_STEPS = 30


def refuse(one: Side, other: Side, pairs: Pairs) -> None:
    """Raises CompareError where both sides have the same processes, other networks, or other timed regions."""
    sides = _processes(one, other, pairs)
    names = one.name, other.name
    starts = [set(zip(rows["machine_id"], rows["started_at"], strict=True)) for rows in sides]
    if starts[0] == starts[1]:
        raise CompareError(f"{' and '.join(names)} are the same processes: name different ones.")
    regions = [{region_text(region) for region in rows["timed_region"].dropna()} for rows in sides]
    if regions[0] and regions[1] and regions[0] != regions[1]:
        raise CompareError(
            f"{names[0]} times '{'; '.join(regions[0])}' and {names[1]} '{'; '.join(regions[1])}': measure both alike."
        )
    for at, label in pairs:
        cells = one.results.cells.loc[at], other.results.cells.loc[label]
        for column, words in {"parameters": "parameters", "flops_per_step": "operations"}.items():
            values = [cell[column] for cell in cells]
            if not any(map(pd.isna, values)) and values[0] != values[1]:
                network = cells[0]["variant"] or cells[0]["network"]
                raise CompareError(
                    f"{network} is another network there: {values[0]:,.0f} {words} in {names[0]} and "
                    f"{values[1]:,.0f} in {names[1]}; measure both with the same configuration."
                )


def sentences(one: Side, other: Side, pairs: Pairs) -> list[str]:
    """Says what makes a comparison worth less: differences, the most important first, and few steps; [] for nothing."""
    sides = _processes(one, other, pairs)
    texts = [_differ(sides, "kind", "Machines differ"), _other_machine(sides)]
    texts += [] if in_turn(one, other, pairs) else [_when(sides)]
    if not {"environment", "mode"} & {*one.chosen, *other.chosen}:
        texts.append(_differ(sides, "framework_version", "Versions differ"))
        texts.append(_changed(sides, "environment_digest", "The pins of an environment"))
        texts.append(_changed(sides, "worker_digest", "The code that is timed (adapter or loop)"))
    texts.append(_changed(sides, "network_digest", "The entry of a network"))
    texts.append(_changed(sides, "sampling_digest", "How long a process samples"))
    texts += [_variables(sides), _few_steps(sides)]
    return [sentence for sentence in texts if sentence]


def in_turn(one: Side, other: Side, pairs: Pairs) -> bool:
    """Tells whether both sides were measured in turn, in one run."""
    sides = _processes(one, other, pairs)
    spans = [(rows["started_at"].min(), rows["ended_at"].max()) for rows in sides]
    overlap = spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]
    return one.results is other.results and overlap


def _processes(one: Side, other: Side, pairs: Pairs) -> list[pd.DataFrame]:
    """Returns the processes of each side's cells, in the order of the pairs."""
    return [
        side.results.processes.set_index("cell").loc[[pair[at] for pair in pairs]]
        for at, side in enumerate((one, other))
    ]


def _values(rows: pd.DataFrame, column: str) -> list[str]:
    return sorted(map(str, rows[column].dropna().unique()))


def _differ(sides: list[pd.DataFrame], column: str, words: str) -> str:
    one, other = (_values(rows, column) for rows in sides)
    return f"{words}: {', '.join(one)} and {', '.join(other)}." if one != other else ""


def _other_machine(sides: list[pd.DataFrame]) -> str:
    kinds, ids = ([_values(rows, column) for rows in sides] for column in ("kind", "machine_id"))
    is_another = kinds[0] == kinds[1] and ids[0] != ids[1]
    return "They are two machines of the same kind." if is_another else ""


def _when(sides: list[pd.DataFrame]) -> str:
    days = " and ".join(rows["started_at"].min().strftime("%Y-%m-%d %H:%M") for rows in sides)
    return f"They were not measured in turn, but from {days} (UTC): a load that came between is in the ratios alone."


def _changed(sides: list[pd.DataFrame], column: str, words: str) -> str:
    one, other = (rows[column].fillna("").groupby(level=0, sort=False).first() for rows in sides)
    changed = sum(ours != theirs for ours, theirs in zip(one, other, strict=True))
    return f"{words} is not the same in {changed} of {len(one)} results." if changed else ""


def _variables(sides: list[pd.DataFrame]) -> str:
    """Names the workers' environment variables that differ, such as the allocator's; '' for none."""
    one, other = (
        {pair for text in rows["variables"].unique() for pair in json.loads(text).items()}
        for rows in sides
    )
    names = sorted({name for name, _ in one ^ other})
    return f"Variables of the workers differ: {', '.join(names)}." if names else ""


def _few_steps(sides: list[pd.DataFrame]) -> str:
    """Names the networks of which a side has few timed steps; a side that failed has none to count."""
    steps = [rows["steps"].groupby(level=0, sort=False).sum() for rows in sides]
    names = sides[0]["variant"].where(sides[0]["variant"] != "", sides[0]["network"])
    pairs = zip(names.groupby(level=0, sort=False).first(), *steps, strict=True)
    few = dict.fromkeys(name for name, *counts in pairs if 0 < min(counts) < LEAST_STEPS)
    if not few:
        return ""
    timed = f"Fewer than {LEAST_STEPS} steps were timed on one side of {', '.join(few)}"
    return f"{timed}: a step that is slow now and then may not be among them."
