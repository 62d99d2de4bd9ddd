"""What a worker's outcome becomes in the shard of each task: columns, rows, and words for the terminal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steptime.machine import windows
from steptime.records import Job
from steptime.supervisor.supervise import Outcome

STOPPED = {
    "accuracy": "the accuracy was reached",
    "epochs": "all epochs were trained",
    "seconds": "the time was over",
}


@dataclass(frozen=True)
class Reading:
    """How the outcome of a task is read. `columns` also gets the job and the specification of the network."""

    columns: Callable[[Job, dict[str, Any], Outcome], dict[str, Any]]
    rows: Callable[[Outcome], list[dict[str, Any]]]
    told: Callable[[Outcome], str]


def result(task: str, outcome: Outcome) -> str:
    """What came out of a cell, in words: its number, or the status with its reason."""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.reason}"
    return READINGS[task].told(outcome)


def used_by_ranks(outcome: Outcome) -> list[dict[str, Any]]:
    """Of several ranks, what each used while samples were taken or it trained, as far as it is known: its `seconds` in
    steps and its `cpu_seconds` besides what `Rank.facts` says. The first rank has its own in the columns.
    """
    warm = outcome.events.get("warmup", {}).get("steps", 0)
    taken = [steps for steps, _ in outcome.samples] + [epoch["steps"] for epoch in outcome.epochs]
    last, found = warm + sum(taken), []
    for rank in outcome.ranks:
        done, seconds, cpu = 0, 0.0, 0.0
        for steps, spent, used in rank.get("blocks", []):
            if warm <= done < last:
                seconds, cpu = seconds + spent, cpu + used
            done += steps
        known = {"seconds": seconds, "cpu_seconds": cpu} if "blocks" in rank else {}
        found.append({name: rank[name] for name in rank if name != "blocks"} | known)
    return found


def exchanged(outcome: Outcome) -> dict[str, Any]:
    """What ranks exchanged in a step: bytes over the loopback interface; seconds, and the updates of others that an
    update had not seen, where the framework tells.
    """
    steps = sum(steps for steps, _ in outcome.samples)
    sent = windows.growth(outcome.loopback)
    told = {
        name: [rank[name] for rank in outcome.ranks if rank.get(name) is not None]
        for name in ("exchange_seconds", "staleness")
    }
    return {"bytes_exchanged": None if sent is None or not steps else int(sent // steps)} | {
        name: sum(values) / len(values) if values else None for name, values in told.items()
    }


def _step_columns(job: Job, spec: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    warmup, done = (outcome.events.get(name, {}) for name in ("warmup", "done"))
    others = sum(rank.get("cpu_seconds", 0.0) for rank in used_by_ranks(outcome)[1:])
    return {
        "first_step_seconds": warmup.get("first_seconds"),
        "warmup_steps": warmup.get("steps"),
        "warmup_seconds": warmup.get("seconds"),
        "warmup_steady": warmup.get("steady"),
        "cpu_seconds": done["cpu_seconds"] + others if "cpu_seconds" in done else None,
        "wall_seconds": done.get("wall_seconds"),
        "first_loss": warmup.get("first_loss"),
        "last_loss": done.get("last_loss"),
    }


def _samples(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {"sample": number, "steps": steps, "seconds": seconds}
        for number, (steps, seconds) in enumerate(outcome.samples, 1)
    ]


def _median(outcome: Outcome) -> str:
    from worker.statistics import ENOUGH, median, median_interval

    values = [seconds for _, seconds in outcome.samples]
    low, high = median_interval(values)
    middle = median(values)
    spread = f"{50 * (high - low) / middle:.1f} %"
    width = (
        f"±{spread}, {len(values)} samples"
        if len(values) >= ENOUGH
        else f"{len(values)} samples within ±{spread}"
    )
    return f"{middle:.4g} s per mini-batch, {width}"


def _training_columns(job: Job, spec: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    plan = job["asked"]["plan"]
    return {
        "dataset_label": job["dataset"],
        "whole_dataset": spec["dataset"],
        "seed": plan["seed"],
        "target_accuracy": plan["target_accuracy"],
        "most_epochs": plan["epochs"],
        "budget_seconds": plan["budget_seconds"],
        "stopped": outcome.events.get("trained", {}).get("stopped"),
    }


def _accuracy(outcome: Outcome) -> str:
    last, count = outcome.epochs[-1], len(outcome.epochs)
    seconds = sum(epoch["seconds"] for epoch in outcome.epochs)
    why = STOPPED[outcome.events["trained"]["stopped"]]
    return f"{right(last)} after {count} epoch{'s'[: count != 1]} and {seconds:.4g} s: {why}"


def right(epoch: dict[str, Any]) -> str:
    """How many test images were right after an epoch; of what has no classes, the loss on them."""
    accuracy = epoch["accuracy"]
    # None in a worker's event, and NaN in a shard.
    if accuracy is None or accuracy != accuracy:
        return f"a loss of {epoch['test_loss']:.4g} on the test images"
    return f"{100 * accuracy:.2f} % of the test images right"


def _parts(outcome: Outcome) -> list[dict[str, Any]]:
    rows = []
    for part in outcome.parts:
        named = {name: value for name, value in part.items() if name not in ("event", "samples")}
        rows += [
            named | {"sample": number, "steps": steps, "seconds": seconds}
            for number, (steps, seconds) in enumerate(part["samples"], 1)
        ] or [named]
    return rows


def _count(outcome: Outcome) -> str:
    timed = [part for part in outcome.parts if part["samples"]]
    return f"{len(timed)} of {len(outcome.parts)} operations timed, each proven right before"


def _states(outcome: Outcome) -> str:
    rounds = min(len(part["samples"]) for part in outcome.parts)
    return f"{rounds} blocks of steps with a slow rank and as many without"


READINGS = {
    "step": Reading(_step_columns, _samples, _median),
    "training": Reading(_training_columns, lambda outcome: outcome.epochs, _accuracy),
    **dict.fromkeys(
        ("products", "convolutions", "sums"),
        Reading(lambda job, spec, outcome: {}, _parts, _count),
    ),
    "stragglers": Reading(lambda job, spec, outcome: {}, _parts, _states),
}
