"""The functions that an expression of `expressions` may call: they select numbers, or calculate with them.

Each returns a number, or a series of numbers by place (network, framework, platform, threads, batch). An operation on
two series is done in the places that they share. An extreme (`least`, `most`, `others`, `larger`) keeps all numbers
that it chooses from, and has an index level for its choice: a bound of the smallest number is one of every number.

Threads are a number, or depend on the physical cores of each time's machine: `cores`, `2*cores`, `<=cores`, `>cores`,
`!=cores`.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from shared.grouping import GROUPED
from steptime import networks as specifications

PLACE = ["network", "framework", "platform", "threads", "batch"]
# Which of many draws of all times a row is of, where they are computed with together.
DRAW = "draw"
# What a level of numbers to choose from is called: 'least 0', 'most 1' ..., those inside of others first.
CHOICE = re.compile(r"(?P<which>least|most) (?P<at>\d+)")
THE_OTHER = {"least": "most", "most": "least"}
# Columns of single operations: which one, and how it was computed.
ALONE = ["network", "framework", "threads", "part", "way", "device", "grid", "seconds"]
# Columns of variants that were trained for as many epochs: which one, who trained it, and what it reached.
VARIED = ["network", "framework", "platform", "threads", "grid", "accuracy", "test_loss"]
SELECTABLE = [*PLACE, "device", "devices", "exchange", "family"]
LEVELS = {"Low": 1, "Moderate": 2, "High": 3}
# What can be asked of times besides seconds: the column that has it.
USED = {"cpus": "effective_threads", "memory": "peak_memory_bytes"}
# The columns of numbers, and of both ends of their 95 % intervals, NaN of one process alone.
NUMBERS = ["seconds", *USED.values()]
LOW, HIGH = ([end, *(f"{name}_{end}" for name in USED.values())] for end in ("low", "high"))
# Calls that give seconds, and those that give what their numbers are.
SECONDS, SAME = ("time", "others", "alone"), ("least", "most", "mean", "per_thread")
# Calls that compare thread counts.
OF_THREADS = {"speedup", "doubling", "per_thread"}
RELATIVE = re.compile(r"(?P<how><=|>=|!=|<|>)?(?:(?P<times>\d+)\*)?cores")
COMPARED: dict[str | None, Callable[[Any, Any], Any]] = {
    None: operator.eq,
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "!=": operator.ne,
}
Number: TypeAlias = float | pd.Series


class ExpressionError(Exception):
    """An expression is not of the language; the text says what is wrong with it."""


class NothingThereError(Exception):
    """An expression asks for numbers that do not exist; the text says which."""


@dataclass
class Scope:
    """The numbers that an expression can use.

    `times` has one row for each time: PLACE, device, devices, family, cores, `runner` (who was timed), `seconds` (NaN
    for a dash), the columns of USED, and, where it was measured here, LOW and HIGH. Its frameworks are lineages, and
    `lineages` gives that of every name. `printed` has the printed numbers of all papers (`paper`, `file`, `row`,
    `column`, `value`, `number`). Where times are not the paper's own, `stands_for` says which kind of device represents
    each of its platforms. `batches` is the mini-batch size of each network where a claim names none, `networks` are the
    paper's. `alone` has the times of single operations, `varied` what variants of a network reached. `error` is the
    chance that a verdict may be wrong.

    An expression adds to these: `asked`, whose times it used, and of which grid; `places`, which framework on which
    network had a time, and whether with more threads than cores; `rows`, the index of the times that it used. `choices`
    counts its extremes.
    """

    paper: str
    times: pd.DataFrame
    printed: pd.DataFrame
    catalogue: dict[str, Any]
    lineages: dict[str, str]
    stands_for: dict[str, str] | None = None
    batches: dict[str, int] = field(default_factory=dict)
    networks: list[str] = field(default_factory=list)
    alone: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=ALONE))
    varied: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=VARIED))
    error: float = 0.05
    asked: set[tuple[str, str]] = field(default_factory=set)
    places: set[tuple[str, str, bool]] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    choices: Iterator[int] = field(default_factory=count)


def meet(left: Number, right: Number, operation: Callable[[Any, Any], Any]) -> Number:
    """Returns an operation on two numbers; on two series, in each place that both have."""
    if operation in (operator.sub, operator.truediv):
        right = _turned(right)
    if not isinstance(left, pd.Series) or not isinstance(right, pd.Series):
        return operation(left, right)
    shared = [name for name in left.index.names if name in right.index.names]
    one, other = left.rename("left").reset_index(), right.rename("right").reset_index()
    both = one.merge(other, **({"on": shared} if shared else {"how": "cross"}))
    places = [name for name in both if name in (*PLACE, DRAW) or CHOICE.fullmatch(name)]
    result = operation(both["left"], both["right"])
    return result.set_axis(pd.MultiIndex.from_frame(both[places])) if places else result


def _turned(numbers: Number) -> Number:
    """Swaps least and most in the choices of numbers that are subtracted, or by which is divided."""
    if not isinstance(numbers, pd.Series):
        return numbers
    turned = (
        CHOICE.sub(lambda name: f"{THE_OTHER[name['which']]} {name['at']}", level or "")
        for level in numbers.index.names
    )
    return numbers.rename_axis([name or None for name in turned])


def _choices(numbers: pd.Series) -> list[str]:
    """Returns the names of the index levels for choices, inner ones first."""
    found = [CHOICE.fullmatch(name) for name in numbers.index.names if name]
    return [each[0] for each in sorted(filter(None, found), key=lambda each: int(each["at"]))]


def chosen(
    numbers: pd.Series, ways: Mapping[str, Callable[[pd.Series], float]] | None = None
) -> pd.Series:
    """Returns the extremes themselves, or applies `ways` to all numbers that `least` and `most` choose from."""
    ways = ways or {"least": np.min, "most": np.max}
    for name in _choices(numbers):
        levels = [level for level in numbers.index.names if level != name]
        way = ways[name.split()[0]]
        grouped = numbers.groupby(level=levels, sort=False) if levels else None
        numbers = grouped.agg(way) if grouped else pd.Series([way(numbers)])
    return numbers


def _select(scope: Scope, where: dict[str, Any], dashes: bool = False) -> pd.DataFrame:
    rows = scope.times
    words = []
    for name, wanted in where.items():
        if name not in SELECTABLE:
            raise ExpressionError(
                f"times are not selected by '{name}': write one of {', '.join(SELECTABLE)}"
            )
        if name == "exchange" and name not in rows:
            raise NothingThereError("the paper does not say how its devices share gradients")
        values, column = _names(scope, name, wanted)
        rows = rows[_threads(rows, values) if name == "threads" else rows[column].isin(values)]
        words.append(f"{column} {' or '.join(dict.fromkeys(map(str, values)))}")
    # A claim that does not speak of several devices is of one.
    rows = rows if "devices" in where else rows[rows["devices"] <= 1]
    # A call that names no exchange means devices that wait for one another; a paper's own numbers do not say it.
    if "exchange" not in where and "exchange" in rows:
        rows = rows[~rows["exchange"].isin([*GROUPED])]
    if "batch" not in where and scope.batches:
        usual = rows["network"].map(scope.batches)
        rows = rows[usual.isna() | (rows["batch"] == usual)]
    if rows.empty:
        raise NothingThereError(f"there is no time of {', '.join(words) or 'its networks'}")
    _ask(scope, rows, "runner")
    scope.rows.update(rows.index)
    there = rows if dashes else rows[rows["seconds"].notna()]
    above = there["threads"] > there["cores"].fillna(np.inf).astype(float)
    scope.places.update(zip(there["framework"], there["network"], above, strict=True))
    return rows


def _ask(scope: Scope, rows: pd.DataFrame, column: str) -> None:
    """Notes whose times were used; a paper's own numbers are of no grid."""
    grids = rows["grid"] if "grid" in rows else [""] * len(rows)
    scope.asked.update(zip(rows[column], grids, strict=True))


