"""A framework of the papers that cannot be run here: its rows say why, in the words of config/frameworks.yaml."""

import os

from ...contract import Unsupported

MODES = ("none",)


def versions():
    """Nothing is known of a framework that is not there."""
    return {}


def build(job):
    """Raises `Unsupported` with the reason in STEPTIME_ABSENT, a variable of the framework's entry."""
    raise Unsupported(os.environ["STEPTIME_ABSENT"])
