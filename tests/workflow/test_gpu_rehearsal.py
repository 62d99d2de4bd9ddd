"""Each adapter's lines for GPUs, run without one: another device that is here stands in for it (tests/stand_ins).

With STEPTIME_ZOO=all (`make test-zoo`) every one, in all modes on three networks.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from examples import CATALOGUE as NETWORKS
from today import ALL, CATALOGUE, entry_of, only_zoo, prefix_of

from shared import declarations
from shared.narrow import BATCH
from steptime import networks
from steptime.cells.measure import fill
from steptime.environments import interpreter
from steptime.machine import placement
from steptime.plan import configuration
from steptime.prove import compare, golden, network
from steptime.tasks import USUAL

PROGRAM = ROOT / "tests/stand_ins/devices.py"
PROOF = {"task": "proof", "proves": USUAL}
PROVEN = ("fcn5", "alexnet", "lstm32")
QUICK = ("torch", "tensorflow")
# What must have been called of what a CPU has not; JAX and MXNet wait as on CPUs.
CALLED = {
    "torch": {"is_available", "synchronize"},
    "tensorflow": {"set_memory_growth"},
    "jax": set(),
    "mxnet": {"num_gpus"},
    "tensorflow1": {"list_devices"},
    "cntk": {"all_devices", "gpu"},
    "chainer": {"check_cuda_available", "to_gpu"},
    "paddle": {"device_count", "set_cublas_switch", "set_cudnn_switch", "synchronize"},
    "fastai": {"is_available", "synchronize"},
    "keras3 torch": {"get_device", "synchronize"},
    "keras3 tensorflow": {"set_memory_growth"},
    "keras3 jax": {"default_backend"},
}


def modes_on_gpus(framework, adapter):
    """The modes of an adapter's environments for GPUs."""
    entries = [framework | entry for entry in framework["differing"].values()]
    own = [
        entry for entry in entries if (entry["adapter"], entry.get("device")) == (adapter, "gpu")
    ]
    found = (entry["modes"] for entry in own)
    return list(dict.fromkeys(mode for modes in found for mode in modes))


def rehearsed():
    """(adapter, mode, environment for CPUs) of each adapter that declares GPUs."""
    seen = set()
    for framework in CATALOGUE.values():
        for environment in framework["environments"]:
            entry = entry_of(environment)
            if (
                entry.get("device") == "gpu"
                or "gpu" not in declarations.declared(entry["adapter"])["DEVICES"]
            ):
                continue
            # One version of each adapter is enough.
            if entry["adapter"] in seen:
                continue
            seen.add(entry["adapter"])
            modes = modes_on_gpus(framework, entry["adapter"])
            for mode in modes if ALL else modes[: entry["adapter"] in QUICK]:
                yield entry["adapter"], mode, environment, entry.get("variables", {})


def run(program, asked, environment, mode, variables):
    """How a process of the worker's ended that was given `asked` as JSON."""
    prefix = prefix_of(environment)
    own = {"PYTHONPATH": str(ROOT / "workflow/scripts")} | fill(variables, 1, mode, prefix)
    return subprocess.run(
        [prefix / "bin/python", *program],
        input=json.dumps(asked),
        env=os.environ | own,
        capture_output=True,
        text=True,
    )


def job_of(adapter, mode, name):
    asked = {"adapter": adapter, "mode": mode, "device": "gpu"}
    spec = networks.specify(name, NETWORKS, narrow=True)
    return network.worker_job(asked, spec) | {"masks": networks.masks.of_network(spec, BATCH)}


@only_zoo
@pytest.mark.parametrize(("adapter", "mode", "environment", "variables"), [*rehearsed()])
def test_the_lines_for_gpus_train_the_same_network(tmp_path, adapter, mode, environment, variables):
    jobs = [
        job_of(adapter, mode, name) | PROOF | {"output": str(tmp_path / name)} for name in PROVEN
    ]
    rounded = jobs[0] | {"precision": "tf32", "output": str(tmp_path / "tf32")}
    jobs += [rounded] if "tf32" in declarations.declared(adapter)["PRECISIONS"] else []
    done = run([PROGRAM, adapter], jobs, environment, mode, variables)
    assert done.returncode == 0, done.stderr[-3000:]
    called = CALLED.get(adapter, CALLED.get(f"{adapter} {mode}"))
    assert called <= set(json.loads(done.stdout.splitlines()[-1]))
    for job in jobs:
        expected = golden.expect(job["spec"], BATCH, 1)
        proof = compare.judge(job["spec"], expected, compare.read(Path(job["output"])))
        assert proof.passed, proof.reason


