"""How much the processes of a result differ, known from all results of a run: empirical Bayes.

Two or three processes tell little of their own variance. Smyth, "Linear models and empirical Bayes methods for
assessing differential expression in microarray experiments", Statistical Applications in Genetics and Molecular
Biology 3, 2004, doi:10.2202/1544-6115.1027: the variances are draws of a scaled inverse chi-squared distribution, so
that a variance divided by its scale follows F. Scale and degrees of freedom are estimated here by that likelihood,
one scale for each KIND of result, one number of degrees for all. The heavy tail of F leaves a wild result without
influence on the others.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, fdtrc

# Results whose processes differ about as much: the same machine, and as much of it in use.
KIND = ["platform", "task", "device", "devices", "threads"]
# What real runs say of the degrees of freedom before any of this run's: log normal. Large grids overrule it.
USUAL_DEGREES, SPREAD_OF_DEGREES = 4.0, 0.3
CANDIDATES = np.geomspace(1, 100, 47)
# A share of the median: a smaller variance is a coincidence, whose logarithm would mean too much.
FLOOR = 1e-5
# Below this chance, a variance is called odd.
ODD = 0.01

Array = NDArray[np.float64]


class Spread(NamedTuple):
    """A variance of logarithms of times, and the degrees of freedom with which it is known."""

    variance: float
    degrees: float


class Prior(NamedTuple):
    """What all results of a KIND say of a variance: its scale, worth `degrees` of `independent` degrees of freedom."""

    scale: float
    degrees: float
    independent: float


Spreads = dict[tuple[Any, ...], Prior]  # by KIND


def spread_of(logs: Sequence[float]) -> Spread:
    """Estimates the variance of at least two values from themselves alone."""
    middle = math.fsum(logs) / len(logs)
    return Spread(
        math.fsum((value - middle) ** 2 for value in logs) / (len(logs) - 1), len(logs) - 1
    )


def priors(
    own: Mapping[Any, Sequence[Spread]], independent: Mapping[Any, float] | None = None
) -> dict[Any, Prior]:
    """Estimates what variances of each kind say of one another; `independent` are their degrees of freedom together."""
    kinds = {
        kind: spreads for kind, spreads in own.items() if any(each.variance for each in spreads)
    }
    if not kinds:
        return {}
    columns = {kind: _columns(spreads) for kind, spreads in kinds.items()}
    scored = []
    for degrees in CANDIDATES:
        fits = {kind: _scale(*values, degrees) for kind, values in columns.items()}
        expected = (math.log(degrees / USUAL_DEGREES) / SPREAD_OF_DEGREES) ** 2 / 2
        scored.append((math.fsum(fit[1] for fit in fits.values()) - expected, degrees, fits))
    _, degrees, fits = max(scored, key=lambda each: each[0])
    return {
        kind: Prior(
            fits[kind][0],
            float(degrees),
            (independent or {}).get(kind, math.fsum(each.degrees for each in spreads)),
        )
        for kind, spreads in kinds.items()
    }


def combined(own: Spread, prior: Prior | None) -> Spread:
    """Combines a result's own variance with what the others say; without a `prior`, its own stays as it is."""
    if prior is None:
        return own
    total = prior.degrees + own.degrees
    variance = (prior.degrees * prior.scale + own.degrees * own.variance) / total
    return Spread(variance, min(total, max(prior.independent, own.degrees)))


def is_odd(own: Spread, prior: Prior | None) -> bool:
    """Tells whether so large a variance has a chance of 1 % at most among those of its kind."""
    return (
        prior is not None
        and prior.independent > own.degrees
        and fdtrc(own.degrees, prior.degrees, own.variance / prior.scale) < ODD
    )


def _columns(spreads: Sequence[Spread]) -> tuple[Array, Array]:
    variances, degrees = (np.array(column, dtype=float) for column in zip(*spreads, strict=True))
    middle = np.median(variances[variances > 0])
    return np.maximum(variances, FLOOR * middle), degrees


def _scale(variances: Array, own: Array, degrees: float) -> tuple[float, float]:
    """Returns the likeliest scale of variances with `own` degrees of freedom each, and its log-likelihood."""
    scale = float(np.exp(np.mean(np.log(variances))))
    for _ in range(200):
        ratio = own * variances / scale / degrees
        following = scale * float(((own + degrees) * ratio / (1 + ratio)).sum() / own.sum())
        if abs(following / scale - 1) < 1e-10:
            break
        scale = following
    ratio = own * variances / scale / degrees
    each = own / 2 * np.log(ratio) - np.log(variances) - (own + degrees) / 2 * np.log1p(ratio)
    return scale, float((each - betaln(own / 2, degrees / 2)).sum())
