"""A network that is trained on real images until it is as accurate as its data set asks for."""

from typing import TYPE_CHECKING, Any

from steptime import networks
from steptime.tasks.record import STEP_REGION, Configured, Point, Policy, Task
from steptime.tasks.rows import EPOCHS, says_accuracy

if TYPE_CHECKING:
    from steptime.outcome import Outcome
    from steptime.records import Job

# The seed of the first repeat; each next one has the next number.
FIRST_SEED = 2018


def _policy(grid: dict[str, Any]) -> Policy:
    policy = grid.get("training", {"networks": [], "threads": [], "seeds": 0})
    threads = dict.fromkeys(("table", "figure"), policy["threads"])
    return Policy(policy["networks"], threads, policy["seeds"])


def _schedule(configuration: Configured, cell: Point) -> dict[str, Any]:
    """Returns when training stops. Repeats differ by their seeds: start values, order of images, dropout."""
    policy = configuration.grid["training"]
    stock = networks.resolve(cell.network, configuration.networks)["epochs"]
    return {
        "plan": {
            "seed": FIRST_SEED + cell.repeat - 1,
            "epochs": min(stock, policy.get("most_epochs", stock)),
            "target_accuracy": configuration.datasets[cell.dataset]["target_accuracy"],
            "budget_seconds": policy["budget_seconds"],
        }
    }


def _limit(grid: dict[str, Any]) -> float:
    # Its budget is looked at after each epoch, which may be as long as the budget, and judging is not in it.
    limit: float = grid["limits"]["seconds"] + 3 * grid["training"]["budget_seconds"]
    return limit


def _read(job: "Job", spec: dict[str, Any], outcome: "Outcome") -> dict[str, Any]:
    plan = job["asked"]["plan"]
    return {
        "dataset_label": job["dataset"],
        "whole_dataset": spec["dataset"],
        "seed": plan["seed"],
        "target_accuracy": plan["target_accuracy"],
        "most_epochs": plan["epochs"],
        "budget_seconds": plan["budget_seconds"],
        "stopped": outcome.events.get("trained", {}).get("stopped"),
    }


TASK = Task(
    name="training",
    title="{}",
    timed_region=("feed", "copy", *STEP_REGION),
    rows=EPOCHS,
    says=says_accuracy,
    asks=_policy,
    asks_under="'networks' of 'training'",
    asked=_schedule,
    limit_seconds=_limit,
    read=_read,
    owes=("ready", "began", "epoch", "trained"),
    begins=("began",),
    ends=("trained",),
    feeds="trainings",
    needs_images=True,
    is_watched=True,
)
