"""Convolutions of a network, each alone."""

from steptime.tasks.record import Task
from steptime.tasks.rows import OPERATIONS, says_count

TASK = Task(
    name="convolutions",
    title="convolutions of {}",
    timed_region=("operation", "sync"),
    rows=OPERATIONS,
    says=says_count,
    described="whose convolutions are timed, in each way that a framework lets one choose",
    module="{}.parts",
    feeds="parts",
)
