"""The order in which a run measures cells, read from the shards of a real run with the stand-in framework."""

import pytest

from steptime.cells import shard


@pytest.fixture(scope="module")
def ran(new_checkout):
    """(repeat, mode) of every cell in the order in which they began, what was printed, and the page that is left."""
    checkout = new_checkout("faults")
    checkout.choose("good", "quiet", "nan", repeats=3)
    # More than there are here, as the guides write it.
    printed = checkout.run("--cores", "16", "--config", "grid=faults", "--", "steptime_times")
    rows = [shard.read_parts(path)[0] for path in checkout.shards().values()]
    order = [
        (row["repeat"], row["mode"]) for row in sorted(rows, key=lambda row: row["started_at"])
    ]
    return order, printed, (checkout.root / "results/so_far/index.html").read_text()


@pytest.fixture(scope="module")
def order(ran):
    return ran[0]


def test_every_cell_is_measured_once_before_any_is_measured_twice(order):
    assert [repeat for repeat, _ in order] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_each_comes_first_once(order):
    assert {mode for _, mode in order[::3]} == {"good", "quiet", "nan"}


def test_answers_so_far_follow_a_place_and_the_first_trial_and_the_whole_one_is_the_end(ran):
    """Before the next cell begins: nothing may compute beside it."""
    printed = ran[1]
    marks = ["[3/9  done about ", "after trial 1:", "results/so_far/index.html"]
    marks += ["[4/9 ", "[9/9 ", "9 of 9 runs measured in"]
    places = [printed.index(mark) for mark in marks]
    assert places == sorted(places), printed
    assert printed.count("So far, after ") == 1 and printed.count("\n[") == 9
    assert "Select jobs" not in printed


def test_the_page_so_far_is_named_once_and_leads_on_to_what_was_made(ran):
    _, printed, page = ran
    assert printed.count("results/so_far/index.html") == 1
    assert 'url=../tables/steptime_times.html"' in page
