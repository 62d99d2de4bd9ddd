"""What adapters declare, read from their text: neither side imports a framework for it.

`worker.contract` says what each of the names below means. Plain Python that 3.6 can import: standard library.
"""

import ast
import os

DEFAULTS = {
    "MODES": (),
    "LAYERS": None,
    "LOSSES": ("softmax_cross_entropy",),
    "OPTIMISERS": ("sgd",),
    "PRECISIONS": ("float32",),
    "DEVICES": ("cpu",),
    "EXCHANGES": ("",),
    "TASKS": ("step",),
    "LAYOUT": {},
    "KERNELS": "",
    "REASONS": {},
}
FOLDER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "worker", "adapters"
)


class Unsupported(Exception):
    """The framework cannot do what the job asks for; the text is the reason, in one sentence."""


def declared(adapter):
    """What an adapter declares, by name, read from its text: the framework need not be there.

    Raises Unsupported where there is no adapter of this name.
    """
    try:
        with open(os.path.join(FOLDER, adapter + ".py"), "rb") as text:
            tree = ast.parse(text.read())
    except OSError:
        whole, parts, _ = adapter.partition("_parts")
        if parts and os.path.exists(os.path.join(FOLDER, whole + ".py")):
            missing = "the adapter {} times whole steps: single operations need adapters/{}.py"
            raise Unsupported(missing.format(whole, adapter))
        raise Unsupported("there is no adapter '{}'".format(adapter))
    found = dict(DEFAULTS)
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id in DEFAULTS:
                found[target.id] = _plain(node.value)
    return found


def _plain(node):
    if isinstance(node, ast.Attribute):
        return declared(node.value.id)[node.attr]
    try:
        return ast.literal_eval(node)
    except ValueError:
        # Names, and what builds them.
        return tuple(ast.literal_eval(key) for key in node.keys)
