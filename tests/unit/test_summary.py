"""From samples to one row per cell: estimates, intervals, failures and what must never be mixed."""

import examples
import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from steptime.cells.mixed import MixedRowsError
from steptime.merge.summary import summarise
from steptime.render.words import status_reason

CELL = examples.CELL | {
    "threads": 2,
    "effective_threads": 2.0,
    "timed_region": "forward,backward",
    "proven_loss": 1e-7,
    "proven_change": 1e-6,
    "started_at": "2026-01-01T00:00:00+00:00",
}


def rows(seconds, **changes):
    """The rows of one repeat of a cell; no seconds make the one row of a failure."""
    samples = [{"sample": index, "seconds": value} for index, value in enumerate(seconds)]
    return [CELL | sample | changes for sample in samples or [{"sample": None, "seconds": None}]]


def test_one_row_for_each_result_and_no_interval_of_one_process():
    alone = rows([9.0] * 8, threads=1, effective_threads=1.0)
    frame = pd.DataFrame(rows([3.0, 1.0, 2.0, 3.0, 5.0, 4.0]) + alone)
    two, one = summarise(frame).to_dict("records")
    assert (two["seconds"], two["samples"], two["marks"]) == (pytest.approx(3.0), 6, [])
    assert (one["threads"], one["seconds"]) == (1, pytest.approx(9.0))
    # One process says nothing of a second one.
    assert summarise(frame)[["low", "high"]].isna().all(axis=None)


def test_repeats_decide_the_interval_whatever_their_samples():
    # Repeats that agree within themselves but not with one another: pooled samples alone would hide it, and a repeat
    # with many samples would weigh more than one with few.
    three = rows([1.0] * 50, repeat=1) + rows([1.21] * 6, repeat=2) + rows([1.1] * 6, repeat=3)
    row = summarise(pd.DataFrame(three)).iloc[0]
    assert row["medians"] == {1: 1.0, 2: 1.21, 3: 1.1}
    assert row["seconds"] == pytest.approx(np.exp(np.mean(np.log([1.0, 1.21, 1.1]))))
    theirs = ttest_1samp(np.log([1.0, 1.21, 1.1]), 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.exp(theirs)))


def test_a_mean_outside_of_the_interval_of_the_median_is_marked():
    """Each third step takes twice as long, which no median shows."""
    slow = [1.0, 1.0, 2.0] * 4
    both = rows(slow, repeat=1) + rows([1.01, 1.0, 2.0] * 4, repeat=2)
    row = summarise(pd.DataFrame(both)).iloc[0]
    assert row["seconds"] == pytest.approx(1.0, rel=0.01) and row["marks"] == ["mean apart"]
    assert row["means"] == {1: pytest.approx(4 / 3), 2: pytest.approx(4.01 / 3)}
    assert row["reason"] == "the mean is 1.335 s"


def test_a_step_that_slows_while_it_is_timed_is_marked():
    """After c9-step-slows-as-it-trains: MXNet, where moments of Adam become denormal numbers."""
    slows = summarise(pd.DataFrame(rows([0.0103] * 12 + [0.0155] * 12)))
    assert "drifting" in slows.iloc[0]["marks"]
    noisy = summarise(pd.DataFrame(rows([0.0103, 0.0118] * 12)))
    assert "drifting" not in noisy.iloc[0]["marks"]


def test_a_long_reason_is_shortened_where_it_is_shown_and_says_where_it_is_whole(tmp_path):
    failed = rows([], repeat=2, status="crashed", reason="word " * 1000)
    alone = summarise(pd.DataFrame(failed)).iloc[0]["reason"]
    beside = summarise(pd.DataFrame(rows([1.0] * 6) + failed)).iloc[0]["reason"]
    told = {"seconds": None, "status": "crashed", "reason": "word " * 1000}
    (of_row,) = examples.measured(tmp_path, told).rows["reason"]
    for reason in (alone, beside, of_row, status_reason("crashed", "word " * 1000)):
        assert len(reason) < 600 and " ... (shortened: the shard or the proof" in reason
    # What was shortened once stays as it is.
    assert status_reason("crashed", alone).endswith(alone)
    assert status_reason("crashed", "x" * 500).endswith("x" * 500)


