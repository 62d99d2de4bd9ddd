"""Checks that a grid asks for what there is; sentences say what to write instead. Pure functions."""

from collections.abc import Iterable
from typing import Any

from shared.grouping import GROUPED
from shared.precisions import PRECISIONS, USUAL
from steptime import networks as specifications
from steptime import project
from steptime.plan import axes, exchanges
from steptime.plan.artefacts import Artefact
from steptime.plan.configuration import Configuration
from steptime.plan.interim import repeats_of
from steptime.plan.schemas import ConfigurationError, require
from steptime.reading import read_yaml
from steptime.tasks import TASKS
from steptime.tasks import USUAL as USUAL_TASK


def check(configuration: Configuration) -> None:
    """Raises ConfigurationError for a grid that cannot be expanded."""
    _check_names(configuration)
    _check_devices(configuration)
    _check_sizes(configuration)
    _check_exchanges(configuration)
    _check_precisions(configuration)
    _check_repeats(configuration)


def lacking(configuration: Configuration, name: str, shown: str = "") -> str:
    """Says what a grid must ask for so that an artefact has cells, or `shown`, which shows the same cells."""
    selected = configuration.artefacts[name]
    grid = configuration.grid
    asked = []
    task = TASKS[selected.get("task", USUAL_TASK)]
    policy, least = task.policy(grid), selected.get("least_networks", 1)
    usual = ["mnist"] if task.needs_images else grid["networks"] or ["fcn5"]
    some = usual if selected["networks"] == "all" else selected["networks"]
    known = configuration.networks
    found = {known[each].get("variant_of", each) for each in {*policy.networks} & {*some}}
    if "devices" in selected and max(grid["devices"]) == 1:
        asked.append("`devices: [1, 2]`")
    if selected.get("apart") and not any("part_of" in known[each] for each in policy.networks):
        return f"{shown or name} is made by `make explain A=mxnet B=torch NETWORKS=fcn5`."
    if len(found) < least:
        asked.append(f"{('one', 'two')[least - 1]} of {', '.join(some)} under {task.asked_under}")
    beside = TASKS[selected.get("beside", task.name)]
    if beside is not task and not beside.policy(grid).networks:
        asked.append(f"one of {', '.join(usual)} under {beside.asked_under}")
    if selected.get("precisions") and len(grid["precision"]) == 1:
        asked.append("`precision: [float32, bfloat16]`")
    if selected.get("plain") and not grid["plain"]:
        asked.append(f"one of {', '.join(usual)} under 'plain'")
    if selected["threads"] == "above" and not grid.get("threads", {}).get("above"):
        asked.append("`above: [2*all]` under 'threads'")
    if beside.exchanges and not {*beside.exchanges} & {*grid["exchange"]}:
        asked.append(f"one of {', '.join(beside.exchanges)} under 'exchange'")
    mend = ", and ".join(asked) or "an 'exchange' between its devices that the figure shows"
    return f"{shown or name} has nothing to show in the grid '{configuration.grid_name}': write {mend}."


def nothing_to_show(configuration: Configuration, artefact: Artefact, why: str) -> str:
    """Says that an artefact has nothing to show in the grid, `why`, and what to do about it."""
    sentence = f"{artefact.name} has nothing to show in the grid '{configuration.grid_name}'"
    sentence += f" ({why})" if why else ""
    images = artefact.entry.get("images", "")
    if images and configuration.dataset_of(images) is None:
        return f"{sentence}: name the files of {images} under 'data' of config/config.yaml."
    grids = project.ROOT.glob("config/grids/*.yaml")
    files = sorted(grids, key=lambda path: (path.stem != artefact.owner, path.stem))
    has = [path.stem for path in files if _would_show(artefact, read_yaml(path))]
    return (
        f"{sentence}: write `make GRID={has[0]} TARGET={artefact.name}`." if has else f"{sentence}."
    )


def _would_show(artefact: Artefact, grid: dict[str, Any]) -> bool:
    """Tells whether a grid times an artefact's `variants`, or trains its networks, in both environments of a `pair`."""
    if "variants" in artefact.entry:
        return bool({*artefact.entry["variants"]} & {*grid.get("networks", [])})
    trained, environments = grid.get("training", {}).get("networks", []), grid["environments"]
    has_pair = [
        {runner.rpartition(".")[0] for runner in pair} <= {*environments}
        for pair in artefact.entry.get("pairs", {}).items()
    ]
    is_trained = bool({*trained} & {*artefact.entry.get("networks", trained)})
    return "trainings" in artefact.entry["needs"] and is_trained and any(has_pair or [True])


def _asked_networks(configuration: Configuration) -> list[str]:
    """Returns the networks that the grid measures in any way, and those that it only proves."""
    networks = [*axes.networks_of(configuration), *axes.proven_of(configuration)]
    return list(dict.fromkeys(networks))


def _check_names(configuration: Configuration) -> None:
    grid, networks, where = configuration.grid, configuration.networks, "config/networks.yaml"
    for key in ("table_batches", "figure_batches", "named_batches", "plain"):
        require("network", grid[key], networks, where)
    require("network", _asked_networks(configuration), networks, where)
    for name, entry in networks.items():
        base = [entry["variant_of"]] if "variant_of" in entry else []
        require("network", base, networks, where, f"{configuration.file_of(name)}, {name}: ")
    for artefact, selection in configuration.artefacts.items():
        if selection["networks"] != "all":
            place = f"{configuration.catalogue[artefact].file}, {artefact}: "
            require("network", selection["networks"], networks, where, place)
    require("platform", grid["platforms"], configuration.platforms, "config/platforms.yaml")
    require("framework", grid["modes"], configuration.frameworks, "config/frameworks.yaml")


