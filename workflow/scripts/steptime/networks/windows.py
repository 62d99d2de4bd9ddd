"""Windows that slide over images (batch, channels, height, width), whose channels are last in memory."""

import math
from collections.abc import Iterator

from shared.specification import edges, pair
from steptime.networks.arrays import Array, np
from steptime.networks.layers import Node, Shape


def windowed_shape(node: Node, channels: int, source: Shape) -> Shape:
    """Returns (channels, height, width) with one output for each window; raises ValueError where none fits."""
    sizes = [pair(node.get(key, 1)) for key in ("kernel", "stride", "padding", "dilation")]
    up = bool(node.get("up"))
    sides = zip(source[1:], *sizes, strict=True)
    return [channels, *(_count(*side, up=up) for side in sides)]


def pad(x: Array, node: Node, value: float) -> Array:
    """Returns the images with `padding` rows and columns of a value on every side."""
    around = edges(node)
    if not any(map(any, around)):
        return x
    last = np.moveaxis(x, 1, -1)
    padded = np.pad(last, ((0, 0), *around, (0, 0)), constant_values=value)
    return np.moveaxis(padded, -1, 1)


def windows(padded: Array, node: Node) -> Array:
    """Returns every window of an image: (batch, channels, height, width, rows of the kernel, its columns)."""
    (down, along), (lower, further) = pair(node["stride"]), pair(node.get("dilation", 1))
    seen = np.lib.stride_tricks.sliding_window_view(padded, _reach(node), (2, 3))
    return seen[:, :, ::down, ::along, ::lower, ::further]


def fold(pieces: Array, shape: tuple[int, ...], node: Node) -> Array:
    """Adds up pieces (batch, channels, height, width, kernel**2) in place: the transpose of `pad` and `windows`."""
    if node["kernel"] == node["stride"] == 1 and not node["padding"]:
        return pieces[..., 0]
    total = blank(shape)
    for place, piece in zip(places(total, node), np.moveaxis(pieces, -1, 0), strict=True):
        place += piece
    return unpad(total, node)


def places(padded: Array, node: Node) -> Iterator[Array]:
    """Yields, for each place in a window, row by row, all windows' values there: (batch, channels, height, width)."""
    (rows, columns), (down, along) = pair(node["kernel"]), pair(node["stride"])
    lower, further = pair(node.get("dilation", 1))
    height, width = (
        step * ((extent - reach) // step + 1)
        for step, extent, reach in zip((down, along), padded.shape[2:], _reach(node), strict=True)
    )
    for row in range(0, rows * lower, lower):
        for column in range(0, columns * further, further):
            yield padded[:, :, row : row + height : down, column : column + width : along]


def blank(shape: tuple[int, ...]) -> Array:
    batch, channels, height, width = shape
    return np.moveaxis(np.zeros((batch, height, width, channels)), -1, 1)


def unpad(padded: Array, node: Node) -> Array:
    ((top, bottom), (left, right)), (height, width) = edges(node), padded.shape[2:]
    return padded[:, :, top : height - bottom, left : width - right]


def _reach(node: Node) -> tuple[int, ...]:
    """Returns how many rows and columns a window spans."""
    sides = zip(pair(node["kernel"]), pair(node.get("dilation", 1)), strict=True)
    return tuple((kernel - 1) * apart + 1 for kernel, apart in sides)


def _count(extent: int, kernel: int, step: int, edge: int, apart: int, *, up: bool) -> int:
    """Returns how many windows fit; rounded `up`, the last one still begins in the image or in front of it."""
    room = extent + 2 * edge - (kernel - 1) * apart - 1
    if room < 0:
        raise ValueError(
            f"a window of {kernel} on {extent}: write a smaller kernel, or more padding"
        )
    count = (math.ceil(room / step) if up else room // step) + 1
    return count - (up and (count - 1) * step >= extent + edge)
