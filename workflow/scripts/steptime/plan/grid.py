"""Expands a grid into cells, and says which cells each artefact is made of. Pure functions over the configuration."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any

from steptime import networks as specifications
from steptime.machine import placement
from steptime.plan import exchanges
from steptime.plan.cell import Cell
from steptime.plan.configuration import Configuration, ConfigurationError, unknown
from steptime.plan.tasks import TASKS, Task, repeats_of
from worker.grouping import GROUPED
from worker.precisions import PRECISIONS, USUAL

# Losses by which a network is trained to give back what it is fed.
GIVES_BACK = ("binary_cross_entropy", "evidence_bound")
# The artefact whose cells are compared, and measured further times where a comparison is undecided.
COMPARED = "steptime_times"
# What ends a thread count of several times as many as there are CPUs.
ABOVE = "*all"


@dataclass(frozen=True)
class Plan:
    """Every cell by its key, in the order in which one machine measures them; the keys of every artefact that has cells
    in this grid; the labels of data sets that its trainings lack; by key what the row of a cell must say
    (`plan.expected`); and after which trials is looked whether cells are measured further times (`plan.looks`). Those
    further cells are among `cells`, and no artefact names them.
    """

    cells: dict[str, Cell]
    artefacts: dict[str, list[str]]
    missing: list[str] = field(default_factory=list)
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: list[int] = field(default_factory=list)


def expand(configuration: Configuration, cores: int) -> Plan:
    """The plan of the configuration's grid; `cores` is the number of logical CPUs of this machine.

    Raises ConfigurationError for a name that is not in a catalogue and for a grid without a cell.
    """
    _check_names(configuration)
    _check_devices(configuration)
    _check_sizes(configuration)
    _check_exchanges(configuration)
    _check_precisions(configuration)
    _check_repeats(configuration)
    cells: dict[str, Cell] = {}
    artefacts: dict[str, list[str]] = {}
    for artefact, selection in configuration.artefacts.items():
        chosen = {cell.key: cell for cell in _cells(configuration, selection, cores)}
        if chosen:
            artefacts[artefact] = list(chosen)
            cells.update(chosen)
    if not cells:
        raise ConfigurationError(
            f"The grid '{configuration.grid_name}' has no cell: none of its networks "
            f"({', '.join(configuration.grid['networks'])}) is one that an artefact is made of; add one that is."
        )
    looks = repeats_of(configuration.grid).looks
    if looks:
        compared = [cells[key] for key in artefacts.get(COMPARED, [])]
        for trial in range(looks[0] + 1, looks[-1] + 1):
            further = [replace(cell, repeat=trial) for cell in compared if cell.repeat == 1]
            cells.update((cell.key, cell) for cell in further)
    place = _running_order(configuration, {*artefacts.get(COMPARED, [])})
    ordered = dict(sorted(cells.items(), key=place))
    return Plan(ordered, artefacts, missing(configuration), looks=looks)


def shown_elsewhere(cells: Mapping[str, Cell], cores: int) -> list[str]:
    """The keys of timed steps whose gradients another cell shows, which differs in its threads alone.

    That one has the most threads that `cores` are enough for, where there is such a one.
    """
    places: dict[Cell, list[tuple[bool, int, str]]] = {}
    for key, cell in cells.items():
        if TASKS[cell.task].needs_reference and cell.repeat == 1:
            ranked = (cell.threads * cell.devices <= cores, cell.threads, key)
            places.setdefault(replace(cell, threads=0), []).append(ranked)
    return [key for ranks in places.values() for _, _, key in sorted(ranks)[:-1]]


def missing(configuration: Configuration) -> list[str]:
    """Labels of the data sets of the grid's trainings that cannot be had, nor any subset of them."""
    policy = TASKS["training"].policy(configuration.grid)
    wholes = dict.fromkeys(_whole(configuration, network) for network in policy.networks)
    return [
        configuration.datasets[name]["label"]
        for name in wholes
        if configuration.dataset_of(name) is None
    ]


