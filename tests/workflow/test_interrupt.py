"""Ctrl-C at the terminal in mid-cell, and the same command again."""

import signal
import subprocess
import time

TABLE = ("--config", "grid=faults", "--", "shi2016_table4")
GOOD, HANGING = (f"standin-1.0.{mode}-tiny-b16-t1-d1-r1" for mode in ("good", "hangs"))


def test_an_interrupted_cell_is_the_only_one_to_be_measured_again(new_checkout):
    checkout = new_checkout("faults")
    grid = checkout.root / "config/grids/faults.yaml"
    text = grid.read_text().replace(", broken-1.0", "").replace("seconds: 4,", "seconds: 60,")
    grid.write_text(
        text.replace(
            "[good, killed, segfault, hangs, memory, quiet, nan, narrow, unable, wrong, early, lazy, greedy, crowded]",
            "[good, hangs]",
        )
    )
    command = checkout.command(
        "--config", "grid=faults", "--", f"results/shards/local-cpu/{GOOD}.parquet"
    )
    assert subprocess.run(command, cwd=checkout.root, env=checkout.environment()).returncode == 0
    measured = checkout.times()
    running = checkout.start(*TABLE)
    assert any("standin-1.0 hangs, tiny" in line for line in running.stdout)
    time.sleep(2)
    interrupted = time.monotonic()
    # A terminal's Ctrl-C reaches every process of the foreground group.
    subprocess.run(["kill", "-INT", "--", f"-{running.pid}"], check=True)
    running.communicate(timeout=30)
    assert time.monotonic() - interrupted < 20
    assert running.returncode not in (0, -signal.SIGKILL)
    assert checkout.times() == measured
    assert not checkout.leftovers()
    grid.write_text(grid.read_text().replace("seconds: 60", "seconds: 2"))
    checkout.snakemake(
        "--config", "grid=faults", "--rerun-triggers", "mtime", "--", "shi2016_table4"
    )
    assert set(checkout.shards()) == {GOOD, HANGING}
    assert checkout.times()[GOOD] == measured[GOOD]
