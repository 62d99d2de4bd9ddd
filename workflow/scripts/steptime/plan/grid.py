"""Expands a grid into cells, and says which cells each artefact is made of. Pure functions over the configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steptime import networks as specifications
from steptime.plan.configuration import Configuration, ConfigurationError, unknown


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: a worker process of its own, and a shard."""

    platform: str
    environment: str
    framework: str
    adapter_mode: str
    network: str
    batch: int
    threads: int
    device: str
    devices: int
    repeat: int

    @property
    def key(self) -> str:
        """Path of the cell's shard below results/shards, without its ending."""
        return (
            f"{self.platform}/{self.environment}.{self.adapter_mode}-{self.network}"
            f"-b{self.batch}-t{self.threads}-d{self.devices}-r{self.repeat}"
        )

    def facts(self) -> dict[str, Any]:
        """The fields as a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class Plan:
    """Every cell by its key, in the order in which one machine measures them, and the keys of every artefact that has
    cells in this grid.
    """

    cells: dict[str, Cell]
    artefacts: dict[str, list[str]]


def expand(configuration: Configuration, cores: int) -> Plan:
    """The plan of the configuration's grid; `cores` is the number of logical CPUs of this machine.

    Raises ConfigurationError for a name that is not in a catalogue and for a grid without a cell.
    """
    grid = configuration.grid
    _check_names(configuration)
    _check_sizes(configuration)
    cells: dict[str, Cell] = {}
    artefacts: dict[str, list[str]] = {}
    runners = ways(configuration)
    for artefact, selection in configuration.artefacts.items():
        chosen = {
            cell.key: cell
            for repeat in range(1, grid.get("repeats", 1) + 1)
            for platform in grid["platforms"]
            for network in grid["networks"]
            if selection["networks"] == "all" or network in selection["networks"]
            for batch in _batches(configuration, network, selection["batches"])
            for threads in _threads(configuration, platform, selection["threads"], cores)
            for environment, framework, mode in runners
            for cell in [
                Cell(
                    platform=platform,
                    environment=environment,
                    framework=framework,
                    adapter_mode=mode,
                    network=network,
                    batch=batch,
                    threads=threads,
                    device=configuration.platforms[platform]["device"],
                    devices=1,
                    repeat=repeat,
                )
            ]
        }
        if chosen:
            artefacts[artefact] = list(chosen)
            cells.update(chosen)
    if not cells:
        raise ConfigurationError(
            f"The grid '{configuration.grid_name}' has no cell: none of its networks "
            f"({', '.join(grid['networks'])}) is one that an artefact is made of; add one that is."
        )
    place = _running_order(configuration)
    return Plan(dict(sorted(cells.items(), key=lambda item: place(item[1]))), artefacts)


def _running_order(configuration: Configuration) -> Callable[[Cell], tuple[int, ...]]:
    """The key that sorts cells into interleaved trials.

    Every repeat of the whole grid comes before the next one, so that the repeats of a cell lie far apart and a drift
    of the machine is seen as spread between them; what is compared stands side by side, in another order in each
    repeat, so that no framework always comes first (multiple interleaved trials: Abedi and Brecht, "Conducting
    repeatable experiments in highly variable cloud computing environments", ICPE 2017).
    """
    platforms, networks = configuration.grid["platforms"], configuration.grid["networks"]
    runners = [(environment, mode) for environment, _, mode in ways(configuration)]

    def place(cell: Cell) -> tuple[int, ...]:
        turn = (runners.index((cell.environment, cell.adapter_mode)) + cell.repeat - 1) % len(
            runners
        )
        network = networks.index(cell.network)
        return (
            cell.repeat,
            platforms.index(cell.platform),
            network,
            cell.batch,
            cell.threads,
            turn,
        )

    return place


def thread_counts(wanted: list[int | str], cores: int, most: int | None) -> list[int]:
    """Thread counts of a list such as [1, all] or [doubling] for a machine of `cores` logical CPUs, in order.

    `all` is every CPU, `doubling` the powers of two up to it and it; both stop at `most`. A number is taken as it is,
    even above the CPUs, as the paper did.
    """
    whole = min(cores, most or cores)
    counts: set[int] = set()
    for entry in wanted:
        if entry == "all":
            counts.add(whole)
        elif entry == "doubling":
            counts.update(2**power for power in range(whole.bit_length()) if 2**power <= whole)
            counts.add(whole)
        else:
            counts.add(int(entry))
    return sorted(counts)


def _threads(configuration: Configuration, platform: str, kind: str, cores: int) -> list[int]:
    """Thread counts of a platform; where a GPU does the work, the one that gives it all CPUs."""
    grid, entry = configuration.grid, configuration.platforms[platform]
    wanted = grid["threads"][kind] if entry["device"] == "cpu" else ["all"]
    return thread_counts(wanted, entry.get("cores", cores), grid.get("most_threads"))


def _batches(configuration: Configuration, network: str, kind: str) -> list[int]:
    grid = configuration.grid
    table = grid.get("table_batches", {}).get(network) or _entry(configuration, network, "batch")
    return grid.get("figure_batches", {}).get(network, [table]) if kind == "figure" else [table]


def _entry(configuration: Configuration, network: str, key: str) -> Any:
    entry = configuration.networks[network]
    return entry[key] if key in entry else _entry(configuration, entry["variant_of"], key)


def ways(configuration: Configuration) -> list[tuple[str, str, str]]:
    """Every (environment, framework, mode) of the grid."""
    found = []
    for environment in configuration.grid["environments"]:
        framework = configuration.framework_of(environment)
        able = configuration.entry_of(environment)["modes"]
        wanted = configuration.grid.get("modes", {}).get(framework, able[:1])
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
        found.extend((environment, framework, mode) for mode in wanted if mode in able)
    return found


def _networks(configuration: Configuration) -> list[str]:
    """The networks that the grid times, and those that it trains."""
    trained = configuration.grid.get("training", {}).get("networks", [])
    return list(dict.fromkeys([*configuration.grid["networks"], *trained]))


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


def _check_names(configuration: Configuration) -> None:
    grid, networks = configuration.grid, list(configuration.networks)
    where = "config/networks.yaml"
    for key in ("table_batches", "figure_batches"):
        for network in grid.get(key, {}):
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
    for framework in grid.get("modes", {}):
        if framework not in configuration.frameworks:
            raise ConfigurationError(
                unknown(
                    "framework", framework, list(configuration.frameworks), "config/frameworks.yaml"
                )
            )
