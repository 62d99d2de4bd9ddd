"""The exchange alone, and what of it is hidden: rates by their definitions, and a step beside its two parts."""

import pytest
from examples import ROOT, measured
from examples import inputs as given

from shared import operations
from steptime.artefacts.devices import exchange, links, overlap, stragglers, transfer
from steptime.claims.papers import read_printed
from steptime.reading import InputError
from steptime.render import tables

GRADIENTS = 4 * 1000
SYNC = {"exchange": "sync", "devices": 2}


def inputs(tmp_path, cells, alone=()):
    """What the artefacts may read of these cells."""
    for name in ("cells", "parts"):
        (tmp_path / name).mkdir(exist_ok=True)
    entry = {"title": "Title", "caption": "Caption.", "axis": "What it is"}
    return given(
        measured=measured(tmp_path / "cells", *cells),
        parts=[measured(tmp_path / "parts", *alone)] if alone else [],
        entry=entry,
    )


def row(size, seconds, way=operations.SUM, role=operations.ROLES[False], **changes):
    made = {"part": f"{size} bytes", "role": role, "way": way, "flops": size // 4, "task": "sums"}
    made |= {"lacking": "" if seconds else "it hangs", "error": 1e-7, "cpus": 1.0}
    return made | {"seconds": seconds} | SYNC | changes


def step(seconds, devices=1, batch=64, **changes):
    made = {"devices": devices, "batch": batch, "seconds": seconds, "parameters": 1000}
    return made | {"exchange": "sync" if devices > 1 else "", "exchange_seconds": None} | changes


def test_rates_are_bytes_by_seconds_and_what_a_rank_sends(tmp_path):
    cells = [row(2**30, 0.5), row(2**30, 0.25, operations.COPY), row(4096, None)]
    cells += [row(2**30, 0.5, devices=4), row(2**30, 0.25, operations.COPY, devices=4)]
    made = inputs(tmp_path, cells)
    data, layout = exchange.table(made)
    found = data.set_index(["devices", "bytes", "way"])
    assert found["algbw"][2, 2**30, operations.SUM] == pytest.approx(2**30 / 0.5 / 1e9)
    for devices, share in ((2, 1.0), (4, 1.5)):
        one = found.loc[devices, 2**30, operations.SUM]
        assert one["busbw"] == pytest.approx(share * one["algbw"])
    assert layout.index[0][0] == "4 KiB" and layout.iloc[0, 0].footnotes == ("it hangs",)
    assert layout.loc["1 GiB"].iloc[0]["a copy, GB/s"].text == "4.29"
    tables.write(tmp_path / "table", data, layout, made.page)
    drawn, _ = exchange.figure(made)
    assert len(drawn) == 4


def test_ranks_are_drawn_with_what_went_between_them(tmp_path):
    apart = {"exchange": "async", "bytes_exchanged": 500}
    cells = [step(0.1), step(0.2, devices=2, bytes_exchanged=10**9), step(0.2, devices=2, **apart)]
    made = inputs(tmp_path, cells)
    drawn, drawing = links.figure(made)
    assert dict(zip(drawn["exchange"], drawn["rate"], strict=True))["sync"] == pytest.approx(5)
    words = [text.get_text() for axes in drawing.axes for text in axes.texts]
    assert "1.00 GB in a step of 200 ms: 5.00 GB/s" in words
    assert "memory that all share, in a step of 200 ms" in words
    with pytest.raises(InputError, match="write `devices: .1, 2.`"):
        links.figure(inputs(tmp_path, [step(0.1)]))


def test_the_transfer_model_takes_the_fastest_sum_of_a_machine(tmp_path):
    slow, fast = row(4096, 0.5), row(2 * 10**9, 0.5, environment="jax-0.12", framework="jax")
    made = measured(tmp_path, slow, fast, row(2 * 10**9, 0.1, operations.COPY))
    summed = transfer.summed_per_second([made])
    assert summed == {"local-cpu": pytest.approx(4e9)} and transfer.summed_per_second([]) == {}
    printed = read_printed(ROOT / "resources/papers/wuensche2018/transfer.csv")
    data, layout = transfer.table(given(printed=printed, peaks={}, parts=[made]))
    found = data[data["place"] == "this machine, sums over ranks"].set_index("key")["value"]
    assert found["bandwidth"] == pytest.approx(4) and found["transfer_one"] == pytest.approx(2)
    assert ("Measured bandwidth", "this machine, sums over ranks") in layout.columns


def test_the_transfer_model_takes_the_disk_of_a_machine():
    printed = read_printed(ROOT / "resources/papers/wuensche2018/transfer.csv")
    peaks = {"local-cpu": {"threads": {}, "disk_bytes_per_second": 2e9}, "old": {"threads": {}}}
    made = given(printed=printed, peaks=peaks)
    data, layout = transfer.table(made)
    found = data[data["place"] == "this machine, disk"].set_index("key")["value"]
    assert found["ssd"] == found["bandwidth"] == 2 and found["transfer_one"] == pytest.approx(4)
    assert ("Measured bandwidth", "old, disk") not in layout.columns
    assert any("past the kernel's cache" in note for note in made.page.notes)


def test_a_step_is_held_against_its_calculation_and_its_exchange(tmp_path):
    alone = [row(GRADIENTS // 4, 0.01), row(GRADIENTS * 4, 0.16)]
    cells = [step(0.2), step(0.12, batch=32), step(0.14, devices=2)]
    made = inputs(tmp_path, cells, alone)
    data, layout = overlap.table(made)
    (found,) = data.to_dict("records")
    # On a line of logarithms, 4 times as long between 16 times as long.
    assert found["exchange_alone"] == pytest.approx(0.04) and found["basis"] == overlap.OF_SHARE
    assert found["predicted"] == pytest.approx(0.16) and found["hidden"] == pytest.approx(0.5)
    assert layout.iloc[0]["Exchange hidden"].text == "50 %"
    tables.write(tmp_path / "table", data, layout, made.page)


def test_what_was_not_timed_alone_is_said(tmp_path):
    beyond = [row(GRADIENTS // 4, 0.01), row(GRADIENTS * 4, 0.16, devices=4)]
    (tmp_path / "a").mkdir()
    data, layout = overlap.table(inputs(tmp_path / "a", [step(0.2), step(0.14, devices=2)], beyond))
    assert data["basis"].iloc[0] == overlap.OF_ALL and data["compute"].iloc[0] == 0.1
    assert layout.iloc[0]["Both, ms"].footnotes[0].startswith("no sum over these ranks was timed")
    (tmp_path / "b").mkdir()
    _, layout = overlap.table(inputs(tmp_path / "b", [step(0.14, devices=2)]))
    assert layout.iloc[0]["Exchange hidden"].footnotes == (
        "no step on one device of this kind was timed",
    )


def test_a_slow_rank_and_the_first_one_are_each_held_against_themselves(tmp_path):
    alone, slow_one = operations.STATES
    cells = [
        row(4096, seconds, exchange_of, state, part=f"rank {rank}", exchange=exchange_of)
        for exchange_of, slow in (("sync", 0.2), ("async", 0.1))
        for state, rank, seconds in (
            *((alone, 0, 0.1), (alone, 1, 0.1)),
            *((slow_one, 0, slow), (slow_one, 1, 0.2)),
        )
    ]
    cells.append({"environment": "jax-0.12", "framework": "jax", "status": "unsupported"} | SYNC)
    cells[-1] |= {"reason": "it has none", "seconds": None}
    made = inputs(tmp_path, cells)
    data, layout = stragglers.table(made)
    keeps = data.set_index(["environment", "exchange"])[["first_keeps", "last_keeps"]]
    assert list(keeps.loc["torch-9.9", "sync"]) == [0.5, 0.5]
    assert list(keeps.loc["torch-9.9", "async"]) == [1.0, 0.5]
    jax = layout.xs("JAX 9.9.0", level="Framework").iloc[0]
    assert jax["First rank keeps"].footnotes == ("not supported: it has none",)
    tables.write(tmp_path / "table", data, layout, made.page)
