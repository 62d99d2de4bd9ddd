"""The peak of a GPU, with a stand-in for CUDA's libraries whose speeds are known."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from steptime.machine import gpu_peak

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    """A folder of environments, of which one has CUDA's libraries where NVIDIA's packages put them."""
    folder = tmp_path_factory.mktemp("environments")
    (folder / "without-cuda/lib").mkdir(parents=True)
    packages = folder / "with-cuda/lib/python3.11/site-packages/nvidia"
    for place, name in (("cuda_runtime", "cudart"), ("cublas", "cublas"), ("cublas", "cublasLt")):
        target = packages / place / f"lib/lib{name}.so.13"
        target.parent.mkdir(parents=True, exist_ok=True)
        # One library in three places would have three clocks.
        if name == "cudart":
            source = ROOT / "tests/stand_ins/cuda.c"
            subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", target, source], check=True)
        else:
            target.symlink_to(packages / "cuda_runtime/lib/libcudart.so.13")
    return folder


def test_a_machine_without_cuda_s_libraries_is_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "steptime", "machine.gpu_peak", "--platform", "local-gpu"]
        + ["--threads", "2", "--environments", "none"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "workflow/scripts")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The peak of local-gpu is not known: none of none stands")


def measured(environments, *names, **variables):
    """What the program prints of the first GPU, in a process of its own."""
    command = [sys.executable, "-m", "steptime", "machine.gpu_peak", "--platform", "local-gpu"]
    own = {"STEPTIME_ENVIRONMENTS": str(environments)}
    done = subprocess.run(
        [*command, "--threads", "2", "--environments", *names],
        env=os.environ | own | {"PYTHONPATH": str(ROOT / "workflow/scripts")} | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_products_copies_and_transfers_are_counted_as_they_are_meant(environments):
    found = measured(environments, "without-cuda", "with-cuda")
    assert found["flops_per_second"] == pytest.approx(10e12, rel=1e-3)
    assert found["precisions"] == {
        "float32": pytest.approx(10e12, rel=1e-3),
        "tf32": pytest.approx(80e12, rel=1e-3),
    }
    # Within the GPU each byte is read and written.
    assert found["bytes_per_second"] == pytest.approx(2 * 500e9, rel=1e-3)
    assert found["transfers"] == {
        "to_device_pinned": pytest.approx(20e9, rel=1e-3),
        "to_device_pageable": pytest.approx(10e9, rel=1e-3),
        "to_host_pinned": pytest.approx(10e9, rel=1e-3),
        "to_host_pageable": pytest.approx(5e9, rel=1e-3),
    }
    assert found["blas"] == "cuBLAS 13"
    assert found["peers"] == [] and found["no_peers"] == gpu_peak.ONE_GPU


def test_copies_to_other_gpus_say_whether_they_go_there_directly(environments):
    found = measured(environments, "with-cuda", STANDIN_GPUS="3")
    assert found["no_peers"] == "" and found["peers"] == [
        {"device": 1, "bytes_per_second": pytest.approx(50e9, rel=1e-3), "directly": True},
        {"device": 2, "bytes_per_second": pytest.approx(6e9, rel=1e-3), "directly": False},
    ]


def test_a_clean_process_finds_the_libraries_of_the_environment(environments, monkeypatch):
    """As a rule starts it: of the shell's variables none reaches that process."""
    monkeypatch.setenv("STEPTIME_ENVIRONMENTS", str(environments))
    found = gpu_peak.measure("local-gpu", ["with-cuda"])
    assert found["flops_per_second"] == pytest.approx(10e12, rel=1e-3)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("35", "the driver is older than this version of CUDA"),
        ("100", "there is no GPU"),
        ("2", "the GPU's memory is full"),
        ("999", "cudaGetDeviceCount failed with code 999"),
    ],
)
def test_what_cuda_refuses_is_a_reason_and_no_number(environments, code, said):
    assert measured(environments, "with-cuda", STANDIN_CUDA=code) == {"reason": said}
