"""Which environment a grid means by a framework's name: tests name no version that will be another one next year."""

from pathlib import Path

import yaml

CATALOGUE = yaml.safe_load((Path(__file__).parents[1] / "config/frameworks.yaml").read_text())
TODAY = {framework: entry["environments"][0] for framework, entry in CATALOGUE.items()}
TORCH, TENSORFLOW, JAX, MXNET = map(TODAY.get, ("torch", "tensorflow", "jax", "mxnet"))
TORCH_ON_GPU = f"{TORCH}-cuda"
