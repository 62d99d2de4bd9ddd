"""Layers of Caffe that stand in no network of the papers' six: of images, of generative networks, and recurrent ones.

Each takes the message of a net, a node, the blobs that it reads and the blob that it fills. Images are (batch,
channels, height, width), sequences (steps, batch, features). What was chosen here: docs/adapters/caffe.md.

Plain Python that 3.6 can import: standard library and Caffe.
"""

from caffe.proto import caffe_pb2

from shared import specification

_PRODUCT = caffe_pb2.EltwiseParameter.PROD


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


def _sliced(net, source, tops, axis, points=()):
    """Pieces of a blob that end at `points`, or that are equally large."""
    options = {"axis": axis, "slice_point": list(points)}
    add_layer(net, "Slice", [source], tops, slice_param=options)
    return tops


def _pieces(net, source, top, count, axis):
    """`count` pieces of the same size; a blob itself where it is one."""
    if count == 1:
        return [source]
    return _sliced(net, source, ["{}/{}".format(top, at) for at in range(count)], axis)


def _combined(net, sources, top, coefficients=(), operation=caffe_pb2.EltwiseParameter.SUM):
    options = {"operation": operation, "coeff": list(coefficients)}
    return add_layer(net, "Eltwise", sources, top, eltwise_param=options)


def _constant(layer, *flowing):
    """Lets a gradient flow to those of a layer's inputs that are named by truth alone."""
    layer.propagate_down.extend(flowing)


def _shared(layer, *names):
    """Gives a layer's parameters names: those of one name are one, whatever their shape."""
    for name in names:
        layer.param.add(name=name, share_mode=caffe_pb2.ParamSpec.PERMISSIVE)
    return layer


def conv(net, node, sources, top):
    """A convolution, in groups where it has them, or the transpose of one."""
    kind = "Deconvolution" if node["op"] == "conv_transpose" else "Convolution"
    window = {"kernel_size": [node["kernel"]], "stride": [node["stride"]], "pad": [node["padding"]]}
    options = dict(window, num_output=node["channels"], bias_term=node["bias"])
    options["group"] = node.get("groups", 1)
    add_layer(net, kind, sources, top, node["name"], convolution_param=options)


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


