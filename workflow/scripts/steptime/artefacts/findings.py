"""The table of findings: what the papers claim in words, checked against their own numbers and against ours."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from steptime.artefacts.evidence import Paper, our_times, read_papers, their_times
from steptime.artefacts.expressions import (
    ExpressionError,
    NothingThereError,
    Scope,
    asks_for_times,
    evaluate,
    names_in,
)
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.reading import InputError
from steptime.render import tables
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, significant

HOLDS, FAILS, UNKNOWN, NOT_ASKED = "holds", "does not hold", "cannot be checked", "not about times"
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
KEYS = {"id", "section", "claim", "reading", "value", "of", "why_not", "paper", *BOUNDS}
COLUMNS = ["paper", "id", "section", "claim", "reading", "value", "bounds"]
COLUMNS += [
    f"{side}_{what}"
    for side in ("theirs", "ours")
    for what in ("verdict", "numbers", "least", "most", "count")
]


@dataclass
class Check:
    """What came of one calculation: the verdict, its numbers in words, and the numbers."""

    verdict: str
    numbers: str
    values: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))

    def facts(self, side: str) -> dict[str, Any]:
        """The check as columns of the table."""
        known = len(self.values) > 0
        return {
            f"{side}_verdict": self.verdict,
            f"{side}_numbers": self.numbers,
            f"{side}_least": self.values.min() if known else None,
            f"{side}_most": self.values.max() if known else None,
            f"{side}_count": len(self.values),
        }


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    papers = read_papers(inputs.paths("papers"))
    return build(papers, inputs.every_measured, inputs.frameworks, inputs.networks, inputs.page)


def build(
    papers: list[Paper],
    measured: list[Measured],
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    page: tables.Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS) and the layout; fills the page's facts and notes.

    Raises InputError for a calculation that is not one.
    """
    printed = pd.concat([paper.printed for paper in papers], ignore_index=True)
    by_name = {paper.name: paper for paper in papers}
    scopes = {
        paper.name: _scopes(paper, measured, printed, frameworks, catalogue) for paper in papers
    }
    rows = []
    for paper in papers:
        for finding in paper.findings:
            _check_keys(paper, finding)
            about = by_name[finding.get("paper", paper.name)]
            rows.append(_row(paper, finding, about, *scopes[about.name], frameworks))
    data = pd.DataFrame(rows, columns=COLUMNS)
    _say(page, data, measured, by_name)
    return data, _layout(data, by_name)


def check(finding: dict[str, Any], scope: Scope) -> Check:
    """The verdict of a finding over a scope's numbers. Raises ExpressionError."""
    try:
        values = evaluate(finding["value"], scope)
    except NothingThereError as error:
        return Check(UNKNOWN, str(error))
    bounds = {name: finding[name] for name in BOUNDS if name in finding}
    within = pd.Series(True, values.index)
    for name, bound in bounds.items():
        within &= BOUNDS[name][1](values, bound)
    verdict = HOLDS if HOW_MANY[finding.get("of", "every")](within) else FAILS
    return Check(verdict, _words(values, within), values)


def _check_keys(paper: Paper, finding: dict[str, Any]) -> None:
    where = f"resources/papers/{paper.name}/findings.yaml, {finding.get('id', '?')}"
    extra = sorted(finding.keys() - KEYS)
    if extra:
        raise InputError(
            f"{where}: there is no key '{extra[0]}': write one of {', '.join(sorted(KEYS))}."
        )
    missing = [key for key in ("id", "section", "claim") if key not in finding]
    if missing:
        raise InputError(f"{where}: the key '{missing[0]}' is missing: write it.")
    if ("value" in finding) == ("why_not" in finding) or (
        "value" in finding and not BOUNDS.keys() & finding.keys()
    ):
        raise InputError(
            f"{where}: write 'value' with one of {', '.join(BOUNDS)}, or 'why_not' without a number."
        )


def _scopes(
    paper: Paper,
    measured: list[Measured],
    printed: pd.DataFrame,
    frameworks: Frameworks,
    catalogue: dict[str, Any],
) -> tuple[Scope, Scope]:
    """What a paper's findings are checked against: its own times, and ours of the same frameworks."""
    theirs = their_times(paper, frameworks, catalogue)
    ours = our_times(measured, theirs, frameworks, catalogue)
    lineages = {
        name: frameworks[name].lineage for name in paper.printed["framework"].unique() if name
    }
    parts = {"paper": paper.name, "printed": printed, "catalogue": catalogue, "lineages": lineages}
    return Scope(times=theirs, **parts), Scope(times=ours, stands_for=paper.platforms, **parts)


