"""Answers questions about a specification (see `steptime.networks`), which a worker gets ready made."""

BATCH_NORM_EPSILON = 1e-5
# What a mini-batch adds to the running averages of batch normalisation, where an adapter writes them itself.
BATCH_NORM_SHARE = 0.1


def count_labels(spec):
    """Counts the labels of one sample: one, or one for each step of a sequence."""
    count = 1
    for extent in spec["nodes"][-1]["shape"][:-1]:
        count *= extent
    return count


def count_classes(spec):
    """Counts the classes of the softmax."""
    return spec["nodes"][-1]["shape"][-1]


def pair(value):
    """Returns [of rows, of columns] from a value that may be one number for both."""
    return value if isinstance(value, list) else [value, value]


def edges(node):
    """Returns a window's padding, [[rows in front, behind], [columns]], and as far as the last windows reach."""
    around = [[edge, edge] for edge in pair(node["padding"])]
    if node.get("up"):
        sizes = pair(node["kernel"]), pair(node["stride"]), node["in_shape"][1:], node["shape"][1:]
        for edge, kernel, step, extent, count in zip(around, *sizes):
            edge[1] = max(edge[0], (count - 1) * step + kernel - extent - edge[0])
    return around


def is_same(node):
    """Tells whether the padding of a node is what frameworks call "same"."""
    sizes = (pair(node.get(key, 1)) for key in ("kernel", "stride", "padding", "dilation"))
    return all(
        step == 1 and 2 * edge == (kernel - 1) * apart for kernel, step, edge, apart in zip(*sizes)
    )


def is_plain(node):
    """Tells whether the windows of a node are squares without gaps."""
    sizes = [node["kernel"], node["stride"], node["padding"], node.get("dilation", 1)]
    return sizes[3] == 1 and not any(isinstance(size, list) for size in sizes)


def own_of(node, values):
    """Returns `values` of a node's parameters by their roles, from values by the parameters' names."""
    prefix = node["name"] + "/"
    return {name[len(prefix) :]: values[name] for name in values if name.startswith(prefix)}


def repeating(nodes):
    """Returns the nodes whose neighbours may be the same pixel: those after pools with overlapping windows."""
    found = set()
    for node in nodes:
        overlapping = node["op"] == "max_pool" and any(
            step < size for step, size in zip(pair(node["stride"]), pair(node["kernel"]))
        )
        ends = "conv" in node["op"] and node["kernel"] != 1
        if overlapping or not (ends or found.isdisjoint(node["inputs"])):
            found.add(node["name"])
    return found


def at_rate(spec, rate):
    """Returns the specification trained by plain SGD at this rate: a step then shows the gradient itself."""
    return dict(spec, optimiser={"name": "sgd", "learning_rate": rate})


def rate_of(node):
    """Returns the share of values, samples or an attention's shares that a node drops; None where it drops none."""
    return node.get("rate", node.get("dropout"))


def at_dropout(node, rate):
    """Returns a node with its dropout at this rate."""
    return dict(node, **{"rate" if "rate" in node else "dropout": rate})


def without_dropout(spec, rate=0.0):
    """Returns the specification with every dropout at a rate of 0, or at this one."""
    nodes = [at_dropout(node, rate) if rate_of(node) else node for node in spec["nodes"]]
    return dict(spec, nodes=nodes)


def drawing(spec, random):
    """Returns the specification whose every dropout draws its masks from `random`."""
    nodes = [dict(node, random=random) if rate_of(node) else node for node in spec["nodes"]]
    return dict(spec, nodes=nodes)


def learning_rate(optimiser, epoch, steps_before):
    """Returns the rate of a step of an epoch, from 1, after so many steps; `decay`: Keras 2.0, `after_epochs`: CNTK."""
    rate = optimiser["learning_rate"]
    for epochs, later in optimiser.get("after_epochs", []):
        if epoch > epochs:
            rate = later
    return rate / (1.0 + optimiser.get("decay", 0.0) * steps_before)
