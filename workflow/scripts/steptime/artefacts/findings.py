"""The table of findings: what the papers claim in words, checked against their own numbers and against ours."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import hadamard
from scipy.special import ndtr

from steptime.artefacts import evidence
from steptime.artefacts.evidence import Paper, read_papers
from steptime.artefacts.inputs import Inputs
from steptime.claims import expressions, functions
from steptime.claims.functions import DRAW, ExpressionError, NothingThereError, Scope
from steptime.merge.others import Grid
from steptime.reading import InputError
from steptime.render.columns import Column, Row, columns
from steptime.render.frameworks import Frameworks
from steptime.render.tables import Entry
from steptime.render.words import beside_one, facts, plural, significant

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
# What all that was measured says, where the claim speaks of more: another framework may be the exception.
SO_FAR = {HOLDS: "holds so far", FAILS: "does not hold so far"}
ANSWERED = (HOLDS, FAILS, *SO_FAR.values(), UNDECIDED)
UNKNOWN, NOT_ASKED = "cannot be checked", "not asked"
PRINTED_ONLY = "it is about what is printed"
THEIR_MACHINE = "it is about seconds on their machine"
THEIR_MACHINES = "it compares machines of the paper's"
# The chance that any verdict of a paper is wrong, in versions of its time or in today's.
ERROR = 0.05
# Standard deviation of what has no interval: what variants of a network reached.
MARGIN = 0.02
# Standard deviation of a number of one process alone, about as much as the widest of real runs.
ALONE = 0.1
# What verdicts are called where they are counted.
COUNTED = {HOLDS: "hold", FAILS: "do not hold", UNKNOWN: "cannot be checked"}
COUNTED |= {"so far": "hold or do not hold so far, since some that they name are missing"}
COUNTED |= {UNDECIDED: UNDECIDED, NOT_ASKED: NOT_ASKED}
# How much a claim matters: what the paper says first and last, its results, its details.
WEIGHTS = {3: "main claim", 2: "result", 1: "detail"}
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
KEYS = {"id", "section", "claim", "reading", "weight", "value", "ours", "of", "why_not", "paper"}
KEYS |= {*BOUNDS}
SIDES = ("theirs", "ours", "today")
# A framework, a network, and whether with more threads than cores.
Place = tuple[str, str, bool]
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
COLUMNS = ["paper", "id", "section", "weight", "claim", "reading", "value", "bounds", "printed_by"]
COLUMNS += [
    f"{side}_{what}"
    for side in SIDES
    for what in ("verdict", "numbers", "least", "most", "count", "asked")
]


@dataclass
class Check:
    """What came of one calculation; `places` are who had a time on which network, and whether above cores."""

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
        """Says who was asked, and which grid measured it: 'torch-2.13.eager, tensorflow-2.21.graph (grid desktop)'."""
        grids: dict[str, list[str]] = {}
        for grid, runner in sorted(each[::-1] for each in self.asked):
            grids.setdefault(grid, []).append(runner)
        of_grid = {grid: f" (grid {grid})" if grid else "" for grid in grids}
        return "; ".join(f"{', '.join(runners)}{of_grid[grid]}" for grid, runners in grids.items())


@dataclass(frozen=True)
class Names:
    """What frameworks, networks and papers are called."""

    frameworks: Frameworks
    catalogue: dict[str, Any]
    papers: dict[str, str]


@dataclass(frozen=True)
class Scopes:
    """What a paper's claims are asked of: its own numbers, and ours, by the nearest versions and by today's."""

    about: Paper
    theirs: Scope
    ours: Scope
    today: Scope


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
    """The rows of all papers, in the order of their files: those of its table of verdicts where a paper has one."""
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
    """The tidy rows (COLUMNS) of every claim, or of one paper's. Raises InputError for what is no calculation."""
    papers = read_papers(inputs.paths("papers"))
    return build(papers, inputs.grids, inputs.frameworks, inputs.networks, only)


def build(
    papers: list[Paper],
    grids: list[Grid],
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    only: str = "",
) -> pd.DataFrame:
    """Says what `rows_of` says, of papers and of what was measured."""
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
    """The scopes of a paper's claims, each with its share of ERROR (Bonferroni), so that its verdicts hold together."""
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
    """Tells whether a claim comes to numbers that were measured here."""
    value = finding.get("ours", finding.get("value", "0"))
    if not expressions.calls(value) & functions.OF_CELLS:
        return False
    try:
        return len(expressions.evaluate(value, scope)) > 0
    except (ExpressionError, NothingThereError):
        return False


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
    return Check(verdict, _words(finding, values), values, asked, places)


