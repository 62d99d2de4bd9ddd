"""TensorFlow's own profiler."""

import collections
import glob
import os
import re
import tempfile

import tensorflow
from tensorflow.tsl.profiler.protobuf import xplane_pb2

# An operation has a name and a kind: model/dense/MatMul:MatMul.
OPERATION = re.compile(r"[^:]+:([A-Za-z_]\w*)$")
HOLDS_OTHERS = ("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile")


def operators(run):
    """Returns [name, calls, seconds] of each kind of operation that `run` executes, over all threads."""
    with tempfile.TemporaryDirectory() as folder:
        tensorflow.profiler.experimental.start(folder)
        run()
        tensorflow.profiler.experimental.stop()
        (path,) = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
        space = xplane_pb2.XSpace()
        with open(path, "rb") as file:
            space.ParseFromString(file.read())
    calls, seconds = collections.Counter(), collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                found = OPERATION.match(plane.event_metadata[event.metadata_id].name)
                if found and found.group(1) not in HOLDS_OTHERS:
                    calls[found.group(1)] += 1
                    seconds[found.group(1)] += event.duration_ps / 1e12
    return [[name, calls[name], seconds[name]] for name in calls]