def _names(scope: Scope, name: str, wanted: Any) -> tuple[list[Any], str]:
    """Returns the values that a name means, and the column that has them."""
    values = wanted if isinstance(wanted, list) else [wanted]
    if name == "framework":
        values = [scope.lineages.get(value, value) for value in values]
    if name == "platform" and scope.stands_for is not None:
        return [scope.stands_for.get(value) for value in values], "device"
    return values, name


def _threads(rows: pd.DataFrame, values: list[Any]) -> pd.Series:
    """Tells which rows have one of these thread counts; a text is relative to the cores of the row's machine."""
    chosen = rows["threads"].isin([value for value in values if not isinstance(value, str)])
    for value in values:
        if isinstance(value, str):
            relative = RELATIVE.fullmatch(value)
            if relative is None:
                raise ExpressionError(
                    f"'{value}' is no number of threads: write one, 'cores', '2*cores', '<=cores' or '!=cores'"
                )
            many = rows["cores"] * int(relative["times"] or 1)
            chosen |= (rows["device"] == "cpu") & COMPARED[relative["how"]](rows["threads"], many)
    return chosen


def _by_place(rows: pd.DataFrame, where: dict[str, Any], column: str = "seconds") -> pd.Series:
    """Returns seconds, by all that the claim does not fix to a single value; GPUs have no threads."""
    # A list, or threads such as '<=cores', leave several.
    fixed = {name for name, wanted in where.items() if str(wanted)[0] not in "[<>!"}
    rows = rows[rows[column].notna()]
    if rows.empty:
        unknown = f"nothing is known of {column}"
        raise NothingThereError("there are only dashes" if column == "seconds" else unknown)
    fixed |= {"threads"} if rows["threads"].eq(0).all() else set()
    levels = [name for name in PLACE if name not in fixed]
    levels = (levels or ["network"]) + ([DRAW] if DRAW in rows else [])
    index = pd.MultiIndex.from_frame(rows[levels])
    return pd.Series(rows[column].to_numpy(float), index)


