"""The table of findings: what the papers claim in words, checked against their own numbers and against ours."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from steptime.artefacts.evidence import (
    NORMAL,
    Paper,
    measured_times,
    our_times,
    read_papers,
    their_times,
    times_alone,
    varied_trainings,
)
from steptime.artefacts.expressions import asks_of_cells, evaluate, names_in, tells_seconds
from steptime.artefacts.functions import ExpressionError, NothingThereError, Scope
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.merge.trainings import Trained
from steptime.reading import InputError
from steptime.render import tables
from steptime.render.columns import Column, Row, columns
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, significant

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
UNKNOWN, NOT_ASKED = "cannot be checked", "not asked"
PRINTED_ONLY = "it is about what is printed"
THEIR_MACHINE = "it is about seconds on their machine"
THEIR_MACHINES = "it compares machines of the paper's"
# A verdict stands where it comes out alike for so many of these draws of the times from their intervals.
DRAWS, ALIKE = 100, 0.95
# How much a claim matters: what the paper says first and last, its results, its details.
WEIGHTS = {3: "main claim", 2: "result", 1: "detail"}
BOUNDS = {
    "above": (">", lambda numbers, bound: numbers > bound),
    "at_least": ("≥", lambda numbers, bound: numbers >= bound),
    "below": ("<", lambda numbers, bound: numbers < bound),
    "at_most": ("≤", lambda numbers, bound: numbers <= bound),
}
HOW_MANY = {
    "every": lambda within: bool(within.all()),
    "some": lambda within: bool(within.any()),
    "most": lambda within: bool(within.mean() > 0.5),
}
KEYS = {"id", "section", "claim", "reading", "weight", "value", "ours", "of", "why_not", "paper"}
KEYS |= {*BOUNDS}
SIDES = ("theirs", "ours", "today")
HOW_ASKED = (
    "Ours: the paper's kind of device stands for its machine. Only its own networks, mini-batches and frameworks are "
    "asked, and of trainings only trainings. Of each framework the environment nearest to the paper's version stands "
    "for it (`nearest` in its paper.yaml), or the fastest where that was not measured: PyTorch for Torch. Today's: the "
    "fastest of the others. A footnote names who was asked.",
    "Undecided: 100 times each time was drawn from its 95 % interval, and the claim was asked again. More than "
    "5 answers were the other verdict. More processes of each cell (`repeats` in the grid) decide it.",
    "Cannot be checked: a number is missing. Not asked: the claim is about what is printed, or about seconds on the "
    "paper's machine.",
)
COLUMNS = ["paper", "id", "section", "weight", "claim", "reading", "value", "bounds"]
COLUMNS += [
    f"{side}_{what}"
    for side in SIDES
    for what in ("verdict", "numbers", "least", "most", "count", "asked")
]


@dataclass
class Check:
    """What came of one calculation: the verdict, its numbers in words, the numbers, and who was asked."""

    verdict: str
    numbers: str
    values: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))
    asked: tuple[str, ...] = ()

    def facts(self, side: str) -> dict[str, Any]:
        """The check as columns of the table."""
        known = len(self.values) > 0
        return {
            f"{side}_verdict": self.verdict,
            f"{side}_numbers": self.numbers,
            f"{side}_least": self.values.min() if known else None,
            f"{side}_most": self.values.max() if known else None,
            f"{side}_count": len(self.values),
            f"{side}_asked": ", ".join(self.asked),
        }


@dataclass(frozen=True)
class Scopes:
    """What a paper's claims are asked of: its own numbers, and ours, by the nearest versions and by today's."""

    about: Paper
    theirs: Scope
    ours: Scope
    today: Scope


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    data = rows_of(inputs)
    papers = {paper.name: paper for paper in read_papers(inputs.paths("papers"))}
    _say(inputs.page, data, inputs.every_measured, papers)
    shorts = {name: paper.catalogue["short"] for name, paper in papers.items()}
    return data, columns(data.assign(short=data["paper"].map(shorts)), SHOWN, INDEX)


def rows_of(inputs: Inputs, only: str = "") -> pd.DataFrame:
    """The tidy rows (COLUMNS) of every claim, or of one paper's. Raises InputError for what is no calculation."""
    papers = read_papers(inputs.paths("papers"))
    made = papers, inputs.every_measured, inputs.trained, inputs.frameworks, inputs.networks
    return build(*made, only, inputs.parts)


def build(
    papers: list[Paper],
    measured: list[Measured],
    trained: Trained,
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    only: str = "",
    parts: Collection[Measured] = (),
) -> pd.DataFrame:
    """What `rows_of` says, of papers and of what was measured."""
    printed = pd.concat([paper.printed for paper in papers], ignore_index=True)
    cells = measured_times(measured, trained)
    besides = {"alone": times_alone(list(parts)), "varied": varied_trainings(trained)}
    every = {known.name: known for paper in papers for known in (paper, *paper.quoted())}

    @cache
    def scopes(name: str) -> Scopes:
        return _scopes(every[name], cells, besides, printed, frameworks, catalogue)

    rows = []
    for paper in papers:
        for finding in paper.findings if only in ("", paper.name) else []:
            _check_keys(paper, finding, list(every))
            rows.append(_row(paper, finding, scopes(finding.get("paper", paper.name))))
    return pd.DataFrame(rows, columns=COLUMNS)


