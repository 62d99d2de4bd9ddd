"""The small language in which a paper's claim is a calculation: `time(framework='cntk') / time(framework='caffe')`.

Its grammar is a part of Python's: calls of the functions below with texts, numbers and lists of them, and + - * /. It
is read as a syntax tree and never run as Python. A call gives a number, or a series of them by place (network,
framework, platform, threads, batch); two series meet in the places that they share.
"""

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from steptime import networks as specifications

PLACE = ["network", "framework", "platform", "threads", "batch"]
SELECTABLE = [*PLACE, "device", "family"]
OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
LEVELS = {"Low": 1, "Moderate": 2, "High": 3}
Number: TypeAlias = float | pd.Series


class ExpressionError(Exception):
    """An expression that is not of the language; the text says what is wrong with it."""


class NothingThereError(Exception):
    """An expression asks for numbers that do not exist; the text says which."""


@dataclass
class Scope:
    """What an expression is about.

    `times` has one row for each time: PLACE, device, family, `seconds` (NaN where there is a dash); its frameworks are
    lineages, and `lineages` gives that of every name. `printed` has the printed numbers of all papers (`paper`, `file`,
    `row`, `column`, `value`, `number`). Where times are not the paper's own, `stands_for` says which kind of device
    stands for each of the paper's platforms.
    """

    paper: str
    times: pd.DataFrame
    printed: pd.DataFrame
    catalogue: dict[str, Any]
    lineages: dict[str, str]
    stands_for: dict[str, str] | None = None


def evaluate(expression: str, scope: Scope) -> pd.Series:
    """The numbers of an expression, by place. Raises ExpressionError, NothingThereError."""
    found = _value(parse(expression), scope)
    if not isinstance(found, pd.Series):
        found = pd.Series([float(found)])
    found = found.dropna()
    if found.empty:
        raise NothingThereError("no place has all the numbers that it asks for")
    return found


def parse(expression: str) -> ast.expr:
    """The syntax tree of an expression. Raises ExpressionError."""
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"'{expression}' is not an expression: {error.msg}") from error


def names_in(expression: str, argument: str) -> set[str]:
    """The texts that an expression gives to an argument of any call: platforms, frameworks ..."""
    calls = [node for node in ast.walk(parse(expression)) if isinstance(node, ast.Call)]
    values = [
        keyword.value for call in calls for keyword in call.keywords if keyword.arg == argument
    ]
    constants = [
        node.value for value in values for node in ast.walk(value) if isinstance(node, ast.Constant)
    ]
    return {str(value) for value in constants}


def asks_for_times(expression: str) -> bool:
    """Whether any call of an expression selects times, so that it can be asked of other times too."""
    names = {node.id for node in ast.walk(parse(expression)) if isinstance(node, ast.Name)}
    return bool(names & {"time", "others", "speedup", "doubling", "empty"})


