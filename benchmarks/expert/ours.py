"""Our side: an adapter with the specification at full size, built and fed as the worker does it.

    python ours.py < job and commands

The first line of standard input is the job of a worker as JSON; commands follow (see `blocks`).
"""

import itertools
import json
import sys

import blocks

from worker import building

job = json.loads(sys.stdin.readline())
# The framework first, then numpy's work: the worker's own order.
adapter = building.load(job).adapter
from shared import data  # noqa: E402
from worker.tasks import training  # noqa: E402

weights, batch = data.initial_weights(job["spec"]), data.synthetic_batch(job["spec"], job["batch"])
trainer = building.make(adapter, job, job["spec"], weights, *batch)


def epochs():
    """Mini-batches of one epoch after another."""
    split, plan = training.read(job["images"]["train"]), {"seed": 1}
    for number in itertools.count(1):
        fed = job["spec"], split, job["batch"], plan, number, building.clock
        yield from training.Epoch(*fed)


drawn = epochs()


def train(steps):
    return trainer.train(itertools.islice(drawn, steps))


blocks.obey(train if job["images"] else trainer.run, trainer.parameters)
