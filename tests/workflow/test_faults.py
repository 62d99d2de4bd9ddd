"""Faults injected for real: a worker that is killed, hangs or takes all memory is a row, and the run goes on."""

import signal
import subprocess
import time

import pytest

from measure import shard

EXPECTED = {
    "standin-1.0.good": ("ok", ""),
    "standin-1.0.killed": ("crashed", "the worker was ended by SIGKILL (Killed)"),
    "standin-1.0.segfault": ("crashed", "the worker was ended by SIGSEGV (Segmentation fault)"),
    "standin-1.0.hangs": ("timeout", "not done after 4 s, the limit of the grid (in the warm-up)"),
    "standin-1.0.memory": ("out_of_memory", "the worker held "),
    "standin-1.0.quiet": ("crashed", "the worker ended with exit code 3 before it was done"),
    "standin-1.0.nan": ("diverged", "the loss was nan after "),
    "standin-1.0.narrow": (
        "not_equivalent",
        "21,800 trainable parameters in the specification and 21,799 in the framework",
    ),
    "standin-1.0.unable": ("unsupported", "the stand-in has no layer of this kind"),
    "standin-1.0.wrong": ("not_equivalent", "every update is 2 times the specification's"),
    "broken-1.0.good": ("install_failed", "steptime-no-such-package"),
}


@pytest.fixture(scope="module")
def faulty(new_checkout):
    checkout = new_checkout("faults")
    done = checkout.snakemake("--config", "grid=faults", "--", "shi2016_table4")
    return checkout, done


def test_the_run_goes_on_and_the_table_is_complete(faulty):
    checkout, done = faulty
    assert done.returncode == 0, done.stdout
    table = (checkout.root / "results/tables/shi2016_table4.md").read_text()
    for words in (
        "over the time limit: not done after 4 s",
        "crashed: the worker was ended by SIGSEGV",
        "out of memory: the worker held",
        "not the same network: every update is 2 times the specification's",
        "not supported: the stand-in has no layer of this kind",
        "does not install: ",
        "diverged: the loss was nan",
    ):
        assert words in table, table


@pytest.mark.parametrize("cell", EXPECTED)
def test_a_fault_is_a_row_with_status_and_reason(faulty, cell):
    checkout, _ = faulty
    status, reason = EXPECTED[cell]
    rows, _ = shard.read(checkout.shards()[f"{cell}-tiny-b16-t1-d1-r1"])
    assert rows["status"][0].as_py() == status
    assert reason in rows["reason"][0].as_py()
    assert (rows["seconds"][0].as_py() is not None) == (status == "ok")


def test_a_truncated_shard_is_named_with_the_command_that_helps(faulty):
    checkout, _ = faulty
    path = checkout.shards()["standin-1.0.good-tiny-b16-t1-d1-r1"]
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    done = checkout.snakemake("--config", "grid=faults", "--", "shi2016_table4")
    assert done.returncode != 0
    name = path.relative_to(checkout.root)
    assert f"measure its cell again with `rm {name} && snakemake {name}`" in done.stdout
    table = checkout.root / "results/tables/shi2016_table4.md"
    before = table.stat().st_mtime_ns
    path.unlink()
    assert checkout.snakemake("--config", "grid=faults", "--", str(name)).returncode == 0
    shard.read(path)
    assert checkout.snakemake("--config", "grid=faults", "--", "shi2016_table4").returncode == 0
    assert table.stat().st_mtime_ns > before


def test_an_interrupted_cell_is_the_only_one_to_be_measured_again(new_checkout):
    checkout = new_checkout("faults")
    grid = checkout.root / "config/grids/faults.yaml"
    text = grid.read_text().replace(", broken-1.0", "").replace("seconds: 4,", "seconds: 60,")
    grid.write_text(
        text.replace("[good, killed, segfault, hangs, memory, quiet, nan, narrow, unable, wrong]", "[good, hangs]")
    )
    good, hanging = (f"standin-1.0.{mode}-tiny-b16-t1-d1-r1" for mode in ("good", "hangs"))
    command = checkout.command("--config", "grid=faults", "--", f"results/shards/local-cpu/{good}.parquet")
    assert subprocess.run(command, cwd=checkout.root, env=checkout.environment()).returncode == 0
    measured = checkout.shards()[good].stat().st_mtime_ns
    running = subprocess.Popen(
        checkout.command("--config", "grid=faults", "--", "shi2016_table4"),
        cwd=checkout.root,
        env=checkout.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    for line in running.stdout:
        if "standin-1.0 hangs, tiny" in line:
            break
    time.sleep(2)
    interrupted = time.monotonic()
    # A terminal's Ctrl-C reaches every process of the foreground group.
    subprocess.run(["kill", "-INT", "--", f"-{running.pid}"], check=True)
    running.communicate(timeout=30)
    assert time.monotonic() - interrupted < 20
    assert running.returncode not in (0, -signal.SIGKILL)
    assert set(checkout.shards()) == {good}
    assert not list((checkout.root / "results").rglob(".*.parquet.*"))
    grid.write_text(grid.read_text().replace("seconds: 60", "seconds: 2"))
    checkout.snakemake("--config", "grid=faults", "--rerun-triggers", "mtime", "--", "shi2016_table4")
    assert set(checkout.shards()) == {good, hanging}
    assert checkout.shards()[good].stat().st_mtime_ns == measured
