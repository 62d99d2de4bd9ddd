"""Turns arrays from the specification's neutral layout into an adapter's, and back.

Neutral are inputs and labels with the batch first, images (channels, height, width), kernels (out, in, height, width),
matrices (in, units), and the four gates of an LSTM side by side as i, f, g, o. An adapter says in its `LAYOUT` what it
wants otherwise:

    "sequences": "steps first"      inputs (steps, batch ...) and labels (steps, batch)
    "images": "channels last"       inputs (batch, height, width, channels), and kernels as below
    "kernels": "channels last"      (height, width, in, out)
    "conv_transpose": "channels last"  kernels of this layer (height, width, out, in)
    "dense", "lstm": "units first"  matrices (units, in) of these layers
    "gates": "ifog"                 another order of the gates

With "images": "channels last", a layer "flatten" of the specification that an adapter gets may be `turned`: it flattens
channel by channel, so that the next layer finds its features in the neutral order.
"""

import numpy as np

GATES = "ifgo"


class Layout(object):
    """Turns the arrays of a specification into an adapter's layout (`wanted`) and back."""

    def __init__(self, spec, wanted):
        self._kind = spec["input"]["kind"]
        self._steps_first = wanted.get("sequences") == "steps first"
        # Targets have no steps.
        self._labels_first = self._steps_first and spec["loss"] == "softmax_cross_entropy"
        self._channels_last = wanted.get("images") == "channels last"
        shapes = {parameter["name"]: parameter["shape"] for parameter in spec["parameters"]}
        flattened = _flattened_images(spec) if self._channels_last else {}
        # The specification that the adapter builds.
        self.spec = _turned(spec, flattened) if self._channels_last else spec
        nodes = {node["name"]: node for node in spec["nodes"]}
        self.names = list(shapes)
        self._homes = {}
        for name, shape in shapes.items():
            node = nodes[name.split("/")[0]]
            image = flattened.get(node["inputs"][0])
            self._homes[name] = _Home(node["op"], name.split("/")[1], shape, image, wanted)

    def inputs(self, inputs):
        """Returns inputs of a mini-batch in the adapter's layout, in one piece of memory."""
        if self._kind == "image":
            inputs = inputs.transpose(0, 2, 3, 1) if self._channels_last else inputs
        elif self._steps_first and (self._kind == "tokens" or inputs.ndim > 2):
            inputs = inputs.swapaxes(0, 1)
        return np.ascontiguousarray(inputs)

    def labels(self, labels):
        """Returns labels of a mini-batch, in one piece of memory: (batch,), or one for each step of each sample."""
        return np.ascontiguousarray(labels.T if self._labels_first else labels)

    def enter(self, name, value):
        """Returns a parameter's neutral array in the adapter's layout: a view where it can be one."""
        return self._homes[name].enter(value)

    def leave(self, name, value):
        """Returns a parameter of the adapter as a neutral array: a view where it can be one."""
        return self._homes[name].leave(value)


class _Home(object):
    """The layout of one parameter: split into `split`, its axes turned, and given the shape `inside`.

    `image` is the shape (channels, height, width) that was flattened into the inputs of a dense layer. Turning that
    layer's weight once costs a step nothing.
    """

    def __init__(self, op, role, shape, image, wanted):
        self._shape, split, axes = list(shape), list(shape), list(range(len(shape)))
        order = wanted.get("gates", GATES) if op == "lstm" else GATES
        self._gates = [GATES.index(gate) for gate in order] if order != GATES else None
        kernels = wanted.get("kernels") or wanted.get("images") if op == "conv" else wanted.get(op)
        if role == "weight" and kernels == "channels last":
            axes = [2, 3, 1, 0]
        elif op == "dense" and role == "weight" and image:
            split, axes = list(image) + [shape[1]], [1, 2, 0, 3]
        self._split, self._axes = split, axes
        self._inside = [split[axis] for axis in axes] if len(split) == len(shape) else list(shape)
        self._turned = wanted.get(op) == "units first" and len(shape) == 2

    def enter(self, value):
        if self._gates:
            value = _ordered(value, self._gates)
        if self._axes != sorted(self._axes):
            value = value.reshape(self._split).transpose(self._axes)
            value = np.ascontiguousarray(value.reshape(self._inside))
        return value.T if self._turned else value

    def leave(self, value):
        value = value.reshape(self._inside[::-1]).T if self._turned else value
        if self._axes != sorted(self._axes):
            value = value.reshape([self._split[axis] for axis in self._axes])
            value = np.ascontiguousarray(value.transpose(np.argsort(self._axes)))
        value = value.reshape(self._shape)
        return _ordered(value, np.argsort(self._gates)) if self._gates else value


def _ordered(value, order):
    """Returns a parameter of an LSTM, (..., 4 units), with its gates in another order."""
    return value.reshape(-1, 4, value.shape[-1] // 4)[:, order].reshape(value.shape)


def _flattened_images(spec):
    """Returns {node: shape of the image} of nodes with features of a flattened image that only dense layers read."""
    weighted = {parameter["name"].split("/")[0] for parameter in spec["parameters"]}
    images = {}
    for flatten in spec["nodes"]:
        if flatten["op"] != "flatten":
            continue
        carriers, readers = {flatten["name"]}, set()
        for node in spec["nodes"]:
            if not carriers.intersection(node["inputs"]):
                continue
            # What has no weights and changes no shape leaves the features in their places.
            keeps = node["name"] not in weighted and node["shape"] == node["in_shape"]
            if keeps and len(node["inputs"]) == 1:
                carriers.add(node["name"])
            else:
                readers.add(node["op"])
        # The loss reads the last node.
        if readers == {"dense"} and spec["nodes"][-1]["name"] not in carriers:
            images.update(dict.fromkeys(carriers, flatten["in_shape"]))
    return images


def _turned(spec, images):
    """Returns the specification whose images are flattened channel by channel, except those of `images`."""
    nodes = [
        dict(node, turned=node["name"] not in images) if node["op"] == "flatten" else node
        for node in spec["nodes"]
    ]
    return dict(spec, nodes=nodes)
