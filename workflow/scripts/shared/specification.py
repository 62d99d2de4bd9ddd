"""What a worker reads off a specification (see `steptime.networks`), which it gets ready made."""

BATCH_NORM_EPSILON = 1e-5
# What a mini-batch adds to the running averages of batch normalisation, where an adapter writes them itself.
BATCH_NORM_SHARE = 0.1


def count_labels(spec):
    """Number of labels of one sample: one, or one for each step of a sequence."""
    count = 1
    for extent in spec["nodes"][-1]["shape"][:-1]:
        count *= extent
    return count


def count_classes(spec):
    """Number of classes of the softmax."""
    return spec["nodes"][-1]["shape"][-1]


def pair(value):
    """[of rows, of columns] of what may be given for both at once."""
    return value if isinstance(value, list) else [value, value]


def edges(node):
    """The padding of a window, [[of rows in front, behind], [of columns]], and what the last ones reach over it."""
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
    """Returns those of `values`, by the names of parameters, that are of a node: by their roles."""
    prefix = node["name"] + "/"
    return {name[len(prefix) :]: values[name] for name in values if name.startswith(prefix)}


def repeating(nodes):
    """Returns the names of nodes in which neighbours may be the same pixel: behind pools whose windows overlap."""
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
    """The share that a node drops of values or samples, or an attention of its shares; None where it has none."""
    return node.get("rate", node.get("dropout"))


def at_dropout(node, rate):
    """Returns a node that drops this share of what it drops."""
    return dict(node, **{"rate" if "rate" in node else "dropout": rate})


def without_dropout(spec, rate=0.0):
    """Returns the specification with every dropout at a rate of 0, or at this one instead."""
    nodes = [at_dropout(node, rate) if rate_of(node) else node for node in spec["nodes"]]
    return dict(spec, nodes=nodes)


def drawing(spec, random):
    """Returns the specification whose every dropout draws its masks from `random`."""
    nodes = [dict(node, random=random) if rate_of(node) else node for node in spec["nodes"]]
    return dict(spec, nodes=nodes)


def learning_rate(optimiser, epoch, steps_before):
    """The rate of a step of an epoch, counted from 1, after so many steps; `decay`: Keras 2.0, `after_epochs`: CNTK."""
    rate = optimiser["learning_rate"]
    for epochs, later in optimiser.get("after_epochs", []):
        if epoch > epochs:
            rate = later
    return rate / (1.0 + optimiser.get("decay", 0.0) * steps_before)
