"""Layers of Caffe2 that stand in no network of the papers' six: of images, sequences, attention, generative networks.

Each takes a model, a node and the blobs that it reads, and adds operators to the model's net. A node also has the size
of the mini-batch (`batch`), and whether pixels of its first input may repeat (`repeats`). Images are (batch, channels,
height, width), sequences (steps, batch, features). What was chosen here: docs/adapters/caffe2.md.

Plain Python that 3.6 can import: standard library, numpy and Caffe2.
"""

import numpy as np
from caffe2.python import brew, core, gru_cell, rnn_cell, workspace

from shared import specification


def own(node, role):
    """The blob of a layer's parameter."""
    return "{}/{}".format(node["name"], role)


def constant(name, values):
    """A blob that no step changes."""
    workspace.FeedBlob(name, np.ascontiguousarray(values, np.float32))
    return name


def reshaped(model, value, name, shape):
    """A copy of another shape."""
    return model.net.Reshape(value, [name, name + "/old_shape"], shape=shape)[0]


def scaled(model, value, name, factor):
    """Each value times a number."""
    return model.net.Scale(value, name, scale=float(factor))


def joined(model, values, name, axis, **options):
    """Values behind one another."""
    return model.net.Concat(list(values), [name, name + "/sizes"], axis=axis, **options)[0]


def product(model, value, weight, node, axis):
    """A dense layer without a bias: Caffe2's has one, which stays at zero."""
    zero = constant(node["name"] + "/zero", np.zeros(node["shape"][-1]))
    return model.net.FC([value, weight, zero], node["name"], axis=axis)


def plain(kind, **options):
    """A layer of one operator without parameters."""
    return lambda model, node, value: getattr(model.net, kind)(value, node["name"], **options)


def conv(model, node, value):
    """A convolution in groups."""
    window = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    blobs = [value, own(node, "weight")] + ([own(node, "bias")] if node["bias"] else [])
    return model.net.Conv(blobs, node["name"], group=node["groups"], order="NCHW", **window)


def conv_transpose(model, node, value):
    """Weights come as (in, out, height, width)."""
    window = {"kernel": node["kernel"], "stride": node["stride"], "pad": node["padding"]}
    blobs = [value, own(node, "weight")] + ([own(node, "bias")] if node["bias"] else [])
    return model.net.ConvTranspose(blobs, node["name"], order="NCHW", **window)


def repeating(nodes):
    """The names of nodes in which neighbours may be the same pixel: behind pools whose windows overlap."""
    found = set()
    for node in nodes:
        overlapping = node["op"] == "max_pool" and node["stride"] < node["kernel"]
        begins = overlapping or node["op"] == "upsample"
        ends = "conv" in node["op"] and node["kernel"] > 1
        if begins or not (ends or found.isdisjoint(node["inputs"])):
            found.add(node["name"])
    return found


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


def adaptive_avg_pool(model, node, value):
    """A product with the share of each pixel in each mean; maps of the wanted size as they are."""
    name, size, (channels, height, width) = node["name"], node["size"], node["in_shape"]
    if height == width == size:
        return value
    rows, columns = (_shares(size, extent) for extent in (height, width))
    shares = constant(name + "/shares", np.kron(rows, columns))
    value = reshaped(model, value, name + "/pixels", [-1, height * width])
    value = model.net.MatMul([value, shares], name + "/means", trans_b=1)
    return reshaped(model, value, name, [-1, channels, size, size])


def _shares(size, extent):
    """What each of so many rows is to each of `size` means."""
    means = np.zeros((size, extent))
    for share in range(size):
        first, end = share * extent // size, -(-(share + 1) * extent // size)
        means[share, first:end] = 1.0 / (end - first)
    return means


def local_response_norm(model, node, value):
    """Caffe2 divides its alpha by the number of neighbours, as Caffe does."""
    rule = {"size": node["size"], "alpha": 1.0 / node["inverse_alpha"], "beta": 0.75, "bias": 1.0}
    name = node["name"]
    return model.net.LRN(value, [name, name + "/scale"], order="NCHW", **rule)[0]


def group_norm(model, node, value):
    """Caffe2's own."""
    name, blobs = node["name"], [value, own(node, "gamma"), own(node, "beta")]
    rule = {"group": node["groups"], "epsilon": specification.BATCH_NORM_EPSILON}
    return model.net.GroupNorm(blobs, [name, name + "/means", name + "/scales"], **rule)[0]


def upsample(model, node, value):
    """Each pixel as a square of its own value."""
    factor = float(node["factor"])
    scales = {"width_scale": factor, "height_scale": factor}
    return model.net.ResizeNearest(value, node["name"], order="NCHW", **scales)


def concat(model, node, *values):
    """The channels of images, or the features of rows, behind one another."""
    return joined(model, values, node["name"], 1)


def channel_shuffle(model, node, value):
    """Caffe2's own."""
    return model.net.ChannelShuffle(value, node["name"], group=node["groups"], order="NCHW")


