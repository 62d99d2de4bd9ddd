"""Windows that slide over images (batch, channels, height, width), which lie in memory with their channels last."""

from collections.abc import Iterator

from steptime.networks.arrays import Array, np
from steptime.networks.layers import Node, Shape


def windowed_shape(node: Node, channels: int, source: Shape) -> Shape:
    """(channels, height, width) of one output for each window; raises ValueError where not one fits."""
    _, height, width = source
    return [channels, _count(height, node), _count(width, node)]


def pad(x: Array, node: Node, value: float) -> Array:
    """The images with `padding` rows and columns of a value on every side."""
    if not node["padding"]:
        return x
    edge = (node["padding"], node["padding"])
    last = np.moveaxis(x, 1, -1)
    padded = np.pad(last, ((0, 0), edge, edge, (0, 0)), constant_values=value)
    return np.moveaxis(padded, -1, 1)


def windows(padded: Array, node: Node) -> Array:
    """Every window of an image: (batch, channels, height, width, kernel, kernel)."""
    step = node["stride"]
    return np.lib.stride_tricks.sliding_window_view(
        padded, (node["kernel"], node["kernel"]), (2, 3)
    )[:, :, ::step, ::step]


def fold(pieces: Array, shape: tuple[int, ...], node: Node) -> Array:
    """The transpose of `pad` and `windows`: sums (batch, channels, height, width, kernel**2) in place."""
    if node["kernel"] == node["stride"] == 1 and not node["padding"]:
        return pieces[..., 0]
    total = blank(shape)
    for place, piece in zip(places(total, node), np.moveaxis(pieces, -1, 0), strict=True):
        place += piece
    return unpad(total, node)


def places(padded: Array, node: Node) -> Iterator[Array]:
    """For each place in a window, row by row, what all windows have there: (batch, channels, height, width) each."""
    kernel, step = node["kernel"], node["stride"]
    height, width = (step * ((extent - kernel) // step + 1) for extent in padded.shape[2:])
    for row in range(kernel):
        for column in range(kernel):
            yield padded[:, :, row : row + height : step, column : column + width : step]


def blank(shape: tuple[int, ...]) -> Array:
    batch, channels, height, width = shape
    return np.moveaxis(np.zeros((batch, height, width, channels)), -1, 1)


def unpad(padded: Array, node: Node) -> Array:
    edge, (height, width) = node["padding"], padded.shape[2:]
    return padded[:, :, edge : height - edge, edge : width - edge]


def _count(extent: int, node: Node) -> int:
    count = (extent + 2 * node["padding"] - node["kernel"]) // node["stride"] + 1
    if count < 1:
        raise ValueError(
            f"a window of {node['kernel']} on {extent}: write a smaller kernel, or more padding"
        )
    return count
