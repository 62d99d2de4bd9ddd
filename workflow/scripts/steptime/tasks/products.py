"""Matrix products of dense layers, each alone."""

from steptime.tasks.record import Task, policy_of_part
from steptime.tasks.rows import OPERATIONS, says_count

TASK = Task(
    name="products",
    title="products of {}",
    timed_region=("operation", "sync"),
    rows=OPERATIONS,
    says=says_count,
    policy=policy_of_part("products"),
    asked_under="'products' of 'parts'",
    described="whose matrix products are timed, in each order of their factors",
    module="{}.parts",
    feeds="parts",
)
