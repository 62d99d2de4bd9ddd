"""The catalogue of frameworks: tests name no version that will be another one next year, and skip what is not made."""

import os
from pathlib import Path

import pytest
import yaml

from steptime import project
from steptime.environments import interpreter

CATALOGUE = yaml.safe_load((Path(__file__).parents[1] / "config/frameworks.yaml").read_text())
TODAY = {framework: entry["environments"][0] for framework, entry in CATALOGUE.items()}
NAMES = ("torch", "tensorflow", "jax", "mxnet", "keras")
TORCH, TENSORFLOW, JAX, MXNET, KERAS = map(TODAY.get, NAMES)
TORCH_ON_GPU = f"{TORCH}-cuda"
# `make test-zoo`: what takes hours, or seldom breaks.
ALL = os.environ.get("STEPTIME_ZOO") == "all"
only_zoo = pytest.mark.skipif(not ALL, reason="only with STEPTIME_ZOO=all")


def entry_of(environment):
    """What the catalogue says of an environment."""
    for framework in CATALOGUE.values():
        if environment in (*framework["environments"], *framework.get("history", ())):
            return framework | framework.get("differing", {}).get(environment, {})
    raise KeyError(environment)


def prefix_of(environment):
    """The folder of an environment; skips where it is not made here."""
    if not (project.environment(environment) / "bin/python").exists():
        pytest.skip(f"{environment} is not on this machine: `make environments ONLY={environment}`")
    return interpreter.prefix_of(environment)
