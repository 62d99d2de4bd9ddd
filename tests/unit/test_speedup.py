"""The table of several devices: what each cell is compared with, and which way round its numbers are."""

import pytest
from examples import inputs, measured

from steptime.artefacts.devices import speedup
from steptime.reading import InputError


def cells(*made):
    """Three repeats of each (devices, threads, mini-batch, seconds)."""
    return [
        {"devices": devices, "exchange": "sync" if devices > 1 else "", "threads": threads}
        | {"batch": batch, "repeat": repeat, "seconds": seconds * (1 + 0.01 * repeat)}
        | {"bytes_exchanged": 4_000_000 if devices > 1 else None, "exchange_seconds": None}
        for devices, threads, batch, seconds in made
        for repeat in (1, 2, 3)
    ]


def table(tmp_path, *made):
    return speedup.table(inputs(measured=measured(tmp_path, *cells(*made))))


def test_two_devices_are_held_against_one_and_against_one_with_the_threads_of_both(tmp_path):
    data, layout = table(tmp_path, (1, 1, 64, 0.4), (1, 2, 64, 0.2), (2, 1, 64, 0.25))
    (row,) = data.to_dict("records")
    assert row["speedup"] == pytest.approx(1.6) and row["efficiency"] == pytest.approx(0.8)
    assert row["low"] <= row["speedup"] <= row["high"]
    assert row["whole"] == pytest.approx(0.8) and row["scaling"] == "strong"
    assert layout.index[0][2] == "2 x 1 thread, sync" and layout.iloc[0, 3].text == "80 %"
    assert layout.iloc[0, 5].text == "4.00 MB"


def test_where_each_device_has_a_mini_batch_of_its_own_samples_are_counted(tmp_path):
    data, layout = table(tmp_path, (1, 1, 64, 0.4), (1, 2, 64, 0.2), (2, 1, 128, 0.5))
    (row,) = data.to_dict("records")
    assert row["scaling"] == "weak" and row["speedup"] == pytest.approx(1.6)
    # As long as on one device would be 100 %: 0.4 / 0.5.
    assert row["efficiency"] == pytest.approx(0.8)
    # One device with the threads of both had half of the mini-batch: it is no comparison of the same work.
    assert row["whole"] is None and layout.iloc[0, 4].footnotes == (speedup.NONE_AS_LARGE,)


@pytest.mark.parametrize(("batch", "scaling"), [(64, "strong"), (128, "weak")])
def test_the_scaling_is_told_where_the_one_device_has_failed(tmp_path, batch, scaling):
    rows = [row | {"status": "timeout", "reason": "not done"} for row in cells((1, 1, 64, 0.4))]
    made = measured(tmp_path, *rows, *cells((2, 1, batch, 0.25)))
    data, layout = speedup.table(inputs(measured=made))
    assert list(data["scaling"]) == [scaling]
    assert layout["Speed-up"].iloc[0].footnotes == (speedup.NONE_ALONE,)


def test_devices_that_do_not_wait_have_the_updates_that_they_missed(tmp_path):
    rows = cells((1, 1, 64, 0.4), (2, 1, 64, 0.25))
    apart = [row | {"exchange": "async", "staleness": 0.75} for row in rows if row["exchange"]]
    made = measured(tmp_path, *rows, *apart)
    data, layout = speedup.table(inputs(measured=made))
    shown = dict(zip(data["exchange"], layout["Missed updates"], strict=True))
    assert shown["async"].text == "0.75"
    assert shown["sync"].footnotes == ("they wait for one another",)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (500, "500 bytes"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (87_200, "87.2 kB"),
        (3e12, "3000 GB"),
    ],
)
def test_what_was_exchanged_has_a_unit_of_its_size(tmp_path, sent, text):
    rows = cells((1, 1, 64, 0.4), (2, 1, 64, 0.25))
    rows = [row | ({"bytes_exchanged": int(sent)} if row["exchange"] else {}) for row in rows]
    _, layout = speedup.table(inputs(measured=measured(tmp_path, *rows)))
    assert layout["Exchanged in a step"].iloc[0].text == text


def test_a_grid_of_one_device_is_told_what_to_write(tmp_path):
    with pytest.raises(InputError, match="write `devices: .1, 2.` into it"):
        table(tmp_path, (1, 1, 64, 0.4))


def test_two_processes_know_from_other_cells_how_much_processes_differ(tmp_path):
    rows = [
        {"environment": environment, "devices": devices, "threads": 1, "batch": 64}
        | {"exchange": "sync" if devices > 1 else "", "repeat": repeat}
        | {"seconds": 0.4 if devices == 1 else 0.25 * (1 + differ * (repeat - 1))}
        | {"bytes_exchanged": None, "exchange_seconds": None}
        for environment, differ in (("a", 0.04), ("b", 0.08), ("c", 0.12), ("d", 0.16))
        for devices in (1, 2)
        for repeat in (1, 2)
    ]
    data, _ = speedup.table(inputs(measured=measured(tmp_path, *rows)))
    wide = dict(zip(data["environment"], data["high"] / data["low"], strict=True))
    # By two processes alone it is 12.7 times a standard error: 1.6 to 6.6.
    assert max(wide.values()) < 2 and min(wide.values()) > 1.1
