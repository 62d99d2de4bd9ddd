"""MXNet's own profiler."""

import json
import os
import tempfile

from mxnet import nd, profiler

# Imported before a trainer is built: what is run in bulk would be told as one.
os.environ["MXNET_EXEC_BULK_EXEC_TRAIN"] = "0"


def operators(run):
    """Returns [name, calls, seconds] of each operator that `run` executes."""
    # MXNet writes it anew: it must be a file that nobody else has.
    own = os.path.join(tempfile.gettempdir(), "profile.json")
    profiler.set_config(
        profile_symbolic=True, profile_imperative=True, aggregate_stats=True, filename=own
    )
    profiler.set_state("run")
    run()
    nd.waitall()
    profiler.set_state("stop")
    told = json.loads(profiler.dumps(reset=True, format="json"))
    found = told["Time"].get("operator", {})
    return [[name, each["Count"], each["Total"] / 1e3] for name, each in found.items()]
