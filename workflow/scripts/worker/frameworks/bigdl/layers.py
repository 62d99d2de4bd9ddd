"""Layers of BigDL that stand in no network of the papers' six: of its own modules.

Each takes BigDL's interface for Python and a node. Images are (batch, channels, height, width), sequences (batch,
steps, features); axes are counted from one, the batch being the first.
"""

import jpype

# A ReLU behind one of these may overwrite what it reads: none of them is a view, or reads its output again.
OWN_MEMORY = ("conv", "grouped_conv", "batch_norm", "dense", "add", "concat")


def java_list(items):
    """A list of Java."""
    made = jpype.JClass("java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


def java_integers(*values):
    """A list of Java, of its integers."""
    return java_list(jpype.JClass("java.lang.Integer")(int(value)) for value in values)


def reshaped(api, *shape):
    """A module that gives each sample this shape."""
    return api.createReshape(java_integers(*shape), jpype.JClass("java.lang.Boolean")(True))


def plain(name, *options):
    """A layer that is a module of BigDL's with these options."""
    return lambda api, node: getattr(api, "create" + name)(*options)


def window(node):
    """Its extents in rows and columns."""
    return [node[key] for key in ("kernel", "stride", "padding") for _ in range(2)]


def relu(api, node):
    """In place where nothing else reads what it overwrites."""
    return api.createReLU(node["alone"])


def conv(api, node):
    """A convolution, in groups where it has them. The first layer makes no gradient of the data."""
    channels = node["in_shape"][0], node["channels"]
    options = [node.get("groups", 1), not node["first"]] + [None] * 6 + [node["bias"], "NCHW"]
    return api.createSpatialConvolution(*(list(channels) + window(node) + options))


def local_response_norm(api, node):
    """In the terms of Caffe, as the specification."""
    options = [node["size"], 1.0 / node["inverse_alpha"], 0.75, 1.0]
    return api.createSpatialCrossMapLRN(*(options + ["NCHW"]))


def channel_shuffle(api, node):
    """Groups of channels, one channel of each in turn."""
    (channels, height, width), groups = node["shape"], node["groups"]
    made = api.createSequential()
    made.add(reshaped(api, groups, channels // groups, height * width))
    made.add(api.createTranspose(java_list([java_integers(2, 3)])))
    return made.add(reshaped(api, channels, height, width))


def rnn(api, node):
    """BigDL's own cell, whose product of the inputs of all steps is one."""
    cell = api.createRnnCell(
        node["in_shape"][-1], node["units"], api.createTanh(), True, False, None, None, None
    )
    return api.createRecurrent().add(cell)
