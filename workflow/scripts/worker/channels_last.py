"""Parameters for frameworks that keep images channels last: kernels are (height, width, in, out) there.

The specification flattens channels first; turning the next dense weight once costs a step nothing.
"""

import numpy as np

# Operations whose features stand where those of their input stand.
_KEEPS_PLACES = ("relu", "sigmoid", "dropout", "add")


def homes(spec):
    """{name: Home} of every parameter of a specification."""
    shapes = {parameter["name"]: parameter["shape"] for parameter in spec["parameters"]}
    images, found = {}, {}
    for node in spec["nodes"]:
        name, source = node["name"], node["inputs"][0]
        if node["op"] == "flatten":
            images[name] = node["in_shape"]
        elif node["op"] in _KEEPS_PLACES:
            images[name] = images.get(source)
        for parameter in [parameter for parameter in shapes if parameter.split("/")[0] == name]:
            role = parameter.split("/")[1]
            found[parameter] = Home(node["op"], role, shapes[parameter], images.get(source))
    return found


class Home(object):
    """The way of one parameter from the neutral layout to the framework's (`enter`) and back (`leave`).

    `image` is the shape (channels, height, width) that was flattened into the inputs of a dense layer, or None.
    """

    def __init__(self, op, role, shape, image):
        self._shape, self._split, self._axes = shape, shape, tuple(range(len(shape)))
        if op == "conv" and role == "weight":
            self._axes = (2, 3, 1, 0)
        elif op == "dense" and role == "weight" and image:
            self._split, self._axes = list(image) + [shape[1]], (1, 2, 0, 3)

    def enter(self, value):
        turned = value.reshape(self._split).transpose(self._axes)
        return np.ascontiguousarray(
            turned if len(self._shape) == 4 else turned.reshape(self._shape)
        )

    def leave(self, value):
        turned = value.reshape([self._split[axis] for axis in self._axes])
        return np.ascontiguousarray(turned.transpose(np.argsort(self._axes)).reshape(self._shape))