def _verdict(finding: dict[str, Any], outside: np.ndarray, inside: np.ndarray, error: float) -> str:
    """Returns the verdict, from the `_chances` of each number; a wrong one has a chance of `error`.

    That `least` of n numbers lie within is shown where the least-th smallest chance, times n - least + 1, is small
    enough: so many other choices of them there are for a lucky one (Rueger 1978; `every` needs no correction, `some`
    Bonferroni's).
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
    """Returns the chance to find a number so far inside of the bounds while it is outside, and so far outside while
    inside.

    An extreme is no single number: the smallest is above a bound where every number is, and below it where some is.
    To show it of every number needs no correction, to show it of some needs Bonferroni's.
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
    """Returns the standard deviation of each number of an expression, 0 where all that it is made of was printed, and
    endless where a time is among it that was disturbed, or whose runs differ far more than those of others.

    The rows that it selects get larger and smaller by their standard deviations, each as often together with any other
    as without it (balanced repeated replications: McCarthy 1969): their variances add up, and luck decides nothing.
    """
    errors, times = np.zeros(len(numbers)), scope.times
    if "low" not in times:
        return errors
    times = times.loc[sorted(scope.rows)]
    low, high = (times[ends].to_numpy(float) for ends in (functions.LOW, functions.HIGH))
    deviations = np.log(high / low) / 2 / evidence.NORMAL
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
            _so_far(finding, _ours(finding, about, scope), about, scope, theirs, names)
            for scope in several
        ]
        return [theirs, checks[0], checks[-1]]
    except ExpressionError as error:
        raise InputError(f"{_where(paper, finding)}: {error}.") from error


def _of_whom(paper: Paper, finding: dict[str, Any], checked: Check, names: Names) -> Check:
    """Returns the verdict of what was printed, with whose numbers these are where another paper printed them."""
    shorts = _printed_by(paper, finding, names)
    if not shorts or checked.verdict == UNKNOWN:
        return checked
    return replace(checked, numbers=f"{checked.numbers} (with numbers of {' and '.join(shorts)})")


def _printed_by(paper: Paper, finding: dict[str, Any], names: Names) -> list[str]:
    """Returns the other papers whose numbers a claim is asked of."""
    asked = {finding.get("paper", ""), *expressions.names_in(finding.get("value", "0"), "paper")}
    return [names.papers[name] for name in sorted(asked & names.papers.keys() - {paper.name})]


def _ours(finding: dict[str, Any], about: Paper, ours: Scope) -> Check:
    """Says what ours says: of `ours` of the finding where it asks something else than of theirs."""
    value = finding.get("ours", finding["value"])
    if not expressions.calls(value) & {*functions.OF_CELLS, "parameters"}:
        return Check(NOT_ASKED, PRINTED_ONLY)
    if expressions.tells_seconds(value):
        return Check(NOT_ASKED, THEIR_MACHINE)
    devices = [about.platforms[name] for name in expressions.names_in(value, "platform")]
    if len(devices) > len(set(devices)):
        return Check(UNKNOWN, THEIR_MACHINES)
    return check(finding | {"value": value}, ours)


def _so_far(
    finding: dict[str, Any], checked: Check, about: Paper, ours: Scope, theirs: Check, names: Names
) -> Check:
    """Returns the verdict of ours as one `so far` where a framework, network or thread count of the claim is missing,
    and could change it.

    What a claim speaks of is what the paper's own numbers have; where these lack it, the frameworks that the paper
    timed, on the networks that were measured. One counter-example refutes, whoever is missing.
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
    numbers = f"{checked.numbers}; without {_named(missing, wanted, names)}"
    return replace(checked, verdict=SO_FAR[checked.verdict], numbers=numbers)


def _could_change(
    finding: dict[str, Any], checked: Check, ours: Scope, missing: Collection[Place]
) -> bool:
    """Whether the missing times, all or of one framework or network, could change it, as short or as long as can be."""
    extended = finding | {"value": finding.get("ours", finding["value"])}
    times, rows = ours.times, []
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


def _named(missing: Collection[Place], wanted: Collection[Place], names: Names) -> str:
    """Says who is missing, in words: frameworks, and the networks where a framework lacks some of them only."""
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


def _words(finding: dict[str, Any], values: pd.Series) -> str:
    """The numbers in words: one, or from the least to the most; where not all are within the bounds, how many are."""
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


def claim_of(row: Row) -> Entry:
    """Returns a claim; the footnote says how it is read."""
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
    """Returns a verdict and its numbers, as they stand in a table; the footnote says who was asked."""
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
    """Tells whether today's versions are those that stand for the paper's."""
    names = ("verdict", "numbers", "asked")
    return all(row[f"ours_{name}"] == row[f"today_{name}"] for name in names)


def grids_asked(inputs: Inputs) -> list[str]:
    """Returns the machine of this grid's results, and which other grids were asked."""
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
