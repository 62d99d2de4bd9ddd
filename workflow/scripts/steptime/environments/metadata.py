"""Writes down what a framework's package says of itself: its licence, its languages, and how much of it is compiled.

    workflow/scripts/launch environments.metadata --manifest results/environments/E.json --package torch \
        --output E.json

The package is the one that installed the module that the adapter imports. Files are only read: no framework starts.
"""

import argparse
import json
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from steptime import project
from steptime.atomic import write_json

LANGUAGE, LICENCE = "Programming Language :: ", "License :: "
COMPILED = (".so", ".dll", ".dylib", ".a")


def main() -> None:
    parser = argparse.ArgumentParser(description="Read what a package says of itself.")
    parser.add_argument("--manifest", required=True, type=Path, help="manifest of the environment")
    parser.add_argument("--package", required=True, help="by which the framework is imported")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    environment = json.loads(options.manifest.read_text())["environment"]
    found = find(project.environment(environment), options.package)
    write_json(options.output, {"environment": environment} | (describe(found) if found else {}))


def find(prefix: Path, package: str) -> Distribution | None:
    """Returns the distribution below `prefix` that installed `package`; None where there is none."""
    folders = list(map(str, prefix.glob("lib/python3*/site-packages")))
    for found in distributions(path=folders):
        if any(str(file) == f"{package}/__init__.py" for file in found.files or ()):
            return found
    return None


def describe(found: Distribution) -> dict[str, Any]:
    """Returns `distribution`, `version`, `licence` or '', `languages`, and bytes of `compiled` and `python` code."""
    # A message with the methods of one, which its protocol does not tell.
    metadata: Any = found.metadata
    classifiers = metadata.get_all("Classifier") or []
    licences = [entry.split(" :: ")[-1] for entry in classifiers if entry.startswith(LICENCE)]
    own = [entry.removeprefix(LANGUAGE) for entry in classifiers if entry.startswith(LANGUAGE)]
    languages = dict.fromkeys(entry.partition(" :: ")[0] for entry in own)
    sizes = {"compiled": 0, "python": 0}
    for file in found.files or ():
        if file.suffix == ".py":
            sizes["python"] += file.size or 0
        elif set(file.suffixes) & set(COMPILED):
            sizes["compiled"] += file.size or 0
    licence = metadata.get("License-Expression") or metadata.get("License")
    return {
        "distribution": metadata["Name"],
        "version": metadata["Version"],
        "licence": licence or "; ".join(licences),
        "languages": [language for language in languages if language != "Other"],
        **sizes,
    }


if __name__ == "__main__":
    main()
