"""Imports a user's PyTorch module as a network, and proves that it is the same function.

    workflow/scripts/launch imported.module train.py:Net --input 3x32x32

It writes `networks/<name>.yaml`, which runs read beside `config/networks.yaml`.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from steptime import networks, project
from steptime.atomic import atomic_write
from steptime.environments import every
from steptime.imported import entry as entries
from steptime.imported import found, mapper, proof
from steptime.imported.digest import function_digest
from steptime.networks.written import FOLDER, PROJECT
from steptime.plain import plural
from steptime.plan import configuration
from steptime.prove import golden
from steptime.prove.adapter import make_environment
from steptime.reading import InputError
from steptime.say import doing, say

EXPORT = project.SCRIPTS / "worker/frameworks/torch/export.py"
LOSSES = ("softmax_cross_entropy", "mean_squares")
# Learning rates that are tried, the default first.
RATES = (0.01, 0.003, 0.001, 0.0003, 0.0001)
# Before the name of a network that the project has one of.
OWN = "own-"


def main() -> None:
    parser = argparse.ArgumentParser(description="Import a PyTorch module as a network.")
    parser.add_argument("source", metavar="FILE:NAME", help="or a saved FILE.pt2")
    parser.add_argument("--input", required=True, help="3x32x32, 784, or tokens:256")
    parser.add_argument("--arguments", default="", help="such as depth=18, wide=True")
    parser.add_argument("--vocabulary", type=int, default=0, help="how many tokens there are")
    parser.add_argument("--loss", default=LOSSES[0])
    parser.add_argument("--python", default="", help="a Python that has the module's packages")
    options = parser.parse_args()
    shape = shape_of(options.input, options.vocabulary)
    if options.loss not in LOSSES:
        raise InputError(
            f"LOSS={options.loss} is no loss of an import: write {' or '.join(LOSSES)}."
        )
    if options.python and not os.access(options.python, os.X_OK):
        raise InputError(f"PYTHON={options.python} is no program: write the path of a Python.")
    job = {"from": options.source, "with": options.arguments, "shape": shape}
    job |= {"vocabulary": options.vocabulary, "loss": options.loss}
    with tempfile.TemporaryDirectory() as folder:
        graph = export(job | {"to": folder}, options.python or own_python())
        with np.load(Path(folder) / "arrays.npz", allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    label = Path(options.source.rpartition(":")[2].removesuffix(".pt2")).name.rpartition(".")[2]
    layers, content = imported(graph, job, label)
    name = network_name(label)
    if name.startswith(OWN):
        content["label"] = f"{label} (own)"
    spec = networks.specify(name, {name: content})
    doing(f"comparing {label} with the reference in float64")
    verdict = proof.compare(spec, layers, arrays)
    if verdict.reason:
        raise InputError(
            f"{label} is not the same function as what was written of it: {verdict.reason}."
        )
    content |= learning(content)
    path = write(name, content, layers, options.source, verdict)
    count = networks.count_parameters(spec)
    say(
        f"{label}: {networks.count_layers(spec)} layers with weights, {count:,} parameters, each mapped. Same outputs "
        f"and gradients as your module ({max(verdict.outputs, verdict.gradients):.0e})."
    )
    if {"lstm", "gru", "rnn"} & {layer.kind for layer in layers}:
        say(
            "The two biases of a recurrent layer are one here; that inside of a GRU's reset gate is held at 0."
        )
    say(f"Written: {path}. Next: make NETWORKS={name}")


def shape_of(text: str, vocabulary: int) -> list[int]:
    """Returns the shape of one sample. Raises InputError."""
    is_words, numbers = text.startswith("tokens:"), text.removeprefix("tokens:")
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){0,2}", numbers) or (is_words and "x" in numbers):
        raise InputError(f"INPUT={text} is no shape: write 3x32x32, 784 or tokens:256.")
    if is_words != bool(vocabulary):
        rather = "VOCABULARY=50257 beside it" if is_words else "INPUT=tokens:256 with VOCABULARY"
        raise InputError(
            f"INPUT={text} is words with a vocabulary, or numbers without one: write {rather}."
        )
    return [int(number) for number in numbers.split("x")]


def own_python() -> str:
    """Returns the Python of the project's environment of PyTorch, and makes the environment if need be."""
    loaded = configuration.load(Path(), {"grid": every.GRID})
    environment = loaded.environments_of("torch")[0]
    make_environment(environment, loaded)
    return str(project.environment(environment).absolute() / "bin/python")


