"""The machine's peak: every thread counts, and one that was disturbed is measured again."""

import pytest

from steptime.machine import peak


def test_a_pass_counts_every_thread_and_an_error_in_one_ends_all(monkeypatch):
    monkeypatch.setattr(peak, "SECONDS", 0.02)
    assert peak.product_speed(64, 2) > 0
    assert peak.stream_speed("add", 2**16, 2) > 0

    def prepare():
        raise MemoryError("no room")

    with pytest.raises((MemoryError, peak.threading.BrokenBarrierError)):
        peak.shortest_pass(prepare, 2)


def test_the_peak_is_measured_without_the_shells_variables(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    said = {}

    def run(command, env, **_):
        said.update(env)
        return type("Done", (), {"returncode": 0, "stdout": "{}"})

    monkeypatch.setattr(peak.subprocess, "run", run)
    peak.measure_once(2)
    assert "OPENBLAS_CORETYPE" not in said and said["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        ([(True, 9), (False, 7), (False, 8)], (False, 7)),
        ([(True, 1), (True, 3), (True, 2), (True, 1), (False, 9)], (True, 3)),
    ],
)
def test_a_disturbed_peak_is_measured_again_and_marked_where_it_stays_so(
    monkeypatch, capsys, seen, kept
):
    tries = iter([{"disturbed": disturbed, "flops_per_second": flops} for disturbed, flops in seen])
    monkeypatch.setattr(peak, "measure_once", lambda threads: next(tries))
    found = peak.measure(2)
    assert (found["disturbed"], found["flops_per_second"]) == kept
    assert ("it is marked" in capsys.readouterr().err) == kept[0]


def test_a_disk_is_read_past_the_kernels_cache_or_not_at_all(tmp_path, monkeypatch):
    # A folder of the tests may lie in memory, which has none.
    rate = peak.disk_speed(tmp_path, 2 * peak.BLOCK_BYTES)
    assert rate is None or rate > 0
    asked = []
    monkeypatch.setattr(peak.os, "open", lambda path, flags: asked.append(flags) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        peak._past_cache("", 0)
    assert asked == [peak.os.O_DIRECT]
    monkeypatch.undo()
    assert peak.disk_speed(tmp_path / "missing") is None and not list(tmp_path.iterdir())
