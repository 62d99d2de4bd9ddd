"""Table 4 of two machines: measured apart, brought together by hand and through a storage plugin of Snakemake."""

import shutil
from importlib.util import find_spec

import pandas as pd
import pytest
import yaml

# Two checkouts on one machine stand for two machines; each gives its cells another number of threads.
CORES = {"desktop": 1, "server": 2}
GRID = {
    "environments": ["standin-1.0"],
    "modes": {"standin": ["good", "greedy"]},
    "networks": ["tiny"],
    "threads": {"table": ["all"], "figure": ["all"]},
    "sampling": {"budget_seconds": 0.5, "precision": 0.1, "least_samples": 5},
    "limits": {"seconds": 120},
}
CONFIG = ("--config", "grid=mine.yaml", "platforms=platforms.yaml")


def configured(checkout, platforms, **needs):
    """The checkout with a grid of these platforms."""
    entries = {
        name: {"label": name, "device": "cpu", "cores": CORES[name], **needs} for name in CORES
    }
    (checkout.root / "platforms.yaml").write_text(yaml.safe_dump(entries))
    (checkout.root / "mine.yaml").write_text(yaml.safe_dump(GRID | {"platforms": platforms}))
    return checkout


@pytest.fixture(scope="module")
def machines(new_checkout):
    """A checkout for each platform, in which its cells were measured."""
    checkouts = {name: configured(new_checkout("faults"), [name]) for name in CORES}
    runs = [checkout.start(*CONFIG, "--", "steptime_times") for checkout in checkouts.values()]
    for run in runs:
        printed, _ = run.communicate(timeout=1200)
        assert run.returncode == 0, printed
    return checkouts


@pytest.fixture
def elsewhere(new_checkout):
    """A checkout on a machine that is none of the two."""
    return configured(new_checkout("faults"), list(CORES), cpu="another processor")


def table_of(checkout):
    """Its Table 4, for which nothing is measured: rows of ours, and the Markdown."""
    assert "[1/" not in checkout.run(*CONFIG, "--", "steptime_times")
    table = checkout.root / "results/tables/steptime_times"
    rows = pd.read_parquet(table.with_suffix(".parquet"))
    return rows[rows["source"] == "ours"], table.with_suffix(".md").read_text()


def carry(checkout, *arguments):
    """`make pack` or `make merge`."""
    done = checkout.launch("carry.pack", *arguments)
    assert done.returncode == 0, done.stderr


def test_what_two_machines_packed_is_one_table_with_a_column_of_each(machines, elsewhere, tmp_path):
    refused = elsewhere.snakemake(*CONFIG, "--", "steptime_times").stdout
    assert "2 shards of the platform 'desktop' are missing" in refused
    assert "`make merge FROM=" in refused
    for name, checkout in machines.items():
        packed = str(tmp_path / f"{name}.tar.gz")
        carry(checkout, "pack", "--to", packed)
        carry(elsewhere, "take", "--from", packed, "--platforms", "platforms.yaml")
    rows, text = table_of(elsewhere)
    found = rows.groupby("platform")[["threads", "mode"]].agg(["max", "nunique"])
    assert found["threads"]["max"].to_dict() == CORES
    assert set(found["mode"]["nunique"]) == {2}
    assert all(f"Here: {name}" in text for name in CORES), text
    for name, checkout in machines.items():
        own = pd.read_parquet(checkout.root / "results/tables/steptime_times.parquet")
        own = own[own["source"] == "ours"].set_index("mode")["ours"].to_dict()
        assert rows[rows["platform"] == name].set_index("mode")["ours"].to_dict() == own


needs_store = pytest.mark.skipif(
    not (find_spec("snakemake_storage_plugin_fs") and shutil.which("rsync")),
    reason="the storage plugin fs, or the program rsync that it calls, is not installed",
)


@pytest.mark.seldom
@needs_store
def test_a_store_carries_results_through_a_storage_plugin(machines, elsewhere, tmp_path):
    store = f"store={tmp_path}/shared/steptime"
    for checkout in machines.values():
        assert "[1/" not in checkout.run(*CONFIG, store, "--", "share")
    assert {path.name for path in (tmp_path / "shared/steptime").iterdir()} == {
        f"{name}.tar.gz" for name in CORES
    }
    elsewhere.run(*CONFIG, store, "--", "fetch")
    assert sorted(table_of(elsewhere)[0]["platform"]) == sorted([*CORES, *CORES])


@pytest.mark.seldom
@needs_store
def test_a_store_gets_what_its_own_platform_trains_too(new_checkout, tmp_path):
    checkout = configured(new_checkout("slurm"), ["desktop", "server"])
    entries = yaml.safe_load((checkout.root / "platforms.yaml").read_text())
    entries["server"]["cpu"] = "another processor"
    (checkout.root / "platforms.yaml").write_text(yaml.safe_dump(entries))
    frameworks = {"environments": ["torch", "mxnet"], "modes": {}}
    training = {
        "networks": ["mnist"],
        "threads": ["all"],
        "seeds": 2,
        "most_epochs": 1,
        "budget_seconds": 60,
    }
    (checkout.root / "mine.yaml").write_text(
        yaml.safe_dump(
            GRID | frameworks | {"platforms": ["desktop", "server"], "training": training}
        )
    )
    jobs = checkout.planned(*CONFIG, f"store={tmp_path}/shared/steptime", "--", "share")
    # Two steps and four trainings.
    assert [jobs[rule] for rule in ("share_platform", "measure_cell")] == [1, 2 + 4]
