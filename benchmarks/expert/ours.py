"""Our side: an adapter with the specification at full size, built as the worker builds it.

    python ours.py < job and commands

The first line of standard input is the job of a worker as JSON; commands follow (see `blocks`).
"""

import json
import sys

import blocks

from worker import building

job = json.loads(sys.stdin.readline())
# The framework first, then numpy's work: the worker's own order.
adapter = building.load(job).adapter
from worker import data  # noqa: E402

weights, batch = data.initial_weights(job["spec"]), data.synthetic_batch(job["spec"], job["batch"])
trainer = building.make(adapter, job, job["spec"], weights, *batch)
blocks.obey(trainer.run, trainer.parameters)