def _check_devices(configuration: Configuration) -> None:
    """Raises unless every environment meets a platform of its kind of device, and every platform an environment."""
    grid, entry_of = configuration.grid, configuration.entry_of
    platforms = {name: configuration.platforms[name]["device"] for name in grid["platforms"]}
    environments = {name: entry_of(name)["device"] for name in grid["environments"]}
    for name, device in environments.items():
        if device not in platforms.values():
            raise ConfigurationError(
                f"{name} computes on a {device.upper()}, and none of the grid's platforms is one "
                f"({', '.join(platforms)}): {_advice('platform', configuration.platforms, device)} or take {name} "
                "out of the grid."
            )
    known = {name: entry_of(name) for name in configuration.known_environments}
    for name, device in platforms.items():
        if device not in environments.values():
            raise ConfigurationError(
                f"The platform '{name}' computes on a {device.upper()}, and none of the grid's environments does "
                f"({', '.join(environments) or 'none'}): {_advice('environment', known, device)} or take it out of "
                "the grid."
            )


def _check_sizes(configuration: Configuration) -> None:
    """Raises unless every network can be specified and has the number of parameters that its entry promises."""
    for network in _asked_networks(configuration):
        try:
            spec, _ = (configuration.specify(network, narrow) for narrow in (False, True))
            count = specifications.count_parameters(spec)
        except ValueError as error:
            raise ConfigurationError(f"{configuration.file_of(network)}: {error}.") from error
        promised = specifications.resolve(network, configuration.networks)["parameters"]
        if count != promised:
            raise ConfigurationError(
                f"{configuration.file_of(network)}, {network}: the layers have {count:,} trainable parameters "
                f"and 'parameters' says {promised:,}; mend whichever is wrong."
            )


def _check_exchanges(configuration: Configuration) -> None:
    """Raises unless every exchange of a grid with several devices is one that some environment has for some of them."""
    grid = configuration.grid
    for task in TASKS.values():
        offered = grid["exchange"] if max(grid["devices"]) > 1 else []
        if task.exchanges and not {*task.exchanges} & {*offered} and task.policy(grid).networks:
            raise ConfigurationError(
                f"The grid asks for `{task.name}` under 'parts', which several devices have that share gradients by "
                f"{' or '.join(task.exchanges)}: write `devices: [1, 2]` and `exchange: [{task.exchanges[0]}]`, or "
                "leave it out."
            )
    if max(grid["devices"]) == 1:
        return
    entries = {name: configuration.entry_of(name) for name in configuration.known_environments}
    own = {name: entries[name] for name in grid["environments"]}
    for exchange in grid["exchange"]:
        several = [devices for devices in grid["devices"] if devices > 1]
        if not any(exchanges.fits(devices, exchange) for devices in several):
            raise ConfigurationError(
                f"The grid asks for `{exchange}` between {_or(map(str, several))} devices, and it takes two groups of "
                f"{GROUPED[exchange]} at least: write an even number from 4 on under 'devices', or `sync`, which is "
                "what one group does, under 'exchange'."
            )
        if not any(exchange in exchanges.of_adapter(entry["adapter"]) for entry in own.values()):
            kinds = {entry["device"] for entry in own.values()}
            # Without older releases.
            others = [
                name
                for name, entry in entries.items()
                if name not in entry["history"]
                and entry["device"] in kinds
                and exchange in exchanges.of_adapter(entry["adapter"])
            ]
            known = f"add one of {', '.join(others)}, or write" if others else "write"
            raise ConfigurationError(
                f"None of the grid's environments ({', '.join(own)}) shares gradients by `{exchange}` between "
                f"devices: {known} another 'exchange'."
            )


def _check_precisions(configuration: Configuration) -> None:
    """Raises unless every platform has one of the grid's precisions, and each precision a platform, present or not."""
    grid, known = configuration.grid, configuration.platforms
    for name in grid["platforms"]:
        device = known[name]["device"]
        if not axes.precisions_of(configuration, device):
            raise ConfigurationError(
                f"The platform '{name}' computes on a {device.upper()}, which has no {_or(grid['precision'])}: add "
                f"{USUAL} to the grid's 'precision', or take {name} out of the grid."
            )
    named = [*grid["platforms"], *grid["platforms_if_present"]]
    there = {known[name]["device"] for name in named}
    for precision in grid["precision"]:
        able = PRECISIONS[precision].devices
        if not there & {*able}:
            raise ConfigurationError(
                f"The grid asks for products in {precision}, which a {_or(able).upper()} alone has, and none of its "
                f"platforms is one ({', '.join(named)}): take {precision} out of its 'precision', or add such a "
                "platform."
            )


def _check_repeats(configuration: Configuration) -> None:
    """Raises where a grid asks for no more runs at the most than at the least."""
    repeats = repeats_of(configuration.grid)
    if isinstance(configuration.grid["repeats"], dict) and repeats.most <= repeats.least:
        raise ConfigurationError(
            f"The grid asks for {repeats.least} runs of each result and for {repeats.most} at the most: write a larger "
            f"number under 'most' of its 'repeats', or `repeats: {repeats.least}`."
        )


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)


def _advice(kind: str, known: dict[str, dict[str, Any]], device: str) -> str:
    fitting = [name for name, entry in known.items() if entry["device"] == device]
    return (
        f"add one that does, such as {fitting[0]},"
        if fitting
        else f"write such {'an' if kind[0] in 'aeiou' else 'a'} {kind},"
    )