# What ranks on GPUs must have called besides.
BETWEEN_GPUS = {
    "torch": {"nccl"},
    "jax": set(),
    "mxnet": set(),
    "tensorflow": {"NCCL"},
}


@pytest.mark.seldom
@pytest.mark.parametrize("adapter", BETWEEN_GPUS if ALL else QUICK[:1])
def test_each_rank_has_a_gpu_of_its_own_and_their_gradients_meet(tmp_path, monkeypatch, adapter):
    """Each rank is the stand-in above, started by the supervisor."""
    mode, environment, variables = next(rest for name, *rest in rehearsed() if name == adapter)
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(
        '#!/bin/sh\n[ "$CUDA_VISIBLE_DEVICES" = 0 ] || [ "$CUDA_VISIBLE_DEVICES" = 1 ] || exit 9\n'
        "echo on GPU $CUDA_VISIBLE_DEVICES\n"
        f'exec {prefix_of(environment)}/bin/python {PROGRAM} {adapter} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(interpreter, "prefix_of", lambda name: tmp_path)
    monkeypatch.setattr(
        placement, "visible_devices", lambda needs, count: {"CUDA_VISIBLE_DEVICES": "0,1"}
    )
    job = {"environment": environment, "adapter": f"{adapter}.ranks", "mode": mode}
    job |= {"device": "gpu", "devices": 2, "exchange": "sync"}
    job |= {"variables": variables, "worker_digest": ""}
    for name in PROVEN:
        log = tmp_path / f"{name}.log"
        verdict, _ = network.prove(job, networks.specify(name, NETWORKS, narrow=True), "", log)
        printed = log.read_text(errors="replace")
        assert verdict["status"] == "ok", f"{verdict}\n{printed[-3000:]}"
        assert {line for line in printed.splitlines() if line.startswith("on GPU")} == {
            *("on GPU 0", "on GPU 1")
        }
        of_each = printed.split("--- rank 1")
        for called in CALLED[adapter] | BETWEEN_GPUS[adapter]:
            assert all(f"\ncalled {called}\n" in each for each in of_each), (called, printed)


@pytest.mark.parametrize(("adapter", "mode", "environment", "variables"), [*rehearsed()])
def test_a_machine_without_a_gpu_is_one_sentence(adapter, mode, environment, variables):
    job = job_of(adapter, mode, "fcn5") | PROOF | {"output": "/dev/null"}
    done = run(["-m", "worker", "1"], job, environment, mode, variables)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith('{"')]
    told = json.loads(line)
    assert told["status"] == "unsupported", done.stderr[-3000:]
    assert any(words in told["reason"] for words in ("finds no", "sees no")), told["reason"]


@only_zoo
def test_an_operation_of_tensorflow_1_on_the_host_is_refused():
    entry = CATALOGUE["tensorflow"]["variables"]
    asked = [job_of("tensorflow1", "graph", "fcn5") | PROOF | {"output": "/dev/null"}]
    done = run([PROGRAM, "tensorflow1", "elsewhere"], asked, "tensorflow-1.15", "graph", entry)
    assert "computed elsewhere than on the GPU, such as BiasAdd" in done.stderr.splitlines()[-1]


def test_the_documents_name_each_adapter_and_environment_for_gpus():
    page = (ROOT / "docs/gpu.md").read_text()
    made, _, untried = page.partition("## What a GPU has run")
    adapters, environments = set(), set()
    for framework in CATALOGUE.values():
        for name in framework["environments"]:
            entry = entry_of(name)
            if entry.get("device") == "gpu":
                environments.add(name)
                adapters.add(entry["adapter"])
    assert not [name for name in environments if f"`{name}`" not in made]
    loaded = configuration.without_grid(ROOT)
    for line in filter(None, made.splitlines()):
        for name in environments & {*line.split("`")} if line.startswith("| `") else ():
            assert "capability" not in loaded.entry_of(name) or (
                configuration.built_for(loaded.entry_of(name)) in line.split("|")[3]
            )
    assert not [name for name in adapters if f"| adapter `{name}`: " not in untried]
    # An adapter that says it has GPUs has an environment for them, and a file for them has an adapter.
    assert {path.stem for path in (ROOT / "envs").glob("*-cuda*.yaml")} == environments
    assert not [name for name in adapters if "gpu" not in declarations.declared(name)["DEVICES"]]
