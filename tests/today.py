"""Which environment a grid means by a framework's name: tests name no version that will be another one next year."""

from pathlib import Path

import yaml

CATALOGUE = yaml.safe_load((Path(__file__).parents[1] / "config/frameworks.yaml").read_text())
TODAY = {framework: entry["environments"][0] for framework, entry in CATALOGUE.items()}
NAMES = ("torch", "tensorflow", "jax", "mxnet", "keras")
TORCH, TENSORFLOW, JAX, MXNET, KERAS = map(TODAY.get, NAMES)
TORCH_ON_GPU = f"{TORCH}-cuda"
