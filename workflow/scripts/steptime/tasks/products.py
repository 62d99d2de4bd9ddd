"""Matrix products of dense layers, each alone."""

from steptime.tasks.record import Task
from steptime.tasks.rows import OPERATIONS, says_count

TASK = Task(
    name="products",
    title="products of {}",
    timed_region=("operation", "sync"),
    rows=OPERATIONS,
    says=says_count,
    described="whose matrix products are timed, in each order of their factors",
    module="{}.parts",
    feeds="parts",
)
