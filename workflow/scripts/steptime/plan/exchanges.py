"""Says which adapter the ranks of several devices use: each way to share gradients is a module of its framework."""

from shared import declarations
from shared.grouping import GROUPED


def adapter_of(adapter: str, devices: int, exchange: str) -> str:
    """Returns the adapter for so many devices: the exchange's module, another exchange's, or the framework's own."""
    modules_of = declarations.exchanges_of(adapter) if devices > 1 else {}
    modules = [modules_of[exchange]] if exchange in modules_of else list(modules_of.values())
    return ".".join([adapter, *modules[:1]])


def fits(devices: int, exchange: str) -> bool:
    """Tells whether so many devices can share gradients in this way: a grouped exchange needs several whole groups."""
    size = GROUPED.get(exchange)
    return size is None or (devices > size and devices % size == 0)


def of_adapter(adapter: str) -> tuple[str, ...]:
    return tuple(declarations.exchanges_of(adapter))
