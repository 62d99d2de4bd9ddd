"""MXNet 1.5 to 1.7: the adapter of later ones, without what it asks of the BLAS, which their library keeps to itself.

What was chosen here: docs/adapters/mxnet.md.
"""

from mxnet import __version__, runtime

from . import mxnet

MODES = mxnet.MODES
OPTIMISERS = mxnet.OPTIMISERS
TASKS = mxnet.TASKS
LAYERS = mxnet.LAYERS
LOSSES = mxnet.LOSSES
LAYOUT = mxnet.LAYOUT
REASONS = {"gpu": "this build of MXNet is the one for CPUs"}

build = mxnet.build


def versions():
    """Version of MXNet, and the features that were compiled in."""
    features = runtime.Features()
    built = " ".join(sorted(name for name in features if features.is_enabled(name)))
    return {"framework_version": __version__, "build": built}
