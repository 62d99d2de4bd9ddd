"""Turns a grid's keys into the points of each axis of its cells. Pure functions over the configuration."""

import math
from typing import Any

from shared.precisions import PRECISIONS
from steptime import networks as specifications
from steptime.machine import placement
from steptime.plan import exchanges
from steptime.plan.cell import PLAIN
from steptime.plan.configuration import Configuration
from steptime.plan.schemas import ConfigurationError, require
from steptime.tasks import TASKS, Task

# Losses by which a network is trained to give back what it is fed.
GIVES_BACK = ("binary_cross_entropy", "evidence_bound")
# What ends a thread count of several times as many as there are CPUs.
ABOVE = "*all"


def runners(
    configuration: Configuration, plain: bool = False
) -> dict[str, list[tuple[str, str, str]]]:
    """Returns every (environment, framework, mode) by kind of device; with `plain`, those of mode PLAIN too."""
    by_device: dict[str, list[tuple[str, str, str]]] = {}
    for environment in configuration.grid["environments"]:
        framework = configuration.framework_of(environment)
        entry = configuration.entry_of(environment)
        able = entry["modes"]
        wanted = configuration.grid["modes"].get(framework, able[:1])
        # A mode that only other environments of the framework have is not asked of this one.
        entries = map(configuration.entry_of, configuration.frameworks[framework]["environments"])
        known = list(dict.fromkeys(mode for entry in entries for mode in entry["modes"]))
        require("mode", wanted, known, f"the modes of {framework} in config/frameworks.yaml")
        if not set(wanted) & set(able):
            raise ConfigurationError(
                f"{environment} has none of the modes that the grid wants of {framework} ({', '.join(wanted)}): add "
                f"one of {', '.join(able)}, or take {environment} out of the grid."
            )
        modes = dict.fromkeys([*wanted, *([PLAIN] if plain else [])])
        by_device.setdefault(entry["device"], []).extend(
            (environment, framework, mode) for mode in modes if mode in able
        )
    return by_device


def networks_of(configuration: Configuration) -> list[str]:
    """Returns the networks that the grid times, trains, or takes apart."""
    wanted = [task.policy(configuration.grid).networks for task in TASKS.values()]
    return list(dict.fromkeys(name for networks in wanted for name in networks))


def proven_of(configuration: Configuration) -> list[str]:
    """Returns the networks that the grid wants proven, timed or not; `all` means those without a data set."""
    proven, known = configuration.grid["proven"], configuration.networks
    if proven != "all":
        return proven
    return [name for name in known if "dataset" not in specifications.resolve(name, known)]


def precisions_of(configuration: Configuration, device: str) -> list[str]:
    precision = configuration.grid["precision"]
    return [name for name in precision if device in PRECISIONS[name].devices]


def datasets_of(configuration: Configuration, task: Task, network: str) -> list[str]:
    """Returns the data set for a network, checked against its input and classes; [''] for a task without images."""
    if not task.needs_images:
        return [""]
    name = configuration.dataset_of(whole_dataset(configuration, network))
    if name is None:
        return []
    entry, spec = configuration.datasets[name], configuration.specify(network)
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
            f"{configuration.file_of(network)}, {network}: it takes images of {shape} in {classes} classes, and "
            f"the data set '{name}' has images of {entry['shape']} in {len(entry['classes'])}."
        )
    return [name]


def whole_dataset(configuration: Configuration, network: str) -> str:
    known = configuration.networks
    entry = specifications.resolve(network, known)
    if "dataset" not in entry or "epochs" not in entry:
        trained = [name for name in known if "dataset" in specifications.resolve(name, known)]
        raise ConfigurationError(
            f"The network '{network}' cannot be trained on images: 'training' of the grid can have "
            f"{', '.join(trained)}."
        )
    where = f"config/datasets.yaml, which {configuration.file_of(network)} names in {network}"
    require("data set", [entry["dataset"]], configuration.datasets, where)
    return entry["dataset"]


def batches_of(
    configuration: Configuration, task: Task, network: str, kind: str
) -> list[tuple[int, bool]]:
    """Returns (size, is_own) of each mini-batch: those of figures by kind `figure`, else one.

    `is_own` is False where only a figure that is asked for by its name measures that size. A training has its
    network's.
    """
    grid = configuration.grid
    own = specifications.resolve(network, configuration.networks)["batch"]
    if task.needs_images:
        return [(own, True)]
    table = grid["table_batches"].get(network) or own
    batches = grid["figure_batches"].get(network, [table]) if kind == "figure" else [table]
    # Nobody waits for what a single layer makes of one sample.
    more = () if "part_of" in configuration.networks[network] else task.batches
    every = {*more, *batches}
    named = grid["named_batches"].get(network, []) if kind == "figure" else []
    return [(batch, batch in every) for batch in dict.fromkeys([*more, *batches, *named])]


def devices_of(
    configuration: Configuration, selection: dict[str, Any], task: Task
) -> list[tuple[int, str, int]]:
    """Returns (devices, exchange, share) of a selection: `share` is how many devices share out one mini-batch.

    One device alone may stand for each of several: it then computes one device's share.
    """
    if "devices" not in selection:
        return [(1, "", 1)]
    grid = configuration.grid
    if max(grid["devices"]) == 1:
        return []
    choices = [
        (devices, exchange, devices)
        for devices in grid["devices"]
        for exchange in (grid["exchange"] if devices > 1 else [""])
        if (devices == 1 or exchanges.fits(devices, exchange))
        and (not task.exchanges or exchange in task.exchanges)
    ]
    several = dict.fromkeys(devices for devices, _, _ in choices if devices > 1)
    return choices + [(1, "", of) for of in several if selection["devices"] == "shares"]


def shared_batch(configuration: Configuration, network: str, batch: int, devices: int) -> int:
    """Returns the mini-batch of all devices together, from that of one device."""
    if configuration.grid["scaling"] == "weak":
        return batch * devices
    if batch % devices:
        raise ConfigurationError(
            f"The mini-batch of {network}, {batch}, cannot be shared out evenly to {devices} devices: write another "
            "one under 'table_batches' or 'figure_batches', or `scaling: weak`, by which each device has as many."
        )
    return batch


def threads_of(
    configuration: Configuration, platform: str, wanted: list[int | str], cores: int, devices: int
) -> list[int]:
    """Returns the thread counts of a device, where each of a cell's devices has CPUs of its own."""
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


def thread_counts(wanted: list[int | str], cores: int, most: int | None) -> list[int]:
    """Returns thread counts, in order, from a list such as [1, all] or [doubling, 2*all], for `cores` logical CPUs.

    `all` and `doubling` stop at `most`. A number, `2*all` and `4*all` are taken as they are, above the CPUs on purpose.
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
