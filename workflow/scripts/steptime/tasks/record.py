"""The record of a task: all that the workflow knows of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from steptime import networks

if TYPE_CHECKING:
    from steptime.outcome import Outcome
    from steptime.records import Job
    from steptime.tasks.rows import Rows

STEP_REGION = ("forward", "loss", "backward", "update", "sync")


class Configured(Protocol):
    """What a task reads of a configuration: the grid, and the catalogues by name."""

    @property
    def grid(self) -> dict[str, Any]: ...

    @property
    def networks(self) -> dict[str, Any]: ...

    @property
    def datasets(self) -> dict[str, Any]: ...


class Point(Protocol):
    """What a task reads of a cell."""

    @property
    def task(self) -> str: ...

    @property
    def network(self) -> str: ...

    @property
    def dataset(self) -> str: ...

    @property
    def repeat(self) -> int: ...

    def facts(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Policy:
    """What a grid asks of a task: thread counts by the name of a list, the number of processes of a cell."""

    networks: list[str]
    threads: dict[str, list[int | str]]
    repeats: int


def least_repeats(grid: dict[str, Any]) -> int:
    """Returns how many processes each cell of a grid has at least."""
    repeats = grid["repeats"]
    least: int = repeats["least"] if isinstance(repeats, dict) else repeats
    return least


def sampling(configuration: Configured, cell: Point) -> dict[str, Any]:
    """Returns the order to take samples as the grid says."""
    return {"sampling": configuration.grid["sampling"]}


@dataclass(frozen=True)
class Task:
    """A task. Its name is that of its module here and of the worker's, which also sees to what must hold at its end."""

    name: str
    # What is timed, in words, from the name of a network.
    title: str
    # The parts of a step that its seconds hold, in their order.
    timed_region: tuple[str, ...]
    # What a row of its shard is.
    rows: "Rows"
    # The words for the terminal of an outcome that is ok.
    says: "Callable[[Outcome], str]"
    # What the key of its name under `parts` of a grid is for, in words; '' of a task that is asked for elsewhere.
    described: str = ""
    # What a grid asks of such a task, and where, in words.
    asks: Callable[[dict[str, Any]], Policy] | None = None
    asks_under: str = ""
    # Sizes of the mini-batch that each of its networks has besides the grid's.
    batches: tuple[int, ...] = ()
    # The module of the worker's adapters that it is run by, from the name of a framework's adapter.
    module: str = "{}"
    # What the worker is asked besides the cell, from the configuration.
    asked: Callable[[Configured, Point], dict[str, Any]] = sampling
    # How many floating-point operations one of what it times has, from the specification and the mini-batch.
    operations: Callable[[dict[str, Any], int], int] = networks.flops_per_step
    # Seconds after which it is ended from outside, from the grid.
    limit_seconds: Callable[[dict[str, Any]], float] = lambda grid: grid["limits"]["seconds"]
    # Columns that are constant in a cell and not of every task, from the job, the specification and the outcome.
    read: "Callable[[Job, dict[str, Any], Outcome], dict[str, Any]]" = lambda *_: {}
    # The events without which the first rank is not done: there would be no row.
    owes: tuple[str, ...] = ("ready", "warmup", "part", "sampled")
    # The events between which a worker does what it is measured by.
    begins: tuple[str, ...] = ("warmup",)
    ends: tuple[str, ...] = ("sampled",)
    # The worker's task that collects the numbers for a proof of this task, and the module of `steptime.prove` that
    # judges them. The names of such proofs end in the task's. '' where the proof of training steps is enough.
    proof: str = ""
    # Whether what it does is compared with the network's reference at full size.
    needs_reference: bool = False
    # The word of a catalogue's `needs` for the merged rows of such tasks; '' where its own artefacts alone show it.
    feeds: str = ""
    # Whether its cells are measured further times while a pair of them is not decided.
    is_compared: bool = False
    # Whether it is fed with the images of a data set.
    needs_images: bool = False
    # Whether what it uses of the machine is noted every second, which would disturb what lasts for less.
    is_watched: bool = False
    # Whether other programs compute beside it on purpose: then nobody can tell whether it was disturbed.
    is_slowed: bool = False
    # The exchanges between several devices that it is of; none where it is of one device too.
    exchanges: tuple[str, ...] = ()

    def policy(self, grid: dict[str, Any]) -> Policy:
        """Returns what the grid asks of it."""
        if self.asks:
            return self.asks(grid)
        networks = grid["parts"].get(self.name, [])
        return Policy(networks, grid.get("threads", {}), least_repeats(grid))

    @property
    def asked_under(self) -> str:
        """Says where a grid asks for it."""
        return self.asks_under or f"'{self.name}' of 'parts'"

    def result(self, outcome: "Outcome") -> str:
        """Says what came out of a cell: its number, or the status with its reason."""
        if outcome.status != "ok":
            return f"{outcome.status}: {outcome.reason}"
        return self.says(outcome)

    def region(self, devices: int) -> tuple[str, ...]:
        """Returns the timed region of a cell; on several devices, the exchange is in it, after the gradients."""
        before, after = self.timed_region[:-2], self.timed_region[-2:]
        adds = devices > 1 and "exchange" not in self.timed_region
        return (*before, "exchange", *after) if adds else self.timed_region
