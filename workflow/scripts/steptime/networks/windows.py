"""Windows that slide over images (batch, channels, height, width), for layers that have them."""

from steptime.networks.arrays import Array, np
from steptime.networks.layers import Node, Shape


def windowed_shape(node: Node, channels: int, source: Shape) -> Shape:
    """(channels, height, width) of one output for each window; raises ValueError where not one
    fits.
    """
    _, height, width = source
    return [channels, _count(height, node), _count(width, node)]


def pad(x: Array, node: Node, value: float) -> Array:
    """The images with `padding` rows and columns of a value on every side."""
    edge = (node["padding"], node["padding"])
    return np.pad(x, ((0, 0), (0, 0), edge, edge), constant_values=value)


def windows(padded: Array, node: Node) -> Array:
    """Every window of an image: (batch, channels, height, width, kernel, kernel)."""
    step = node["stride"]
    return np.lib.stride_tricks.sliding_window_view(
        padded, (node["kernel"], node["kernel"]), (2, 3)
    )[:, :, ::step, ::step]


def fold(pieces: Array, shape: tuple[int, ...], node: Node) -> Array:
    """The transpose of `pad` and `windows`: sums (batch, channels, height, width, kernel**2) in
    place.
    """
    step, padding, (height, width) = node["stride"], node["padding"], pieces.shape[2:4]
    total = np.zeros(shape)
    for index in range(pieces.shape[-1]):
        row, column = divmod(index, node["kernel"])
        rows, columns = (
            slice(row, row + step * height, step),
            slice(column, column + step * width, step),
        )
        total[:, :, rows, columns] += pieces[..., index]
    return total[:, :, padding : shape[2] - padding, padding : shape[3] - padding]


def _count(extent: int, node: Node) -> int:
    count = (extent + 2 * node["padding"] - node["kernel"]) // node["stride"] + 1
    if count < 1:
        raise ValueError(f"a window of {node['kernel']} on {extent}")
    return count
