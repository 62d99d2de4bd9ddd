"""Table to read first of a paper: its claims, main ones first, by the paper's numbers and by ours."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.papers import findings
from steptime.claims import answers
from steptime.claims.answers import SIDES
from steptime.claims.checks import ANSWERED, FAILS, HOLDS, SO_FAR, UNDECIDED, UNKNOWN
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import TEXT, Entry

TYPES = answers.TYPES | {"short": TEXT}
# What a claim comes to in short, by the verdict of its own numbers and of ours.
SHORT = {
    (HOLDS, HOLDS): "holds, here too",
    (HOLDS, FAILS): "held there, not here",
    (FAILS, HOLDS): "not by its own numbers, but here",
    (FAILS, FAILS): "holds nowhere",
    (UNKNOWN, HOLDS): "holds here",
    (UNKNOWN, FAILS): "does not hold here",
    (HOLDS, UNDECIDED): "holds there, undecided here",
    (FAILS, UNDECIDED): "not by its own numbers, undecided here",
    (UNKNOWN, UNDECIDED): "undecided here",
}
ALONE = {HOLDS: "holds there", FAILS: "not by its own numbers", UNKNOWN: "open"}
SINCE = {
    (HOLDS, FAILS): "; no longer with today's versions",
    (FAILS, HOLDS): "; with today's versions it does",
}
# By whose numbers so many claims of those that are decided hold.
WORDS = ("hold by printed numbers", "here in versions of its time", "here in today's")
HEADINGS = {3: "Main claims", 2: "Results", 1: "Details"}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the rows (columns of `findings`, and `short`) and the layout."""
    name = inputs.paths("catalogue")[0].parent.name
    data = findings.rows_of(inputs, name)
    short = [in_short(row) for row in data.to_dict("records")]
    # What ours could answer comes before what is open here.
    answered = data[["ours_verdict", "today_verdict"]].isin(ANSWERED).any(axis=1)
    data = data.assign(short=short, answered=answered)
    data = data.sort_values(["weight", "answered"], ascending=False, kind="stable")
    data = data.drop(columns="answered").reset_index(drop=True)
    page = inputs.page
    page.facts = [*_summary(data), *findings.grids_asked(inputs)]
    page.notes = [
        "Main claims are in the paper's abstract, its list of findings or its conclusions; details are what it says "
        "of its set-up and of others.",
        *findings.HOW_ASKED,
        *page.notes,
    ]
    numbered = data.assign(number=[str(at) for at in range(1, len(data) + 1)])
    return data, columns(numbered, [*SHOWN, *_ours(data, inputs)], INDEX)


def in_short(row: dict[str, str]) -> str:
    theirs, ours, today = (row[f"{side}_verdict"] for side in SIDES)
    both, now = _of_both(theirs, ours), _of_both(theirs, today)
    if both is None:
        text = f"{now}, with today's versions" if now else ALONE[theirs]
    else:
        firm = {so_far: verdict for verdict, so_far in SO_FAR.items()}
        text = both + SINCE.get((firm.get(ours, ours), firm.get(today, today)), "")
    if not row.get("printed_by"):
        return text
    return text.replace("its own numbers", f"the numbers of {row['printed_by']}")


def _of_both(theirs: str, ours: str) -> str | None:
    """Says in words how two verdicts go together; None where we have none."""
    for verdict, so_far in SO_FAR.items():
        if ours == so_far:
            return f"{SHORT[theirs, verdict]} so far"
    return SHORT.get((theirs, ours))


def _summary(data: pd.DataFrame) -> list[str]:
    lines = []
    for weight, heading in HEADINGS.items():
        own = data[data["weight"] == weight]
        sides = [own[f"{side}_verdict"].value_counts() for side in SIDES]
        counted = [
            f"{counts.get(HOLDS, 0)} of {counts.get(HOLDS, 0) + counts.get(FAILS, 0)} {words}"
            for counts, words in zip(sides, WORDS, strict=True)
            if counts.get(HOLDS, 0) + counts.get(FAILS, 0)
        ]
        if len(own):
            lines.append(f"{'; '.join([f'{heading}: {len(own)}', *counted])}.")
    return lines


def _by(side: str) -> Callable[[Row], Entry]:
    def entry(row: Row) -> Entry:
        verdict, numbers = findings.verdict_of(row, side)
        text = f"{verdict.text}: {numbers.text}" if numbers.text else verdict.text
        return Entry(text, verdict.footnotes, kind=f"{verdict.kind} long")

    return entry


SHOWN = [
    Column("What the paper claims", findings.claim_of),
    Column("In short", lambda row: Entry(row["short"], best=True, kind="words long")),
    Column("By its own numbers", _by("theirs")),
]
INDEX: dict[str, Any] = {
    "": lambda row: HEADINGS[row["weight"]],
    "No.": "number",
    "Section": "section",
}


def _ours(data: pd.DataFrame, inputs: Inputs) -> list[Column]:
    """Returns our columns; the first says which version answers for which: 'TensorFlow 0.12 for 0.9.0'."""
    paper, frameworks = inputs.catalogue, inputs.frameworks
    asked, versions = " ".join(data["ours_asked"]), paper.get("versions", {})
    answers = []
    for name, runners in paper.get("nearest", {}).items():
        theirs = frameworks.printed(name, paper)
        for runner in (each for each in runners if each in asked):
            own, _, version = runner.rpartition(".")[0].partition("-")
            label = frameworks[own].label
            known = theirs.removeprefix(f"{label} ") if name in versions else theirs
            answers.append(f"{label} {version}" + (f" for {known}" if known != label else ""))
    heading = f"By ours of its time ({', '.join(answers) or 'none was measured'})"
    return [Column(heading, _by("ours")), Column("By ours, today's versions", _by("today"))]
