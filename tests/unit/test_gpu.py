"""What is asked of GPUs, and which of them a cell gets, by NVML's own names: a stand-in library answers for GPUs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from steptime.machine import gpu
from worker import contract, rounding

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
# A cell of 0.3 s that is looked at four times while samples are taken.
WATCHED = """
import json, time
from steptime.machine import gpu
gpu.POLL_SECONDS = 0.01
watch = gpu.Watch({visible})
watch.look(0)
watch.begin()
for _ in range(4):
    time.sleep(0.05)
    watch.look(0)
watch.end()
watch.look(0)
print(json.dumps([watch.columns(), watch.facts()]))
"""
PLACED = """
import json
from steptime.machine import gpu, placement
gpu.SETTLED_SECONDS = 0.05
needs = {needs}
print(json.dumps([placement.lacking(needs), placement.visible_devices(needs, 1)["CUDA_VISIBLE_DEVICES"]]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The folder of the stand-in."""
    folder = tmp_path_factory.mktemp("nvml")
    source = ROOT / "tests/stand_ins/nvml.c"
    command = ["cc", "-shared", "-fPIC", "-w", "-o", folder / "libnvidia-ml.so.1", source]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def ask(library):
    """What a text in Python prints, as JSON, on a machine with GPUs."""

    def run(text, gpus, **variables):
        own = {"LD_LIBRARY_PATH": str(library), "PYTHONPATH": str(ROOT / "workflow/scripts")}
        inherited = {name: value for name, value in os.environ.items() if "CUDA" not in name}
        done = subprocess.run(
            [sys.executable, "-c", text],
            env=inherited | own | {"STANDIN_GPUS": gpus} | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_energy_utilisation_clocks_and_memory_are_of_the_cell_s_gpus_and_of_its_samples(ask):
    text = WATCHED.format(visible=["GPU-0000", "GPU-1000"])
    columns, facts = ask(text, "GeForce GTX 1080 late;GeForce GTX 1080")
    assert columns == {
        "peak_device_memory_bytes": 2 * 1000 * 2**20,
        "device_utilisation": pytest.approx(0.5),
        "energy_joules": 10.0,
        "throttled_seconds": 0.0,
    }
    assert facts["uuids"] == ["GPU-0000", "GPU-1000"] and facts["energy_by"] == "counter"
    assert (facts["least_mhz"], facts["most_mhz"]) == (1750, 1750)


@pytest.mark.parametrize("words", ["old capped", "capped"])
def test_a_gpu_at_its_power_limit_was_held_back_whatever_its_driver_calls_it(ask, words):
    columns, facts = ask(WATCHED.format(visible=["GPU-0000"]), f"Tesla K80 {words}")
    assert 0.19 < columns["throttled_seconds"] < 2
    assert facts["held_back"]["power"] == columns["throttled_seconds"]
    assert facts["held_back"]["heat"] == 0


def test_energy_without_a_counter_is_the_power_over_the_time(ask):
    columns, facts = ask(WATCHED.format(visible=["GPU-0000"]), "GeForce GTX 980 old")
    # 150 W for a little more than 0.2 s.
    assert 30 < columns["energy_joules"] < 300 and facts["energy_by"] == "power"


@pytest.mark.parametrize("gpus", ["GeForce GTX 980 bare", ""])
def test_what_nvml_does_not_tell_is_not_known(ask, gpus):
    columns, facts = ask(WATCHED.format(visible=["GPU-0000"]), gpus)
    known = {name for name, value in columns.items() if value is not None}
    assert known <= {"throttled_seconds"} and facts["energy_by"] == ""


@pytest.mark.parametrize(
    ("gpus", "given", "needs", "shown"),
    [
        # By the model that is needed, not the first one.
        ("GeForce GTX 980;GeForce GTX 1080", None, {"gpu": "GeForce GTX 1080"}, "GPU-1000"),
        ("GeForce GTX 980;GeForce GTX 1080", None, {}, "GPU-0000"),
        # Of those that were given, by number or UUID.
        ("GeForce GTX 980;GeForce GTX 980", "1", {}, "GPU-1000"),
        ("GeForce GTX 980;GeForce GTX 980", "GPU-1", {}, "GPU-1000"),
        # Instances of a GPU that is divided, and never the whole of it.
        ("A100 mig", None, {}, "MIG-0000"),
        ("A100 mig", "MIG-0001", {"gpu": "A100 MIG 1g.5gb"}, "MIG-0001"),
    ],
)
def test_a_cell_gets_the_gpu_of_its_platform_by_uuid(ask, gpus, given, needs, shown):
    variables = {} if given is None else {"CUDA_VISIBLE_DEVICES": given}
    needs = {"device": "gpu"} | needs
    assert ask(PLACED.format(needs=needs), gpus, **variables) == [None, shown]


@pytest.mark.parametrize(
    ("gpus", "given", "needs", "said"),
    [
        ("GeForce GTX 980", "", {}, "its GPUs are none, of those that CUDA_VISIBLE_DEVICES names, and 1 x a GPU is"),
        ("A;B", "0", {"gpu": "B"}, "its GPUs are NVIDIA A, of those that CUDA_VISIBLE_DEVICES names, and 1 x B is"),
        ("A100 mig", None, {"gpu": "A100"}, "its GPUs are NVIDIA A100 MIG 1g.5gb, NVIDIA A100 MIG 1g.5gb, and 1 x"),
        ("A", None, {"devices": 2}, "its GPUs are NVIDIA A, and 2 x a GPU is needed"),
    ],
)  # fmt: skip
def test_a_gpu_that_is_not_there_or_hidden_is_told(ask, gpus, given, needs, said):
    variables = {} if given is None else {"CUDA_VISIBLE_DEVICES": given}
    lacks, shown = ask(PLACED.format(needs={"device": "gpu"} | needs), gpus, **variables)
    assert lacks.startswith(said) and shown.count(",") == 0


@pytest.mark.parametrize(("words", "pids"), [("busy", [4242]), ("old busy", [4242]), ("", [])])
def test_who_else_computes_on_a_gpu_is_seen_by_old_drivers_too(ask, words, pids):
    text = "import json; from steptime.machine import gpu; gpu.SETTLED_SECONDS = 0.05; "
    text += "print(json.dumps(gpu.at_work(['GPU-0000'])))"
    assert ask(text, f"A {words}") == pids


def test_of_the_user_s_libraries_the_driver_s_alone_reach_a_worker(tmp_path, monkeypatch):
    for name in (
        "libcuda.so.1",
        "libnvidia-ptxjitcompiler.so.1",
        "libcublas.so.13",
        "libgomp.so.1",
    ):
        (tmp_path / name).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path}")
    linked = Path(gpu.driver_links(tmp_path / "driver"))
    assert sorted(each.name for each in linked.iterdir()) == [
        "libcuda.so.1",
        "libnvidia-ptxjitcompiler.so.1",
    ]
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    assert gpu.driver_links(tmp_path / "again") == ""


@pytest.mark.parametrize("bits", [7, 10, 22, 23])
def test_products_that_keep_fewer_bits_than_float32_are_refused(bits):
    def product(left, right):
        left = (left.view(np.uint32) >> (23 - bits) << (23 - bits)).view(np.float32)
        return left @ right

    assert rounding.kept_bits(product) == bits
    for precision, wanted in (("float32", 23), ("tf32", 10), ("bfloat16", 7)):
        if bits == wanted:
            rounding.require(precision, product)
        else:
            with pytest.raises(contract.NotEquivalent, match=f"keep {bits} of 23 bits"):
                rounding.require(precision, product)


PAIRS = [[1], [0], [3], [2]]


@pytest.mark.parametrize(
    ("order", "least", "flags", "unit"),
    [
        (PAIRS, 2.0**-126, "avx2 avx512_bf16", "AVX-512 BF16"),
        ([[0, 2], [1, 3]], 2.0**-126, "amx_bf16", "AMX"),
        (PAIRS, 2.0**-126, "avx2", "emulated by shifts"),
        (PAIRS, 0.0, "avx512_bf16", "emulated by shifts"),
        ([[0], [1], [2], [3]], 2.0**-126, "amx_bf16 avx512_bf16", "emulated by shifts"),
    ],
)
def test_the_order_in_which_products_are_added_shows_the_unit_of_bfloat16(
    order, least, flags, unit, monkeypatch
):
    def product(left, right):
        left = np.where(abs(left) < least, np.float32(0), left)
        total = np.float32(0)
        for group in order:
            total += sum((left[0, each] * right[each, 0] for each in group), np.float32(0))
        return np.full_like(left, total)

    monkeypatch.setattr(rounding, "flags", flags.split)
    assert rounding.unit(product) == unit


@pytest.mark.parametrize(
    ("reason", "full"),
    [
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request", True),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True),
        ("MXNetError: cudaErrorMemoryAllocation", True),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", False),
    ],
)
def test_a_gpu_whose_memory_was_full_is_told_from_one_that_failed(reason, full):
    assert gpu.was_full(reason) is full


def test_the_check_of_a_gpu_needs_no_package_that_its_document_does_not_name():
    """It is for machines without a network, on which the workflow's own environment cannot be made."""
    code = (
        "import sys\nbefore = {*sys.modules}\nimport steptime.gpu_check\n"
        "from importlib.metadata import packages_distributions\n"
        "owners = packages_distributions()\n"
        "print(*{each for name in {*sys.modules} - before for each in owners.get(name, [])})"
    )
    scripts = os.environ | {"PYTHONPATH": str(ROOT / "workflow/scripts")}
    done = subprocess.run([sys.executable, "-c", code], env=scripts, capture_output=True, text=True)
    assert {*done.stdout.split()} <= {"numpy", "psutil", "PyYAML", "rich", "nvidia-ml-py"}, done
    assert done.returncode == 0, done.stderr
