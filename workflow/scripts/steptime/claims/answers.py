"""Answers each claim of the papers, by their own numbers and by ours."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pandas as pd

from steptime.claims import evidence, expressions, functions
from steptime.claims.checks import BOUNDS, NOT_ASKED, UNKNOWN, Check, check
from steptime.claims.functions import ExpressionError, NothingThereError, Scope
from steptime.claims.papers import Paper
from steptime.claims.so_far import Names, weakened
from steptime.merge.others import Grid
from steptime.reading import InputError
from steptime.render.columns import Row
from steptime.render.frameworks import Frameworks
from steptime.render.tables import COUNT, TEXT

PRINTED_ONLY = "it is about what is printed"
THEIR_MACHINE = "it is about seconds on their machine"
THEIR_MACHINES = "it compares machines of the paper's"
# The chance that any verdict of a paper is wrong, in versions of its time or in today's.
ERROR = 0.05
# How much a claim matters: what the paper says first and last, its results, its details.
WEIGHTS = {3: "main claim", 2: "result", 1: "detail"}
KEYS = {"id", "section", "claim", "reading", "weight", "value", "ours", "of", "why_not", "paper"}
KEYS |= {*BOUNDS}
SIDES = ("theirs", "ours", "today")
COLUMNS = ["paper", "id", "section", "weight", "claim", "reading", "value", "bounds", "printed_by"]
COLUMNS += [
    f"{side}_{what}"
    for side in SIDES
    for what in ("verdict", "numbers", "least", "most", "count", "asked")
]
WORDS = ["paper", "id", "section", "claim", "reading", "bounds", "printed_by"]
WORDS += [f"{side}_{what}" for side in SIDES for what in ("verdict", "numbers", "asked")]
TYPES = dict.fromkeys(WORDS, TEXT) | {"weight": COUNT}


@dataclass(frozen=True)
class Scopes:
    """The numbers by which a paper's claims are judged: its own, and ours by the nearest versions and by today's."""

    about: Paper
    theirs: Scope
    ours: Scope
    today: Scope


def build(
    papers: list[Paper],
    grids: list[Grid],
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    only: str = "",
) -> pd.DataFrame:
    """Returns the rows of `rows_of`, from papers and from what was measured."""
    printed = pd.concat([paper.printed for paper in papers], ignore_index=True)
    cells = evidence.measured_times(grids)
    besides = {"alone": evidence.times_alone(grids), "varied": evidence.varied_trainings(grids)}
    every = {known.name: known for paper in papers for known in (paper, *paper.quoted())}
    names = Names(frameworks, catalogue, {paper.name: paper.catalogue["short"] for paper in papers})

    @cache
    def scopes(name: str) -> Scopes:
        return _scopes(every[name], cells, besides, printed, names)

    rows = []
    for paper in papers:
        if only not in ("", paper.name):
            continue
        for finding in paper.findings:
            _check_keys(paper, finding, list(every))
        of_claims = [scopes(finding.get("paper", paper.name)) for finding in paper.findings]
        for finding, known in zip(paper.findings, _together(paper, of_claims), strict=True):
            rows.append(_row(paper, finding, known, names))
    return pd.DataFrame(rows, columns=COLUMNS)


def _together(paper: Paper, of_claims: list[Scopes]) -> list[Scopes]:
    """Returns the scopes of a paper's claims, each with its share of ERROR, so that all verdicts hold together."""
    pairs = list(zip(paper.findings, of_claims, strict=True))
    of_ours, of_today = (
        ERROR / max(sum(_has_numbers(finding, side(about)) for finding, about in pairs), 1)
        for side in (lambda about: about.ours, lambda about: about.today)
    )
    shared = []
    for about in of_claims:
        ours = replace(about.ours, error=of_ours)
        is_same = about.today is about.ours
        today = ours if is_same else replace(about.today, error=of_today)
        shared.append(replace(about, ours=ours, today=today))
    return shared


def _has_numbers(finding: dict[str, Any], scope: Scope) -> bool:
    """Tells whether a claim has numbers that were measured here."""
    value = finding.get("ours", finding.get("value", "0"))
    if not expressions.calls(value) & functions.OF_CELLS:
        return False
    try:
        return len(expressions.evaluate(value, scope)) > 0
    except (ExpressionError, NothingThereError):
        return False


def _where(paper: Paper, finding: dict[str, Any]) -> str:
    return f"resources/papers/{paper.name}/findings.yaml, {finding.get('id', '?')}"