def check(finding: dict[str, Any], scope: Scope) -> Check:
    """The verdict of a finding over a scope's numbers. Raises ExpressionError."""
    scope = replace(scope, asked=set())
    try:
        values = evaluate(finding["value"], scope)
    except NothingThereError as error:
        return Check(UNKNOWN, str(error))
    within = _within(finding, values)
    verdict = _verdict(finding, within)
    if not _is_shown(finding, scope, verdict):
        verdict = UNDECIDED
    return Check(verdict, _words(values, within), values, tuple(sorted(scope.asked)))


def _within(finding: dict[str, Any], values: pd.Series) -> pd.Series:
    """Which numbers are within the bounds."""
    within = pd.Series(True, values.index)
    for name in BOUNDS:
        if name in finding:
            within &= BOUNDS[name][1](values, finding[name])
    return within


def _verdict(finding: dict[str, Any], within: pd.Series) -> str:
    return HOLDS if HOW_MANY[finding.get("of", "every")](within) else FAILS


def _is_shown(finding: dict[str, Any], scope: Scope, verdict: str) -> bool:
    """Whether times that are off as their intervals allow come to the same verdict in ALIKE of DRAWS draws.

    Logarithms of times are drawn from normal distributions of these intervals, each by itself (a parametric bootstrap:
    Efron and Tibshirani 1993, An Introduction to the Bootstrap, 6.5). Printed times have none, and are as they stand.
    """
    times = scope.times
    if "low" not in times or not asks_of_cells(finding["value"]):
        return True
    deviations = np.log((times["high"] / times["low"]).to_numpy(float)) / 2 / NORMAL
    deviations = np.nan_to_num(deviations)
    if not deviations.any():
        return True
    random, others = np.random.default_rng(1), 0
    for _ in range(DRAWS):
        drawn = times["seconds"] * np.exp(deviations * random.standard_normal(len(times)))
        values = evaluate(finding["value"], replace(scope, times=times.assign(seconds=drawn)))
        others += _verdict(finding, _within(finding, values)) != verdict
        if others > (1 - ALIKE) * DRAWS:
            return False
    return True


def _check_keys(paper: Paper, finding: dict[str, Any], known: list[str]) -> None:
    where = f"resources/papers/{paper.name}/findings.yaml, {finding.get('id', '?')}"
    extra = sorted(finding.keys() - KEYS)
    if extra:
        raise InputError(
            f"{where}: there is no key '{extra[0]}': write one of {', '.join(sorted(KEYS))}."
        )
    missing = [key for key in ("id", "section", "claim") if key not in finding]
    if missing:
        raise InputError(f"{where}: the key '{missing[0]}' is missing: write it.")
    if ("value" in finding) != bool(BOUNDS.keys() & finding.keys()) or not (
        {"value", "why_not"} & finding.keys()
    ):
        raise InputError(
            f"{where}: write 'value' with one of {', '.join(BOUNDS)}, or 'why_not' without a number."
        )
    if finding.get("weight", 2) not in WEIGHTS:
        raise InputError(
            f"{where}: the weight {finding['weight']} is not possible: write 1, 2 or 3."
        )
    if finding.get("paper", paper.name) not in known:
        raise InputError(
            f"{where}: there is no paper '{finding['paper']}': write one of {', '.join(known)}."
        )


def _scopes(
    paper: Paper,
    cells: pd.DataFrame,
    besides: dict[str, pd.DataFrame],
    printed: pd.DataFrame,
    frameworks: Frameworks,
    catalogue: dict[str, Any],
) -> Scopes:
    theirs = their_times(paper, frameworks, catalogue)
    ours, today = (our_times(paper, cells, frameworks, catalogue, today) for today in (False, True))
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
    return Scopes(
        paper, Scope(times=theirs, **parts), Scope(times=ours, **here), Scope(times=today, **here)
    )


def _row(paper: Paper, finding: dict[str, Any], scopes: Scopes) -> dict[str, Any]:
    row = {"paper": paper.name, "reading": "", "value": "", "weight": 2, "bounds": ""} | {
        name: finding[name]
        for name in ("id", "section", "weight", "claim", "reading", "value")
        if name in finding
    }
    if "value" not in finding:
        nothing = Check(UNKNOWN, finding["why_not"])
        return row | {name: fact for side in SIDES for name, fact in nothing.facts(side).items()}
    try:
        found = (
            Check(UNKNOWN, finding["why_not"])
            if "why_not" in finding
            else check(finding, scopes.theirs)
        )
        own = [_ours(finding, scopes.about, scope) for scope in (scopes.ours, scopes.today)]
    except ExpressionError as error:
        raise InputError(
            f"resources/papers/{paper.name}/findings.yaml, {finding['id']}: {error}."
        ) from error
    bounds = " and ".join(
        f"{BOUNDS[name][0]} {finding[name]:g}" for name in BOUNDS if name in finding
    )
    row["bounds"] = f"{finding.get('of', 'every')} {bounds}"
    for side, each in zip(SIDES, (found, *own), strict=True):
        row |= each.facts(side)
    return row


