"""The neutral specification of a network: what every adapter builds, and what every check is held against.

`specify` expands an entry of `config/networks.yaml` into plain data (it travels to the worker as JSON):

    {"network": "fcn5", "input": {"kind": "dense", "shape": [26752]}, "nodes": [...], "parameters": [...],
     "loss": "softmax_cross_entropy", "optimiser": {"name": "sgd", "learning_rate": 0.01}}

A network that is trained on real images has besides `dataset`, the name of the whole data set, and `epochs`, how many
at most; its optimiser may have `after_epochs`, [[epochs, learning rate from then on] ...], and `decay` (see
`worker.tasks.training`).

A node is `{"name", "op", "inputs", "in_shape", "shape", ...}`; `inputs` names earlier nodes or "input", and the shapes
are those of one sample, channels first: (features,), (channels, height, width) or (steps, features). The last node
gives the logits. A parameter is `{"name": "<node>/<role>", "shape", "bound", "centre"}` in the neutral layout:

    dense       weight (in, units), bias (units)
    conv        weight (out, in, kernel, kernel), bias (out) where `bias` is true
    batch_norm  gamma (channels), beta (channels); batch statistics, epsilon 1e-5
    embedding   weight (vocabulary, units)
    lstm        input (in, 4 units), recurrent (units, 4 units), bias (4 units); gates in the order i, f, g, o

`dropout` sets each value to 0 with probability `rate`, on its own, and divides the others by 1 - rate; while a network
is judged it does nothing. `flatten` is channels first: (c, h, w) becomes c*h*w. A `dense` on (steps, features) works
on each step. The loss is the mean over all labels of the batch.
"""

import math

# The last gammas of a residual branch start at a tenth of its shortcut. At equal parts, gradients grow some 30 times
# over fifty layers and float32 noise turns signs in front of ReLUs: no two frameworks agree then (compare Goyal et al.
# 2017, section 5.1, who start the same gammas at zero).
BRANCH_GAMMA = 0.1
BIAS_BOUND = 0.02
LEARNING_RATE = 0.01


def specify(name, catalogue, narrow=False):
    """Specification of the network `name` of the catalogue (the parsed `config/networks.yaml`).

    With `narrow`, the small version of the same structure. Raises ValueError, in one sentence, for a layer or a size
    that is not known.
    """
    entry = resolve(name, catalogue)
    sizes = dict(entry["sizes"], **(entry["narrow"] if narrow else {}))
    number = _lookup(name, sizes)
    source = dict(entry["input"], shape=[number(value) for value in entry["input"]["shape"]])
    if "vocabulary" in source:
        source["vocabulary"] = number(source["vocabulary"])
    builder = _Builder(name, source, number)
    builder.add_all(entry["layers"])
    plain = {"name": "sgd", "learning_rate": entry.get("learning_rate", LEARNING_RATE)}
    training = {key: entry[key] for key in ("dataset", "epochs") if key in entry}
    return {
        "network": name,
        "input": source,
        "nodes": builder.nodes,
        "parameters": [parameter for node in builder.nodes for parameter in _parameters(node)],
        "loss": "softmax_cross_entropy",
        "optimiser": entry.get("optimiser", plain),
        **training,
    }


def resolve(name, catalogue):
    """The entry of `name` with everything that a variant takes from its network filled in."""
    entry = catalogue[name]
    if "variant_of" not in entry:
        return entry
    base = resolve(entry["variant_of"], catalogue)
    merged = dict(base, **entry)
    merged["sizes"] = dict(base["sizes"], **entry.get("sizes", {}))
    return merged


def count_parameters(spec):
    """Number of trainable parameters of a specification, exactly."""
    return sum(_product(parameter["shape"]) for parameter in spec["parameters"])


def count_layers(spec):
    """Number of layers that multiply by weights: dense, convolution (shortcuts left out) and LSTM layers."""
    return sum(
        node["op"] in ("dense", "conv", "lstm") and not node.get("shortcut", False)
        for node in spec["nodes"]
    )


