"""Reads from an adapter's text what it declares: neither side imports a framework for it.

`worker.contract` says what each of the names below means.
"""

import ast
import os

DEFAULTS = {
    "MODES": (),
    "LAYERS": None,
    "OPTIONS": {},
    "LOSSES": ("softmax_cross_entropy",),
    "OPTIMISERS": ("sgd",),
    "PRECISIONS": ("float32",),
    "DEVICES": ("cpu",),
    "EXCHANGES": {},
    "TASKS": ("step",),
    "LAYOUT": {},
    "KERNELS": "",
    "KERNELS_OF": (),
    "REASONS": {},
}
FOLDER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "worker", "frameworks"
)


class Unsupported(Exception):
    """The framework cannot do what the job asks for; the text is the reason, in one sentence."""


def declared(adapter):
    """Returns an adapter's declarations, by name, from its text. Raises Unsupported where there is no such adapter.

    A module has what its framework's folder declares, unless it says otherwise, but only its own tasks. Its exchanges
    are those for which it is named; ("",) for one device.
    """
    framework, _, module = adapter.partition(".")
    found = dict(DEFAULTS, **_written(framework))
    ways = found["EXCHANGES"]
    if module:
        own = _written(adapter)
        own["REASONS"] = dict(found["REASONS"], **own.get("REASONS", {}))
        found.update(TASKS=DEFAULTS["TASKS"])
        found.update(own)
    found["EXCHANGES"] = tuple(way for way in ways if ways[way] == module) or ("",)
    return found


def exchanges_of(framework):
    """Returns the modules of a framework's folder by the exchange between several devices for which they are."""
    return _written(framework).get("EXCHANGES", {})


def path_of(adapter):
    """Returns an adapter's file: of "torch" frameworks/torch/__init__.py, of "torch.ranks" torch/ranks.py."""
    framework, _, module = adapter.partition(".")
    return os.path.join(FOLDER, framework, (module or "__init__") + ".py")


def _written(adapter):
    """Returns the declarations in the text of an adapter itself."""
    framework, _, module = adapter.partition(".")
    try:
        with open(path_of(adapter), "rb") as text:
            tree = ast.parse(text.read())
    except OSError:
        if module:
            missing = (
                "the adapter {} times training steps alone: this task needs frameworks/{}/{}.py"
            )
            raise Unsupported(missing.format(framework, framework, module))
        raise Unsupported("there is no adapter '{}'".format(adapter))
    found = {}
    beside = _imported(tree, framework)
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id in DEFAULTS:
                found[target.id] = _plain(node.value, beside)
    return found


def _imported(tree, framework):
    """Returns the adapters that a file of a framework's folder imports, by what it calls them."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level in (1, 2):
            before = [framework if node.level == 1 else "", node.module or ""]
            for alias in node.names:
                found[alias.asname or alias.name] = ".".join(filter(None, before + [alias.name]))
    return found


def _plain(node, beside):
    if isinstance(node, ast.Attribute):
        return declared(beside[node.value.id])[node.attr]
    try:
        return ast.literal_eval(node)
    except ValueError:
        # Names, and what builds them.
        return tuple(ast.literal_eval(key) for key in node.keys)
