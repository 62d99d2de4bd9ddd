"""The artefacts that belong to no paper: proofs, efficiency with its roofline, startup; and the machine's peak."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from measure import peak, shard
from papers.inputs import Frameworks, read_measured
from report import bars, efficiency, forest, proofs, ratios, roofline, startup, timeline
from report.traffic import bytes_per_step
from worker import networks

ROOT = Path(__file__).parents[2]
CATALOGUE = yaml.safe_load((ROOT / "config/networks.yaml").read_text())
FRAMEWORKS = Frameworks(ROOT / "resources/papers/frameworks.yaml")
CELL = {
    "platform": "local-cpu",
    "environment": "torch-2.13",
    "framework": "torch",
    "framework_version": "2.13.0",
    "adapter_mode": "eager",
    "network": "fcn5",
    "variant": "",
    "device": "cpu",
    "devices": 1,
    "threads": 1,
    "batch": 64,
    "repeat": 1,
    "status": "ok",
    "reason": "",
    "timed_region": "forward,loss,backward,update,sync",
    "machine_id": "m1",
    "started_at": None,
    "effective_threads": 1.0,
    "peak_memory_bytes": 1,
}
PEAK = {
    "machine_id": "m1",
    "threads": {
        str(threads): {
            "flops_per_second": threads * 1e11,
            "bytes_per_second": threads * 1e10,
            "product": 512,
            "blas": "blas 1",
            "stream": "add",
        }
        for threads in (1, 2)
    },
}


def spec_of(layers, shape, **sizes):
    entry = {"input": {"kind": "dense", "shape": shape}, "sizes": sizes, "narrow": {}, "layers": layers}
    return networks.specify("small", {"small": entry})


def measured(tmp_path, *cells):
    """What `read_measured` gives for cells, each of six samples of its `seconds`, or one row where that is None."""
    rows = [
        CELL | cell | {"sample": sample, "seconds": cell["seconds"]}
        for cell in cells
        for sample in range(6 if cell["seconds"] else 1)
    ]
    table = pa.Table.from_pandas(pd.DataFrame(rows))
    machines = {"m1": {"cpu": {"model": "A CPU", "physical_cores": 2, "logical_cores": 2}}}
    words = json.dumps({"machines": machines, "software": {}}).encode()
    pq.write_table(table.replace_schema_metadata({b"steptime": words}), tmp_path / "merged.parquet")
    return read_measured(tmp_path / "merged.parquet")


def test_bytes_of_dense_layers_counted_by_hand():
    spec = spec_of([{"dense": {"units": 4}}, "relu", {"dense": {"units": 5}}], [3])
    first = 5 * (3 * 4 + 4) + 2 * 2 * 3 + 2 * 2 * 4
    second = 6 * (4 * 5 + 5) + 3 * 2 * 4 + 2 * 2 * 5
    loss = 2 * 2 * 5
    assert bytes_per_step(spec, batch=2) == 4 * (first + second + loss)


@pytest.mark.parametrize("name", CATALOGUE)
def test_bytes_are_at_least_those_of_reading_the_weights_twice_and_writing_them(name):
    spec = networks.specify(name, CATALOGUE)
    weights = sum(np.prod(entry["shape"]) for entry in spec["parameters"] if not entry["name"].startswith("embedding"))
    assert bytes_per_step(spec, 1) >= 4 * 5 * weights


def test_share_of_peak_is_that_of_the_same_thread_count(tmp_path):
    read = measured(tmp_path, {"threads": 1, "seconds": 1.0}, {"threads": 2, "seconds": 0.5})
    data, _, _ = efficiency.build(read, {"local-cpu": PEAK}, FRAMEWORKS, CATALOGUE)
    flops = networks.flops_per_step(networks.specify("fcn5", CATALOGUE), 64)
    assert data["share_of_peak"].tolist() == pytest.approx([flops / 1e11, flops / 0.5 / 2e11])


@pytest.mark.parametrize(
    ("cell", "known", "says"),
    [
        ({"seconds": None, "status": "crashed", "reason": "SIGSEGV"}, {"local-cpu": PEAK}, "crashed: SIGSEGV"),
        ({"seconds": 1.0, "threads": 3}, {"local-cpu": PEAK}, "no peak of local-cpu is measured for 3 threads"),
        ({"seconds": 1.0}, {"local-cpu": PEAK | {"machine_id": "m2"}}, "the peak of local-cpu is another machine's"),
        ({"seconds": 1.0}, {}, "no peak of local-cpu is measured, which is done for CPUs only"),
    ],
)
def test_a_share_that_cannot_be_told_says_why(tmp_path, cell, known, says):
    read = measured(tmp_path, cell)
    data, layout, page = efficiency.build(read, known, FRAMEWORKS, CATALOGUE)
    shares = layout[[column for column in layout.columns if "share" in column[0]]].iloc[0, 0]
    assert shares.text == "–" and shares.footnotes[0].startswith(says)
    _, drawing = roofline.draw(data, known, FRAMEWORKS, read)
    assert any(says in text.get_text().replace("\n", " ") for text in drawing.texts)


def test_a_variant_has_operations_of_its_own(tmp_path):
    read = measured(tmp_path, {"seconds": 1.0}, {"seconds": 1.0, "variant": "fcn5-table2"})
    data, _, _ = efficiency.build(read, {"local-cpu": PEAK}, FRAMEWORKS, CATALOGUE)
    assert data["network"].tolist() == ["fcn5", "fcn5-table2"]
    assert data["flops_per_step"].nunique() == 2


def repeated(environment, *seconds):
    cell = {"environment": environment, "framework": environment.partition("-")[0]}
    return [cell | {"repeat": repeat, "seconds": value} for repeat, value in enumerate(seconds, 1)]


def test_a_ratio_is_of_repeats_side_by_side_and_says_where_no_difference_is_shown(tmp_path):
    read = measured(
        tmp_path,
        *repeated("torch-2.13", 1.0, 2.0, 4.0),
        *repeated("tensorflow-2.21", 1.1, 1.9, 4.4),
        *repeated("mxnet-1.9", 1.5, 3.1, 6.1),
        *repeated("jax-1.0", None),
    )
    data, layout, _ = ratios.build(read, FRAMEWORKS, CATALOGUE)
    found = data.set_index("framework")
    assert found["verdict"].fillna("").to_dict() == {
        "torch": "no difference shown",
        "tensorflow": "fastest",
        "mxnet": "slower",
        "jax": "",
    }
    assert found.loc["mxnet", "ratio"] == pytest.approx((1.5 / 1.1 * 3.1 / 1.9 * 6.1 / 4.4) ** (1 / 3))
    assert found.loc["torch", "low"] < 1 < found.loc["torch", "high"]
    texts = dict(zip(data["framework"], layout.iloc[:, 0], strict=True))
    assert texts["torch"].text.endswith("no difference shown") and texts["jax"].footnotes
    forest.draw(data, FRAMEWORKS, read)


def test_one_process_of_each_decides_nothing(tmp_path):
    read = measured(tmp_path, *repeated("torch-2.13", 1.0), *repeated("mxnet-1.9", 5.0))
    data, layout, page = ratios.build(read, FRAMEWORKS, CATALOGUE)
    assert data["verdict"].tolist() == ["fastest", "not known"]
    assert layout.iloc[1, 0].text == "5.00" and "`repeats`" in layout.iloc[1, 0].footnotes[0]
    assert any("one process" in note for note in page.notes)
    assert any("interval not known" in text.get_text() for text in forest.draw(data, FRAMEWORKS, read)[1].axes[0].texts)


def proof(network="fcn5", **changes):
    details = {"parameters": 10, "frozen_parameters": 0, "loss_error": 1e-7, "later_loss_error": 1e-7}
    details |= {"worst_cosine": 1 + 1e-15, "worst_update": 1e-6, "after1_parameters": 1e-8}
    found = {"environment": "torch-2.13", "mode": "eager", "network": network, "status": "ok", "reason": ""}
    return found | {"proof_id": "0123", "details": details} | changes


def test_every_empty_place_of_the_proofs_has_its_reason():
    found = [
        proof(),
        proof("fcn8", status="not_equivalent", reason="the framework lacks dense2", details={"parameters": 7}),
        proof("lstm32", status="install_failed", reason="no wheel", proof_id=None, details={}),
    ]
    data, layout, page = proofs.build(found, {"torch-2.13": "torch"}, FRAMEWORKS, CATALOGUE)
    assert data["one_minus_cosine"].iloc[0] == 0
    assert page.facts == ["1 of 3 proofs passed (1 not the same training step; 1 does not install)."]
    for _, row in layout.iterrows():
        assert all(entry.text and (entry.text != "–" or entry.footnotes) for entry in row)
    assert layout.iloc[1]["Proof"].footnotes == ("not the same training step: the framework lacks dense2",)


MACHINE = {"cpu": {"model": "A CPU", "logical_cores": 2}, "memory_bytes": 2**34, "gpus": []}


def write_shard(warmup, **changes):
    """Writes a shard below results/; returns the key of its cell."""
    samples = [(1, 0.5)] * 5 if warmup else []
    facts = CELL | {"import_seconds": 2.0, "build_seconds": 0.25, "warmup_steps": 9 if warmup else None} | changes
    key = f"local-cpu/{shard.file_name(facts)}".removesuffix(".parquet")
    footer = {"machine": MACHINE, "software": {}, "worker": {"warmup": warmup} if warmup else {}}
    shard.write(Path("results/shards") / f"{key}.parquet", facts | {"started_at": None}, samples, footer)
    return key


def test_startup_takes_the_first_step_apart_from_the_warm_up_and_keeps_what_failed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = [
        write_shard(
            {"first_seconds": first, "seconds": first + 1, "steady": True}, repeat=n, steal_share=0.02 * (n == 2)
        )
        for n, first in enumerate((3.0, 5.0, 4.0), 1)
    ]
    keys.append(write_shard(None, network="alexnet", status="timeout", reason="not done after 9 s"))
    data, layout, _ = startup.build(startup.read_starts(keys), FRAMEWORKS, CATALOGUE)
    first = data.iloc[0]
    assert [first[name] for name in startup.PARTS] == [2.0, 0.25, 4.0, 1.0]
    assert (first["total_seconds"], first["repeats"]) == (7.25, 3)
    assert all("`make again`" in entry.footnotes[0] for entry in layout.iloc[0][:5])
    texts = [entry.text for entry in layout.iloc[1]]
    assert texts[:2] == ["2.00", "0.250"] and set(texts[2:]) == {"–"}
    _, drawing = bars.draw(data, startup.PARTS)
    assert "over the time limit" in drawing.texts[-1].get_text()


def write_span(folder, began, ended, **changes):
    day = datetime(2026, 1, 1, tzinfo=UTC)
    path = folder / f"{began}-{ended}-{changes.get('machine_id', 'm1')}.parquet"
    facts = CELL | changes | {"started_at": day + timedelta(seconds=began)}
    footer = {"machine": {}, "software": {}, "worker": {}, "ended_at": (day + timedelta(seconds=ended)).isoformat()}
    shard.write(path, facts, [], footer)
    return path


def test_cells_of_one_machine_that_overlap_are_named(tmp_path):
    apart = [write_span(tmp_path, 0, 10), write_span(tmp_path, 10, 20), write_span(tmp_path, 500, 510)]
    elsewhere = write_span(tmp_path, 5, 15, machine_id="m2")
    spans = timeline.read_spans([*apart, elsewhere])
    assert timeline.sentence(spans) == "No two of 4 cells overlapped of the same machine (2 machines)."
    # A short cell within a long one, and one after both that still lies within the long one.
    within = [write_span(tmp_path, 12, 40), write_span(tmp_path, 13, 14), write_span(tmp_path, 30, 35)]
    spans = timeline.read_spans([*apart, *within])
    assert timeline.overlaps(spans) == [
        ("10-20-m1", "12-40-m1"),
        ("12-40-m1", "13-14-m1"),
        ("12-40-m1", "30-35-m1"),
    ]
    assert "3 of 6 cells began before another had ended: 10-20-m1 and 12-40-m1;" in timeline.sentence(spans)
    data, drawing = timeline.draw(spans, FRAMEWORKS)
    assert data["overlaps_with"].notna().sum() == 3
    assert any("Dotted: a pause" in text.get_text().replace("\n", " ") for text in drawing.texts)


def test_a_shard_that_does_not_say_when_it_ended_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("results/shards") / f"{write_shard(None, status='crashed')}.parquet"
    with pytest.raises(shard.ShardError, match=f"{path} does not say when its cell ended: measure its cell again"):
        timeline.read_spans([path])


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
def test_a_disturbed_peak_is_measured_again_and_marked_where_it_stays_so(monkeypatch, capsys, seen, kept):
    tries = iter([{"disturbed": disturbed, "flops_per_second": flops} for disturbed, flops in seen])
    monkeypatch.setattr(peak, "measure_once", lambda threads: next(tries))
    found = peak.measure(2)
    assert (found["disturbed"], found["flops_per_second"]) == kept
    assert ("`make again`" in capsys.readouterr().err) == kept[0]


def test_what_others_do_meanwhile_is_seen_by_the_peak():
    """A busy process, and the measurement itself in a small version, as the rule runs it."""
    script = (
        "from measure import peak; import json; peak.SIZES, peak.SECONDS, peak.LEAST_BYTES = (256,), 0.3, 2**20;"
        "peak.last_cache_bytes = lambda: 0; print(json.dumps(peak.measure_here(1)['foreign_cpus']))"
    )
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONPATH": str(ROOT / "workflow/scripts"), **peak.ONE_THREAD},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        burner.kill()
        burner.wait()
    assert json.loads(done.stdout) > 0.3


def test_a_disturbed_cell_and_a_disturbed_peak_are_marked_wherever_they_are_shown(tmp_path):
    read = measured(tmp_path, {"seconds": 1.0, "foreign_cpus": 0.5}, {"seconds": 1.0, "network": "fcn8"})
    threads = {"1": PEAK["threads"]["1"] | {"disturbed": True}}
    known = {"local-cpu": PEAK | {"threads": threads}}
    data, layout, page = efficiency.build(read, known, FRAMEWORKS, CATALOGUE)
    first, second = (layout[[column for column in layout.columns if "share" in column[0]]].iloc[at, 0] for at in (0, 1))
    assert [len(entry.footnotes) for entry in (first, second)] == [2, 1]
    assert "peak that was measured while other programs" in second.footnotes[0]
    assert any("so it may be too low" in fact for fact in page.facts)
    assert data["marks"].tolist() == ["disturbed", ""]
    _, drawing = roofline.draw(data, known, FRAMEWORKS, read)
    words = " ".join(text.get_text().replace("\n", " ") for text in drawing.texts)
    assert "PyTorch 2.13.0, FCN-5 at 1 (measured while other programs" in words and "it may be too low" in words


def test_two_machines_of_one_kind_in_a_column_are_told(tmp_path):
    read = measured(tmp_path, {"seconds": 1.0}, {"seconds": 1.0, "network": "fcn8", "machine_id": "m2"})
    assert "local-cpu is 2 machines of this kind." in efficiency.build(read, {}, FRAMEWORKS, CATALOGUE)[2].facts