def layer_norm(model, node, value):
    """Caffe2's own, over the channels of images too; a bias that is not wanted stays at zero."""
    name, image = node["name"], len(node["shape"]) == 3
    value = model.net.NCHW2NHWC(value, name + "/pixels") if image else value
    axis = 3 if image else len(node["shape"])
    size = node["shape"][0 if image else -1]
    bias = own(node, "bias") if node["bias"] else constant(name + "/zero", np.zeros(size))
    made = name + "/normal" if image else name
    rule = {"axis": axis, "epsilon": node["epsilon"], "elementwise_affine": True}
    outputs = [made, made + "/means", made + "/deviations"]
    value = model.net.LayerNorm([value, own(node, "weight"), bias], outputs, **rule)[0]
    return model.net.NHWC2NCHW(value, name) if image else value


def rms_norm(model, node, value):
    """From primitives."""
    name, axis = node["name"], len(node["shape"])
    squares = model.net.Sqr(value, name + "/squares")
    mean = model.net.ReduceMean(squares, name + "/mean", axes=[axis], keepdims=1)
    epsilon = constant(name + "/epsilon", [node["epsilon"]])
    root = model.net.Rsqrt(model.net.Add([mean, epsilon], name + "/raised"), name + "/root")
    normal = model.net.Mul([value, root], name + "/normal")
    return model.net.Mul([normal, own(node, "weight")], name)


def layer_scale(model, node, value):
    """Of images, one number a channel."""
    name, weight = node["name"], own(node, "weight")
    if len(node["shape"]) == 3:
        weight = reshaped(model, weight, name + "/channels", [-1, 1, 1])
    return model.net.Mul([value, weight], name)


def bias(model, node, value):
    """One number a feature."""
    return model.net.Add([value, own(node, "bias")], node["name"])


def embedded(model, words, table, name, shape):
    """Rows of a table, whose gradient is that of the whole table, so that other layers may share it."""
    rows = model.net.ExpandDims(table, name + "/table", dims=[0])
    flat = model.net.FlattenToVec(words, name + "/words")
    found = model.net.BatchGather([rows, flat], name + "/found")
    return reshaped(model, found, name, shape)


def lookup(model, node, words, table):
    """Words come as (steps, batch)."""
    shape = [node["shape"][0], -1, node["shape"][-1]]
    return embedded(model, words, table, node["name"], shape)


def unembedding(model, node, value, table):
    """One product of all rows."""
    return product(model, value, table, node, 2)


