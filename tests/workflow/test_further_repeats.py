"""A run that goes on where an interval is wide: its times are stand-ins, what Snakemake makes of them is real."""

from pathlib import Path

import pytest

from steptime.cells import shard

GRID = {
    "sampling": {"budget_seconds": 0.2, "precision": 0.5, "least_samples": 3},
    "limits": {"seconds": 10, "memory_gib": 0.3},
}
WHAT = ("--config", "grid=faults", "--", "steptime_ratios")
IN_MINUTES = ("--config", "grid=faults", "minutes=30", "--", "steptime_ratios")
# Seconds of a step by mode and repeat: the first two cannot be told apart.
TIMES = {"good": (1.0, 1.02), "twin": (1.02, 1.0), "slow": (9.0, 9.1)}


def with_repeats(checkout, repeats):
    checkout.choose("good", "twin", "slow", repeats=repeats, **GRID)


@pytest.fixture(scope="module")
def ran(new_checkout):
    """A checkout with two trials, whose times are then stand-ins."""
    checkout = new_checkout("faults")
    for name in (
        "config/frameworks.yaml",
        "workflow/scripts/worker/frameworks/standin/__init__.py",
    ):
        path = checkout.root / name
        text = path.read_text()
        words = 'MODES = (\n    "good",' if path.suffix == ".py" else "[good,"
        more = words + (' "twin", "slow",' if path.suffix == ".py" else " twin, slow,")
        assert words in text
        path.write_text(text.replace(words, more, 1))
    with_repeats(checkout, 2)
    checkout.run(*WHAT)
    for path in checkout.shards().values():
        row, rows, footer = shard.read_parts(path)
        seconds = TIMES[row["mode"]][row["repeat"] - 1]
        samples = [each | {"seconds": seconds} for each in rows.to_pylist()]
        # Whatever else this machine did meanwhile.
        shard.write(path, row | {"foreign_cpus": 0.0, "steal_share": 0.0}, samples, footer)
    return checkout


def test_what_is_not_decided_alone_is_measured_further_and_the_next_run_asks_for_nothing(ran):
    before = ran.times()
    with_repeats(ran, {"least": 2, "most": 3, "minutes": 60})
    # Without minutes, what is asked for by its name has no further run.
    ran.run(*WHAT)
    assert ran.times() == before
    printed = ran.run(*IN_MINUTES)
    assert "after 2 trials, 1 of 3 pairs is not decided: 2 results of them get" in printed
    assert "[1/2 " in printed and "[2/2 " in printed
    after = ran.times()
    new = after.keys() - before.keys()
    assert {name.split(".float32")[0].split(".")[-1] for name in new} == {"good", "twin"}
    assert all(name.endswith("-r3") for name in new)
    assert {name: after[name] for name in before} == before
    assert ran.planned(*WHAT) == {} == ran.planned(*IN_MINUTES)
    assert shard.read(ran.shards()[min(new)])[1]["looks"] == [2, 3]
    # What an analysis has chosen is found again where its file is lost.
    Path(ran.root / "results/further/faults-3.json").unlink()
    ran.run(*IN_MINUTES)
    assert ran.times() == after