def time(scope: Scope, **where: Any) -> pd.Series:
    """Returns times of the places that are asked for; a list asks for several."""
    return _by_place(_select(scope, where), where)


def used(scope: Scope, what: str, **where: Any) -> pd.Series:
    """Returns what places used of the machine: `cpus` at work, or the most `memory` in bytes."""
    if what not in USED:
        raise ExpressionError(f"there is no '{what}': write one of {', '.join(USED)}")
    return _by_place(_select(scope, where), where, USED[what])


def alone(scope: Scope, way: str, device: str = "") -> pd.Series:
    """Returns times of single operations that were computed in this way, by network, framework, threads and part."""
    rows = scope.alone[scope.alone["way"] == way]
    rows = rows[rows["device"] == device] if device else rows
    if rows.empty:
        where = ": on GPUs, none is timed alone" if device == "gpu" else ""
        raise NothingThereError(f"no single operation was timed in the way '{way}'{where}")
    _ask(scope, rows, "framework")
    return rows.set_index(ALONE[:4])["seconds"]


def varied(scope: Scope, what: str, network: str | list[str]) -> pd.Series:
    """Returns what variants of a network reached after as many epochs: their `accuracy` or `test_loss`."""
    if what not in VARIED[5:]:
        raise ExpressionError(f"there is no '{what}': write one of {', '.join(VARIED[5:])}")
    wanted = _list(network)
    rows = scope.varied[scope.varied["network"].isin(wanted)]
    missing = [name for name in wanted if name not in set(rows["network"])]
    if missing:
        raise NothingThereError(f"{missing[0]} was not trained")
    _ask(scope, rows, "framework")
    levels = VARIED[:4] if isinstance(network, list) else VARIED[1:4]
    return rows.set_index(levels)[what]


def others(scope: Scope, slowest: int = 0, *, framework: Any, **where: Any) -> pd.Series:
    """Returns the shortest (with `slowest`, the longest) time of all frameworks but this one, or these, by place."""
    rows = _select(scope, where)
    left_out = rows["framework"].isin(_names(scope, "framework", framework)[0])
    seconds = _by_place(rows[~left_out], where)
    return _choice(scope, seconds, "framework", "most" if slowest else "least")


def _choice(scope: Scope, numbers: pd.Series, over: str | list[str], which: str) -> pd.Series:
    """Returns all numbers to choose from; an index level numbers those that differ in `over` alone."""
    places = numbers.index.to_frame(index=False)
    kept = [DRAW, *_choices(numbers)]
    dropped = [name for name in places if (name in _list(over) if over else name not in kept)]
    at = places.groupby(dropped, sort=False).ngroup() if dropped else 0
    levels = places.drop(columns=dropped).assign(**{f"{which} {next(scope.choices)}": at})
    return numbers.set_axis(pd.MultiIndex.from_frame(levels))


def least(scope: Scope, numbers: pd.Series, over: str | list[str] = "") -> pd.Series:
    """Returns the smallest number, or one of all that differ in `over` alone; two frameworks or networks at least."""
    return _choice(scope, _of_several(numbers, over), over, "least")


def most(scope: Scope, numbers: pd.Series, over: str | list[str] = "") -> pd.Series:
    """Returns the largest number, or one of all that differ in `over` alone; two frameworks or networks at least."""
    return _choice(scope, _of_several(numbers, over), over, "most")


def larger(scope: Scope, first: Number, second: Number) -> Number:
    """Returns the larger of two numbers in each place that has both."""
    both = [meet(first, second, which) for which in (lambda one, _: one, lambda _, other: other)]
    level = f"most {next(scope.choices)}"
    return pd.concat(dict(enumerate(both)), names=[level])


def _of_several(numbers: pd.Series, over: str | list[str]) -> pd.Series:
    """Returns the numbers of places with two frameworks or networks or more, where these are compared."""
    dropped, kept = _list(over), _choices(numbers)
    levels = [name for name in numbers.index.names if name not in (*dropped, *kept)]
    for compared in {"framework", "network"} & {*dropped} & {*numbers.index.names}:
        names = numbers.index.to_frame()[compared]
        counts = names.groupby(level=levels).transform("nunique") if levels else names.nunique()
        numbers = numbers[counts > 1] if levels else numbers if counts > 1 else numbers.iloc[:0]
        if numbers.empty:
            raise NothingThereError(f"only one {compared} has times there")
    return numbers


