"""Digests of what decides a number, a verdict or a table: of plain data, and of the code of a program.

The code of a program is the closure of its imports, found here and never listed by hand. A digest depends on what code
does: comments, docstrings and layout do not change it, in any version of Python.

To parse the project takes longer than all other planning. So digests are kept in the user's cache, by the content of
the files that they are made of.
"""

import ast
import atexit
import hashlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steptime.atomic import atomic_write
from steptime.project import SCRIPTS

# With more entries than these the cache begins anew; a project has some hundreds.
MOST_KEPT = 20_000


class Records(NamedTuple):
    """The names of all records (layer kinds, losses, optimisers), and those whose code is left out."""

    kinds: frozenset[str]
    unused: frozenset[str]


def digest(content: Any) -> str:
    """Returns the digest of plain data, whatever the order of keys."""
    return _short(hashlib.sha256(json.dumps(content, sort_keys=True).encode()))


def file_digest(*paths: Path) -> str:
    """Returns the digest of the content of files; '' of none."""
    if not paths:
        return ""
    return _short(hashlib.sha256(b"".join(path.read_bytes() for path in paths)))


def program_digest(*names: str) -> str:
    """Returns the digest of programs or modules, such as `steptime.prove.network`, and all that they import."""
    return code_digest(closure(*map(module_path, names)))


def module_path(name: str) -> Path:
    """Returns the file of a module below `workflow/scripts`, by its dotted name."""
    path = SCRIPTS.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def closure(*paths: Path, unused: Collection[str] = ()) -> list[Path]:
    """Returns these Python files and all of the project that they import, directly or not, in order.

    A file that is not Python counts where a file beside it names it in a string. Of a package that names its
    `__path__`, all modules count, except those of `unused` names that nothing else imports.
    """
    files: set[Path] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting += _read_by(path, path.read_text(errors="replace"), frozenset(unused))
    return sorted(files)


def code_digest(
    paths: Iterable[Path], kinds: Collection[str] = (), used: Collection[str] = ()
) -> str:
    """Computes the digest of what these files do, without the Python code that only unused records need.

    `kinds` are the names of all records, `used` those that this result uses. Of unused names, the digest leaves out
    entries of dicts and of tuples, each `if` that asks for membership in a tuple of them, and private definitions that
    then have no use.
    """
    records = Records(frozenset(kinds), frozenset(kinds) - frozenset(used))
    # The place of a file decides as what it is imported.
    files = [
        (str(path.relative_to(SCRIPTS)) if path.is_relative_to(SCRIPTS) else path.name, path)
        for path in paths
    ]
    contents = [(name, path.read_bytes()) for name, path in files]

    def compute() -> str:
        summary = hashlib.sha256()
        for name, content in contents:
            summary.update(f"{name}\n".encode())
            is_python = name.endswith(".py")
            summary.update(_python_facts(content.decode(), records) if is_python else content)
        return _short(summary)

    named = [(name, hashlib.sha256(content).hexdigest()) for name, content in contents]
    return _kept(compute, [named, sorted(records.kinds), sorted(records.unused)])


def _kept(compute: Callable[[], Any], of: Any) -> Any:
    """Returns what `compute` returns, plain data, or what it returned before for the same `of`."""
    known, key = _cache(), digest([_OWN, of])
    if key not in known:
        known[key] = compute()
    return known[key]


@cache
def _cache() -> dict[str, Any]:
    """Returns all that is kept; what is new is written when this process ends."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(folder) / "steptime" / "digests.json"
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        known = json.loads(path.read_bytes())
    if not isinstance(known, dict) or len(known) > MOST_KEPT:
        known = {}
    before = len(known)

    def write() -> None:
        if len(known) > before:
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path) as file:
                    file.write(json.dumps(known).encode())

    atexit.register(write)
    return known


def _short(summary: Any) -> str:
    return summary.hexdigest()[:16]


# What another version of this module or of Python has kept does not count.
_OWN = [file_digest(Path(__file__)), *sys.version_info[:2]]


@cache
def _read_by(path: Path, text: str, unused: frozenset[str]) -> list[Path]:
    """Returns the project's files that a file with this text imports or names."""
    others = _others(path.parent)
    if path.suffix != ".py":
        return [file for name, file in others.items() if f'"{name}"' in text or f"'{name}'" in text]
    imported, strings, lists_itself = _kept(
        lambda: _mentions(text), hashlib.sha256(text.encode(errors="replace")).hexdigest()
    )
    # Importing a module runs the packages around it.
    inside = path.with_suffix("").relative_to(SCRIPTS).parts if path.is_relative_to(SCRIPTS) else ()
    files = [*_files_of(SCRIPTS, inside)]
    for level, module in imported:
        package = path.relative_to(SCRIPTS).parts[:-level] if level else ()
        files += _files_of(SCRIPTS, (*package, *module.split(".")))
    if lists_itself:
        files += [file for file in path.parent.glob("*.py") if file.stem not in unused]
    return files + [others[name] for name in sorted(others.keys() & set(strings))]