def _row(
    paper: Paper,
    finding: dict[str, Any],
    about: Paper,
    theirs: Scope,
    ours: Scope,
    frameworks: Frameworks,
) -> dict[str, Any]:
    row = {"paper": paper.name, "reading": "", "value": ""} | {
        name: finding[name]
        for name in ("id", "section", "claim", "reading", "value")
        if name in finding
    }
    if "why_not" in finding:
        return (
            row
            | Check(UNKNOWN, finding["why_not"]).facts("theirs")
            | Check(UNKNOWN, finding["why_not"]).facts("ours")
        )
    try:
        found = check(finding, theirs)
        own = _ours(finding, about, ours)
    except ExpressionError as error:
        raise InputError(
            f"resources/papers/{paper.name}/findings.yaml, {finding['id']}: {error}."
        ) from error
    bounds = " and ".join(
        f"{BOUNDS[name][0]} {finding[name]:g}" for name in BOUNDS if name in finding
    )
    return (
        row
        | {"bounds": f"{finding.get('of', 'every')} {bounds}"}
        | found.facts("theirs")
        | own.facts("ours")
    )


def _ours(finding: dict[str, Any], about: Paper, ours: Scope) -> Check:
    if not asks_for_times(finding["value"]):
        return Check(NOT_ASKED, "")
    devices = [about.platforms[name] for name in names_in(finding["value"], "platform")]
    if len(devices) > len(set(devices)):
        return Check(UNKNOWN, "it compares machines of the paper's")
    return check(finding, ours)


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


def _layout(data: pd.DataFrame, papers: dict[str, Paper]) -> pd.DataFrame:
    body = []
    for row in data.to_dict("records"):
        verdicts = [
            (row["theirs_verdict"], row["theirs_numbers"]),
            (row["ours_verdict"], row["ours_numbers"]),
        ]
        entries = [
            Entry(
                row["claim"],
                (row["reading"].rstrip("."),) if row["reading"] else (),
                kind="words long",
            )
        ]
        entries.append(Entry(row["bounds"] if isinstance(row["bounds"], str) else "", kind="words"))
        for (verdict, numbers), kind in zip(verdicts, ("paper", "ours"), strict=True):
            entries.append(Entry(verdict, best=verdict == FAILS, kind=f"{kind} words"))
            entries.append(Entry(numbers, kind=f"{kind} words long"))
        body.append(entries)
    index = pd.MultiIndex.from_arrays(
        [[papers[name].catalogue["short"] for name in data["paper"]], data["section"], data["id"]],
        names=["Paper", "Section", "Finding"],
    )
    columns = [("The claim", "in our words"), ("The claim", "as a bound")]
    columns += [
        (side, what) for side in ("Their own numbers", "Ours") for what in ("verdict", "numbers")
    ]
    return pd.DataFrame(body, index=index, columns=pd.MultiIndex.from_tuples(columns), dtype=object)


def _say(
    page: tables.Page, data: pd.DataFrame, measured: list[Measured], papers: dict[str, Paper]
) -> None:
    """Adds the counts of verdicts and how claims are read."""
    for side, name in (("theirs", "the papers' own numbers"), ("ours", "ours")):
        counts = data[f"{side}_verdict"].value_counts()
        said = ", ".join(
            f"{counts.get(verdict, 0)} {_of(verdict)}" for verdict in (HOLDS, FAILS, UNKNOWN)
        )
        page.facts.append(f"Of {plural(len(data), 'claim')}, by {name}: {said}.")
    page.facts += facts(measured[0]) if measured else []
    page.notes = [
        "About, near and nearly N is within 10 %; slightly is less than 1.5 times; much, significantly, dramatically "
        "is at least 2 times; similar and close is within 25 %. What is read otherwise says so in a footnote.",
        "Ours: the paper's kind of device stands for its machine, the fastest environment and mode for its framework, "
        "and only frameworks that the paper has are asked; PyTorch stands for Torch.",
        *[
            f"{paper.catalogue['short']}: {paper.catalogue['citation'].strip()}; "
            f"as data in resources/papers/{name}, with each calculation in findings.yaml."
            for name, paper in papers.items()
        ],
    ]


def _of(verdict: str) -> str:
    return {HOLDS: "hold", FAILS: "do not hold", UNKNOWN: "cannot be checked"}[verdict]