def positions(model, node, value):
    """A row for each step, or for each of several."""
    name, weight, (steps, units) = node["name"], own(node, "weight"), node["shape"]
    if node["each"] > 1:
        numbers = name + "/numbers"
        workspace.FeedBlob(numbers, (np.arange(steps) // node["each"]).astype(np.int32))
        weight = embedded(model, numbers, weight, name + "/each", [steps, units])
    elif node["rows"] > steps:
        weight = model.net.Slice(weight, name + "/first", starts=[0, 0], ends=[steps, -1])
    rows = model.net.ExpandDims(weight, name + "/steps", dims=[1])
    return model.net.Add([value, rows], name)


def class_token(model, node, value):
    """The same for each sample."""
    name = node["name"]
    token = reshaped(model, own(node, "weight"), name + "/token", [1, 1, -1])
    token = model.net.Tile(token, name + "/tokens", axis=1, tiles=node["batch"])
    return joined(model, [token, value], name, 0)


def attention(model, node, value):
    """From products and a softmax: Caffe2 has no operator of its own for it."""
    net, name, heads = model.net, node["name"], node["heads"]
    steps, units = node["shape"]
    size = units // heads
    value = reshaped(model, value, name + "/parts", [steps, -1, 3, heads, size])
    value = net.Transpose(value, name + "/turned", axes=[2, 1, 3, 0, 4])
    parts = net.Split(value, [name + "/q", name + "/k", name + "/v"], axis=0)
    queries = scaled(model, parts[0], name + "/scaled", size**-0.5)
    scores = net.BatchMatMul([queries, parts[1]], name + "/scores", trans_b=1)
    if node.get("causal"):
        scores = unseen(model, scores, name + "/masked")
    shares = net.Softmax(scores, name + "/shares", axis=4)
    found = net.BatchMatMul([shares, parts[2]], name + "/found")
    found = net.Transpose(found, name + "/back", axes=[0, 3, 1, 2, 4])
    return reshaped(model, found, name, [steps, -1, units])


def unseen(model, scores, name):
    """Scores (1, batch, heads, steps, steps), of which those of later steps are minus infinity."""
    return model.net.SequenceMask(scores, name, mode="upper", axis=4, batch=2)


def patches(model, node, value):
    """Each pixel as a step."""
    name, (pixels, channels) = node["name"], node["shape"]
    value = reshaped(model, value, name + "/pixels", [-1, channels, pixels])
    return model.net.Transpose(value, name, axes=[2, 0, 1])


def first_step(model, node, value):
    """Of all samples."""
    name = node["name"]
    value = model.net.Slice(value, name + "/first", starts=[0, 0, 0], ends=[1, -1, -1])
    return model.net.Squeeze(value, name, dims=[0])


def part(model, node, value):
    """Some of the features, which are the last axis."""
    before, end = [0] * len(node["shape"]), [-1] * len(node["shape"])
    ends = end + [node["start"] + node["size"]]
    return model.net.Slice(value, node["name"], starts=before + [node["start"]], ends=ends)


def stack(model, node, *values):
    """Rows as the steps of a sequence."""
    return joined(model, values, node["name"], 0, add_axis=1)


def unstack(model, node, value):
    """Steps behind one another as features."""
    name = node["name"]
    value = model.net.Transpose(value, name + "/samples", axes=[1, 0, 2])
    return reshaped(model, value, name, [-1] + node["shape"])


def reversal(model, node, value):
    """Twice its input, held constant, less its input."""
    name = node["name"]
    held = model.net.StopGradient(value, name + "/held")
    twice = scaled(model, held, name + "/twice", 2.0)
    return model.net.Sub([twice, value], name)


def sampled_code(model, node, value, noise):
    """Means and logarithms of variances come behind one another."""
    name = node["name"]
    mean, spread = model.net.Split(value, [name + "/mean", name + "/spread"], axis=1)
    deviation = model.net.Exp(scaled(model, spread, name + "/half", 0.5), name + "/deviation")
    return model.net.Add([mean, model.net.Mul([deviation, noise], name + "/drawn")], name)


def rbm(model, node, visible, noise):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""
    net, name = model.net, node["name"]
    weight, seen, hidden = (own(node, role) for role in ("weight", "visible", "hidden"))
    visible = net.StopGradient(visible, name + "/given")
    scores = net.FC([visible, weight, hidden], name + "/scores")
    chances = net.StopGradient(net.Sigmoid(scores, name + "/open"), name + "/chances")
    twice = scaled(model, chances, name + "/twice", 2.0)
    above = net.GT([net.Sub([twice, noise], name + "/above"), constant(name + "/one", [1.0])])
    drawn = net.Cast(above, name + "/drawn", to="float")
    down = net.MatMul([drawn, weight], name + "/down")
    end = net.Sigmoid(net.Add([down, seen], name + "/pulled"), name + "/far")
    end = net.StopGradient(end, name + "/end")
    again = net.FC([end, weight, hidden], name + "/again")
    soft = [net.Softplus(blob, blob + "/soft") for blob in (again, scores)]
    energy = net.ReduceSum(net.Sub(soft, name + "/apart"), name + "/sum", axes=[1], keepdims=1)
    moved = net.Sub([end, visible], name + "/moved")
    column = reshaped(model, seen, name + "/column", [-1, 1])
    pull = net.MatMul([moved, column], name + "/pull")
    energy = net.Add([energy, pull], name + "/energy")
    return joined(model, [energy, chances], name, 1)


class _GRUCell(gru_cell.GRUCell):
    """Caffe2's, whose three recurrent products are one here."""

    def _apply(self, model, input_t, seq_lengths, states, timestep, extra_inputs=None):
        net, before, units = model.net, states[0], self.hidden_size
        inner = brew.fc(model, before, self.scope("gates_t"), units, 3 * units, axis=2)
        given, kept = (
            net.Split(blob, [self.scope(name + gate) for gate in "rzn"], axis=2)
            for blob, name in ((input_t, "given_"), (inner, "inner_"))
        )
        reset = net.Sigmoid(net.Add([given[0], kept[0]], self.scope("r")), self.scope("open"))
        update = net.Add([given[1], kept[1]], self.scope("z"))
        new = net.Add([given[2], net.Mul([reset, kept[2]], self.scope("n"))], self.scope("new"))
        # What stands at the place of the reset gate is not read.
        gates = joined(model, [reset, update, new], self.scope("all"), 2)
        hidden = net.GRUUnit(
            [before, gates, timestep], list(self.get_state_names()), sequence_lengths=False
        )
        net.AddExternalOutputs(hidden)
        return (hidden,)


def rnn(model, node, value):
    """Caffe2's own, which multiplies the inputs of all steps at once."""
    return _recurrent(model, node, value, rnn_cell.BasicRNNCell, activation="tanh")


def gru(model, node, value):
    """With the reset gate behind the recurrent product."""
    return _recurrent(model, node, value, _GRUCell)


def _recurrent(model, node, value, cell, **options):
    name, units = node["name"], node["units"]
    start = constant(name + "/start", np.zeros((1, node["batch"], units)))
    sizes = (node["in_shape"][-1], units)
    options = dict(options, scope=name, outputs_with_grads=(0,))
    return rnn_cell._LSTM(cell, model, value, None, (start,), *sizes, **options)[0]
