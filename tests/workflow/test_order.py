"""The order in which a run measures cells, read from the shards of a real run with the stand-in framework."""

import pytest

from steptime.cells import shard


@pytest.fixture(scope="module")
def order(new_checkout):
    """(repeat, mode) of every cell in the order in which they were begun."""
    checkout = new_checkout("faults")
    grid = checkout.root / "config/grids/faults.yaml"
    text = grid.read_text().replace(", broken-1.0", "")
    modes = text[text.index("{standin") : text.index("}")]
    grid.write_text(text.replace(modes, "{standin: [good, quiet, nan]") + "repeats: 3\n")
    done = checkout.snakemake("--config", "grid=faults", "--", "steptime_times")
    assert done.returncode == 0, done.stdout
    rows = [shard.read_parts(path)[0] for path in checkout.shards().values()]
    return [(row["repeat"], row["mode"]) for row in sorted(rows, key=lambda row: row["started_at"])]


def test_every_cell_is_measured_once_before_any_is_measured_twice(order):
    assert [repeat for repeat, _ in order] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_each_comes_first_once(order):
    assert {mode for _, mode in order[::3]} == {"good", "quiet", "nan"}
