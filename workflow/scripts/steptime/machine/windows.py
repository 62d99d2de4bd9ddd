"""What a counter of the kernel's or of a device grew by in the windows in which a worker was measured."""

from collections.abc import Sequence


def growth(readings: Sequence[float | None]) -> float | None:
    """From its readings at the beginning and the end of each window, one after the other.

    None where one is not known, or where a window has not ended.
    """
    known = [reading for reading in readings if reading is not None]
    if not known or len(known) < len(readings) or len(known) % 2:
        return None
    return sum(end - begin for begin, end in zip(known[::2], known[1::2], strict=True))
