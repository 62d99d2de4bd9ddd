"""Optimisers: one record for each, with all about it, in the module of its name in this folder."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steptime.networks.arrays import Array, np
from steptime.networks.records import Records, check_keys, write_instead

Arrays = dict[str, Array]
# The two running averages of each parameter, and what else an optimiser keeps; one that needs fewer ignores the rest.
State = dict[str, list[Array | float]]

# What each optimiser must have, and may have: the schedule of `shared.specification.learning_rate`.
REQUIRED = ("name", "learning_rate")
SCHEDULE = ("after_epochs", "decay")


@dataclass(frozen=True)
class Optimiser:
    """How one step changes a parameter, in float64."""

    # (the specification's optimiser, gradient, running averages) -> what is subtracted from the parameter, in an array
    # of its own.
    step: Callable[[dict, Array, list], Array]
    # Whether `weight_decay` times the learning rate of each weight of a matrix is taken off, too.
    decays: bool = False
    # Keys that it needs besides; `config/schemas/networks.yaml` wants positive numbers.
    needs: tuple[str, ...] = ()


OPTIMISERS = Records(__name__, __path__, "OPTIMISER")


def check(optimiser: dict) -> None:
    """Raises ValueError, in one sentence, for an unknown optimiser, and for missing or unknown keys."""
    name = optimiser["name"]
    if name not in OPTIMISERS:
        raise ValueError(f"there is no optimiser '{name}'; {write_instead(name, OPTIMISERS)}")
    needs, lacks = REQUIRED + OPTIMISERS[name].needs, "{0} needs '{1}'; write it beside its name"
    check_keys(f"the optimiser {name}", optimiser, needs, SCHEDULE, lacks)


def in_floats(optimiser: dict) -> dict:
    """Returns the optimiser with all rates as floats: frameworks treat integers, as YAML may read them, differently."""

    def of(value: Any) -> Any:
        if isinstance(value, list):
            return [[epochs, of(rate)] for epochs, rate in value]
        return float(value) if type(value) is int else value

    return {key: of(value) for key, value in optimiser.items()}


def update(optimiser: dict, weights: Arrays, gradients: Arrays, state: State) -> Arrays:
    """Returns the weights after one step of the optimiser; `state`, {} before the first step, changes in place."""
    kind, updated = OPTIMISERS[optimiser["name"]], {}
    for name, gradient in gradients.items():
        weight = weights[name]
        taken = kind.step(optimiser, gradient, state.setdefault(name, [0.0, 0.0]))
        if kind.decays and weight.ndim > 1:
            taken += optimiser["learning_rate"] * optimiser["weight_decay"] * weight
        updated[name] = np.subtract(weight, taken, out=taken)
    return updated
