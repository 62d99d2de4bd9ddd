"""Memory: the line through what was measured, and energy beside it."""

import pytest
from examples import ROOT, inputs, measured

from steptime.artefacts.papers import machines
from steptime.artefacts.results import memory
from steptime.claims.papers import read_printed
from steptime.machine import energy
from steptime.reading import read_yaml
from steptime.supervisor import resources

GIB = 2**30
SHI2016 = ROOT / "resources/papers/shi2016"


def test_memory_is_a_line_over_the_mini_batch_up_to_the_papers_gpus(tmp_path):
    cells = [
        {"batch": batch, "seconds": 1.0, "peak_memory_bytes": GIB + batch * 2**24}
        for batch in (32, 64)
    ]
    cells += [{"network": "fcn8", "seconds": 1.0, "peak_memory_bytes": 2 * GIB}]
    cells += [{"network": "lstm32", "seconds": None, "status": "crashed", "reason": "SIGSEGV"}]
    made = inputs(
        measured=measured(tmp_path, *cells),
        printed=read_printed(SHI2016 / "table3.csv"),
        catalogue=read_yaml(SHI2016 / "paper.yaml"),
    )
    _, layout = memory.table(made)
    fcn5, fcn8, lstm = (layout.iloc[at] for at in range(3))
    assert [entry.text for entry in fcn5["Measured"]] == ["32, 64", "1.50, 2.00"]
    assert [entry.text for entry in fcn5["Line"]] == ["1.00", "16.0"]
    sizes = ["4 GiB (GTX 980)", "8 GiB (GTX 1080)", "12 GiB (Tesla K80)"]
    assert [fcn5["Largest in as much as a GPU has", name].text for name in sizes] == [
        "192",
        "≥ 64",
        "≥ 64",
    ]
    assert fcn5["Largest in as much as a GPU has", sizes[1]].footnotes == (memory.TOO_FAR,)
    assert fcn8["Largest in as much as a GPU has", sizes[0]].text == "≥ 64"
    assert fcn8["Largest in as much as a GPU has", sizes[0]].footnotes == (
        memory.ONE_SIZE.rstrip("."),
    )
    assert lstm["Measured", "GiB"].footnotes == ("crashed: SIGSEGV",)
    drawn, _ = memory.figure(made)
    assert set(drawn["network"]) == {"fcn5"}, "one mini-batch size is no line"
    cells += [cell | {"network": "lstm32", "peak_memory_bytes": 9 * GIB} for cell in cells[:2]]
    made.measured = measured(tmp_path, *cells)
    _, drawing = memory.figure(made)
    for axes in drawing.axes:
        _, top = axes.get_ylim()
        assert all(max(line.get_ydata()) < top for line in axes.lines), "a line leaves its panel"
    # Two versions of one framework can be told apart.
    older = {"environment": "torch-1.4", "framework_version": "1.4.0", "peak_memory_bytes": GIB}
    made.measured = measured(tmp_path, cells[0], cells[0] | older)
    _, drawing = memory.figure(made)
    drawn = [line for line in drawing.axes[0].lines if len(line.get_xdata()) == 1]
    assert len({line.get_markerfacecolor() for line in drawn}) == len(drawn) == 2


def powercap(folder, microjoules):
    """A stand-in for the kernel's counters of two packages and a part of one."""
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")):
        (folder / zone).mkdir(parents=True, exist_ok=True)
        (folder / zone / "name").write_text(f"{name}\n")
        (folder / zone / "energy_uj").write_text(f"{microjoules}\n")
        (folder / zone / "max_energy_range_uj").write_text("262143328850\n")


def test_the_energy_of_a_timed_cell_is_that_of_its_samples_without_notes(tmp_path):
    powercap(tmp_path, 10**6)
    watch = resources.Watch(notes=False)
    watch.counter = energy.Counter(tmp_path)
    watch.begin()
    watch.look(1)
    powercap(tmp_path, 4 * 10**6)
    watch.end()
    powercap(tmp_path, 9 * 10**6)
    assert watch.host_joules() == pytest.approx(6) and watch.rows == []
    assert watch.counter.state == "read"


def test_a_machine_without_counters_has_no_energy_and_says_why(tmp_path):
    watch = resources.Watch(notes=False)
    watch.counter = energy.Counter(tmp_path)
    watch.begin()
    watch.end()
    assert watch.host_joules() is None and "no counters" in watch.counter.state


def test_operations_per_joule_are_of_the_processors_where_a_cell_is_on_them(tmp_path):
    cell = {"seconds": 1.0, "steps": 5, "flops_per_step": 10**9, "energy_joules": None}
    for joules, told in ((60.0, {"number": 0.5}), (None, {"note": "not shown"})):
        read = measured(tmp_path, cell | {"host_energy_joules": joules})
        read.machines["m1"]["processor_energy"] = "not shown"
        (found,) = machines.MEASURED["energy"](machines.Machine(inputs(measured=read), "local-cpu"))
        assert found | told == found
