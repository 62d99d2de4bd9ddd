"""Layers of Caffe2 that stand in no network of the papers' six: of images, and a recurrent one.

Each takes a model, a node and the blobs that it reads, and adds operators to the model's net. A node also has the size
of the mini-batch (`batch`), and whether pixels of its first input may repeat (`repeats`). Images are (batch, channels,
height, width), sequences (steps, batch, features).
"""

import numpy as np
from caffe2.python import core, rnn_cell, workspace


def own(node, role):
    """The blob of a layer's parameter."""
    return "{}/{}".format(node["name"], role)


def constant(name, values):
    """A blob that no step changes."""
    workspace.FeedBlob(name, np.ascontiguousarray(values, np.float32))
    return name


def plain(kind, **options):
    """A layer of one operator without parameters."""
    return lambda model, node, value: getattr(model.net, kind)(value, node["name"], **options)


def conv(model, node, value):
    """A convolution in groups."""
    window = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    blobs = [value, own(node, "weight")] + ([own(node, "bias")] if node["bias"] else [])
    return model.net.Conv(blobs, node["name"], group=node["groups"], order="NCHW", **window)


def max_pool(model, node, value):
    """Caffe2's own gives the gradient to each of equal maxima, so where pixels repeat it is that of ATen."""
    size, stride, pad = node["kernel"], node["stride"], node["padding"]
    if not node["repeats"]:
        window = {"kernel": size, "stride": stride, "pad": pad}
        return model.net.MaxPool(value, node["name"], order="NCHW", **window)
    window = {"kernel_size": [size] * 2, "stride": [stride] * 2, "padding": [pad] * 2}
    options = dict(window, dilation=[1, 1], ceil_mode=0, operator="max_pool2d_with_indices")
    return model.net.ATen(value, [node["name"], node["name"] + "/places"], **options)[0]


@core.GradientRegistry.RegisterGradient("ATen")
def _to_one(pool, flowing):
    """The gradient of a pool of ATen, which Caffe2 has operators for and no rule."""
    (value,), (_, places) = pool.input, pool.output
    window = [arg for arg in pool.arg if arg.name != "operator"]
    sources, made = [flowing[0], value, places], value + "_grad"
    back = "max_pool2d_with_indices_backward"
    return core.CreateOperator("ATen", sources, [made], arg=window, operator=back), [made]


def avg_pool(model, node, value):
    """Padding counts."""
    window = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    return model.net.AveragePool(value, node["name"], count_include_pad=1, order="NCHW", **window)


def global_average_pool(model, node, value):
    """One number a channel."""
    name = node["name"]
    value = model.net.AveragePool(value, name + "/maps", global_pooling=True, order="NCHW")
    return model.net.Squeeze(value, name, dims=[2, 3])


def local_response_norm(model, node, value):
    """Caffe2 divides its alpha by the number of neighbours, as Caffe does."""
    rule = {"size": node["size"], "alpha": 1.0 / node["inverse_alpha"], "beta": 0.75, "bias": 1.0}
    name = node["name"]
    return model.net.LRN(value, [name, name + "/scale"], order="NCHW", **rule)[0]


def concat(model, node, *values):
    """The channels of images behind one another."""
    name = node["name"]
    return model.net.Concat(list(values), [name, name + "/sizes"], axis=1)[0]


def channel_shuffle(model, node, value):
    """Caffe2's own."""
    return model.net.ChannelShuffle(value, node["name"], group=node["groups"], order="NCHW")


def rnn(model, node, value):
    """Caffe2's own, which multiplies the inputs of all steps at once."""
    name, units = node["name"], node["units"]
    start = constant(name + "/start", np.zeros((1, node["batch"], units)))
    sizes, cell = (node["in_shape"][-1], units), rnn_cell.BasicRNNCell
    options = {"activation": "tanh", "scope": name, "outputs_with_grads": (0,)}
    return rnn_cell._LSTM(cell, model, value, None, (start,), *sizes, **options)[0]
