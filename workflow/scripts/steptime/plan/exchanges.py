"""Which adapter speaks for the ranks of several devices: each way to share gradients is a module of its framework."""

from shared import declarations
from shared.grouping import GROUPED


def adapter_of(adapter: str, devices: int, exchange: str) -> str:
    """The adapter of a cell on so many devices: of this exchange, else of the framework's other one, or its own."""
    modules_of = declarations.exchanges_of(adapter) if devices > 1 else {}
    modules = [modules_of[exchange]] if exchange in modules_of else list(modules_of.values())
    return ".".join([adapter, *modules[:1]])


def fits(devices: int, exchange: str) -> bool:
    """Tells whether several devices, so many, can share their gradients so: they are two groups or more of one size."""
    size = GROUPED.get(exchange)
    return size is None or (devices > size and devices % size == 0)


def of_adapter(adapter: str) -> tuple[str, ...]:
    return tuple(declarations.exchanges_of(adapter))
