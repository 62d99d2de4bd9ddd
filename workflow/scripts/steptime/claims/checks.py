"""Judges a claim: whether its numbers are within its bounds, as surely as they are known."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import hadamard
from scipy.special import ndtr

from steptime.claims import expressions, functions
from steptime.claims.evidence import NORMAL
from steptime.claims.functions import DRAW, NothingThereError, Scope
from steptime.render.columns import Row
from steptime.render.words import beside_one, significant

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
# What all that was measured says, where the claim speaks of more: another framework may be the exception.
SO_FAR = {HOLDS: "holds so far", FAILS: "does not hold so far"}
ANSWERED = (HOLDS, FAILS, *SO_FAR.values(), UNDECIDED)
UNKNOWN, NOT_ASKED = "cannot be checked", "not asked"
# Standard deviation of what has no interval: what variants of a network reached.
MARGIN = 0.02
# Standard deviation of a number of one process alone, about as much as the widest of real runs.
ALONE = 0.1
BOUNDS = {
    "above": (">", lambda numbers, bound: numbers > bound),
    "at_least": ("≥", lambda numbers, bound: numbers >= bound),
    "below": ("<", lambda numbers, bound: numbers < bound),
    "at_most": ("≤", lambda numbers, bound: numbers <= bound),
}
# How many of `count` numbers must lie within the bounds.
HOW_MANY: dict[str, Callable[[int], int]] = {
    "every": lambda count: count,
    "some": lambda count: 1,
    "most": lambda count: count // 2 + 1,
}
# A framework, a network, and whether with more threads than cores.
Place = tuple[str, str, bool]


@dataclass
class Check:
    """The outcome of one calculation. `places`: framework, network, and whether with more threads than cores."""

    verdict: str
    numbers: str
    values: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))
    asked: frozenset[tuple[str, str]] = frozenset()
    places: frozenset[Place] = frozenset()

    def facts(self, side: str) -> Row:
        known = len(self.values) > 0
        return {
            f"{side}_verdict": self.verdict,
            f"{side}_numbers": self.numbers,
            f"{side}_least": self.values.min() if known else None,
            f"{side}_most": self.values.max() if known else None,
            f"{side}_count": len(self.values),
            f"{side}_asked": self._runners(),
        }

    def _runners(self) -> str:
        """Says whose times were used, and which grid has them: 'torch-2.13.eager, jax-0.4.eager (grid desktop)'."""
        grids: dict[str, list[str]] = {}
        for grid, runner in sorted(each[::-1] for each in self.asked):
            grids.setdefault(grid, []).append(runner)
        of_grid = {grid: f" (grid {grid})" if grid else "" for grid in grids}
        return "; ".join(f"{', '.join(runners)}{of_grid[grid]}" for grid, runners in grids.items())


def check(finding: dict[str, Any], scope: Scope) -> Check:
    """Returns the verdict of a finding over a scope's numbers. Raises ExpressionError."""
    scope = replace(scope, asked=set(), places=set(), rows=set())
    try:
        numbers = expressions.evaluate(finding["value"], scope)
    except NothingThereError as error:
        return Check(UNKNOWN, str(error))
    values = functions.chosen(numbers)
    verdict = _verdict(finding, *_chances(finding, scope, numbers), scope.error)
    asked, places = frozenset(scope.asked), frozenset(scope.places)
    return Check(verdict, numbers_in_words(finding, values), values, asked, places)


def _verdict(finding: dict[str, Any], outside: np.ndarray, inside: np.ndarray, error: float) -> str:
    """Returns the verdict from the `_chances` of each number; it is wrong with a chance of `error` at most.

    That at least `least` of n numbers are within the bounds is shown where the least-th smallest chance, times n -
    least + 1, is small enough: a lucky number has that many other choices (Rueger 1978; `every` needs no correction,
    `some` Bonferroni's).
    """
    count = len(outside)
    least = HOW_MANY[finding.get("of", "every")](count)
    for verdict, chances, needed in (
        (HOLDS, outside, least),
        (FAILS, inside, count - least + 1),
    ):
        if np.sort(chances)[needed - 1] * (count - needed + 1) <= error:
            return verdict
    return UNDECIDED


