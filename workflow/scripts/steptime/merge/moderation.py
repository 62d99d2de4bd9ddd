"""Variances that few repeats each tell little of, moderated by all of their kind: empirical Bayes, robust.

Cells differ in how much their processes differ, but not without limit. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments", Statistical Applications in Genetics and
Molecular Biology 3, 2004, doi:10.2202/1544-6115.1027: the variances are draws of a scaled inverse chi-squared
distribution, whose scale and degrees of freedom follow from the moments of the logarithms of the variances. Phipson,
Lee, Majewski, Alexander and Smyth, "Robust hyperparameter estimation protects against hypervariable genes", Annals of
Applied Statistics 10, 2016, doi:10.1214/16-AOAS920: those moments are winsorised, and a variance beyond what the
others allow keeps to itself.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, digamma, fdtrc, fdtri, polygamma

# Fewer variances than these say nothing of how variances differ.
LEAST = 4
# Shares of the variances that are drawn in, of the smallest and of the largest.
WINSORISED = (0.05, 0.1)
# Of the median: a smaller variance is a coincidence, whose logarithm would mean too much.
FLOOR = 1e-5
# Degrees of freedom from which on nothing changes.
MOST = 1e6

Array = NDArray[np.float64]


class Spread(NamedTuple):
    """A variance of logarithms of times, and the degrees of freedom with which it is known."""

    variance: float
    degrees: float


def spread_of(logs: Sequence[float]) -> Spread:
    """What at least two values say of their variance by themselves."""
    middle = math.fsum(logs) / len(logs)
    return Spread(
        math.fsum((value - middle) ** 2 for value in logs) / (len(logs) - 1), len(logs) - 1
    )


def moderated(own: Sequence[Spread], independent: float | None = None) -> list[Spread]:
    """Each variance as it is known with the help of the others, in their order.

    What was learnt from all is worth no more degrees of freedom than all have: `independent`, where some stand on the
    same values. Below LEAST variances each stays as it is.
    """
    if len(own) < LEAST:
        return list(own)
    variances, degrees = (np.array(column, dtype=float) for column in zip(*own, strict=True))
    if not np.median(variances):
        return list(own)
    scale, prior = _prior(np.maximum(variances, FLOOR * np.median(variances)), degrees)
    share = prior / (prior + degrees)
    posterior = share * scale + (1 - share) * variances
    total = np.minimum(prior + degrees, independent or degrees.sum())
    return [
        Spread(float(value), float(count)) for value, count in zip(posterior, total, strict=True)
    ]


def expected(own: Sequence[Spread]) -> Spread:
    """What these variances, at least LEAST, say of one of their kind that nothing is known of."""
    variances, degrees = (np.array(column, dtype=float) for column in zip(*own, strict=True))
    scale, prior = _prior(np.maximum(variances, FLOOR * np.median(variances)), degrees)
    return Spread(scale, min(float(prior.max()), float(degrees.sum())))


def by_moments(variances: Array, degrees: Array) -> tuple[float, float]:
    """Scale and degrees of freedom of the distribution of variances, by the moments of their logarithms (Smyth 2004,
    section 6.2); the degrees are MOST where the variances differ no more than by chance.
    """
    logs = np.log(variances) - digamma(degrees / 2) + np.log(degrees / 2)
    beyond_chance = logs.var(ddof=1) - polygamma(1, degrees / 2).mean()
    if beyond_chance <= polygamma(1, MOST / 2):
        return float(np.average(variances, weights=degrees)), MOST
    prior = 2 * _root(lambda half: beyond_chance - polygamma(1, half), 1e-4, MOST / 2)
    return math.exp(logs.mean() + digamma(prior / 2) - math.log(prior / 2)), prior


def _prior(variances: Array, degrees: Array) -> tuple[float, Array]:
    """Scale, and for each variance the degrees of freedom that it takes from the others (Phipson et al., section 3)."""
    scale, prior = by_moments(variances, degrees)
    if prior == MOST:
        return scale, np.full(len(variances), MOST)
    degree = float(degrees.max())
    logs = np.log(_of_equal_degrees(variances / scale, degrees, degree, prior) * scale)
    ordered = np.sort(logs)
    cut = int(WINSORISED[1] * len(ordered))
    centre = ordered[cut : len(ordered) - cut].mean()
    drawn_in = np.clip(
        logs - centre, *np.quantile(logs - centre, [WINSORISED[0], 1 - WINSORISED[1]])
    )
    seen = drawn_in.var(ddof=1)

    def missing(candidate: float) -> float:
        return _winsorised_moments(degree, candidate)[1] - seen

    if missing(prior) > 0:
        prior = MOST if missing(MOST) >= 0 else _root(lambda each: -missing(each), prior, MOST)
    scale = math.exp(centre + drawn_in.mean() - _winsorised_moments(degree, prior)[0])
    return scale, _shared(np.exp(logs) / scale, degree, prior)


def _of_equal_degrees(ratios: Array, degrees: Array, degree: float, prior: float) -> Array:
    """Ratios to the scale as variances of `degree` degrees of freedom would have them that are as rare."""
    above = fdtrc(degrees, prior, ratios)
    upper = fdtri(degree, prior, np.clip(1 - above, 1e-12, 1 - 1e-12))
    return np.where(degrees == degree, ratios, upper)


def _winsorised_moments(degree: float, prior: float) -> tuple[float, float]:
    """Mean and variance of the logarithm of an F-distributed value whose tails are drawn in."""
    low, high = WINSORISED[0], 1 - WINSORISED[1]
    nodes, weights = np.polynomial.legendre.leggauss(64)
    shares = low + (high - low) * (nodes + 1) / 2
    weights = weights * (high - low) / 2
    inner, ends = (np.log(_quantile(degree, prior, at)) for at in (shares, np.array([low, high])))
    mean = weights @ inner + ends @ np.array(WINSORISED)
    return mean, weights @ (inner - mean) ** 2 + (ends - mean) ** 2 @ np.array(WINSORISED)


def _quantile(degree: float, prior: float, shares: Array) -> Array:
    if prior >= MOST:
        return chdtri(degree, 1 - shares) / degree
    return fdtri(degree, prior, shares)


def _shared(ratios: Array, degree: float, prior: float) -> Array:
    """Degrees of freedom that each variance, by its ratio to the scale, takes from the others: fewer where it is larger
    than the rank that it has among them allows.
    """
    count = len(ratios)
    above = chdtrc(degree, degree * ratios) if prior >= MOST else fdtrc(degree, prior, ratios)
    order = np.argsort(-ratios, kind="stable")
    ranked = np.empty(count)
    ranked[order] = (np.arange(count) + 0.5) / count
    usual = np.minimum(above / ranked, 1)
    known = min(prior, count * degree)
    # So few that half of such variances would be larger than the largest.
    rarest = max(float(above.min()), 1e-300)
    least = known * math.log(0.5) / min(math.log(rarest), math.log(0.5))
    found = np.where(usual < 1, usual * known + (1 - usual) * least, prior)
    # No variance takes more than a smaller one does.
    found[order[::-1]] = np.minimum.accumulate(found[order[::-1]])
    return found


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises from below 0 is 0, between two positive numbers, by halving their logarithms."""
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return math.sqrt(low * high)
