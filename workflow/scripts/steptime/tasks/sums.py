"""Sums over the ranks of several devices, each alone."""

from steptime.tasks.record import Task, sampling
from steptime.tasks.rows import OPERATIONS, says_count

TASK = Task(
    name="sums",
    title="sums over ranks, of the gradients of {} too",
    timed_region=("exchange", "sync"),
    rows=OPERATIONS,
    says=says_count,
    described="whose gradients are summed over the ranks of several devices, beside arrays of 4 KiB to 512 MiB",
    # All ranks do the same, where those of other tasks follow the first one.
    asked=lambda configuration, cell: sampling(configuration, cell) | {"follow": "sums"},
    feeds="parts",
    exchanges=("sync",),
)
