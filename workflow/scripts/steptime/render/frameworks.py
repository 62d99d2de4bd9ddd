"""How frameworks are named and drawn, and their order."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steptime.reading import read_yaml

DASHES = ("-", "--", ":", "-.")
FILLS = ("full", "left", "top", "right", "bottom")
UNKNOWN_COLOURS = ("#333333", "#777777", "#AA4499", "#44AA99")


@dataclass(frozen=True)
class Framework:
    """How a framework is named and drawn; `order` is its place among the others."""

    name: str
    label: str
    lineage: str
    colour: str
    marker: str
    order: int

    @property
    def style(self) -> dict[str, Any]:
        """Returns its colour and marker, as arguments of Matplotlib's `plot`."""
        return {"color": self.colour, "marker": self.marker}

    def line(self, turn: int) -> dict[str, Any]:
        """Returns the style of one of its lines, counted from 0: they differ in dashes and filling."""
        style = {"linestyle": DASHES[turn % len(DASHES)]}
        return self.style | style | {"markerfacecolor": "white" if turn else self.colour}

    def version(self, turn: int) -> dict[str, Any]:
        """Returns the style of one of its versions or modes, counted from 0: later ones have half-filled markers."""
        fill = {"fillstyle": FILLS[turn % len(FILLS)], "markerfacecoloralt": "white"}
        return self.style | {"linestyle": "-"} | fill


class Frameworks:
    """The frameworks of `resources/papers/frameworks.yaml`; any other has its own name and a plain colour."""

    def __init__(self, path: Path) -> None:
        self._known = {
            name: Framework(name=name, order=order, **entry)
            for order, (name, entry) in enumerate(read_yaml(path).items())
        }

    def __getitem__(self, name: str) -> Framework:
        if name not in self._known:
            order = len(self._known)
            colour = UNKNOWN_COLOURS[order % len(UNKNOWN_COLOURS)]
            self._known[name] = Framework(name, name, name, colour, "o", order)
        return self._known[name]

    def standing(self, name: str) -> str:
        """Returns its label, and which older framework it represents: 'PyTorch (stands for Torch)'."""
        own = self[name]
        first = self.lineage(own.lineage)
        return own.label if first == own else f"{own.label} (stands for {first.label})"

    def printed(self, name: str, paper: dict[str, Any]) -> str:
        """Returns its label with the version that a paper names, if it names one."""
        return f"{self[name].label} {paper['versions'].get(name, '')}".strip()

    def lineage(self, lineage: str) -> Framework:
        """Returns the first framework of a lineage, which gives it its label and its place."""
        return next(framework for framework in self._known.values() if framework.lineage == lineage)
