"""Times the matrix products of a network's dense layers, in each order in which their factors may be in memory.

With weights (in, out), a layer is a product NN, the gradient of its inputs NT, and that of its weights TN; with weights
(out, in), the first two change places. Sizes that several products share are timed once.
"""

from .. import parts
from ..contract import Unsupported

ORDERS = ("NN", "NT", "TN")
FORWARD, INPUTS, WEIGHTS, UPDATE = (
    "forward",
    "gradient of the inputs",
    "gradient of the weights",
    "gradient of the weights and update",
)


def run(loaded, job, emit):
    """Proves and times each product."""
    parts.run(loaded, job, emit, products(sizes(job["spec"], job["batch"])))


def sizes(spec, batch):
    """Returns {(rows, inner, columns): roles} of dense layers' products, without those for inputs' gradients."""
    found = {}
    for node in spec["nodes"]:
        if node["op"] != "dense":
            continue
        rows, (inputs, outputs) = batch, (node["in_shape"][-1], node["units"])
        for steps in node["in_shape"][:-1]:
            rows *= steps
        wanted = [(FORWARD, (rows, inputs, outputs)), (WEIGHTS, (inputs, rows, outputs))]
        if node["inputs"] != ["input"]:
            wanted.append((INPUTS, (rows, outputs, inputs)))
        for role, size in wanted:
            roles = found.setdefault(size, [])
            if role not in roles:
                roles.append(role)
    if not found:
        raise Unsupported("the network has no dense layer")
    return found


def products(found):
    """Yields the parts, each made when it is needed."""
    for size, roles in found.items():
        name = "{0} x {1} by {1} x {2}".format(*size)
        for order in ORDERS:
            yield parts.Product(name, ", ".join(roles), order, size)
        if WEIGHTS in roles:
            for calls, way in ((1, "one call"), (2, "two calls")):
                yield parts.Product(name, UPDATE, way, size, calls)
