"""Which adapter speaks for the ranks of a cell on several devices, and how these can share their gradients.

A framework that can has a second adapter beside its own, of the name with `_ranks` behind it: what is timed on one
device stays as it is when that one changes.
"""

from pathlib import Path

from steptime.plan.configuration import Configuration
from worker import contract


def adapter_of(adapter: str, devices: int) -> str:
    """The adapter of a cell on so many devices, where the framework's own is `adapter`."""
    together = f"{adapter}_ranks"
    there = Path(contract.FOLDER, f"{together}.py").is_file()
    return together if devices > 1 and there else adapter


def of_adapter(adapter: str) -> tuple[str, ...]:
    """The exchanges that a framework of this adapter has on several devices."""
    found = contract.declared(adapter_of(adapter, 2))["EXCHANGES"]
    return tuple(name for name in found if name)


def environments(configuration: Configuration, exchange: str) -> list[str]:
    """Every environment of the catalogue whose framework has this exchange."""
    return [
        name
        for framework in configuration.frameworks.values()
        for name in framework["environments"]
        if exchange in of_adapter(configuration.entry_of(name)["adapter"])
    ]
