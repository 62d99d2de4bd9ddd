"""Matrix products and convolutions of Caffe2, each an operator that is run by itself (see `worker.parts`)."""

import itertools
import logging

import numpy as np
from caffe2.python import core, workspace

from ...contract import Unsupported
from ...parts import Operation

TASKS = ("products", "convolutions")

# Each way to convolve, with the engine that Caffe2 is asked for and what that is told.
_WAYS = {
    "own choice": {},
    "winograd": {"engine": "NNPACK", "algo": "WINOGRAD"},
    "fft": {"engine": "NNPACK", "algo": "FT16"},
}
_names = itertools.count()


def start(job):
    """Sets the threads."""
    logging.getLogger("caffe2").setLevel(logging.ERROR)
    threads = "--caffe2_omp_num_threads={}".format(job["threads"])
    workspace.GlobalInit(["caffe2", "--caffe2_log_level=2", threads])
    return {"threads": job["threads"], "settings": {"net": "simple"}}


def build(part):
    """An operation of its own."""
    workspace.ResetWorkspace()
    if part.kind == "convolution":
        return _convolution(part)
    if part.calls == 1:
        raise Unsupported("Caffe2 has no product that adds to what is there")
    turned = dict(zip(("trans_a", "trans_b"), map(int, part.turned)))
    blobs = {"left": part.left, "right": part.right}
    product = core.CreateOperator("MatMul", ["left", "right"], "product", **turned)
    if not part.calls:
        return _operation("product", blobs, product)
    blobs.update(weights=part.weights, one=np.ones(1, np.float32))
    blobs["minus_rate"] = np.full(1, -part.rate, np.float32)
    terms = ["weights", "one", "product", "minus_rate"]
    descend = core.CreateOperator("WeightedSum", terms, "weights")
    return _operation("weights", blobs, product, descend)


def _operation(result, blobs, *operators):
    for name, values in blobs.items():
        workspace.FeedBlob(name, values)
    net = core.Net("part{}".format(next(_names)))
    net.Proto().op.extend(operators)
    net.Proto().type = "simple"
    workspace.CreateNet(net)
    return Operation(
        lambda times: workspace.RunNet(net, times), lambda: workspace.FetchBlob(result)
    )


def _convolution(part):
    if part.way not in _WAYS:
        raise Unsupported("Caffe2 has no engine of this name")
    if part.way != "own choice" and part.stride != 1:
        raise Unsupported("NNPACK transforms no convolution that has a stride")
    if part.way == "winograd" and part.weights.shape[2] != 3:
        raise Unsupported("NNPACK's Winograd is for kernels of 3 x 3")
    bias = np.zeros(len(part.weights), np.float32)
    blobs = {"images": part.inputs, "weights": part.weights, "bias": bias}
    window = {"kernel": part.weights.shape[2], "stride": part.stride, "pad": part.padding}
    asked = dict(window, order="NCHW", **_WAYS[part.way])
    convolve = core.CreateOperator("Conv", ["images", "weights", "bias"], "result", **asked)
    return _operation("result", blobs, convolve)
