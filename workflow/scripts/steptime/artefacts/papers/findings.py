"""The table of findings: what the papers claim in words, checked against their own numbers and against ours."""

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.claims import answers
from steptime.claims.answers import COLUMNS, SIDES
from steptime.claims.checks import ANSWERED, FAILS, HOLDS, NOT_ASKED, SO_FAR, UNDECIDED, UNKNOWN
from steptime.claims.papers import read_papers
from steptime.render.columns import Column, Row, columns
from steptime.render.tables import Entry
from steptime.render.words import facts, plural

TYPES = answers.TYPES
# What verdicts are called where they are counted.
COUNTED = {HOLDS: "hold", FAILS: "do not hold", UNKNOWN: "cannot be checked"}
COUNTED |= {"so far": "hold or do not hold so far, since some that they name are missing"}
COUNTED |= {UNDECIDED: UNDECIDED, NOT_ASKED: NOT_ASKED}
HOW_ASKED = (
    "Ours: a device of the paper's kind is taken for its machine. Only its own networks, mini-batches and frameworks "
    "count, and for trainings only trainings, also on a part of the data set. Of its time: the version nearest to the "
    "paper's (`nearest` in its paper.yaml), and no other. Today's: the fastest of the others, PyTorch for Torch. A "
    "footnote names which ones count.",
    "So far: what was measured says so, but a framework, network or thread count that the claim names is missing, and "
    "could change it. One counter-example refutes a claim of all, whoever is missing.",
    "Undecided: the intervals of the numbers allow either verdict, or a time that counts was disturbed. Verdicts hold "
    "together: the chance that any of a paper's is wrong is 5 % at most, in versions of its time and in today's. "
    "More processes of each result (`repeats` in the grid) decide it; of one process alone, a time, CPU use or memory "
    "counts as known to 20 %. Accuracies have no interval, and count as known to 4 %.",
    "Cannot be checked: a number is missing. Not asked: the claim is about what is printed, or about seconds on the "
    "paper's machine.",
)


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    data, page = _of_all(inputs), inputs.page
    papers = {paper.name: paper.catalogue for paper in read_papers(inputs.paths("papers"))}
    page.facts = [*counted(data), *grids_asked(inputs)]
    page.notes = [
        "About, near and nearly N is within 10 %; slightly is less than 1.5 times; much, significantly, dramatically "
        "is at least 2 times; similar and close is within 25 %. What is read otherwise says so in a footnote.",
        *HOW_ASKED,
        *[
            f"{paper['short']}: {paper['citation'].strip()}; "
            f"as data in resources/papers/{name}, with each calculation in findings.yaml."
            for name, paper in papers.items()
        ],
    ]
    short = data["paper"].map({name: paper["short"] for name, paper in papers.items()})
    return data, columns(data.assign(short=short), SHOWN, INDEX)


def _of_all(inputs: Inputs) -> pd.DataFrame:
    """Returns the rows of all papers, in the order of their files; where a paper has a table of verdicts, its rows."""
    made = {path.stem.partition("_")[0]: path for path in inputs.paths("verdicts")}
    parts = []
    for paper in read_papers(inputs.paths("papers")):
        if paper.findings:
            known = paper.name in made
            rows = pd.read_parquet(made[paper.name]) if known else rows_of(inputs, paper.name)
            order = [finding["id"] for finding in paper.findings]
            parts.append(rows.set_index("id").loc[order].reset_index())
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def rows_of(inputs: Inputs, only: str = "") -> pd.DataFrame:
    """Returns the tidy rows (COLUMNS) of every claim, or of one paper's. Raises InputError for a faulty one."""
    papers = read_papers(inputs.paths("papers"))
    return answers.build(papers, inputs.grids, inputs.frameworks, inputs.networks, only)


def claim_of(row: Row) -> Entry:
    """Returns a claim as a table's entry; the footnote says how it is read."""
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
    *_side("Ours, versions of its time", "ours"),
    *_side("Ours, today's", "today"),
]
INDEX = {"Paper": "short", "Section": "section", "Finding": "id"}


def verdict_of(row: Row, side: str) -> list[Entry]:
    """Returns a verdict and its numbers as a table's entries; the footnote says who was asked."""
    verdict, kind = row[f"{side}_verdict"], "paper" if side == "theirs" else "ours"
    numbers = row[f"{side}_numbers"]
    if side == "today" and same(row):
        verdict, numbers = "the same", ""
    asked = row[f"{side}_asked"] if side != "theirs" and verdict in ANSWERED else ""
    return [
        Entry(verdict, (f"of {asked}",) if asked else (), verdict == FAILS, f"{kind} words"),
        Entry(numbers, kind=f"{kind} words long"),
    ]


def same(row: Row) -> bool:
    """Tells whether today's versions give the same answer as those that stand for the paper's."""
    names = ("verdict", "numbers", "asked")
    return all(row[f"ours_{name}"] == row[f"today_{name}"] for name in names)


def grids_asked(inputs: Inputs) -> list[str]:
    """Says which machine this grid's results are from, and which other grids were asked."""
    own, *others = inputs.grids
    grids = [grid.name for grid in others if not grid.refused]
    sentences = [f"Asked besides: what lies here of the grids {', '.join(grids)}."] if grids else []
    sentences += [f"Not asked, grid {grid.name}: {grid.refused}" for grid in others if grid.refused]
    return [*(facts(own.steps[0]) if own.steps else []), *sentences]


def counted(data: pd.DataFrame) -> list[str]:
    """Says how many claims hold, by whose numbers, in words."""
    names = ("printed numbers", "ours in versions of the papers' time", "ours of today")
    sentences = []
    for side, name in zip(SIDES, names, strict=True):
        verdicts = data[f"{side}_verdict"].replace(dict.fromkeys(SO_FAR.values(), "so far"))
        counts = verdicts.value_counts()
        words = [f"{counts[name]} {text}" for name, text in COUNTED.items() if name in counts]
        sentences.append(f"Of {plural(len(data), 'claim')}, by {name}: {', '.join(words)}.")
    return sentences
