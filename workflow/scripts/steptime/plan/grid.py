"""Expands a grid into cells, and says which cells each artefact is made of. Pure functions over the configuration."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice, product
from typing import Any

from shared.precisions import USUAL
from steptime import networks as specifications
from steptime.plan import axes, checks
from steptime.plan.cell import Cell, proof_name
from steptime.plan.configuration import Configuration, fits
from steptime.plan.interim import repeats_of
from steptime.plan.schemas import ConfigurationError
from steptime.tasks import TASKS
from steptime.tasks import USUAL as USUAL_TASK

# The artefact whose cells are compared, and measured further times where a pair is not decided.
COMPARED = "steptime_times"
# At a minute each, more than two months.
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Plan:
    """What a grid asks for.

    `cells`      every cell by its key, in the order in which one machine measures them. Cells of later trials, which
                 are measured only where a pair is not decided, are among them; no artefact names them.
    `artefacts`  the keys of the cells of every artefact
    `missing`    labels of the data sets that trainings need and this machine does not have
    `expected`   by key, what the row of a cell must say (`cells.expected`)
    `looks`      the trials after which the comparisons are checked (`plan.interim`)
    `proven`     the proofs that the grid asks for besides the proofs of its cells
    """

    cells: dict[str, Cell]
    artefacts: dict[str, list[str]]
    missing: list[str] = field(default_factory=list)
    expected: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: list[int] = field(default_factory=list)
    proven: list[str] = field(default_factory=list)


def expand(
    configuration: Configuration,
    cores: int,
    shows: Callable[[str, Cell], bool] = lambda artefact, cell: False,
) -> Plan:
    """Returns the plan of the configuration's grid; `cores` are this machine's logical CPUs. Raises ConfigurationError.

    `shows` says which of the cells with `named_batches` an artefact shows.
    """
    checks.check(configuration)
    cells: dict[str, Cell] = {}
    artefacts: dict[str, list[str]] = {}
    for artefact, selection in configuration.artefacts.items():
        if not _is_asked_for(configuration, selection):
            continue
        wanted = islice(
            _cells(configuration, selection, cores, partial(shows, artefact)), MOST_CELLS + 1
        )
        chosen = {cell.key: cell for cell in wanted}
        if len(chosen) > MOST_CELLS:
            raise ConfigurationError(
                f"The grid '{configuration.grid_name}' asks for more than {MOST_CELLS:,} runs of {artefact}: write "
                "fewer 'repeats', 'threads', 'networks' or mini-batches, or several grids."
            )
        if chosen:
            artefacts[artefact] = list(chosen)
            cells.update(chosen)
    runners = list(chain.from_iterable(axes.runners(configuration).values()))
    proven = [
        proof_name({"environment": environment, "mode": mode, "network": network, "devices": 1})
        for network, (environment, _, mode) in product(axes.proven_of(configuration), runners)
    ]
    if not cells and not proven:
        raise ConfigurationError(
            f"The grid '{configuration.grid_name}' has no cell: none of its networks "
            f"({', '.join(configuration.grid['networks'])}) is one that an artefact is made of; add one that is."
        )
    planned = repeats_of(configuration.grid).planned
    if planned:
        compared = [cells[key] for key in artefacts.get(COMPARED, [])]
        for trial in range(planned[0] + 1, planned[-1] + 1):
            further = [replace(cell, repeat=trial) for cell in compared if cell.repeat == 1]
            cells.update((cell.key, cell) for cell in further)
    place = _running_order(configuration, {*artefacts.get(COMPARED, [])})
    ordered = dict(sorted(cells.items(), key=place))
    return Plan(ordered, artefacts, missing(configuration), looks=planned, proven=proven)


def shown_by(cells: Mapping[str, Cell], cores: int) -> dict[str, str]:
    """Returns, by key, the cell that shows a timed step's gradients: first repeat, most threads within `cores`."""
    places: dict[Cell, list[tuple[int, bool, int, str]]] = {}
    for key, cell in cells.items():
        if TASKS[cell.task].needs_reference:
            ranked = (-cell.repeat, cell.threads * cell.devices <= cores, cell.threads, key)
            places.setdefault(replace(cell, threads=0, repeat=0), []).append(ranked)
    shown: dict[str, str] = {}
    for ranks in places.values():
        *others, (*_, shows) = sorted(ranks)
        shown |= {key: shows for *_, key in others}
    return shown