def _mentions(text: str) -> tuple[list[tuple[int, str]], list[str], bool]:
    """Returns each (level, module) that a text imports, strings that may name files, and if `__path__` is in it."""
    imported, strings, lists_itself = [], set(), False
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Import):
            imported += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = f"{node.module}." if node.module else ""
            imported += [(node.level, before + alias.name) for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings |= {node.value} if _may_name_a_file(node.value) else set()
        elif isinstance(node, ast.Name) and node.id == "__path__":
            lists_itself = True
    return imported, sorted(strings), lists_itself


def _may_name_a_file(text: str) -> bool:
    """Tells whether a text may be the name of a file that is not Python: such a name has an ending."""
    return "." in text and len(text) < 100 and "\n" not in text


@cache
def _others(folder: Path) -> dict[str, Path]:
    """Returns the files of a folder that are not Python, by name."""
    return {file.name: file for file in folder.iterdir() if file.suffix not in (".py", ".pyc", "")}


@cache
def _files_of(scripts: Path, parts: tuple[str, ...]) -> list[Path]:
    """Returns the project's files that importing this module runs: the packages on the way, and its own."""
    files = []
    for end in range(1, len(parts) + 1):
        path = scripts.joinpath(*parts[:end])
        if (path / "__init__.py").is_file():
            files.append(path / "__init__.py")
        elif path.with_suffix(".py").is_file():
            files.append(path.with_suffix(".py"))
    return files


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _python_facts(text: str, records: Records) -> bytes:
    body = _reached(_tree(text).body, records) if records.unused else _tree(text).body
    kept = [node for node in body if not _is_docstring(node)]
    return "\n".join(_dump(node, records) for node in kept).encode()


def _dump(node: Any, records: Records) -> str:
    """Returns a node as text without docstrings, and without positions and empty fields, as Pythons differ in them."""
    if isinstance(node, list):
        kept = [_dump(item, records) for item in node if not _asks_for_unused(item, records)]
        return f"[{','.join(kept)}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    node = _without(node, records)
    fields = []
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list) and value and _is_docstring(value[0]):
            value = value[1:]
        if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
            fields.append(f"{name}={_dump(value, records)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _without(node: Any, records: Records) -> Any:
    """Returns a dict of records, or a tuple of their names, without the unused ones; any other node as it is."""
    if not isinstance(node, ast.Dict | ast.Tuple):
        return node
    listed = node.keys if isinstance(node, ast.Dict) else node.elts
    names = [item.value if isinstance(item, ast.Constant) else None for item in listed]
    if not records.unused.intersection(names) or not records.kinds.issuperset(names):
        return node
    kept = [number for number, name in enumerate(names) if name not in records.unused]
    left = [listed[number] for number in kept]
    if isinstance(node, ast.Tuple):
        return ast.Tuple([item for item in left if item is not None], node.ctx)
    return ast.Dict(left, [node.values[number] for number in kept])


def _asks_for_unused(node: Any, records: Records) -> bool:
    """Tells whether a node is an `if`, without an `else`, that asks for membership in a tuple of unused names."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    operators, (*_, listed) = node.test.ops, node.test.comparators
    if not isinstance(operators[0], ast.In) or not isinstance(listed, ast.Tuple) or not listed.elts:
        return False
    names = [item.value if isinstance(item, ast.Constant) else None for item in listed.elts]
    return records.unused.issuperset(names)


def _reached(body: list[ast.stmt], records: Records) -> list[ast.stmt]:
    """Returns a module's statements without private definitions that only unused records need."""
    private: dict[str, ast.stmt] = {}
    for node in body:
        for name in _defines(node):
            if name.startswith("_"):
                private[name] = node
    kept = [node for node in body if not any(private.get(name) is node for name in _defines(node))]
    waiting = list(kept)
    while waiting:
        for name in _names(waiting.pop(), records):
            if name in private and (definition := private.pop(name)) not in kept:
                kept.append(definition)
                waiting.append(definition)
    return [node for node in body if node in kept]


def _defines(node: ast.stmt) -> list[str]:
    """Returns the names that a plain definition binds; [] for any other statement."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _names(node: ast.AST, records: Records) -> Iterator[str]:
    if _asks_for_unused(node, records):
        return
    node = _without(node, records)
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _names(child, records)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
