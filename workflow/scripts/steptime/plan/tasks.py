"""What a cell may time: one record for each task. Nothing else tells tasks apart by their names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steptime import networks as specifications
from steptime.plan import looks
from steptime.plan.cell import Cell

if TYPE_CHECKING:
    # Each cell's program imports this module, and what checks a configuration takes it a tenth of a second.
    from steptime.plan.configuration import Configuration

# The seed of the first repeat of a training; each next one has the next number.
FIRST_SEED = 2018


@dataclass(frozen=True)
class Policy:
    """What a grid asks of a task: thread counts by the name of a list, the number of processes of a cell."""

    networks: list[str]
    threads: dict[str, list[int | str]]
    repeats: int


@dataclass(frozen=True)
class Repeats:
    """How many processes a grid asks of its cells: `least` of each, and up to `most` where a comparison is undecided
    whose interval's half is more than `until`, within `budget_seconds` of them all.
    """

    least: int
    most: int
    until: float
    budget_seconds: float

    @property
    def looks(self) -> list[int]:
        """Lists after how many trials the comparisons are checked; [] where a grid asks for `least` alone."""
        return looks.planned(self.least, self.most) if self.most > self.least else []


def repeats_of(grid: dict[str, Any]) -> Repeats:
    """What a grid says under `repeats`."""
    asked = grid["repeats"]
    return Repeats(**asked) if isinstance(asked, dict) else Repeats(asked, asked, 0.0, 0.0)


@dataclass(frozen=True)
class Task:
    """A task. Its name is that of its module of the worker, which also sees to what must hold at its end."""

    name: str
    # The parts of a step that its seconds hold, in their order.
    timed_region: tuple[str, ...]
    # The columns of its shard that differ from row to row, with their types in Arrow.
    rows: dict[str, str]
    # The columns that are constant in a cell and that no other task has.
    columns: tuple[str, ...]
    # What the grid asks of it: its networks, the thread counts of a list of the grid by its name, its repeats.
    policy: Callable[[dict[str, Any]], Policy]
    # The module of the worker's adapters that it is run by, from the name of a framework's adapter.
    module: str
    # What is timed, in words, from the name of a network.
    title: str
    # Whether it is fed with the images of a data set.
    needs_images: bool
    # Whether its steps are held against the network's reference at full size.
    needs_reference: bool
    # Whether what it uses of the machine is noted every second, which would disturb what lasts for less.
    is_watched: bool
    # What the worker is asked besides the cell, from the configuration.
    asked: "Callable[[Configuration, Cell], dict[str, Any]]"
    # Seconds after which it is ended from outside, from the grid.
    limit_seconds: Callable[[dict[str, Any]], float]
    # The exchanges between several devices that it is of; none where it is of one device too.
    exchanges: tuple[str, ...] = ()
    # Whether other programs compute beside it on purpose: then nobody can tell whether it was disturbed.
    is_slowed: bool = False


def region_of(task: Task, devices: int) -> tuple[str, ...]:
    """The timed region of a cell of a task: on several devices the exchange is in it, behind the gradients."""
    before, after = task.timed_region[:-2], task.timed_region[-2:]
    adds = devices > 1 and "exchange" not in task.timed_region
    return (*before, "exchange", *after) if adds else task.timed_region


def job_of(configuration: "Configuration", cell: Cell) -> dict[str, Any]:
    """What decides how a cell runs, besides its framework: the cell, what is asked of the worker, and its limits."""
    task, grid = TASKS[cell.task], configuration.grid
    job = {
        "cell": cell.facts(),
        "asked": task.asked(configuration, cell),
        "limits": grid["limits"] | {"seconds": task.limit_seconds(grid)},
    }
    if task.needs_images:
        job["dataset"] = configuration.datasets[cell.dataset]["label"]
    return job


def _of_steps(grid: dict[str, Any]) -> Policy:
    return Policy(grid["networks"], grid.get("threads", {}), repeats_of(grid).least)


def _of_trainings(grid: dict[str, Any]) -> Policy:
    policy = grid.get("training", {"networks": [], "threads": [], "seeds": 0})
    threads = dict.fromkeys(("table", "figure"), policy["threads"])
    return Policy(policy["networks"], threads, policy["seeds"])


def _of_parts(task: str) -> Callable[[dict[str, Any]], Policy]:
    return lambda grid: Policy(
        grid["parts"].get(task, []), grid.get("threads", {}), repeats_of(grid).least
    )


def _sampling(configuration: "Configuration", cell: Cell) -> dict[str, Any]:
    return {"sampling": configuration.grid["sampling"]}


def _lockstep(configuration: "Configuration", cell: Cell) -> dict[str, Any]:
    """All ranks do the same, where those of other tasks follow the first one."""
    return _sampling(configuration, cell) | {"follow": "sums"}


def _schedule(configuration: "Configuration", cell: Cell) -> dict[str, Any]:
    """When a training stops. Its repeats differ by their seeds: start values, order of images, dropout."""
    policy = configuration.grid["training"]
    stock = specifications.resolve(cell.network, configuration.networks)["epochs"]
    return {
        "plan": {
            "seed": FIRST_SEED + cell.repeat - 1,
            "epochs": min(stock, policy.get("most_epochs", stock)),
            "target_accuracy": configuration.datasets[cell.dataset]["target_accuracy"],
            "budget_seconds": policy["budget_seconds"],
        }
    }


def _training_limit(grid: dict[str, Any]) -> float:
    # Its budget is looked at after each epoch, which may be as long as the budget, and judging is not in it.
    return grid["limits"]["seconds"] + 3 * grid["training"]["budget_seconds"]


STEP_REGION = ("forward", "loss", "backward", "update", "sync")
# Of single operations of a step: a row for each sample of each, or one that says why there is none.
PART_ROWS = {
    "part": "string",
    "role": "string",
    "way": "string",
    "flops": "int64",
    "error": "float64",
    "cpus": "float64",
    "lacking": "string",
    "sample": "int32",
    "steps": "int32",
    "seconds": "float64",
}


def _parts(name: str, **differing: Any) -> Task:
    facts: dict[str, Any] = dict(
        name=name,
        policy=_of_parts(name),
        module="{}_parts",
        title=f"{name} of {{}}",
        timed_region=("operation", "sync"),
        rows=PART_ROWS,
        columns=(),
        needs_images=False,
        needs_reference=False,
        is_watched=False,
        asked=_sampling,
        limit_seconds=lambda grid: grid["limits"]["seconds"],
    )
    return Task(**facts | differing)


TASKS = {
    task.name: task
    for task in (
        Task(
            name="step",
            policy=_of_steps,
            module="{}",
            title="{}",
            timed_region=STEP_REGION,
            rows={"sample": "int32", "steps": "int32", "seconds": "float64"},
            columns=(
                "first_step_seconds",
                "warmup_steps",
                "warmup_seconds",
                "warmup_steady",
                "wall_seconds",
                "first_loss",
                "last_loss",
            ),
            needs_images=False,
            needs_reference=True,
            is_watched=False,
            asked=_sampling,
            limit_seconds=lambda grid: grid["limits"]["seconds"],
        ),
        Task(
            name="training",
            policy=_of_trainings,
            module="{}",
            title="{}",
            timed_region=("feed", "copy", *STEP_REGION),
            rows={
                "epoch": "int32",
                "steps": "int32",
                "seconds": "float64",
                "feed_seconds": "float64",
                "cpu_seconds": "float64",
                "loss": "float64",
                "test_loss": "float64",
                "accuracy": "float64",
                "test_seconds": "float64",
            },
            columns=(
                "dataset_label",
                "whole_dataset",
                "dataset_sha256",
                "seed",
                "stopped",
                "target_accuracy",
                "most_epochs",
                "budget_seconds",
            ),
            needs_images=True,
            needs_reference=False,
            is_watched=True,
            asked=_schedule,
            limit_seconds=_training_limit,
        ),
        _parts("products"),
        _parts("convolutions"),
        _parts(
            "sums",
            title="sums over ranks, of the gradients of {} too",
            timed_region=("exchange", "sync"),
            asked=_lockstep,
            exchanges=("sync",),
        ),
        _parts(
            "stragglers",
            title="{} beside a slow rank",
            module="{}",
            timed_region=(*STEP_REGION[:-2], "exchange", *STEP_REGION[-2:]),
            exchanges=("sync", "async", "mixed"),
            is_slowed=True,
        ),
    )
}