def missing(configuration: Configuration) -> list[str]:
    """Returns the labels of the trainings' data sets that cannot be had, not even a subset of them."""
    wholes = dict.fromkeys(
        axes.whole_dataset(configuration, network)
        for task in TASKS.values()
        if task.needs_images
        for network in task.policy(configuration.grid).networks
    )
    return [
        configuration.datasets[name]["label"]
        for name in wholes
        if configuration.dataset_of(name) is None
    ]


def _is_asked_for(configuration: Configuration, selection: dict[str, Any]) -> bool:
    """Tells whether the grid has as many of a selection's networks as it needs, and what it is compared with."""
    other_task = selection.get("beside")
    if other_task and not TASKS[other_task].policy(configuration.grid).networks:
        return False
    if selection.get("precisions") and len(configuration.grid["precision"]) == 1:
        return False
    policy = TASKS[selection.get("task", USUAL_TASK)].policy(configuration.grid)
    known, chosen = configuration.networks, selection["networks"]
    if selection.get("apart") and not any("part_of" in known[name] for name in policy.networks):
        return False
    networks = {
        known[name].get("variant_of", name)
        for name in policy.networks
        if chosen == "all" or name in chosen
    }
    return len(networks) >= selection.get("least_networks", 1)


def _cells(
    configuration: Configuration,
    selection: dict[str, Any],
    cores: int,
    shows: Callable[[Cell], bool],
) -> Iterator[Cell]:
    """Yields the cells that a selection asks for: a point of every axis, whatever the task."""
    task = TASKS[selection.get("task", USUAL_TASK)]
    policy = task.policy(configuration.grid)
    plain = bool(selection.get("plain"))
    runners, chosen = axes.runners(configuration, plain), selection["networks"]
    chosen = configuration.grid["plain"] if plain else chosen
    wanted = [
        (network, dataset, batch, is_own)
        for network in policy.networks
        if chosen == "all" or network in chosen
        for dataset in axes.datasets_of(configuration, task, network)
        for batch, is_own in axes.batches_of(configuration, task, network, selection["batches"])
    ]
    for repeat, platform, (devices, exchange, of) in product(
        range(1, policy.repeats + 1),
        configuration.grid["platforms"],
        axes.devices_of(configuration, selection, task),
    ):
        needs = configuration.platforms[platform]
        device = needs["device"]
        able = [each for each in runners[device] if fits(configuration.entry_of(each[0]), needs)]
        counts = policy.threads.get(selection["threads"], [])
        if counts and device != "cpu":
            counts = ["all"]
        threads = axes.threads_of(configuration, platform, counts, cores, of)
        for (network, dataset, one, is_own), count, runner, precision in product(
            wanted, threads, able, axes.precisions_of(configuration, device)
        ):
            environment, framework, mode = runner
            whole = axes.shared_batch(configuration, network, one, of)
            cell = Cell(
                platform=platform,
                environment=environment,
                framework=framework,
                mode=mode,
                precision=precision,
                task=task.name,
                network=network,
                dataset=dataset,
                batch=whole * devices // of,
                threads=count,
                device=device,
                devices=devices,
                exchange=exchange,
                repeat=repeat,
            )
            if is_own or shows(cell):
                yield cell


def _running_order(
    configuration: Configuration, compared: set[str]
) -> Callable[[tuple[str, Cell]], tuple[int | str, ...]]:
    """Returns the key by which (key, cell) is sorted into interleaved trials, each task as a whole.

    Every repeat of the grid comes before the next one, so that a drift of the machine is seen as spread. Cells that are
    compared follow one another, in another order in each repeat (multiple interleaved trials: Abedi and Brecht,
    "Conducting repeatable experiments in highly variable cloud computing environments", ICPE 2017). The first trial is
    the first answer: it begins with what is `compared`, column by column, cheap networks before dear ones.
    """
    tasks, networks = list(TASKS), axes.networks_of(configuration)
    platforms = configuration.grid["platforms"]
    known, least = axes.runners(configuration), repeats_of(configuration.grid).least

    @cache
    def operations(network: str, batch: int) -> int:
        spec = configuration.specify(network)
        return specifications.flops_per_step(spec, batch)

    def place(entry: tuple[str, Cell]) -> tuple[int | str, ...]:
        key, cell = entry
        runners = known[cell.device]
        own = [at for at, way in enumerate(runners) if way[0] == cell.environment]
        runner = next((at for at in own if runners[at][2] == cell.mode), own[0])
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