def _cells(configuration: Configuration, selection: dict[str, Any], cores: int) -> Iterator[Cell]:
    """The cells that a selection asks for: a point of every axis, whatever the task."""
    task = TASKS[selection.get("task", "step")]
    policy = task.policy(configuration.grid)
    runners = ways(configuration)
    wanted = [
        (network, dataset, batch)
        for network in policy.networks
        if selection["networks"] == "all" or network in selection["networks"]
        for dataset in _datasets(configuration, task, network)
        for batch in _batches(configuration, task, network, selection["batches"])
    ]
    for repeat, platform, (devices, exchange) in product(
        range(1, policy.repeats + 1),
        configuration.grid["platforms"],
        _together(configuration, selection, task),
    ):
        device = configuration.platforms[platform]["device"]
        counts: list[int | str] = ["all"]
        if device == "cpu":
            counts = policy.threads[selection["threads"]]
        threads = _threads(configuration, platform, counts, cores, devices)
        for (network, dataset, one), count, runner, precision in product(
            wanted, threads, runners[device], _precisions(configuration, device)
        ):
            environment, framework, mode = runner
            batch = _shared_batch(configuration, network, one, devices)
            yield Cell(
                platform=platform,
                environment=environment,
                framework=framework,
                mode=mode,
                precision=precision,
                task=task.name,
                network=network,
                dataset=dataset,
                batch=batch,
                threads=count,
                device=device,
                devices=devices,
                exchange=exchange,
                repeat=repeat,
            )


def _precisions(configuration: Configuration, device: str) -> list[str]:
    """The grid's precisions that a kind of device has."""
    asked = configuration.grid["precision"]
    return [name for name in asked if device in PRECISIONS[name].devices]


def _running_order(
    configuration: Configuration, compared: set[str]
) -> Callable[[tuple[str, Cell]], tuple[int | str, ...]]:
    """The key that sorts cells, with their keys, into interleaved trials.

    Every repeat of the whole grid comes before the next one, so that the repeats of a cell lie far apart and a drift
    of the machine is seen as spread between them; what is compared stands side by side, in another order in each
    repeat, so that no framework always comes first (multiple interleaved trials: Abedi and Brecht, "Conducting
    repeatable experiments in highly variable cloud computing environments", ICPE 2017). Each task comes as a whole.

    The first trial is the first answer. So in each trial those cells come first whose times are `compared` in a table,
    column by column, and cheap networks before dear ones.
    """
    tasks, platforms, networks = (
        list(TASKS),
        configuration.grid["platforms"],
        _networks(configuration),
    )
    known, least = ways(configuration), repeats_of(configuration.grid).least

    @cache
    def operations(network: str, batch: int) -> int:
        spec = specifications.specify(network, configuration.networks)
        return specifications.flops_per_step(spec, batch)

    def place(entry: tuple[str, Cell]) -> tuple[int | str, ...]:
        key, cell = entry
        runners = known[cell.device]
        runner = runners.index((cell.environment, cell.framework, cell.mode))
        return (
            tasks.index(cell.task),
            cell.repeat,
            platforms.index(cell.platform),
            key not in compared and cell.repeat <= least,
            cell.devices,
            cell.threads,
            operations(cell.network, cell.batch),
            networks.index(cell.network),
            cell.batch,
            cell.exchange,
            cell.precision != USUAL,
            (runner + cell.repeat - 1) % len(runners),
        )

    return place


def thread_counts(wanted: list[int | str], cores: int, most: int | None) -> list[int]:
    """Thread counts of a list such as [1, all] or [doubling, 2*all] for a machine of `cores` logical CPUs, in order.

    `all` is every CPU, `doubling` the powers of two up to it and it; both stop at `most`. A number is taken as it is,
    and `2*all` and `4*all` are that many times the CPUs: above them on purpose, as papers did.
    """
    whole = min(cores, most or cores)
    counts: set[int] = set()
    for entry in wanted:
        if entry == "all":
            counts.add(whole)
        elif entry == "doubling":
            counts.update(2**power for power in range(whole.bit_length()) if 2**power <= whole)
            counts.add(whole)
        elif str(entry).endswith(ABOVE):
            counts.add(int(str(entry).removesuffix(ABOVE)) * cores)
        else:
            counts.add(int(entry))
    return sorted(counts)


