"""Where the project's own files lie, whatever folder is worked in."""

from pathlib import Path

ROOT = Path(__file__).absolute().parents[3]


def path(name: str | Path) -> Path:
    """A file of the project, such as `config/networks.yaml`; an absolute path stays as it is."""
    return ROOT / name
