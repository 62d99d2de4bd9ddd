"""Says which layers make one framework slower than another: times the network, and each of its layers alone.

    workflow/scripts/launch explain.run mxnet torch --networks fcn5

The workflow itself measures both, into the results of this folder. `results/explain/` has the networks of one layer and
the grid. Table and figure are `steptime_layers`.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from steptime import project
from steptime.artefacts.results import layers
from steptime.atomic import atomic_write
from steptime.explain import profiled
from steptime.networks import apart, resolve
from steptime.networks.written import PROJECT
from steptime.plain import file_name
from steptime.plan import configuration
from steptime.plan.schemas import require
from steptime.reading import InputError
from steptime.say import filled

FOLDER = Path("results/explain")
TARGET = "steptime_layers"
GRID: dict[str, Any] = {
    "platforms": ["local-cpu"],
    "threads": {"table": ["all"], "figure": ["all"]},
    "repeats": 3,
    "sampling": {"budget_seconds": 1.0, "precision": 0.02, "least_samples": 3},
    "limits": {"seconds": 900},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Say where the time of a network goes.")
    parser.add_argument("frameworks", nargs="+", help="frameworks or environments")
    parser.add_argument("--networks", nargs="+", required=True)
    parser.add_argument("--cores", default="all")
    options = parser.parse_args()
    known = configuration.without_grid(project.ROOT)
    require("network", options.networks, known.networks, "config/networks.yaml")
    environments = [known.environments_of(name)[0] for name in options.frameworks]
    for name in environments:
        known.framework_of(name)
    if len(set(environments)) < len(environments):
        raise InputError(f"{environments[0]} is named twice: name another framework.")
    if status := measure(known, environments, options.networks, options.cores):
        sys.exit(status)
    data = pd.read_csv(f"results/tables/{TARGET}.csv", keep_default_na=True)
    for network in options.networks:
        rows = data[data["network"] == network]
        lines = said(rows, environments)
        labels = dict(zip(rows["environment"], rows["framework_label"], strict=True))
        for name in environments:
            log = Path(f"logs/explain/{network}-{name}.log")
            lines.append(profiled.said(known, name, labels.get(name, name), network, log))
        for line in lines:
            print(filled(line), flush=True)


def measure(
    known: configuration.Configuration, environments: list[str], networks: list[str], cores: str
) -> int:
    """Runs the workflow to time the networks and their layers; returns its exit status."""
    entries: dict[str, Any] = {}
    for name in networks:
        if known.file_of(name) != PROJECT:
            entries[name] = resolve(name, known.networks)
        entries |= apart.of_network(name, known.networks)
    every = [*dict.fromkeys([*networks, *entries])]
    grid = GRID | {
        "environments": environments,
        "networks": every,
        "parts": {"forward": every},
    }
    name = file_name(*environments, *networks)
    paths = [FOLDER / f"{name}-networks.yaml", FOLDER / f"{name}.yaml"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, (entries, grid), strict=True):
        with atomic_write(path) as file:
            file.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())
    command = [str(Path(sys.executable).with_name("snakemake")), "--cores", cores, "--config"]
    command += [f"networks={paths[0]}", f"grid={paths[1]}", "--", TARGET]
    return subprocess.run(command).returncode


def said(data: pd.DataFrame, environments: list[str]) -> list[str]:
    """Explains the times of a network in two environments or more, each compared with the fastest."""
    whole = data[data["layer"] == layers.WHOLE].set_index("environment")["seconds"]
    lacking = [name for name in environments if pd.isna(whole.get(name))]
    if lacking:
        return [
            f"{' and '.join(lacking)} has no time of it: results/tables/{TARGET}.html says why."
        ]
    fastest = whole[environments].idxmin()
    others = [name for name in environments if name != fastest]
    return [line for slow in others for line in layers.explained(data, slow, fastest)]


if __name__ == "__main__":
    main()
