"""Digest of what a network's entry computes: an entry that was edited since its import is another function."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def function_digest(entry: Mapping[str, Any]) -> str:
    """Returns the digest of what decides an entry's function, whatever its label and its mini-batch."""
    content = {name: entry.get(name) for name in ("input", "sizes", "loss", "layers")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