def _value(node: ast.expr, scope: Scope) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return node.value
    if isinstance(node, ast.List):
        return [_value(entry, scope) for entry in node.elts]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return _meet(_value(node.left, scope), _value(node.right, scope), OPERATIONS[type(node.op)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        arguments = [_value(entry, scope) for entry in node.args]
        named = {
            keyword.arg: _value(keyword.value, scope) for keyword in node.keywords if keyword.arg
        }
        try:
            return FUNCTIONS[node.func.id](scope, *arguments, **named)
        except TypeError as error:
            raise ExpressionError(f"'{ast.unparse(node)}': {error}") from error
    raise ExpressionError(
        f"'{ast.unparse(node)}' is not of the language: write one of {', '.join(FUNCTIONS)}"
    )


def _meet(left: Number, right: Number, operation: Callable[[Any, Any], Any]) -> Number:
    if not isinstance(left, pd.Series) or not isinstance(right, pd.Series):
        return operation(left, right)
    shared = [name for name in left.index.names if name in right.index.names]
    frames = [
        series.rename(side).reset_index() for side, series in (("left", left), ("right", right))
    ]
    both = (
        frames[0].merge(frames[1], on=shared) if shared else frames[0].merge(frames[1], how="cross")
    )
    places = [name for name in PLACE if name in both]
    result = operation(both["left"], both["right"])
    return result.set_axis(pd.MultiIndex.from_frame(both[places])) if places else result


def _select(scope: Scope, where: dict[str, Any]) -> pd.DataFrame:
    rows, said = scope.times, []
    for name, wanted in where.items():
        if name not in SELECTABLE:
            raise ExpressionError(
                f"times are not selected by '{name}': write one of {', '.join(SELECTABLE)}"
            )
        values, column = wanted if isinstance(wanted, list) else [wanted], name
        if name == "framework":
            values = [scope.lineages.get(value, value) for value in values]
        if name == "platform" and scope.stands_for is not None:
            values, column = [scope.stands_for.get(value) for value in values], "device"
        rows = rows[rows[column].isin(values)]
        said.append(f"{column} {' or '.join(dict.fromkeys(map(str, values)))}")
    if rows.empty:
        raise NothingThereError(f"there is no time of {', '.join(said)}")
    return rows


def _by_place(rows: pd.DataFrame, where: dict[str, Any]) -> pd.Series:
    """Seconds by what was not asked for by one single value; GPUs have no threads."""
    fixed = {name for name, wanted in where.items() if not isinstance(wanted, list)}
    rows = rows[rows["seconds"].notna()]
    if rows.empty:
        raise NothingThereError("there are only dashes")
    levels = [
        name
        for name in PLACE
        if name not in fixed and not (name == "threads" and rows[name].eq(0).all())
    ]
    if not levels:
        return pd.Series(rows["seconds"].to_numpy(), pd.MultiIndex.from_frame(rows[["network"]]))
    return pd.Series(rows["seconds"].to_numpy(), pd.MultiIndex.from_frame(rows[levels]))


def time(scope: Scope, **where: Any) -> pd.Series:
    """Times of the places that are asked for; a list asks for several."""
    return _by_place(_select(scope, where), where)


def others(scope: Scope, slowest: int = 0, *, framework: str, **where: Any) -> pd.Series:
    """The shortest (with `slowest`, the longest) time of all frameworks but this one, by place."""
    rows = _select(scope, where)
    found = _by_place(rows[rows["framework"] != scope.lineages.get(framework, framework)], where)
    return (
        most(scope, found, over="framework") if slowest else least(scope, found, over="framework")
    )


def _over(numbers: pd.Series, over: str | list[str], how: str) -> Number:
    dropped = _list(over)
    if not dropped:
        return getattr(numbers, how)()
    levels = [name for name in numbers.index.names if name not in dropped]
    return (
        getattr(numbers.groupby(level=levels, sort=False), how)()
        if levels
        else getattr(numbers, how)()
    )


def least(scope: Scope, numbers: pd.Series, over: str | list[str] = "") -> Number:
    """The smallest of all numbers, or of those that differ in `over` alone."""
    return _over(numbers, over, "min")


def most(scope: Scope, numbers: pd.Series, over: str | list[str] = "") -> Number:
    """The largest of all numbers, or of those that differ in `over` alone."""
    return _over(numbers, over, "max")


def mean(scope: Scope, numbers: pd.Series, over: str | list[str] = "") -> Number:
    """The mean of all numbers, or of those that differ in `over` alone."""
    return _over(numbers, over, "mean")


def speedup(scope: Scope, upto: int = 0, **where: Any) -> pd.Series:
    """The time with one thread divided by that with n, for each n from 2 (to `upto`)."""
    alone = time(scope, **where, threads=1)
    counts = [int(n) for n in scope.times["threads"].unique() if n > 1 and (not upto or n <= upto)]
    return _meet(alone, time(scope, **where, threads=counts), operator.truediv)


def doubling(scope: Scope, upto: int = 0, **where: Any) -> pd.Series:
    """The time with n threads divided by that with 2 n, for each n (2 n to `upto`)."""
    found = time(scope, **where)
    halves = found.rename(index=lambda count: count * 2, level="threads")
    if upto:
        found = found[found.index.get_level_values("threads") <= upto]
    return _meet(halves, found, operator.truediv)


def per_thread(scope: Scope, numbers: pd.Series) -> pd.Series:
    """Numbers divided by their threads."""
    return numbers / numbers.index.get_level_values("threads").to_numpy()


def empty(scope: Scope, **where: Any) -> float:
    """How many of these places have a dash."""
    return float(_select(scope, where)["seconds"].isna().sum())


def number(scope: Scope, file: str, row: str, column: str, paper: str = "") -> float:
    """One printed number."""
    found = _printed(scope, file, paper, row=row, column=column)["number"]
    if found.isna().any():
        raise NothingThereError(f"what {file} says of {row}, {column} is no number")
    return float(found.iloc[0])


def tally(scope: Scope, file: str, **where: str) -> float:
    """How many printed values are the one that is asked for; `value` ending in * asks for those that begin so."""
    wanted = where.pop("value", "*")
    found = _printed(scope, file, "", **where)["value"]
    return float(
        found.str.startswith(wanted[:-1]).sum() if wanted.endswith("*") else (found == wanted).sum()
    )


def rows(scope: Scope, file: str) -> float:
    """How many rows a printed table has."""
    return float(_printed(scope, file, "")["row"].nunique())


def steps_down(scope: Scope, metric: str, *kinds: str) -> pd.Series:
    """How far the level (Low, Moderate, High) of each kind of device lies above that of the next in the list."""
    levels = []
    for kind in kinds:
        word = _printed(scope, "table1", "", row=metric, column=kind)["value"].iloc[0]
        if word not in LEVELS:
            raise NothingThereError(f"'{word}' has no place among {', '.join(LEVELS)}")
        levels.append(LEVELS[word])
    pairs = [f"{first} over {second}" for first, second in zip(kinds, kinds[1:], strict=False)]
    index = pd.MultiIndex.from_arrays([pairs], names=["platform"])
    return pd.Series(
        [first - second for first, second in zip(levels, levels[1:], strict=False)],
        index,
        dtype=float,
    )


def parameters(scope: Scope, network: str) -> float:
    """Trainable parameters of a network, counted from its specification."""
    return float(specifications.count_parameters(specifications.specify(network, scope.catalogue)))


def _printed(scope: Scope, file: str, paper: str, **where: str) -> pd.DataFrame:
    found = scope.printed[
        (scope.printed["paper"] == (paper or scope.paper)) & (scope.printed["file"] == file)
    ]
    for name, wanted in where.items():
        found = found[found[name] == wanted]
    if found.empty:
        raise ExpressionError(
            f"{paper or scope.paper}/{file}.csv has no {', '.join(where.values()) or 'rows'}"
        )
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        time,
        others,
        least,
        most,
        mean,
        speedup,
        doubling,
        per_thread,
        empty,
        number,
        tally,
        rows,
    )
    + (steps_down, parameters)
}