def flops_per_step(spec, batch):
    """Floating-point operations of one training step: 2 for each multiply-add of the matrix products.

    Forward, gradient of the weights and gradient of the input cost the same number each (Goodfellow et al., Deep
    Learning, 2016, section 6.5; the convention of Kaplan et al. 2020, "6 N"); the gradient of the network's own input
    is not computed. Element-wise work, pooling, normalisation and the embedding's look-up are left out.
    """
    total = 0
    for node in spec["nodes"]:
        products = _multiply_adds(node)
        passes = 2 if node["inputs"] == ["input"] else 3
        # The recurrent product of an LSTM needs its input gradient even in the first layer.
        if node["op"] == "lstm" and passes == 2:
            products += node["shape"][0] * node["units"] * 4 * node["units"] / 2
        total += 2 * products * passes
    return int(round(total * batch))


class _Builder:
    """Turns layers into nodes, keeping the shape and the name of what came last."""

    def __init__(self, network, source, number):
        self.network = network
        self.number = number
        self.nodes = []
        self.shapes = {"input": list(source["shape"])}
        self.last = "input"
        self.counts = {}

    def add_all(self, layers):
        for layer in layers:
            if isinstance(layer, str):
                self.add(layer)
            elif "repeat" in layer:
                for _ in range(self.number(layer["repeat"])):
                    self.add_all(layer["layers"])
            else:
                ((op, options),) = layer.items()
                options = {key: self.number(value) for key, value in options.items()}
                if op == "bottlenecks":
                    self.add_bottlenecks(**options)
                else:
                    self.add(op, **options)

    def add(self, op, inputs=None, **options):
        if op not in _SHAPES:
            raise ValueError(
                "network {}: there is no layer '{}'; write one of {}, bottlenecks".format(
                    self.network, op, ", ".join(sorted(_SHAPES))
                )
            )
        self.counts[op] = self.counts.get(op, 0) + 1
        inputs = inputs or [self.last]
        node = dict(
            _DEFAULTS.get(op, {}),
            name=f"{op}{self.counts[op]}",
            op=op,
            inputs=inputs,
            in_shape=self.shapes[inputs[0]],
            **options,
        )
        try:
            node["shape"] = _SHAPES[op](node)
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(
                f"network {self.network}: layer '{node['name']}' does not fit what stands before it, of shape "
                f"{node['in_shape']} ({error})"
            ) from error
        self.nodes.append(node)
        self.shapes[node["name"]] = node["shape"]
        self.last = node["name"]
        return self.last

    def add_bottlenecks(self, width, blocks, stride):
        """Residual blocks 1x1, 3x3 (with the stride), 1x1 to four times the width (He et al. 2015, "v1.5")."""
        for block in range(blocks):
            entered = self.last
            step = stride if block == 0 else 1
            self.add("conv", channels=width, kernel=1, bias=False)
            self.add("batch_norm")
            self.add("relu")
            self.add("conv", channels=width, kernel=3, stride=step, padding=1, bias=False)
            self.add("batch_norm")
            self.add("relu")
            self.add("conv", channels=4 * width, kernel=1, bias=False)
            main = self.add("batch_norm", ends_branch=True)
            if block == 0:
                self.add(
                    "conv",
                    [entered],
                    channels=4 * width,
                    kernel=1,
                    stride=step,
                    bias=False,
                    shortcut=True,
                )
                entered = self.add("batch_norm")
            self.add("add", [main, entered])
            self.add("relu")


def _lookup(name, sizes):
    def number(value):
        if not isinstance(value, str):
            return value
        if value not in sizes:
            raise ValueError(
                "network {}: the size '{}' is not defined; write one of {} or a number".format(
                    name, value, ", ".join(sorted(sizes))
                )
            )
        return sizes[value]

    return number