def export(job: dict[str, Any], python: str) -> dict[str, Any]:
    """Returns the graph of a user's module, made in a Python that can run it. Raises InputError."""
    doing(f"exporting {job['from']}")
    hidden = ("PYTHONPATH", "PYTHONSAFEPATH")
    variables = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(
        [python, EXPORT, json.dumps(job)], env=variables, stdout=sys.stderr, check=False
    )
    path = Path(job["to"]) / "graph.json"
    if done.returncode or not path.is_file():
        raise InputError(
            f"{python} could not export {job['from']}: see above; it must have PyTorch 2.6 or newer and NumPy."
        )
    graph: dict[str, Any] = json.loads(path.read_text())
    if "mistake" in graph:
        raise InputError(f"{graph['mistake']}.")
    return graph


def imported(
    graph: dict[str, Any], job: dict[str, Any], label: str
) -> tuple[list[found.Layer], dict[str, Any]]:
    """Returns a graph's layers, and the entry made of them. Raises InputError with all that has no layer kind."""
    mapping = mapper.Mapper(graph, job["vocabulary"])
    mapping.map()
    if mapping.refusals:
        said = mapper.sentences(label, mapping.refusals)
        said.append(
            f"{label} is not imported: {plural(len(mapping.refusals), 'operator')} without a layer."
        )
        raise InputError("\n".join(said))
    layers = entries.started(entries.renamed(mapping.layers))
    if reason := proof.placed(layers, graph["parameters"]):
        raise InputError(f"{label} is not imported: {reason}.")
    content = entries.entry(layers, label, mapping.input_shape, job["vocabulary"], job["loss"])
    try:
        spec = networks.specify(label, {label: content})
    except ValueError as error:
        raise InputError(f"{label} is not imported: {error}.") from error
    parameters = {"parameters": networks.count_parameters(spec)}
    return layers, parameters | shorter(content, layers)


def shorter(content: dict[str, Any], layers: list[found.Layer]) -> dict[str, Any]:
    """Returns an entry with repetitions as blocks, or unchanged where the blocks would be another network.

    That is so where a name of one round would mean another layer in the next.
    """
    short = content | {"layers": entries.shortened(layers)}
    with suppress(ValueError):
        if networks.specify("own", {"own": short}) == networks.specify("own", {"own": content}):
            return short
    return content


def learning(content: dict[str, Any]) -> dict[str, float]:
    """Returns the first of RATES at which the narrow network learns, as a proof asks; {} for the default or none."""
    for rate in RATES:
        entry = content | {"learning_rate": rate}
        if not golden.untrainable(networks.specify("own", {"own": entry}, narrow=True)):
            return {"learning_rate": rate} if rate != RATES[0] else {}
    return {}


def network_name(label: str) -> str:
    """Returns a name as the configuration wants it."""
    name = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "net"
    known = configuration.without_grid(project.ROOT)
    theirs = {key: known.networks[key] for key in known.networks if known.file_of(key) == PROJECT}
    labels = {entry.get("label", key).lower() for key, entry in theirs.items()}
    return f"{OWN}{name}" if name in theirs or label.lower() in labels else name


def write(
    name: str,
    content: dict[str, Any],
    layers: list[found.Layer],
    source: str,
    verdict: proof.Verdict,
) -> Path:
    """Writes the file of the network and returns its path."""
    digest = hashlib.sha256(Path(source.rpartition(":")[0] or source).read_bytes()).hexdigest()
    # As a reader of the file will have it.
    written = yaml.safe_load(entries.text(name, content, layers))[name]
    same = f"{source} (sha256 {digest[:12]}; layers {function_digest(written)})"
    same += f", outputs to {verdict.outputs:.0e} and gradients to {verdict.gradients:.0e}"
    order = ["label", "family", "parameters", "same_as", "batch", "learning_rate", "input"]
    order += ["loss", "layers"]
    content = content | {"same_as": same}
    content = {key: content[key] for key in order if key in content}
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.yaml"
    head = "# Imported by `make network`. Behind each layer stands its module; once edited, it is another function.\n\n"
    with atomic_write(path) as file:
        file.write((head + entries.text(name, content, layers)).encode())
    return path


if __name__ == "__main__":
    main()
