"""What the files of a comparison are called; also asked by Snakemake, which has no packages for anything else."""

import re
from pathlib import Path


def pair(one: str, other: str) -> str:
    """The name of a comparison of two things, as a user names them."""
    return f"{slug(one)}_{slug(other)}"


def slug(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", Path(text).name if "/" in text else text).strip("-")