def _threads(
    configuration: Configuration, platform: str, wanted: list[int | str], cores: int, devices: int
) -> list[int]:
    """Thread counts of a device, of which a cell has so many: each has CPUs of its own."""
    entry = configuration.platforms[platform]
    cores, most = entry.get("cores", cores), configuration.grid.get("most_threads")
    if devices == 1:
        return thread_counts(wanted, cores, most)
    nodes = placement.nodes_of(entry, devices)
    if nodes > 1 and entry["device"] == "gpu":
        raise ConfigurationError(
            f"The grid asks for {devices} devices, and {platform} has GPUs on {nodes} nodes: ranks on GPUs are of one "
            f"node so far, so leave 'nodes' out of {platform}."
        )
    if devices % nodes:
        raise ConfigurationError(
            f"The grid asks for {devices} devices, and {platform} shares them out to {nodes} nodes: write a multiple "
            f"of {nodes} under 'devices', or another number under 'nodes' of {platform}."
        )
    cores *= nodes
    if devices > cores:
        raise ConfigurationError(
            f"The grid asks for {devices} devices, and {platform} has {cores} CPUs, of which each needs one of its "
            f"own: write no more than {cores} under 'devices'."
        )
    if entry["device"] == "gpu" and devices > entry["devices"]:
        raise ConfigurationError(
            f"The grid asks for {devices} devices, and 'devices' of {platform} in the file of platforms says "
            f"{entry['devices']}: write no more under 'devices' of the grid, or mend it there."
        )
    # More than there are, on purpose, is a question about one device.
    within = [entry for entry in wanted if not str(entry).endswith(ABOVE)]
    counts = thread_counts(within, cores // devices, most)
    if counts and counts[-1] * devices > cores:
        raise ConfigurationError(
            f"The grid asks for {devices} devices of {counts[-1]} threads each, and {platform} has {cores} CPUs: "
            "write `all` under 'threads', which is as many as each device can have, or fewer devices."
        )
    return counts


def _together(
    configuration: Configuration, selection: dict[str, Any], task: Task
) -> list[tuple[int, str]]:
    """Each number of devices of a selection, with the ways in which as many share their gradients."""
    if "devices" not in selection:
        return [(1, "")]
    grid = configuration.grid
    if max(grid["devices"]) == 1:
        return []
    return [
        (devices, exchange)
        for devices in grid["devices"]
        for exchange in (grid["exchange"] if devices > 1 else [""])
        if (devices == 1 or exchanges.fits(devices, exchange))
        and (not task.exchanges or exchange in task.exchanges)
    ]


def _shared_batch(configuration: Configuration, network: str, batch: int, devices: int) -> int:
    """The mini-batch of all devices together, from that of one device."""
    if configuration.grid["scaling"] == "weak":
        return batch * devices
    if batch % devices:
        raise ConfigurationError(
            f"The mini-batch of {network}, {batch}, cannot be shared out evenly to {devices} devices: write another "
            "one under 'table_batches' or 'figure_batches', or `scaling: weak`, by which each device has as many."
        )
    return batch


def _batches(configuration: Configuration, task: Task, network: str, kind: str) -> list[int]:
    """Sizes of the mini-batch: the sweep of a figure or one; a training has that of its network."""
    grid = configuration.grid
    own = specifications.resolve(network, configuration.networks)["batch"]
    if task.needs_images:
        return [own]
    table = grid["table_batches"].get(network) or own
    return grid["figure_batches"].get(network, [table]) if kind == "figure" else [table]


def _datasets(configuration: Configuration, task: Task, network: str) -> list[str]:
    """The data set that stands for a network's, checked against its input and its classes; none where none can be had.

    '' for a task that needs none.
    """
    if not task.needs_images:
        return [""]
    name = configuration.dataset_of(_whole(configuration, network))
    if name is None:
        return []
    entry, spec = (
        configuration.datasets[name],
        specifications.specify(network, configuration.networks),
    )
    shape, classes = spec["input"]["shape"], specifications.count_classes(spec)
    if spec["loss"] in GIVES_BACK:
        classes = len(entry["classes"])
    fits = shape == entry["shape"]
    if spec["input"]["kind"] == "dense":
        # Pixels in one row; what gives them back may take noise besides.
        besides = shape[0] - math.prod(entry["shape"])
        fits = besides >= 0 if spec["loss"] in GIVES_BACK else besides == 0
    if not fits or classes != len(entry["classes"]):
        raise ConfigurationError(
            f"config/networks.yaml, {network}: it takes images of {shape} in {classes} classes, and the data set "
            f"'{name}' has images of {entry['shape']} in {len(entry['classes'])}."
        )
    return [name]


def _whole(configuration: Configuration, network: str) -> str:
    """The whole data set that a network is for."""
    known = configuration.networks
    entry = specifications.resolve(network, known)
    if "dataset" not in entry or "epochs" not in entry:
        trained = [name for name in known if "dataset" in specifications.resolve(name, known)]
        raise ConfigurationError(
            f"The network '{network}' cannot be trained on images: 'training' of the grid can have "
            f"{', '.join(trained)}."
        )
    if entry["dataset"] not in configuration.datasets:
        where = f"config/datasets.yaml, which config/networks.yaml names in {network}"
        raise ConfigurationError(
            unknown("data set", entry["dataset"], list(configuration.datasets), where)
        )
    return entry["dataset"]


def ways(configuration: Configuration) -> dict[str, list[tuple[str, str, str]]]:
    """Every (environment, framework, mode) of the grid, by the kind of device that it is for."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for environment in configuration.grid["environments"]:
        framework = configuration.framework_of(environment)
        entry = configuration.entry_of(environment)
        able = entry["modes"]
        wanted = configuration.grid["modes"].get(framework, able[:1])
        # A mode that only other environments of the framework have is not asked of this one.
        entries = map(configuration.entry_of, configuration.frameworks[framework]["environments"])
        known = list(dict.fromkeys(mode for entry in entries for mode in entry["modes"]))
        for mode in wanted:
            if mode not in known:
                raise ConfigurationError(
                    unknown(
                        "mode", mode, known, f"the modes of {framework} in config/frameworks.yaml"
                    )
                )
        if not set(wanted) & set(able):
            raise ConfigurationError(
                f"{environment} has none of the modes that the grid wants of {framework} ({', '.join(wanted)}): add "
                f"one of {', '.join(able)}, or take {environment} out of the grid."
            )
        found.setdefault(entry["device"], []).extend(
            (environment, framework, mode) for mode in wanted if mode in able
        )
    return found


def _networks(configuration: Configuration) -> list[str]:
    """The networks that the grid times, trains, or takes apart."""
    asked = [task.policy(configuration.grid).networks for task in TASKS.values()]
    return list(dict.fromkeys(name for networks in asked for name in networks))


def _check_exchanges(configuration: Configuration) -> None:
    """Every exchange of a grid with several devices is one that some environment of it has, for some number of them."""
    grid = configuration.grid
    for task in TASKS.values():
        asked = grid["exchange"] if max(grid["devices"]) > 1 else []
        if task.exchanges and not {*task.exchanges} & {*asked} and task.policy(grid).networks:
            raise ConfigurationError(
                f"The grid asks for `{task.name}` under 'parts', which several devices have that share gradients by "
                f"{' or '.join(task.exchanges)}: write `devices: [1, 2]` and `exchange: [{task.exchanges[0]}]`, or "
                "leave it out."
            )
    if max(grid["devices"]) == 1:
        return
    able = {
        environment: exchanges.of_adapter(configuration.entry_of(environment)["adapter"])
        for environment in grid["environments"]
    }
    for exchange in grid["exchange"]:
        several = [devices for devices in grid["devices"] if devices > 1]
        if not any(exchanges.fits(devices, exchange) for devices in several):
            raise ConfigurationError(
                f"The grid asks for `{exchange}` between {_or(map(str, several))} devices, and it takes two groups of "
                f"{GROUPED[exchange]} at least: write an even number from 4 on under 'devices', or `sync`, which is "
                "what one group does, under 'exchange'."
            )
        if not any(exchange in found for found in able.values()):
            others = exchanges.environments(configuration, exchange)
            known = f"add one of {', '.join(others)}, or write" if others else "write"
            raise ConfigurationError(
                f"None of the grid's environments ({', '.join(able)}) shares gradients by `{exchange}` between "
                f"devices: {known} another 'exchange'."
            )


def _check_precisions(configuration: Configuration) -> None:
    """Every platform has one of the grid's precisions, and some platform has each, if only one that is not here."""
    grid, known = configuration.grid, configuration.platforms
    for name in grid["platforms"]:
        device = known[name]["device"]
        if not _precisions(configuration, device):
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


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)


