"""A network in use: its forward pass alone, with nothing dropped and the statistics that a training has left."""

from typing import Any

from steptime.networks.layers import LAYERS
from steptime.tasks.record import Task
from steptime.tasks.rows import STEPS, says_median
from steptime.tasks.step import read


def _operations(spec: dict[str, Any], batch: int) -> int:
    """Counts two operations for each multiply-add of the matrix products."""
    return 2 * batch * sum(LAYERS[node["op"]].multiply_adds(node) for node in spec["nodes"])


TASK = Task(
    name="forward",
    title="{} in use",
    timed_region=("forward", "sync"),
    rows=STEPS,
    says=says_median,
    described="whose forward pass is timed as in use, at the grid's mini-batches and at 1",
    # One sample at a time: how long somebody waits for an answer.
    batches=(1,),
    module="{}.forward",
    operations=_operations,
    read=read,
    owes=("ready", "warmup", "sample", "sampled", "proven"),
    proof="outputs",
    needs_reference=True,
    feeds="passes",
)
