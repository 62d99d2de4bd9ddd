"""Narrows a grid to some frameworks and networks, as a user asks by `only` and `only_networks`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steptime.plan.schemas import require
from steptime.tasks import TASKS

if TYPE_CHECKING:
    from steptime.plan.configuration import Configuration


def narrow_environments(loaded: "Configuration", only: str) -> None:
    """Keeps, in place, the environments that `only` names, by themselves or by frameworks, and the platforms for them.

    Raises ConfigurationError.
    """
    grid, names = loaded.grid, only.split()
    frameworks = {name: loaded.framework_of(name) for name in grid["environments"]}
    known = [*dict.fromkeys(frameworks.values()), *frameworks]
    require("framework or environment", names, known, f"the grid '{loaded.grid_name}'")
    grid["environments"] = [
        name for name, framework in frameworks.items() if {name, framework} & {*names}
    ]
    devices = {loaded.entry_of(name)["device"] for name in grid["environments"]}
    platforms = loaded.platforms
    grid["platforms"] = [
        name
        for name in grid["platforms"]
        if name not in platforms or platforms[name]["device"] in devices
    ]


def narrow_networks(loaded: "Configuration", only: str) -> None:
    """Keeps, in place, the networks that `only` names. Those that the grid lacks are added: a user's own is in no grid.

    Raises ConfigurationError.
    """
    grid, names = loaded.grid, only.split()
    require("network", names, loaded.networks, "config/networks.yaml or a file of your own")
    known = {name for task in TASKS.values() for name in task.policy(grid).networks}
    grid["networks"] = [*grid["networks"], *(name for name in names if name not in known)]
    places: list[tuple[dict[str, Any], str]] = [(grid, "networks"), (grid, "plain")]
    places += [(grid["parts"], task) for task in grid["parts"]]
    places += [(grid["training"], "networks")] if "training" in grid else []
    for place, key in places:
        place[key] = [name for name in place[key] if name in names]
    grid["proven"] = []


def narrow(loaded: "Configuration", config: Mapping[str, Any]) -> None:
    """Narrows the grid as the configuration asks. Raises ConfigurationError."""
    if "only" in config:
        narrow_environments(loaded, config["only"])
    if "only_networks" in config:
        narrow_networks(loaded, config["only_networks"])