def _check_repeats(configuration: Configuration) -> None:
    """Further processes are more than the first, and end with them where the grid says so by a plain number."""
    asked = repeats_of(configuration.grid)
    if isinstance(configuration.grid["repeats"], dict) and asked.most <= asked.least:
        raise ConfigurationError(
            f"The grid asks for {asked.least} processes of each cell and for {asked.most} at the most: write a larger "
            f"number under 'most' of its 'repeats', or `repeats: {asked.least}`."
        )


def _check_sizes(configuration: Configuration) -> None:
    """Every network of the grid can be specified, and has the number of parameters that its entry promises."""
    for network in _networks(configuration):
        try:
            spec, _ = (
                specifications.specify(network, configuration.networks, narrow)
                for narrow in (False, True)
            )
            count = specifications.count_parameters(spec)
        except ValueError as error:
            raise ConfigurationError(f"config/networks.yaml: {error}.") from error
        promised = specifications.resolve(network, configuration.networks)["parameters"]
        if count != promised:
            raise ConfigurationError(
                f"config/networks.yaml, {network}: the layers have {count:,} trainable parameters and 'parameters' "
                f"says {promised:,}; mend whichever is wrong."
            )


def _check_devices(configuration: Configuration) -> None:
    """Every environment of the grid meets a platform of its kind of device, and every platform an environment."""
    platforms = {
        name: configuration.platforms[name]["device"] for name in configuration.grid["platforms"]
    }
    environments = {
        name: configuration.entry_of(name)["device"] for name in configuration.grid["environments"]
    }
    for name, device in environments.items():
        if device not in platforms.values():
            raise ConfigurationError(
                f"{name} computes on a {device.upper()}, and none of the grid's platforms is one "
                f"({', '.join(platforms)}): {_advice('platform', configuration.platforms, device)} or take {name} "
                "out of the grid."
            )
    known = {
        name: configuration.entry_of(name)
        for framework in configuration.frameworks.values()
        for name in framework["environments"]
    }
    for name, device in platforms.items():
        if device not in environments.values():
            raise ConfigurationError(
                f"The platform '{name}' computes on a {device.upper()}, and none of the grid's environments does "
                f"({', '.join(environments) or 'none'}): {_advice('environment', known, device)} or take it out of "
                "the grid."
            )


