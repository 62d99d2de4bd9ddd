"""The target `compare`: of results that are there, whichever is faster, and in one sentence where it means nothing."""

import pandas as pd
import pytest
from examples import results_of

SIDES = ("one=torch-1.4", "other=torch-9.9")


@pytest.fixture(scope="module")
def checkout(new_checkout):
    """A checkout whose results were measured elsewhere: a newer release is slower there."""
    checkout = new_checkout()
    results_of(checkout.root / "results", {"torch-1.4": 1.0, "torch-9.9": 1.5})
    return checkout


def test_two_are_compared_and_nothing_is_measured(checkout):
    before = checkout.times()
    # A slowdown is an answer, and no fault of the workflow.
    printed = checkout.run("--config", *SIDES, "margin=0.1", "--", "compare")
    assert "slower than torch-1.4 on local-cpu" in printed
    assert "nothing had to be measured" in printed, printed
    rows = pd.read_parquet(checkout.root / "results/compare/torch-1.4_torch-9.9.parquet")
    assert rows["ratio"].tolist() == pytest.approx([1.5] * 4, rel=0.05)
    assert checkout.times() == before


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param((), "lacks 'one' and 'other': write --config one=", marks=pytest.mark.seldom),
        (("one=torch-1.4", "other=torch-9"), "environment, framework, mode or platform 'torch-9'"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(checkout, config, sentence):
    done = checkout.snakemake("--config", "grid=ci", *config, "--", "compare")
    assert done.returncode != 0 and sentence in done.stdout and "Traceback" not in done.stdout
    assert not (checkout.root / "results/compare/torch-1.4_torch-9.md").exists()