def _chances(
    finding: dict[str, Any], scope: Scope, numbers: pd.Series
) -> tuple[np.ndarray, np.ndarray]:
    """Returns two chances for each number: to be seen so far inside of the bounds if it is outside, and the reverse.

    An extreme is more than one number: the smallest is above a bound where every number is, and below it where some
    number is. To show it of every number needs no correction, to show it of some needs Bonferroni's.
    """
    errors = _errors(finding["value"], scope, numbers.to_numpy(float))
    outside, inside = [], []
    for name in BOUNDS.keys() & finding.keys():
        is_lower = name in ("above", "at_least")
        distances = (numbers - finding[name]) * (1 if is_lower else -1)
        known = ndtr(-distances / np.where(errors > 0, errors, 1))
        beyond = known.where(errors > 0, ~BOUNDS[name][1](numbers, finding[name])).astype(float)
        upwards, downwards = ({"least": _every, "most": _some}, {"least": _some, "most": _every})
        outside.append(functions.chosen(beyond, upwards if is_lower else downwards))
        inside.append(functions.chosen(1 - beyond, downwards if is_lower else upwards))
    return np.max(outside, axis=0), np.minimum(len(inside) * np.min(inside, axis=0), 1)


def _every(chances: pd.Series) -> float:
    return float(chances.max())


def _some(chances: pd.Series) -> float:
    return min(len(chances) * float(chances.min()), 1)


def _errors(value: str, scope: Scope, numbers: np.ndarray) -> np.ndarray:
    """Returns the standard deviation of each number of an expression.

    It is 0 where only printed numbers were used, and infinite where a time was disturbed, or its runs differ far more
    than those of other results. The rows that the expression uses grow and shrink by their standard deviations, each as
    often together with any other row as without it (balanced repeated replications: McCarthy 1969): their variances add
    up, and nothing depends on luck.
    """
    errors, times = np.zeros(len(numbers)), scope.times
    if "low" not in times:
        return errors
    times = times.loc[sorted(scope.rows)]
    low, high = (times[ends].to_numpy(float) for ends in (functions.LOW, functions.HIGH))
    deviations = np.log(high / low) / 2 / NORMAL
    deviations = np.where(np.isnan(deviations), ALONE, deviations)
    if deviations.any():
        signs = hadamard(2 ** len(times).bit_length())[:, 1 : len(times) + 1]
        # All draws at once: to compute with each by itself takes many times as long.
        draws, at = np.indices(signs.shape).reshape(2, -1)
        of_draws = times.take(at).assign(**{DRAW: draws})
        of_draws[functions.NUMBERS] *= np.exp(deviations[at] * signs.reshape(-1, 1))
        drawn = expressions.evaluate(value, replace(scope, times=of_draws))
        if DRAW in drawn.index.names:
            order = np.argsort(drawn.index.get_level_values(DRAW), kind="stable")
            errors = np.std(drawn.to_numpy(float)[order].reshape(len(signs), -1), axis=0)
    if not times["decides"].all():
        moved = times.copy()
        # Each by another factor: a ratio of two of them moves too.
        factors = np.where(times["decides"], 1, 2 + np.arange(len(times)) / len(times))
        moved[functions.NUMBERS] *= factors[:, None]
        others = expressions.evaluate(value, replace(scope, times=moved)).to_numpy(float)
        errors = np.where(np.isclose(others, numbers), errors, np.inf)
    varied = "varied" in expressions.calls(value)
    return np.maximum(errors, MARGIN * np.abs(numbers)) if varied else errors


def numbers_in_words(finding: dict[str, Any], values: pd.Series) -> str:
    """Writes the numbers: one, or from the least to the most, and how many are within the bounds where not all are."""
    if len(values) == 1:
        return _number(values.iloc[0])
    low, high = (_number(value, beside_one) for value in (values.min(), values.max()))
    text = f"{low} to {high}" if low != high else f"{low} each"
    bounds = [(holds, finding[name]) for name, (_, holds) in BOUNDS.items() if name in finding]
    within = sum(all(holds(value, bound) for holds, bound in bounds) for value in values)
    return f"{text}; {within} of {len(values)} within"


def _number(value: float, write: Callable[[float], str] = significant) -> str:
    whole = value == round(value)
    return ("−" if value < 0 else "") + (f"{abs(value):,.0f}" if whole else write(abs(value)))
