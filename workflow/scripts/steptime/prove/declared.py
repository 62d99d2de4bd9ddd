"""Prints which layers, losses and optimisers each adapter declares, as a page of the documents.

workflow/scripts/launch prove.declared > docs/adapters/layers.md
"""

from collections.abc import Iterator
from typing import Any

from shared import declarations
from steptime import project
from steptime.networks.layers import LAYERS
from steptime.networks.losses import LOSSES
from steptime.networks.optimisers import OPTIMISERS
from steptime.plan import configuration

HEAD = """# Layers, losses and optimisers by adapter

Read from what each adapter declares. A network that needs more is `unsupported` there, and its row
names what is missing. An adapter of an older framework has what a grid of `config/grids/` other than
`matrix` asks of it. `make GRID=matrix TARGET=steptime_matrix` says which network was proven where.

This page is printed by `workflow/scripts/launch prove.declared`.
"""


def main() -> None:
    """Command line."""
    print(page(), end="")


def page() -> str:
    """The page as Markdown."""
    known = configuration.without_grid(project.ROOT)
    adapters = {
        known.entry_of(environment)["adapter"]
        for framework in known.frameworks.values()
        for environment in framework["environments"]
    }
    declared = {name: declarations.declared(name) for name in sorted(adapters)}
    # One that has none refuses whatever it is asked.
    declared = {name: has for name, has in declared.items() if has["LAYERS"] is not None}
    parts = [HEAD]
    for title, key, records in (
        ("Layers", "LAYERS", LAYERS),
        ("Losses", "LOSSES", LOSSES),
        ("Optimisers", "OPTIMISERS", OPTIMISERS),
    ):
        has = {name: each[key] for name, each in declared.items()}
        parts.append("\n".join([f"## {title}\n", *_lines(list(records), has)]))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _lines(records: list[str], has: dict[str, Any]) -> Iterator[str]:
    """A table with a line for each adapter: those that it has, or those that it lacks where they are fewer."""
    yield f"| adapter | of {len(records)} | which |"
    yield "| --- | --- | --- |"
    for adapter, declared in has.items():
        own = [name for name in records if name in declared]
        lacking = [name for name in records if name not in own]
        which = ", ".join(own)
        if len(lacking) < len(own):
            which = f"all but {', '.join(lacking)}" if lacking else "all"
        yield f"| {adapter} | {len(own)} | {which} |"


if __name__ == "__main__":
    main()