def mean(scope: Scope, numbers: pd.Series, over: str | list[str] = "") -> Number:
    """Returns the mean of all numbers, or of each group that differs in `over` alone."""
    numbers, dropped = chosen(numbers), _list(over)
    levels = [name for name in numbers.index.names if name not in dropped]
    levels = levels if dropped else [name for name in levels if name == DRAW]
    return numbers.groupby(level=levels, sort=False).mean() if levels else float(numbers.mean())


def speedup(scope: Scope, upto: str = "", fewest: int = 2, **where: Any) -> pd.Series:
    """Returns the time with one thread divided by that with n, for n from `fewest` (to `upto`, such as 'cores')."""
    where |= {"threads": f"<={upto}"} if upto else {}
    one = time(scope, **where | {"threads": 1})
    several = time(scope, **where)
    return meet(one, several[several.index.get_level_values("threads") >= fewest], operator.truediv)


def doubling(scope: Scope, upto: str = "", **where: Any) -> pd.Series:
    """Returns the time with n threads divided by that with 2 n, for each n (2 n to `upto`, such as 'cores')."""
    seconds = time(scope, **where | ({"threads": f"<={upto}"} if upto else {}))
    halves = seconds.rename(index=lambda count: count * 2, level="threads")
    return meet(halves, seconds, operator.truediv)


def per_thread(scope: Scope, numbers: pd.Series) -> pd.Series:
    return numbers / numbers.index.get_level_values("threads").to_numpy()


def empty(scope: Scope, **where: Any) -> float:
    """Counts the dashes among these places, all of which must have been measured with the framework itself."""
    rows = _select(scope, where, dashes=True)
    if "framework" in where and "own" in rows:
        others = sorted({*rows["own"]} - {*_list(where["framework"]), ""})
        if others:
            raise NothingThereError(f"what {others[0]} can do says nothing of another framework")
    values_of = [_names(scope, name, wanted) for name, wanted in where.items() if name != "family"]
    if "family" in where:
        families, known = _list(where["family"]), scope.catalogue
        own = [name for name in scope.networks if known[name].get("family") in families]
        values_of.append((own, "network"))
    places = math.prod(len({*values}) for values, _ in values_of)
    there = len(rows[[column for _, column in values_of]].drop_duplicates())
    if there < places:
        raise NothingThereError(f"{places - there} of {places} places were not measured")
    return float(rows["seconds"].isna().sum())


def number(scope: Scope, file: str, row: str, column: str, paper: str = "") -> float:
    numbers = _printed(scope, file, paper, row=row, column=column)["number"]
    if numbers.isna().any():
        raise NothingThereError(f"what {file} says of {row}, {column} is no number")
    return float(numbers.iloc[0])


def tally(scope: Scope, file: str, paper: str = "", **where: str) -> float:
    """Counts the printed values that are as asked; a `value` that ends in * asks for those that begin so."""
    wanted = where.pop("value", "*")
    values = _printed(scope, file, paper, **where)["value"]
    same = values.str.startswith(wanted[:-1]) if wanted.endswith("*") else values == wanted
    return float(same.sum())


def steps_down(scope: Scope, metric: str, *kinds: str) -> pd.Series:
    """Returns how far the level (Low, Moderate, High) of each kind of device is above that of the next in the list."""
    levels = []
    for kind in kinds:
        word = _printed(scope, "table1", "", row=metric, column=kind)["value"].iloc[0]
        if word not in LEVELS:
            raise NothingThereError(f"'{word}' has no place among {', '.join(LEVELS)}")
        levels.append(LEVELS[word])
    pairs = [f"{first} over {second}" for first, second in pairwise(kinds)]
    index = pd.MultiIndex.from_arrays([pairs], names=["platform"])
    return pd.Series([first - second for first, second in pairwise(levels)], index, dtype=float)


def parameters(scope: Scope, network: str) -> float:
    """Counts the trainable parameters of a network, from its specification."""
    return float(specifications.count_parameters(specifications.specify(network, scope.catalogue)))


def _printed(scope: Scope, file: str, paper: str, **where: str) -> pd.DataFrame:
    paper, printed = paper or scope.paper, scope.printed
    rows = printed[(printed["paper"] == paper) & (printed["file"] == file)]
    for name, wanted in where.items():
        rows = rows[rows[name] == wanted]
    if rows.empty:
        raise ExpressionError(f"{paper}/{file}.csv has no {', '.join(where.values()) or 'rows'}")
    return rows


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


_ALL: list[Callable[..., Any]] = [time, used, alone, varied, others, least, most, mean, larger]
_ALL += [speedup, doubling, per_thread, empty, number, tally, steps_down, parameters]
FUNCTIONS = {each.__name__: each for each in _ALL}
# The functions that select times.
OF_CELLS = {"time", "used", "alone", "varied", "others", "speedup", "doubling", "empty"}
