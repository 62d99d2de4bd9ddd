"""Weakens a verdict to `so far` where the claim names what was not measured and could change the verdict."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pandas as pd

from steptime.claims import expressions, functions
from steptime.claims.checks import FAILS, HOLDS, SO_FAR, Check, Place, check
from steptime.claims.functions import Scope
from steptime.claims.papers import Paper
from steptime.render.frameworks import Frameworks


@dataclass(frozen=True)
class Names:
    """What frameworks, networks and papers are called."""

    frameworks: Frameworks
    catalogue: dict[str, Any]
    papers: dict[str, str]


def weakened(
    finding: dict[str, Any], checked: Check, about: Paper, ours: Scope, theirs: Check, names: Names
) -> Check:
    """Returns our verdict, as `so far` where a framework, network or thread count is missing and could change it.

    A claim names what the paper's own numbers have; without such numbers, the frameworks that the paper timed, on the
    networks that were measured. One counter-example refutes a claim, whoever is missing.
    """
    value = finding.get("ours", finding["value"])
    if checked.verdict not in SO_FAR:
        return checked
    wanted, counts = theirs.places, expressions.names_in(value, "threads")
    if not wanted:
        every = expressions.asks_every_framework(value)
        frameworks = about.frameworks if every else expressions.names_in(value, "framework")
        networks = {network for _, network, _ in checked.places}
        lineages = (ours.lineages.get(name, name) for name in frameworks)
        # What says "any other number of threads" speaks of more than cores too.
        above = [False, True] if "!=cores" in counts else [False]
        wanted = frozenset(product(lineages, networks, above))
    is_of_threads = bool(expressions.calls(value) & functions.OF_THREADS or counts)
    wanted, there = (
        frozenset((name, network, above and is_of_threads) for name, network, above in places)
        for places in (wanted, checked.places)
    )
    missing = wanted - there
    # `every` fails by one number, `some` holds by one.
    enough = {"every": FAILS, "some": HOLDS}.get(finding.get("of", "every"))
    is_refuted = checked.verdict == enough
    if not missing or (is_refuted and not _could_change(finding, checked, ours, missing)):
        return checked
    numbers = f"{checked.numbers}; without {named(missing, wanted, names)}"
    return replace(checked, verdict=SO_FAR[checked.verdict], numbers=numbers)


def _could_change(
    finding: dict[str, Any], checked: Check, ours: Scope, missing: Collection[Place]
) -> bool:
    """Tells whether missing times could change the verdict, if they were extremely short or long.

    All of them are tried together, and those of each framework and of each network.
    """
    extended = finding | {"value": finding.get("ours", finding["value"])}
    times = ours.times
    rows = []
    for framework, network, above in missing:
        own = times[times["network"] == network].assign(framework=framework, runner=framework)
        rows.append(own[own["threads"] > 0].assign(threads=2 * own["cores"]) if above else own)
    place = [*functions.PLACE, "devices"]
    added = pd.concat(rows).drop_duplicates(place)
    alone = [each for name in ("framework", "network") for _, each in added.groupby(name)]
    for group, seconds in product([added, *alone], (1e-9, 1e9)):
        extreme = group.assign(seconds=seconds, low=seconds, high=seconds, own="")
        every = pd.concat([times, extreme], ignore_index=True).drop_duplicates([*place, "exchange"])
        if check(extended, replace(ours, times=every)).verdict != checked.verdict:
            return True
    return False


def named(missing: Collection[Place], wanted: Collection[Place], names: Names) -> str:
    """Names who is missing: frameworks, and the networks where a framework lacks only some."""
    texts = []
    for framework in sorted({framework for framework, *_ in missing}):
        lacking = {place[1:] for place in missing if place[0] == framework}
        label = names.frameworks.lineage(framework).label
        if lacking == {place[1:] for place in wanted if place[0] == framework}:
            texts.append(label)
            continue
        whole = {network for network, is_above in lacking if not is_above}
        above = {network for network, _ in lacking} - whole
        for networks, threads in ((whole, ""), (above, " with more threads than cores")):
            labels = [names.catalogue.get(each, {}).get("label", each) for each in sorted(networks)]
            texts += [f"{label} on {', '.join(labels)}{threads}"] if labels else []
    return ", ".join(texts)