def _advice(kind: str, known: dict[str, dict[str, Any]], device: str) -> str:
    fitting = [name for name, entry in known.items() if entry["device"] == device]
    return (
        f"add one that does, such as {fitting[0]},"
        if fitting
        else f"write such a{'n' * (kind[0] in 'aeiou')} {kind},"
    )


def _check_names(configuration: Configuration) -> None:
    grid, networks = configuration.grid, list(configuration.networks)
    where = "config/networks.yaml"
    for key in ("table_batches", "figure_batches"):
        for network in grid[key]:
            if network not in configuration.networks:
                raise ConfigurationError(unknown("network", network, networks, where))
    for network in _networks(configuration):
        if network not in configuration.networks:
            raise ConfigurationError(unknown("network", network, networks, where))
    for name, entry in configuration.networks.items():
        if "variant_of" in entry and entry["variant_of"] not in configuration.networks:
            raise ConfigurationError(
                f"config/networks.yaml, {name}: "
                + unknown("network", entry["variant_of"], networks, where)
            )
    for artefact, selection in configuration.artefacts.items():
        for network in selection["networks"] if selection["networks"] != "all" else []:
            if network not in configuration.networks:
                raise ConfigurationError(
                    f"{configuration.catalogue[artefact].file}, {artefact}: "
                    + unknown("network", network, networks, where)
                )
    for platform in grid["platforms"]:
        if platform not in configuration.platforms:
            raise ConfigurationError(
                unknown(
                    "platform", platform, list(configuration.platforms), "config/platforms.yaml"
                )
            )
    for framework in grid["modes"]:
        if framework not in configuration.frameworks:
            raise ConfigurationError(
                unknown(
                    "framework", framework, list(configuration.frameworks), "config/frameworks.yaml"
                )
            )
