"""Our side: an adapter with the specification at full size, built as the worker builds it.

    python ours.py < job and commands

The first line of standard input is the job of a worker as JSON; commands follow (see `blocks`).
"""

import importlib
import json
import sys

import blocks

job = json.loads(sys.stdin.readline())
# The framework first, then numpy's work: the worker's own order.
adapter = importlib.import_module("worker.adapters." + job["adapter"])
data = importlib.import_module("worker.data")
trainer = adapter.build(
    job["spec"],
    data.initial_weights(job["spec"]),
    *data.synthetic_batch(job["spec"], job["batch"]),
    job["mode"],
    job["threads"],
    "cpu",
)
blocks.obey(trainer.run, trainer.parameters)
