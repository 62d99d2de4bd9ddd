"""Sums over the ranks of several devices, each alone."""

from typing import TYPE_CHECKING, Any

from steptime.tasks.record import Task, policy_of_part, sampling
from steptime.tasks.rows import OPERATIONS, says_count

if TYPE_CHECKING:
    from steptime.plan.cell import Cell
    from steptime.plan.configuration import Configuration


def _lockstep(configuration: "Configuration", cell: "Cell") -> dict[str, Any]:
    """All ranks do the same, where those of other tasks follow the first one."""
    return sampling(configuration, cell) | {"follow": "sums"}


TASK = Task(
    name="sums",
    title="sums over ranks, of the gradients of {} too",
    timed_region=("exchange", "sync"),
    rows=OPERATIONS,
    says=says_count,
    policy=policy_of_part("sums"),
    asked_under="'sums' of 'parts'",
    described="whose gradients are summed over the ranks of several devices, beside arrays of 4 KiB to 512 MiB",
    asked=_lockstep,
    feeds="parts",
    exchanges=("sync",),
)
