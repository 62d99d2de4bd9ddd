"""Which trainings a grid has: whole networks on real images, in every environment, at every thread count, by several
seeds.
"""

from dataclasses import asdict, dataclass
from typing import Any

from steptime import networks as specifications
from steptime.plan.configuration import Configuration, ConfigurationError, unknown
from steptime.plan.grid import Cell, thread_counts, ways

# The seed of the first repeat; each next one has the next number.
FIRST_SEED = 2018


@dataclass(frozen=True, slots=True)
class Training(Cell):
    """A cell in which a network is trained on a data set until an accuracy; its repeats differ by their seeds."""

    dataset: str

    @property
    def key(self) -> str:
        """Path of its file below results/training, without its ending."""
        return (
            f"{self.platform}/{self.environment}.{self.adapter_mode}-{self.network}-on-{self.dataset}"
            f"-b{self.batch}-t{self.threads}-d{self.devices}-r{self.repeat}"
        )

    @property
    def seed(self) -> int:
        """What its start values, its order of images and its dropout come from."""
        return FIRST_SEED + self.repeat - 1

    def facts(self) -> dict[str, Any]:
        """The fields as a plain dict."""
        return asdict(self)


def expand(configuration: Configuration, cores: int) -> dict[str, Training]:
    """Every training of the grid by its key, in the order in which one machine runs them: interleaved, as cells are.

    A network whose data set cannot be had, and no subset of it, has none. Raises ConfigurationError.
    """
    policy = configuration.grid.get("training")
    if policy is None:
        return {}
    found = []
    for network in policy["networks"]:
        dataset = _dataset(configuration, network)
        for platform in configuration.grid["platforms"] if dataset else []:
            entry = configuration.platforms[platform]
            wanted = policy["threads"] if entry["device"] == "cpu" else ["all"]
            found += [
                Training(
                    platform=platform,
                    environment=environment,
                    framework=framework,
                    adapter_mode=mode,
                    network=network,
                    batch=specifications.resolve(network, configuration.networks)["batch"],
                    threads=threads,
                    device=entry["device"],
                    devices=1,
                    repeat=repeat,
                    dataset=dataset,
                )
                for repeat in range(1, policy["seeds"] + 1)
                for threads in thread_counts(
                    wanted, entry.get("cores", cores), configuration.grid.get("most_threads")
                )
                for environment, framework, mode in ways(configuration)
            ]
    found.sort(key=lambda training: training.repeat)
    return {training.key: training for training in found}


def missing(configuration: Configuration) -> list[str]:
    """Labels of the data sets of the grid's trainings that cannot be had, nor any subset of them."""
    policy = configuration.grid.get("training", {"networks": []})
    wholes = dict.fromkeys(_whole(configuration, network) for network in policy["networks"])
    return [
        configuration.datasets[name]["label"]
        for name in wholes
        if configuration.dataset_of(name) is None
    ]


def job_of(configuration: Configuration, training: Training) -> dict[str, Any]:
    """What decides how a training runs, besides its framework: the cell, when it stops, and its limits."""
    policy = configuration.grid["training"]
    stock = specifications.resolve(training.network, configuration.networks)["epochs"]
    return {
        "cell": training.facts(),
        "dataset": configuration.datasets[training.dataset]["label"],
        "plan": {
            "seed": training.seed,
            "epochs": min(stock, policy.get("most_epochs", stock)),
            "target_accuracy": configuration.datasets[training.dataset]["target_accuracy"],
            "budget_seconds": policy["budget_seconds"],
        },
        "limits": configuration.grid["limits"] | {"seconds": limit_seconds(configuration)},
    }


def limit_seconds(configuration: Configuration) -> float:
    """When a training is ended from outside. Its budget is looked at after each epoch, which may be as long as the
    budget, and what is judged after an epoch is not in it.
    """
    policy = configuration.grid.get("training", {"budget_seconds": 0})
    return configuration.grid["limits"]["seconds"] + 3 * policy["budget_seconds"]


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


def _dataset(configuration: Configuration, network: str) -> str | None:
    """The data set that stands for a network's, checked against its input and its classes."""
    name = configuration.dataset_of(_whole(configuration, network))
    if name is None:
        return None
    entry, spec = (
        configuration.datasets[name],
        specifications.specify(network, configuration.networks),
    )
    shape, classes = spec["input"]["shape"], specifications.count_classes(spec)
    if (shape, classes) != (entry["shape"], len(entry["classes"])):
        raise ConfigurationError(
            f"config/networks.yaml, {network}: it takes images of {shape} in {classes} classes, and the data set "
            f"'{name}' has images of {entry['shape']} in {len(entry['classes'])}."
        )
    return name
