"""Layers of Caffe that stand in no network of the papers' six: of images, and a recurrent one.

Each takes the message of a net, a node, the blobs that it reads and the blob that it fills. Images are (batch,
channels, height, width), sequences (steps, batch, features).
"""

from caffe.proto import caffe_pb2


def add_layer(net, kind, bottoms, top, name=None, **options):
    """Adds a layer; `options` are its own message's, such as inner_product_param, as a dict."""
    tops = top if isinstance(top, list) else [top]
    layer = net.layer.add(type=kind, name=name or tops[0], bottom=bottoms, top=tops)
    for message, values in options.items():
        for key, value in values.items():
            if isinstance(value, list):
                getattr(getattr(layer, message), key).extend(value)
            else:
                setattr(getattr(layer, message), key, value)
    return layer


def plain(kind):
    """A layer that has nothing to set."""
    return lambda net, node, sources, top: add_layer(net, kind, sources, top, node["name"])


def flatten(net, node, sources, top):
    """Caffe's own Flatten puts other memory under its input's gradient, which a Reshape before it does not see."""
    _reshaped(net, sources[0], top, [0, -1])


def _reshaped(net, source, top, shape):
    add_layer(net, "Reshape", [source], top).reshape_param.shape.dim.extend(shape)
    return top


def _pieces(net, source, top, count, axis):
    """`count` pieces of the same size; a blob itself where it is one."""
    if count == 1:
        return [source]
    tops = ["{}/{}".format(top, at) for at in range(count)]
    add_layer(net, "Slice", [source], tops, slice_param={"axis": axis})
    return tops


def conv(net, node, sources, top):
    """A convolution, in groups where it has them."""
    window = {"kernel_size": [node["kernel"]], "stride": [node["stride"]], "pad": [node["padding"]]}
    options = dict(window, num_output=node["channels"], bias_term=node["bias"])
    options["group"] = node.get("groups", 1)
    add_layer(net, "Convolution", sources, top, node["name"], convolution_param=options)


def pool(net, node, sources, top):
    """The largest of a window, or its mean, in which padding counts."""
    methods = {
        "max_pool": caffe_pb2.PoolingParameter.MAX,
        "avg_pool": caffe_pb2.PoolingParameter.AVE,
    }
    window = {"kernel_size": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    # Caffe's own way is to round up, and to look at a part of a window at the edge.
    rounded = caffe_pb2.PoolingParameter.FLOOR
    options = dict(window, pool=methods[node["op"]], round_mode=rounded)
    add_layer(net, "Pooling", sources, top, node["name"], pooling_param=options)


def local_response_norm(net, node, sources, top):
    """Caffe's own, in whose terms the specification is written."""
    options = {"local_size": node["size"], "alpha": 1.0 / node["inverse_alpha"], "beta": 0.75}
    add_layer(net, "LRN", sources, top, node["name"], lrn_param=options)


def channel_shuffle(net, node, sources, top):
    """Groups of channels, one channel of each in turn."""
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = [
        _reshaped(net, part, part + "/apart", [0, channels // groups, 1, height * width])
        for part in _pieces(net, sources[0], top + "/group", groups, 1)
    ]
    add_layer(net, "Concat", parts, top + "/turns", concat_param={"axis": 2})
    _reshaped(net, top + "/turns", top, [0, channels, height, width])


def rnn(net, node, sources, top):
    """One product of the inputs of all steps, then layers for each step, as Caffe's own recurrent ones have inside."""
    options = {"num_output": node["units"], "axis": 2}
    add_layer(net, "InnerProduct", sources, top + "/all", node["name"], inner_product_param=options)
    count, outputs = node["in_shape"][0], []
    given = _pieces(net, top + "/all", top + "/given", count, 0)
    before = zero(node)
    for at in range(count):
        rows = _reshaped(net, given[at], given[at] + "/rows", [-1, node["units"]])
        name = "{}/step{}".format(node["name"], at)
        inner = _recurrent(net, node, before, name + "/product")
        add_layer(net, "Eltwise", [rows, inner], name + "/sum")
        add_layer(net, "TanH", [name + "/sum"], name)
        before = name
        outputs.append(_reshaped(net, name, name + "/row", [1, -1, node["units"]]))
    add_layer(net, "Concat", outputs, top, top + "/steps", concat_param={"axis": 0})


def _recurrent(net, node, output, name):
    """The product of the output before, by a weight that all steps share by its name."""
    options = {"num_output": node["units"], "bias_term": False}
    layer = add_layer(net, "InnerProduct", [output], name, inner_product_param=options)
    shared = caffe_pb2.ParamSpec.PERMISSIVE
    layer.param.add(name=node["name"] + "/recurrent", share_mode=shared)
    return name


def zero(node):
    """The input of a net that stands for the output before the first step."""
    return "zero/{}".format(node["units"])
