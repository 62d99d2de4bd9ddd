"""The small language in which a paper's claim is a calculation: `time(framework='cntk') / time(framework='caffe')`.

Its grammar is a part of Python's: calls of `functions` with texts, numbers and lists of them, and + - * /. Expressions
are parsed into a syntax tree and never run as Python.
"""

import ast
import operator
from typing import Any

import pandas as pd

from steptime.claims import functions
from steptime.claims.functions import FUNCTIONS, ExpressionError, NothingThereError, Scope, meet

OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub}
OPERATIONS |= {ast.Mult: operator.mul, ast.Div: operator.truediv}


def evaluate(expression: str, scope: Scope) -> pd.Series:
    """Returns the numbers of an expression, by place. Raises ExpressionError, NothingThereError."""
    numbers = _value(parse(expression), scope)
    if not isinstance(numbers, pd.Series):
        numbers = pd.Series([float(numbers)])
    numbers = numbers.dropna().astype(float)
    if numbers.empty:
        raise NothingThereError("no place has all the numbers that it asks for")
    return numbers


def parse(expression: str) -> ast.expr:
    """Returns the syntax tree of an expression. Raises ExpressionError."""
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"'{expression}' is not an expression: {error.msg}") from error


def _calls(expression: str) -> list[ast.Call]:
    return [node for node in ast.walk(parse(expression)) if isinstance(node, ast.Call)]


def names_in(expression: str, argument: str) -> set[str]:
    """Returns the texts that calls in an expression give to an argument, such as `platform` or `framework`."""
    given = [keyword for call in _calls(expression) for keyword in call.keywords]
    nodes = [node for each in given if each.arg == argument for node in ast.walk(each.value)]
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant)}


def asks_every_framework(expression: str) -> bool:
    """Tells whether any call of times names no framework, or uses all the others."""
    of_cells = [each for each in _calls(expression) if ast.unparse(each.func) in functions.OF_CELLS]
    named = [{keyword.arg for keyword in call.keywords} for call in of_cells]
    return "others" in calls(expression) or not all("framework" in names for names in named)


def calls(expression: str) -> set[str]:
    return {node.id for node in ast.walk(parse(expression)) if isinstance(node, ast.Name)}


def tells_seconds(expression: str) -> bool:
    """Tells whether an expression gives seconds, which belong to one machine, or a number that machines share."""
    return _power(parse(expression)) != 0


def _power(node: ast.expr) -> int:
    """Returns the power of seconds in the value of a part of an expression: 1 for a time, 0 for a ratio of times."""
    if isinstance(node, ast.BinOp):
        left, right = _power(node.left), _power(node.right)
        if isinstance(node.op, ast.Mult):
            return left + right
        return left - right if isinstance(node.op, ast.Div) else max(left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in functions.SAME and node.args:
            return _power(node.args[0])
        return int(node.func.id in functions.SECONDS)
    return 0


def _value(node: ast.expr, scope: Scope) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return node.value
    if isinstance(node, ast.List):
        return [_value(entry, scope) for entry in node.elts]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return meet(_value(node.left, scope), _value(node.right, scope), OPERATIONS[type(node.op)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        arguments = [_value(entry, scope) for entry in node.args]
        named = {each.arg: _value(each.value, scope) for each in node.keywords if each.arg}
        try:
            return FUNCTIONS[node.func.id](scope, *arguments, **named)
        except TypeError as error:
            raise ExpressionError(f"'{ast.unparse(node)}': {error}") from error
    raise ExpressionError(
        f"'{ast.unparse(node)}' is not of the language: write one of {', '.join(FUNCTIONS)}"
    )
