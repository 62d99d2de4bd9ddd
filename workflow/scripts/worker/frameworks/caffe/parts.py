"""Matrix products and convolutions of Caffe 1.0, each a layer that is run by itself (see `worker.parts`)."""

import caffe
import numpy as np
from caffe.proto import caffe_pb2

from shared.operations import repeated

from ... import kernels
from ...contract import Unsupported
from . import LAYERS, add_layer, load_network

TASKS = ("products", "convolutions")


def start(job):
    """Chooses the CPU and returns settings; the BLAS reads its thread number from the environment."""
    caffe.set_mode_cpu()
    return {"threads": kernels.count_threads(), "settings": {"called": "one layer at a time"}}


def build(part):
    if part.kind == "convolution":
        return _convolution(part)
    if part.way == "one call":
        raise Unsupported("Caffe's product adds to the gradient, and never to the weights")
    return (_gradient if part.turned[0] else _forward)(part)


def _net(inputs, add):
    """Returns a net of one layer, which `add` adds to the net's message after its input."""
    message = caffe_pb2.NetParameter()
    add_layer(message, "Input", [], "input").input_param.shape.add().dim.extend(inputs.shape)
    add(message)
    net = load_network(message)
    net.blobs["input"].data[...] = inputs
    return net


def _forward(part):
    options = {"bias_term": False, "transpose": not part.turned[1]}
    options["num_output"] = part.right.shape[0 if part.turned[1] else 1]
    net = _net(
        part.left,
        lambda message: add_layer(
            message, "InnerProduct", ["input"], "product", inner_product_param=options
        ),
    )
    net.params["product"][0].data[...] = part.right
    return repeated(lambda: net._forward(1, 1), net.blobs["product"].data.copy)


def _gradient(part):
    """Returns the gradient of a layer's weights, to which Caffe adds each new one."""
    options = {"bias_term": False, "transpose": True, "num_output": part.right.shape[1]}

    def add(message):
        layer = add_layer(
            message, "InnerProduct", ["input"], "product", inner_product_param=options
        )
        # What is no part of a loss has no gradient.
        layer.loss_weight.append(1.0)

    net = _net(part.left * np.float32(part.rate if part.calls else 1), add)
    net.blobs["product"].diff[...] = part.right
    value, gradient = net.params["product"][0].data, net.params["product"][0].diff
    net.clear_param_diffs()
    if not part.calls:
        return repeated(lambda: net._backward(1, 1), gradient.copy)
    value[...] = part.weights

    def update():
        net.clear_param_diffs()
        net._backward(1, 1)
        np.subtract(value, gradient, out=value)

    return repeated(update, value.copy)


def _convolution(part):
    if part.way != "im2col":
        raise Unsupported("Caffe unfolds the images and multiplies (im2col), and nothing else")
    net = _net(
        part.inputs, lambda message: LAYERS["conv"](message, part.node, ["input"], "convolved")
    )
    net.params[part.node["name"]][0].data[...] = part.weights
    return repeated(lambda: net._forward(1, 1), net.blobs["convolved"].data.copy)
