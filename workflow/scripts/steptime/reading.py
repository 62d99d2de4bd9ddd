"""Reads files that a rule or a person wrote; one sentence says what cannot be used."""

import json
from pathlib import Path
from typing import Any

import yaml

# libyaml's, if PyYAML was built with it: ten times as fast.
_FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InputError(Exception):
    """A mistake that a user can mend; the text is the whole message, with which a program ends (`__main__`)."""


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file that a rule of the workflow wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); remove it and run snakemake again."
        ) from error


def read_yaml(path: Path) -> dict[str, Any]:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_FASTEST)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from error
