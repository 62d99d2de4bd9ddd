"""Matrix products and convolutions of MXNet, one at a time (see `worker.parts`)."""

import mxnet as mx

from shared.operations import repeated

from ...contract import Unsupported
from . import array_of

TASKS = ("products", "convolutions")
KERNELS_OF = ()


def start(job):
    """Returns settings; MXNet reads its thread numbers from the environment, at import."""
    return {"threads": job["threads"], "settings": {"called": "one operator at a time"}}


def build(part):
    if part.kind == "convolution":
        return _convolution(part)
    left, right = array_of(part.left), array_of(part.right)
    turned = dict(zip(("transpose_a", "transpose_b"), part.turned))
    if not part.calls:
        result = mx.nd.dot(left, right, **turned)
        return _operation(lambda: mx.nd.dot(left, right, out=result, **turned), result)
    weights = array_of(part.weights)
    if part.calls == 1:
        scaled = dict(turned, alpha=-part.rate, beta=1.0)
        return _operation(
            lambda: mx.nd.linalg_gemm(left, right, weights, out=weights, **scaled), weights
        )
    # As in the adapter: the gradients come out as the steps of SGD, and to subtract them is vectorised.
    left *= part.rate
    gradient = mx.nd.dot(left, right, **turned)

    def update():
        mx.nd.dot(left, right, out=gradient, **turned)
        mx.nd.elemwise_sub(weights, gradient, out=weights)

    return _operation(update, weights)


def _operation(step, result):
    """Returns an operation; `step` queues the work of MXNet's engine that writes `result`."""
    return repeated(step, result.asnumpy, mx.nd.waitall)


def _convolution(part):
    if part.way != "own choice":
        raise Unsupported(
            "MXNet takes the algorithm that oneDNN's default is; without oneDNN it unfolds the images"
        )
    images, weights = array_of(part.inputs), array_of(part.weights)
    window = {
        "kernel": part.weights.shape[2:],
        "stride": (part.stride,) * 2,
        "pad": (part.padding,) * 2,
        "num_filter": len(part.weights),
        "no_bias": True,
    }
    result = mx.nd.Convolution(images, weights, **window)
    return _operation(lambda: mx.nd.Convolution(images, weights, out=result, **window), result)
