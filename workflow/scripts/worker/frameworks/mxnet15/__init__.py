"""MXNet 1.5 to 1.7: the adapter of later ones, without questions to the BLAS, which is hidden in their library."""

from mxnet import __version__, runtime

from .. import mxnet

MODES = mxnet.MODES
OPTIMISERS = mxnet.OPTIMISERS
TASKS = mxnet.TASKS
LAYERS = mxnet.LAYERS
if not __version__.startswith("1.6"):
    # LeakyReLU's is that by tanh in 1.7, and has a wrong gradient in 1.5.
    LAYERS["gelu"] = lambda operators, node, own, x: 0.5 * x * (1 + operators.erf(x / 2**0.5))
LOSSES = mxnet.LOSSES
LAYOUT = mxnet.LAYOUT
REASONS = {"gpu": "this build of MXNet is the one for CPUs"}

build = mxnet.build


def versions():
    """Returns the version of MXNet, and the features that were compiled in."""
    features = runtime.Features()
    built = " ".join(sorted(name for name in features if features.is_enabled(name)))
    return {"framework_version": __version__, "build": built}
