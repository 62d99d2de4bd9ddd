"""Steps of several devices, of which the last one has half of its CPUs."""

from typing import TYPE_CHECKING

from steptime.tasks.record import STEP_REGION, Task
from steptime.tasks.rows import OPERATIONS

if TYPE_CHECKING:
    from steptime.outcome import Outcome


def _says(outcome: "Outcome") -> str:
    rounds = min(len(part["samples"]) for part in outcome.parts)
    return f"{rounds} blocks of steps with a slow rank and as many without"


TASK = Task(
    name="stragglers",
    title="{} beside a slow rank",
    timed_region=(*STEP_REGION[:-2], "exchange", *STEP_REGION[-2:]),
    rows=OPERATIONS,
    says=_says,
    described="whose steps are timed on several devices of which the last one has half of its CPUs",
    feeds="parts",
    exchanges=("sync", "async", "mixed"),
    is_slowed=True,
)
