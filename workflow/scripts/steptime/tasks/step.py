"""Training steps on one mini-batch that does not change."""

from typing import TYPE_CHECKING, Any

from steptime.tasks.record import STEP_REGION, Policy, Task, least_repeats
from steptime.tasks.rows import STEPS, says_median

if TYPE_CHECKING:
    from steptime.outcome import Outcome
    from steptime.records import Job


def _policy(grid: dict[str, Any]) -> Policy:
    return Policy(grid["networks"], grid.get("threads", {}), least_repeats(grid))


def read(job: "Job", spec: dict[str, Any], outcome: "Outcome") -> dict[str, Any]:
    warmup, done = (outcome.events.get(name, {}) for name in ("warmup", "done"))
    others = sum(rank.get("cpu_seconds", 0.0) for rank in outcome.used_by_ranks()[1:])
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


TASK = Task(
    name="step",
    title="{}",
    timed_region=STEP_REGION,
    rows=STEPS,
    says=says_median,
    asks=_policy,
    asks_under="'networks'",
    read=read,
    owes=("ready", "warmup", "sample", "sampled"),
    begins=("warmup", "resumed"),
    ends=("sampled", "ended"),
    needs_reference=True,
    feeds="every_cell",
    is_compared=True,
)