def adaptive_avg_pool(net, node, sources, top):
    """The mean of each share of rows, then of columns."""
    (value,), size = sources, node["size"]
    for axis, extent in zip((2, 3), node["in_shape"][1:]):
        made = top if axis == 3 else top + "/rows"
        lines, shares = _pieces(net, value, "{}/line{}".format(top, axis), extent, axis), []
        for share in range(size):
            own = lines[share * extent // size : -(-(share + 1) * extent // size)]
            shares.append(own[0])
            if len(own) > 1:
                shares[-1] = "{}/share{}/{}".format(top, axis, share)
                _combined(net, own, shares[-1], [1.0 / len(own)] * len(own))
        add_layer(net, "Concat", shares, made, concat_param={"axis": axis})
        value = made


def local_response_norm(net, node, sources, top):
    """Caffe's own, in whose terms the specification is written."""
    options = {"local_size": node["size"], "alpha": 1.0 / node["inverse_alpha"], "beta": 0.75}
    add_layer(net, "LRN", sources, top, node["name"], lrn_param=options)


def upsample(net, node, sources, top):
    """Each pixel as a square of its own value: tiles of each column, then of each row."""
    (channels, height, width), factor = node["shape"], node["factor"]
    value = _reshaped(net, sources[0], top + "/pixels", [-1, 1])
    add_layer(net, "Tile", [value], top + "/wide", tile_param={"axis": 1, "tiles": factor})
    value = _reshaped(net, top + "/wide", top + "/rows", [-1, width])
    add_layer(net, "Tile", [value], top + "/high", tile_param={"axis": 1, "tiles": factor})
    _reshaped(net, top + "/high", top, [-1, channels, height, width])


def channel_shuffle(net, node, sources, top):
    """Groups of channels, one channel of each in turn."""
    (channels, height, width), groups = node["shape"], node["groups"]
    parts = [
        _reshaped(net, part, part + "/apart", [0, channels // groups, 1, height * width])
        for part in _pieces(net, sources[0], top + "/group", groups, 1)
    ]
    add_layer(net, "Concat", parts, top + "/turns", concat_param={"axis": 2})
    _reshaped(net, top + "/turns", top, [0, channels, height, width])


def group_norm(net, node, sources, top):
    """Batch normalisation of one sample, whose channels are the groups of all samples."""
    (channels, height, width), groups = node["shape"], node["groups"]
    size = channels * height * width // groups
    value = _reshaped(net, sources[0], top + "/groups", [1, -1, size])
    options = {"use_global_stats": False, "eps": specification.BATCH_NORM_EPSILON}
    add_layer(net, "BatchNorm", [value], top + "/normal", batch_norm_param=options)
    value = _reshaped(net, top + "/normal", top + "/back", [-1, channels, height, width])
    scale = {"bias_term": True}
    add_layer(net, "Scale", [value], top, node["name"] + "/scale", scale_param=scale)


def rnn(net, node, sources, top):
    """A layer for each step, as Caffe's own recurrent ones have inside."""

    def step(output, given, name):
        inner = _recurrent(net, node, output, name, node["units"])
        _combined(net, [given, inner], name + "/sum")
        add_layer(net, "TanH", [name + "/sum"], name)

    _unrolled(net, node, sources, top, 1, step)


def gru(net, node, sources, top):
    """The same with gates; that of the reset multiplies the recurrent product."""
    units = node["units"]

    def step(output, given, name):
        inner = _recurrent(net, node, output, name, 3 * units)
        ends = ["/gates", "/new"]
        (given, fresh), (inner, kept) = (
            _sliced(net, blob, [name + part + end for end in ends], 1, [2 * units])
            for blob, part in ((given, "/given"), (inner, "/inner"))
        )
        _combined(net, [given, inner], name + "/sums")
        add_layer(net, "Sigmoid", [name + "/sums"], name + "/open")
        reset, update = _pieces(net, name + "/open", name + "/gate", 2, 1)
        _combined(net, [reset, kept], name + "/kept", operation=_PRODUCT)
        _combined(net, [fresh, name + "/kept"], name + "/sum")
        add_layer(net, "TanH", [name + "/sum"], name + "/new")
        _combined(net, [output, name + "/new"], name + "/apart", [1.0, -1.0])
        _combined(net, [update, name + "/apart"], name + "/share", operation=_PRODUCT)
        _combined(net, [name + "/new", name + "/share"], name)

    _unrolled(net, node, sources, top, 3, step)


def _recurrent(net, node, output, name, units):
    """The product of the output before, by a weight that all steps share."""
    options = {"num_output": units, "bias_term": False}
    layer = add_layer(net, "InnerProduct", [output], name + "/product", inner_product_param=options)
    _shared(layer, node["name"] + "/recurrent")
    return name + "/product"


def _unrolled(net, node, sources, top, gates, step):
    """One product of the inputs of all steps, then what `step` adds for each, then their outputs in order."""
    options = {"num_output": gates * node["units"], "axis": 2}
    add_layer(net, "InnerProduct", sources, top + "/all", node["name"], inner_product_param=options)
    count, outputs = node["in_shape"][0], []
    given = _pieces(net, top + "/all", top + "/given", count, 0)
    before = zero(node)
    for at in range(count):
        rows = _reshaped(net, given[at], given[at] + "/rows", [-1, gates * node["units"]])
        name = "{}/step{}".format(node["name"], at)
        step(before, rows, name)
        before = name
        outputs.append(_reshaped(net, name, name + "/row", [1, -1, node["units"]]))
    add_layer(net, "Concat", outputs, top, top + "/steps", concat_param={"axis": 0})


def zero(node):
    """The input of a net that stands for the output before the first step."""
    return "zero/{}".format(node["units"])


def part(net, node, sources, top):
    """Some of the features. What nobody reads of the others has no gradient."""
    axis, start, whole = len(node["in_shape"]), node["start"], node["in_shape"][-1]
    ends = [start, start + node["size"]]
    points = [point for point in ends if 0 < point < whole]
    if not points:
        add_layer(net, "Split", sources, top, node["name"])
        return
    tops = [top + "/before"] * (start > 0) + [top] + [top + "/behind"] * (ends[1] < whole)
    _sliced(net, sources[0], tops, axis, points)


def stack(net, node, sources, top):
    """Rows as the steps of a sequence."""
    size = node["in_shape"][0]
    rows = [
        _reshaped(net, source, "{}/{}".format(top, at), [1, -1, size])
        for at, source in enumerate(sources)
    ]
    add_layer(net, "Concat", rows, top, node["name"], concat_param={"axis": 0})


def unstack(net, node, sources, top):
    """Steps behind one another as features."""
    count, size = node["in_shape"]
    rows = [
        _reshaped(net, step, step + "/rows", [-1, size])
        for step in _pieces(net, sources[0], top + "/step", count, 0)
    ]
    add_layer(net, "Concat", rows, top, node["name"], concat_param={"axis": 1})


def reversal(net, node, sources, top):
    """Twice its input, held constant, less its input."""
    _constant(_combined(net, sources * 2, top, [2.0, -1.0]), False, True)


def sampled_code(net, node, sources, top):
    """Means and logarithms of variances come behind one another."""
    mean, spread = _pieces(net, sources[0], top + "/part", 2, 1)
    add_layer(net, "Exp", [spread], top + "/deviation", exp_param={"scale": 0.5})
    _combined(net, [top + "/deviation", sources[1]], top + "/drawn", operation=_PRODUCT)
    _combined(net, [mean, top + "/drawn"], top)


def rbm(net, node, sources, top):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    (visible, noise), own, units = sources, node["name"] + "/", node["units"]
    seen = node["in_shape"][0]

    def scores(source, name):
        made = _product(net, source, name, units, [own + "weight", own + "hidden"])
        # What is given is held constant.
        _constant(made, False)

    scores(visible, top + "/scores")
    add_layer(net, "Sigmoid", [top + "/scores"], top + "/chances")
    _combined(net, [top + "/chances", noise], top + "/above", [2.0, -1.0])
    above = {"threshold": 1.0}
    add_layer(net, "Threshold", [top + "/above"], top + "/drawn", threshold_param=above)
    names = [own + "weight", own + "visible"]
    _product(net, top + "/drawn", top + "/down", seen, names, transpose=True)
    add_layer(net, "Sigmoid", [top + "/down"], top + "/end")
    scores(top + "/end", top + "/again")
    softened = [top + "/again/soft", top + "/scores/soft"]
    for name in ("/again", "/scores"):
        add_layer(net, "BNLL", [top + name], top + name + "/soft")
    _combined(net, softened, top + "/each", [1.0, -1.0])
    options = {"axis": 1}
    add_layer(net, "Reduction", [top + "/each"], top + "/sum", reduction_param=options)
    _combined(net, [top + "/end", visible], top + "/moved", [1.0, -1.0])
    product = _product(net, top + "/moved", top + "/pull", 1, [own + "visible"], bias_term=False)
    _constant(product, False)
    _reshaped(net, top + "/sum", top + "/column", [-1, 1])
    _combined(net, [top + "/column", top + "/pull"], top + "/energy")
    given = add_layer(net, "Concat", [top + "/energy", top + "/chances"], top)
    _constant(given, True, False)


def _product(net, source, top, units, names, **options):
    options = dict(options, num_output=units)
    return _shared(
        add_layer(net, "InnerProduct", [source], top, inner_product_param=options), *names
    )