def _ours(finding: dict[str, Any], about: Paper, ours: Scope) -> Check:
    """What ours says: of `ours` of the finding where it asks something else than of theirs."""
    asked = finding.get("ours", finding["value"])
    if not asks_of_cells(asked):
        return Check(NOT_ASKED, PRINTED_ONLY)
    if tells_seconds(asked):
        return Check(NOT_ASKED, THEIR_MACHINE)
    devices = [about.platforms[name] for name in names_in(asked, "platform")]
    if len(devices) > len(set(devices)):
        return Check(UNKNOWN, THEIR_MACHINES)
    return check(finding | {"value": asked}, ours)


def _words(values: pd.Series, within: pd.Series) -> str:
    """The numbers in words: one, or from the least to the most; where not all are within the bounds, how many are."""
    low, high = _number(values.min()), _number(values.max())
    if len(values) == 1:
        return low
    text = f"{low} to {high}" if low != high else f"{low} each"
    return f"{text}; {int(within.sum())} of {len(values)} within"


def _number(value: float) -> str:
    whole = value == round(value)
    return ("−" if value < 0 else "") + (f"{abs(value):,.0f}" if whole else significant(abs(value)))


def claim_of(row: Row) -> Entry:
    """A claim; the footnote says how it is read."""
    reading = (row["reading"].rstrip("."),) if row["reading"] else ()
    return Entry(row["claim"], reading, kind="words long")


def _side(heading: str, side: str) -> list[Column]:
    return [
        Column((heading, "verdict"), lambda row: verdict_of(row, side)[0]),
        Column((heading, "numbers"), lambda row: verdict_of(row, side)[1]),
    ]


SHOWN = [
    Column(("The claim", "in our words"), claim_of),
    Column(("The claim", "as a bound"), "bounds", kind="words"),
    *_side("Their own numbers", "theirs"),
    *_side("Ours, nearest versions", "ours"),
    *_side("Ours, today's", "today"),
]
INDEX = {"Paper": "short", "Section": "section", "Finding": "id"}


def verdict_of(row: dict[str, Any], side: str) -> list[Entry]:
    """A verdict and its numbers, as they stand in a table; the footnote says who was asked."""
    verdict, kind = row[f"{side}_verdict"], "paper" if side == "theirs" else "ours"
    numbers = row[f"{side}_numbers"]
    if side == "today" and same(row):
        verdict, numbers = "the same", ""
    asked = (
        row[f"{side}_asked"] if side != "theirs" and verdict in (HOLDS, FAILS, UNDECIDED) else ""
    )
    return [
        Entry(verdict, (f"of {asked}",) if asked else (), verdict == FAILS, f"{kind} words"),
        Entry(numbers, kind=f"{kind} words long"),
    ]


def same(row: dict[str, Any]) -> bool:
    """Whether today's versions are those that stand for the paper's."""
    return all(
        row[f"ours_{name}"] == row[f"today_{name}"] for name in ("verdict", "numbers", "asked")
    )


def _say(
    page: tables.Page, data: pd.DataFrame, measured: list[Measured], papers: dict[str, Paper]
) -> None:
    """Adds the counts of verdicts and how claims are read."""
    page.facts = [*counted(data), *(facts(measured[0]) if measured else [])]
    page.notes = [
        "About, near and nearly N is within 10 %; slightly is less than 1.5 times; much, significantly, dramatically "
        "is at least 2 times; similar and close is within 25 %. What is read otherwise says so in a footnote.",
        *HOW_ASKED,
        *[
            f"{paper.catalogue['short']}: {paper.catalogue['citation'].strip()}; "
            f"as data in resources/papers/{name}, with each calculation in findings.yaml."
            for name, paper in papers.items()
        ],
    ]


def counted(data: pd.DataFrame) -> list[str]:
    """How many claims hold, by whose numbers, in words."""
    names = ("the papers' own numbers", "ours in the versions nearest to theirs", "ours of today")
    said = []
    for side, name in zip(SIDES, names, strict=True):
        counts = data[f"{side}_verdict"].value_counts()
        words = [f"{counts.get(verdict, 0)} {_of(verdict)}" for verdict in (HOLDS, FAILS, UNKNOWN)]
        words += [f"{counts[UNDECIDED]} undecided"] if UNDECIDED in counts else []
        words += [f"{counts[NOT_ASKED]} not asked"] if NOT_ASKED in counts else []
        said.append(f"Of {plural(len(data), 'claim')}, by {name}: {', '.join(words)}.")
    return said


def _of(verdict: str) -> str:
    return {HOLDS: "hold", FAILS: "do not hold", UNKNOWN: "cannot be checked"}[verdict]