def _slid(extent, node):
    size = (extent + 2 * node["padding"] - node["kernel"]) // node["stride"] + 1
    if size < 1:
        raise ValueError("a window of {} on {}".format(node["kernel"], extent))
    return size


def _windowed(channels, node):
    _, height, width = node["in_shape"]
    return [channels, _slid(height, node), _slid(width, node)]


def _same(node):
    return list(node["in_shape"])


_DEFAULTS = {
    "dense": {"bias": True},
    "conv": {"stride": 1, "padding": 0, "bias": True},
    "max_pool": {"padding": 0},
}

_SHAPES = {
    "dense": lambda node: node["in_shape"][:-1] + [node["units"]],
    "conv": lambda node: _windowed(node["channels"], node),
    "max_pool": lambda node: _windowed(node["in_shape"][0], node),
    "global_average_pool": lambda node: [node["in_shape"][0]],
    "flatten": lambda node: [_product(node["in_shape"])],
    "batch_norm": _same,
    "relu": _same,
    "sigmoid": _same,
    "dropout": _same,
    "add": _same,
    "embedding": lambda node: node["in_shape"] + [node["units"]],
    "lstm": lambda node: [node["in_shape"][0], node["units"]],
}


# Every kind of layer that a network can have.
LAYER_KINDS = frozenset(_SHAPES)


def _parameters(node):
    """Parameters of a node, with the bounds of their uniform start values.

    Weights start uniform with variance 1/fan-in (LeCun et al. 1998, "Efficient BackProp"), those of convolutions in
    +-1/sqrt(fan-in), the default of torch.nn: wider ones (He et al. 2015) make AlexNet at full size, which has nothing
    that normalises, diverge at the learning rate of 0.01. No start value is a special one such as 0, so that the proof
    sees a parameter in the wrong place.
    """
    op = node["op"]

    def parameter(role, shape, bound, centre=0.0):
        return {
            "name": "{}/{}".format(node["name"], role),
            "shape": shape,
            "bound": bound,
            "centre": centre,
        }

    if op == "dense":
        features, units = node["in_shape"][-1], node["units"]
        entries = [parameter("weight", [features, units], math.sqrt(3 / features))]
        return entries + ([parameter("bias", [units], BIAS_BOUND)] if node["bias"] else [])
    if op == "conv":
        channels, kernel = node["in_shape"][0], node["kernel"]
        shape = [node["channels"], channels, kernel, kernel]
        entries = [parameter("weight", shape, 1 / math.sqrt(channels * kernel * kernel))]
        return entries + (
            [parameter("bias", [node["channels"]], BIAS_BOUND)] if node["bias"] else []
        )
    if op == "batch_norm":
        channels = node["in_shape"][0]
        centre = BRANCH_GAMMA if node.get("ends_branch") else 1.0
        return [
            parameter("gamma", [channels], 0.1 * centre, centre=centre),
            parameter("beta", [channels], 0.1),
        ]
    if op == "embedding":
        return [parameter("weight", [node["vocabulary"], node["units"]], math.sqrt(3))]
    if op == "lstm":
        features, units = node["in_shape"][-1], node["units"]
        return [
            parameter("input", [features, 4 * units], math.sqrt(3 / features)),
            parameter("recurrent", [units, 4 * units], math.sqrt(3 / units)),
            parameter("bias", [4 * units], BIAS_BOUND),
        ]
    return []


def _multiply_adds(node):
    if node["op"] == "dense":
        return _product(node["in_shape"]) * node["units"]
    if node["op"] == "conv":
        return _product(node["shape"]) * node["in_shape"][0] * node["kernel"] ** 2
    if node["op"] == "lstm":
        steps, features = node["in_shape"]
        return steps * (features + node["units"]) * 4 * node["units"]
    return 0


def _product(shape):
    total = 1
    for extent in shape:
        total *= extent
    return total
