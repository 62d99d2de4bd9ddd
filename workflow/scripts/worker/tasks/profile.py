"""Profiles some training steps by the framework's own profiler. Besides `ready` and `done`, the event is

    profiled   operators: [name, calls, seconds] of each operator of the steps, by the framework's own words

A folder of a framework without `profile.py` has no such task.
"""

import importlib
import importlib.util

from .. import building
from ..contract import Unsupported

WARM_UP, STEPS = 5, 5


def run(loaded, job, emit):
    """Profiles steps after some others. Raises Unsupported where the framework's folder has no `profile.py`."""
    name = loaded.adapter.__name__ + ".profile"
    if importlib.util.find_spec(name) is None:
        raise Unsupported("nothing here asks its profiler")
    profiler = importlib.import_module(name)
    trainer = building.build(loaded, job, job["spec"], emit)
    trainer.run(WARM_UP)
    emit("profiled", operators=profiler.operators(lambda: trainer.run(STEPS)))
    emit("done")
