"""What the rows of a run tell of its course: what a start costs, and that no two runs overlapped."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pandas as pd
from examples import CELL, FRAMEWORKS, inputs

from steptime.artefacts.results import startup, timeline


def started(first, **changes):
    """The merged rows of a process whose first step took `first` seconds."""
    row = CELL | {
        "import_seconds": 2.0,
        "build_seconds": 0.25,
        "ready_seconds": 3.0,
        "first_step_seconds": first,
        "steal_share": None,
    }
    return [row | changes | {"sample": sample} for sample in range(5 if first else 1)]


def test_startup_ends_at_the_first_step_and_keeps_what_failed():
    rows = [
        row
        for n, first in enumerate((3.0, 5.0, 4.0), 1)
        for row in started(first, repeat=n, steal_share=0.02 * (n == 2))
    ]
    rows += started(None, network="alexnet", status="timeout", reason="not done after 9 s")
    told = inputs(measured=SimpleNamespace(rows=pd.DataFrame(rows), cells=pd.DataFrame()))
    data, layout = told.table = startup.table(told)
    first = data.iloc[0]
    assert [first[name] for name in startup.PARTS] == [2.0, 0.25, 4.0]
    assert (first["total_seconds"], first["repeats"]) == (6.25, 3)
    assert all("`make again`" in entry.footnotes[0] for entry in layout.iloc[0])
    texts = [entry.text for entry in layout.iloc[1]]
    assert texts[:2] == ["2.00", "0.250"] and set(texts[2:]) == {"–"}
    _, drawing = startup.figure(told)
    assert any("over the time limit" in note for note in drawing.notes)
    assert drawing.texts[-1].get_text() == "* disturbed"


def test_the_start_of_several_devices_stands_beside_that_of_one():
    two = {"devices": 2, "exchange": "sync", "build_seconds": 1.5, "ready_seconds": 4.0}
    rows = [*started(1.0, threads=2), *started(3.0, **two), *started(3.0, ready_seconds=None)]
    told = inputs(measured=SimpleNamespace(rows=pd.DataFrame(rows)))
    data, layout = told.table = startup.table(told)
    assert [place for *_, place in layout.index] == ["1 thread", "2 x 1 thread, sync", "2 threads"]
    assert list(data["devices"]) == [1, 2, 1] and list(data["build_seconds"]) == [0.25, 1.5, 0.25]
    shown = layout["Seconds", "until all are ready"]
    assert [entry.text for entry in shown] == ["–", "4.00", "3.00"]
    assert shown.iloc[0].footnotes == (startup.NOT_NOTED,)


def span(began, ended, repeat, **changes):
    """The merged row of a process that lasted so long, in seconds of a day."""
    day = datetime(2026, 1, 1, tzinfo=UTC)
    times = {"started_at": began, "ended_at": ended}
    row = CELL | changes | {"repeat": repeat}
    return row | {name: day + timedelta(seconds=at) for name, at in times.items()}


def named(*repeats):
    """The names of the cells of these repeats."""
    return tuple(f"torch-9.9.eager.float32-fcn5-b64-t1-d1-r{repeat}" for repeat in repeats)


def spans_of(*rows):
    return timeline.spans_of(pd.DataFrame(rows))


def test_cells_of_one_machine_that_overlap_are_named():
    apart = [span(0, 10, 1), span(10, 20, 2), span(500, 510, 3)]
    elsewhere = span(5, 15, 1, machine_id="m2", platform="another")
    spans = spans_of(*apart, elsewhere)
    assert (
        timeline.sentence(spans) == "No two of 4 runs overlapped of the same machine (2 machines)."
    )
    # A short cell within a long one, and one after both that still lies within the long one.
    within = [span(12, 40, 4), span(13, 14, 5), span(30, 35, 6)]
    spans = spans_of(*apart, *within)
    assert timeline.overlaps(spans) == [named(2, 4), named(4, 5), named(4, 6)]
    said = f"3 of 6 runs began before another had ended: {' and '.join(named(2, 4))};"
    assert said in timeline.sentence(spans)
    data, drawing = timeline.draw(spans, FRAMEWORKS)
    assert data["overlaps_with"].notna().sum() == 3
    assert any("Dotted: a pause" in text.get_text().replace("\n", " ") for text in drawing.texts)


def test_the_samples_of_a_process_are_one_span():
    assert len(spans_of(span(0, 10, 1), span(0, 10, 1), span(10, 20, 2))) == 2
