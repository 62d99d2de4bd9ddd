"""Real frameworks of many times and Pythons: each proves itself on narrow networks and times a tiny one.

PyTorch and one on Python 3.6; or with STEPTIME_ZOO=all (`make test-zoo`) every
environment of the catalogue, each on the six networks of Shi et al.; with STEPTIME_ZOO=history every older release of
`history` on them. Every other network is proven by `steptime_matrix`, and every layer kind by `make adapter-check`.
"""

import json
import os

import pandas as pd
import pytest
from conftest import ROOT
from today import CATALOGUE, TORCH, entry_of

HISTORY = os.environ.get("STEPTIME_ZOO") == "history"
ALL = HISTORY or os.environ.get("STEPTIME_ZOO") == "all"
NAMES = [
    name
    for entry in CATALOGUE.values()
    for name in entry.get("history" if HISTORY else "environments", [])
]
FEW = [TORCH, "tensorflow-1.2"]
# The Java archives of Deeplearning4j, which no index of Python packages has.
JARS, JARS_BESIDE = "STEPTIME_DEEPLEARNING4J", ROOT.parent / "shared/jars"
# Each of the catalogue proves these networks; an older release may say why it cannot.
KNOWN = ("ok", "unsupported") if HISTORY else ("ok",)


def mode_of(environment: str) -> str:
    return entry_of(environment)["modes"][0]


def networks_of(environment: str) -> list[str]:
    """What it proves here, besides the tiny network that it times."""
    if ALL:
        return ["fcn5", "fcn8", "alexnet", "resnet50", "lstm32", "lstm64"]
    # PyTorch proves networks in tests/workflow/test_real_run.py.
    return [] if environment == TORCH else ["lstm32"]


# The grid runs on this machine's CPUs.
ENVIRONMENTS = [
    name for name in (NAMES if ALL else FEW) if entry_of(name).get("device", "cpu") == "cpu"
]


@pytest.fixture(scope="module")
def run(new_checkout):
    """A checkout with the proofs and the table of the tiny network, and what Snakemake printed."""
    checkout = new_checkout("zoo")
    if JARS_BESIDE.is_dir():
        checkout.variables[JARS] = os.environ.get(JARS, str(JARS_BESIDE))
    grid = checkout.root / "config/grids/tiny.yaml"
    grid.write_text(
        grid.read_text().replace("environments: all", f"environments: {json.dumps(ENVIRONMENTS)}")
    )
    proofs = [
        f"results/proofs/{name}.{mode_of(name)}-{network}.json"
        for name in ENVIRONMENTS
        for network in networks_of(name)
    ]
    targets = "--config", "grid=tiny", "--", "steptime_zoo", *proofs
    checkout.run(*targets, seconds=7200 if ALL else 3600)
    return checkout


def installed(checkout, environment):
    """The manifest of an environment; skips where this machine lacks the Python or the folder that it needs."""
    manifest = json.loads((checkout.root / f"results/environments/{environment}.json").read_text())
    if manifest["reason"].startswith("no Python") or "is in no index" in manifest["reason"]:
        pytest.skip(manifest["reason"])
    return manifest


def table_of(run):
    path = run.root / "results/tables/steptime_zoo.parquet"
    return pd.read_parquet(path).set_index("environment")


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_environment_proves_itself_and_is_timed(run, environment):
    manifest = installed(run, environment)
    if ALL and manifest["status"] == "install_failed":
        # A source folder that nobody has named, say; the sentence says what to do.
        pytest.skip(manifest["reason"])
    assert manifest["status"] == "ok", manifest["reason"]
    for network in networks_of(environment):
        path = run.root / f"results/proofs/{environment}.{mode_of(environment)}-{network}.json"
        proof = json.loads(path.read_text())
        assert proof["status"] in KNOWN, f"{network}: {proof['reason']}"
    row = table_of(run).loc[environment]
    assert row["status"] in KNOWN, row["reason"]
    assert row["status"] != "ok" or row["vector"], "no library of it multiplies"


def test_environments_are_told_apart_by_their_build(run):
    table = table_of(run)
    assert table.index.is_unique and len(table) == len(ENVIRONMENTS)
    if HISTORY:
        return
    for environment in table.index.intersection(["tensorflow-1.2", "tensorflow-0.12"]):
        installed(run, environment)
        assert table.loc[environment, "vector"] == "SSE"
        assert "without AVX" in table.loc[environment, "marks"]
    assert table.loc[TORCH, "vector"] == "AVX-512" and "MKL" in table.loc[TORCH, "blas"]