def _check_keys(paper: Paper, finding: dict[str, Any], known: list[str]) -> None:
    extra = sorted(finding.keys() - KEYS)
    missing = [key for key in ("id", "section", "claim") if key not in finding]
    is_bound, is_asked = bool(BOUNDS.keys() & finding.keys()), {"value", "why_not"} & finding.keys()
    if extra:
        wrong = f"there is no key '{extra[0]}': write one of {', '.join(sorted(KEYS))}"
    elif missing:
        wrong = f"the key '{missing[0]}' is missing: write it"
    elif ("value" in finding) != is_bound or not is_asked:
        wrong = f"write 'value' with one of {', '.join(BOUNDS)}, or 'why_not' without a number"
    elif finding.get("weight", 2) not in WEIGHTS:
        wrong = f"the weight {finding['weight']} is not possible: write 1, 2 or 3"
    elif finding.get("paper", paper.name) not in known:
        wrong = f"there is no paper '{finding['paper']}': write one of {', '.join(known)}"
    else:
        return
    raise InputError(f"{_where(paper, finding)}: {wrong}.")


def _scopes(
    paper: Paper,
    cells: pd.DataFrame,
    besides: dict[str, pd.DataFrame],
    printed: pd.DataFrame,
    names: Names,
) -> Scopes:
    frameworks, catalogue = names.frameworks, names.catalogue
    families = {name: entry.get("family", "") for name, entry in catalogue.items()}
    known = [evidence.their_times(paper, frameworks)]
    near = evidence.our_times(paper, cells, frameworks)
    known += [near[near["is_near"]], evidence.our_times(paper, cells, frameworks, today=True)]
    theirs, ours, today = (each.assign(family=each["network"].map(families)) for each in known)
    named = [*paper.frameworks, *paper.printed["framework"].unique()]
    parts = {
        "paper": paper.name,
        "printed": printed,
        "catalogue": catalogue,
        "lineages": {name: frameworks[name].lineage for name in named if name},
        "batches": paper.batches,
        "networks": paper.networks,
    }
    here = {"stands_for": paper.platforms, **besides, **parts}
    printed_here = Scope(times=theirs, **parts)
    own = Scope(times=ours, **here)
    # Where no framework is here in two versions, today's are the nearest.
    now = own if today.equals(ours) else Scope(times=today, **here)
    return Scopes(paper, printed_here, own, now)


def _row(paper: Paper, finding: dict[str, Any], scopes: Scopes, names: Names) -> Row:
    row = {"paper": paper.name, "reading": "", "value": "", "weight": 2, "bounds": ""}
    row["printed_by"] = " and ".join(_printed_by(paper, finding, names))
    row |= {name: finding[name] for name in COLUMNS if name in finding and name != "paper"}
    if "value" in finding:
        checks = _checks(paper, finding, scopes, names)
        bounds = [f"{BOUNDS[name][0]} {finding[name]:g}" for name in BOUNDS if name in finding]
        row["bounds"] = f"{finding.get('of', 'every')} {' and '.join(bounds)}"
    else:
        checks = [Check(UNKNOWN, finding["why_not"])] * len(SIDES)
    for side, each in zip(SIDES, checks, strict=True):
        row |= each.facts(side)
    return row


def _checks(paper: Paper, finding: dict[str, Any], scopes: Scopes, names: Names) -> list[Check]:
    about = scopes.about
    try:
        if "why_not" in finding:
            theirs = Check(UNKNOWN, finding["why_not"])
        else:
            theirs = _of_whom(paper, finding, check(finding, scopes.theirs), names)
        several = [scopes.ours] if scopes.today is scopes.ours else [scopes.ours, scopes.today]
        checks = [
            weakened(finding, _ours(finding, about, scope), about, scope, theirs, names)
            for scope in several
        ]
        return [theirs, checks[0], checks[-1]]
    except ExpressionError as error:
        raise InputError(f"{_where(paper, finding)}: {error}.") from error


def _of_whom(paper: Paper, finding: dict[str, Any], checked: Check, names: Names) -> Check:
    """Returns the verdict by printed numbers, which names the other papers that printed them."""
    shorts = _printed_by(paper, finding, names)
    if not shorts or checked.verdict == UNKNOWN:
        return checked
    return replace(checked, numbers=f"{checked.numbers} (with numbers of {' and '.join(shorts)})")


def _printed_by(paper: Paper, finding: dict[str, Any], names: Names) -> list[str]:
    """Returns the other papers whose printed numbers a claim uses."""
    asked = {finding.get("paper", ""), *expressions.names_in(finding.get("value", "0"), "paper")}
    return [names.papers[name] for name in sorted(asked & names.papers.keys() - {paper.name})]


def _ours(finding: dict[str, Any], about: Paper, ours: Scope) -> Check:
    """Returns the verdict by our numbers, on the finding's `ours` where it has another calculation for them."""
    value = finding.get("ours", finding["value"])
    if not expressions.calls(value) & {*functions.OF_CELLS, "parameters"}:
        return Check(NOT_ASKED, PRINTED_ONLY)
    if expressions.tells_seconds(value):
        return Check(NOT_ASKED, THEIR_MACHINE)
    devices = [about.platforms[name] for name in expressions.names_in(value, "platform")]
    if len(devices) > len(set(devices)):
        return Check(UNKNOWN, THEIR_MACHINES)
    return check(finding | {"value": value}, ours)