def test_a_repeat_that_failed_is_named_and_its_samples_are_left_out():
    failed = rows([50.0] * 9, repeat=2, status="diverged", reason="the loss is NaN")
    row = summarise(pd.DataFrame(rows([1.0] * 6) + failed)).iloc[0]
    assert (row["status"], row["seconds"], row["samples"], row["repeats"]) == ("ok", 1.0, 6, 1)
    assert row["reason"] == "1 of 2 repeats failed (diverged: the loss is NaN)"


def test_a_cell_of_which_one_repeat_is_another_network_has_no_time():
    refused = rows([], repeat=1, status="not_equivalent", reason="the loss of step 2 is 3")
    row = summarise(pd.DataFrame(refused + rows([1.0] * 6, repeat=2))).iloc[0]
    assert (row["status"], row["reason"]) == ("not_equivalent", "the loss of step 2 is 3")
    assert pd.isna(row["seconds"])


def test_a_cell_that_failed_keeps_its_reason_even_where_nothing_else_is_known():
    unknown = {
        "framework_version": None,
        "timed_region": None,
        "effective_threads": None,
        "machine_id": None,
    }
    frame = pd.DataFrame(rows([], status="install_failed", reason="no wheel", **unknown))
    row = summarise(frame).iloc[0]
    assert (row["status"], row["reason"], row["samples"]) == ("install_failed", "no wheel", 0)
    assert pd.isna(row["seconds"])


def test_a_cell_that_failed_early_has_the_version_of_its_environment():
    # Else one framework stands under two labels in a table, with and without the last part of its version.
    told = rows([1.0] * 6, framework_version="9.9.0")
    failed = rows([], network="lenet", status="crashed", framework_version=None)
    other = rows([], environment="torch-1.4", status="crashed", framework_version=None)
    versions = summarise(pd.DataFrame(told + failed + other))["framework_version"]
    assert list(versions.fillna("")) == ["9.9.0", "9.9.0", ""]


def test_marks_say_what_threads_did():
    busy = rows([1.0] * 6, effective_threads=2.3)
    above = rows([1.0] * 6, threads=8, effective_threads=3.9)
    crowded = rows([1.0] * 6, batch=2, waiting_threads=1.2)
    idle = rows([1.0] * 6, threads=4, effective_threads=1.0)
    disturbed = rows([1.0] * 6, threads=3, effective_threads=3.0, foreign_cpus=0.5)
    stolen = rows([1.0] * 6, threads=3, batch=1, effective_threads=3.0, steal_share=0.05)
    held = rows([1.0] * 6, batch=4, throttled_seconds=0.2)
    unproven = {"proven_loss": None, "proven_change": None, "proven_gradients": False}
    narrow = rows([1.0] * 6, batch=3, **unproven)
    in_part = rows([1.0] * 6, batch=5, proven_gradients=False)
    on_gpu = rows([1.0] * 6, device="gpu", threads=1, effective_threads=2.0)
    usual = busy + above + crowded + idle + disturbed + stolen
    frame = pd.DataFrame(usual + held + narrow + in_part + on_gpu)
    assert summarise(frame, {"m1": 4})["marks"].tolist() == [
        ["oversubscribed"],
        ["more threads than CPUs"],
        ["crowded"],
        ["idle threads"],
        ["disturbed"],
        ["disturbed"],
        ["throttled"],
        ["proven narrow only"],
        ["proven in part"],
        [],
    ]


def test_two_timed_regions_are_refused():
    other = rows([1.0], environment="mxnet-1.9", timed_region=["forward"])
    with pytest.raises(
        MixedRowsError, match="mxnet-1.9 times 'forward', torch-9.9 times 'forward, backward'"
    ):
        summarise(pd.DataFrame(rows([1.0]) + other))
