"""Runs on a machine with a GPU what may never have run on one, and says in words what failed.

    workflow/scripts/launch gpu_check [ENVIRONMENT ...]

It takes under ten minutes and needs no network, no Snakemake and only one framework. docs/gpu.md explains each line.
The exit status is 1 where something failed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import yaml

from shared import declarations
from shared.precisions import PRECISIONS, USUAL
from shared.statistics import median
from steptime import machine, networks, project, tasks
from steptime.environments import build
from steptime.machine import gpu, gpu_peak, placement
from steptime.outcome import Outcome
from steptime.plan import exchanges
from steptime.prove import network
from steptime.prove.reference import compute

NO_GPU = "NVML sees no GPU on this machine, so there is nothing to check: run this where `nvidia-smi` lists one."
BUDGET_SECONDS = 570.0
LIMIT_SECONDS = 120.0
PROVEN = ("fcn5", "alexnet", "resnet50", "lstm32")
TIMED, BATCH = "fcn5", 64
ROUNDED = [name for name, each in PRECISIONS.items() if name != USUAL and "gpu" in each.devices]
PEAK = ("precisions", "bytes_per_second", "transfers", "peers", "no_peers", "blas")
SAMPLING = {"budget_seconds": 5.0, "precision": 0.02, "least_samples": 10}
# As much of the GPU as holds no network of the check.
SCARCE = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.002", "XLA_PYTHON_CLIENT_PREALLOCATE": "true"}


# Its title and its function.
Check = tuple[str, Callable[[], str]]


class Failure(Exception):
    """What a check found wrong, in words."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the parts that need a GPU.")
    parser.add_argument("names", nargs="*", help="environments; none: each that can be had here")
    options = parser.parse_args()
    if not machine.gpus():
        sys.exit(NO_GPU) if options.names else print(NO_GPU)
        return
    known = gpu_environments()
    if strangers := [name for name in options.names if name not in known]:
        sys.exit(f"'{strangers[0]}' is no environment for GPUs: write one of {', '.join(known)}.")
    with tempfile.TemporaryDirectory() as folder:
        failed = run_all(checks(options.names or list(known), known, Path(folder)))
    if failed:
        sys.exit(f"{failed} checks failed: what is printed above says of each what was expected.")
    print("Nothing failed.")


def run_all(todo: Iterator[Check]) -> int:
    """Runs checks one after another, prints a line of each, and returns how many failed."""
    began, failed = time.monotonic(), 0
    for title, check in todo:
        if time.monotonic() - began > BUDGET_SECONDS:
            print(f"left out   {title}: the ten minutes are over", flush=True)
            continue
        start = time.monotonic()
        try:
            state, outcome = "ok", check()
        except Failure as failure:
            state, outcome, failed = "FAILED", str(failure), failed + 1
        # Whatever it is, the other checks tell more than a traceback alone.
        except Exception as error:
            state, outcome, failed = "FAILED", f"{type(error).__name__}: {error}", failed + 1
        print(f"{state:10} {title} ({time.monotonic() - start:.1f} s): {outcome}", flush=True)
    return failed


def checks(names: list[str], known: dict[str, dict[str, Any]], folder: Path) -> Iterator[Check]:
    """Yields all checks; those of an environment only if it is there in the end."""
    yield "what NVML tells of the GPUs", nvml_answers
    yield "the GPU that a cell gets", gpu_of_a_cell
    standing: list[str] = []
    for name in names:
        yield f"environment {name}", partial(environment_stands, name, known[name], standing)
    for name in standing:
        own = (name, known[name], folder)
        for each in PROVEN:
            yield f"{name}: proof of {each}", partial(proof_passes, *own, each)
        for precision in ROUNDED:
            seen = partial(rounding_is_seen, *own, precision)
            yield f"{name}: a proof that {precision} must not pass", seen
            yield f"{name}: a cell in {precision}", partial(rounded_cell, *own, precision)
        yield f"{name}: a timed cell", partial(cell_is_timed, *own)
        yield f"{name}: another CUDA beside it", partial(own_libraries, *own)
        if known[name]["adapter"] == "jax":
            yield f"{name}: a GPU that is full", partial(full_is_told, *own)
        has = declarations.declared(exchanges.adapter_of(known[name]["adapter"], 2, "sync"))
        if "gpu" in has["DEVICES"] and "sync" in has["EXCHANGES"]:
            yield f"{name}: two GPUs that share gradients", partial(two_share, *own)
    yield "peak of the GPU", partial(peak, standing)


def gpu_environments() -> dict[str, dict[str, Any]]:
    """Returns the entries of environments for GPUs, with each environment's own values in them."""
    catalogue = yaml.safe_load(project.path("config/frameworks.yaml").read_text())
    entries = {
        name: entry | entry.get("differing", {}).get(name, {})
        for entry in catalogue.values()
        for name in entry["environments"]
    }
    return {name: entry for name, entry in entries.items() if entry.get("device") == "gpu"}


def nvml_answers() -> str:
    """Checks that GPUs have a UUID and a name; returns NVML's answers. Other missing ones are no fault."""
    answers = []
    for each in machine.gpus():
        missing = [name for name in gpu.FACTS if name not in each]
        answers.append(json.dumps(each) + (f" without {', '.join(missing)}" if missing else ""))
        if not each["uuid"] or each["model"] == "unknown":
            raise Failure(f"a GPU has no UUID or no name: {answers[-1]}")
    return "; ".join(answers)


def gpu_of_a_cell() -> str:
    """Checks that a cell gets one GPU, by UUID, on which nobody else computes."""
    shown = placement.visible_devices({}, 1)["CUDA_VISIBLE_DEVICES"]
    if not shown:
        raise Failure("no GPU of this machine may be used: CUDA_VISIBLE_DEVICES hides them")
    if others := placement.at_work([shown]):
        raise Failure(others)
    return shown


def environment_stands(name: str, entry: dict[str, Any], standing: list[str]) -> str:
    """Checks that an environment is here, or makes it from packages that are; what needs a network is no fault."""
    there = (project.environment(name) / build.STAMP).is_file()
    if not there and entry.get("prepare") != "installed":
        return f"not made, which is no fault: `make environments ONLY={name}` makes it where there is a network"
    log = Path("logs/environments") / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as printed:
        spec = project.path(f"envs/{name}.yaml")
        manifest = build.make(name, spec, entry.get("prepare", ""), printed)
    if manifest["status"] != "ok":
        return f"cannot be had here, which is no fault: {manifest['reason']}"
    standing.append(name)
    return ", ".join(map(" ".join, sorted(manifest["packages"].items())))


def specification(name: str, narrow: bool) -> dict[str, Any]:
    catalogue = yaml.safe_load(project.path("config/networks.yaml").read_text())
    return networks.specify(name, catalogue, narrow=narrow)


def proof_passes(name: str, entry: dict[str, Any], folder: Path, wanted: str) -> str:
    """Checks that the narrow network is the specified one on this GPU."""
    job, log = network.job_of(name, entry), folder / "proof.log"
    verdict, details = network.prove(job, specification(wanted, True), "", log)
    _refuse(**verdict, log=log)
    seen = {key: details[key] for key in ("loss_error", "worst_update", "later_loss_error")}
    return ", ".join(f"{key} {value:.2g}" for key, value in seen.items())


def rounding_is_seen(name: str, entry: dict[str, Any], folder: Path, precision: str) -> str:
    """Checks that float32's limits refuse an LSTM whose products are rounded, if these can be."""
    job, log = network.job_of(name, entry), folder / f"{precision}.log"
    job["precision"] = precision
    verdict, details = network.prove(job, specification("lstm32", True), "", log)
    if verdict["status"] in ("not_equivalent", "unsupported"):
        return f"refused: {verdict['reason']}"
    if verdict["status"] != "ok":
        raise Failure(f"{verdict['status']}: {verdict['reason']}")
    update = f"the worst update is off by {details['worst_update']:.2g}"
    raise Failure(f"products are of {precision}, and {USUAL}'s limits do not see it: {update}")


def rounded_cell(name: str, entry: dict[str, Any], folder: Path, precision: str) -> str:
    """Times a cell whose products are rounded, by the precision's own limits, or says why there is none."""
    reference = folder / f"{precision}.npz"
    if not reference.exists():
        np.savez(reference, **compute(specification(TIMED, False), BATCH, precision))
    own = {"precision": precision, "reference": str(reference), "gradients": True}
    outcome = run_cell(name, entry, folder, changes=own)
    if outcome.status == "unsupported" or "bits" in outcome.reason:
        return f"none here: {outcome.reason}"
    _refuse(outcome.status, outcome.reason, folder / "cell.log")
    proven = outcome.events["proven"]
    if proven["change"] is None:
        raise Failure(f"its gradients were not shown: {proven['lacking']}")
    return f"{_median(outcome):.3g} s, gradients off by {proven['change']:.2g}"


def run_cell(
    name: str,
    entry: dict[str, Any],
    folder: Path,
    watches: Sequence[Any] = (),
    variables: dict[str, str] | None = None,
    changes: dict[str, Any] | None = None,
) -> Outcome:
    """Runs a cell of TIMED at BATCH on this GPU, without its reference; `changes` go into its job."""
    job = network.job_of(name, entry)
    job["variables"] = job["variables"] | (variables or {})
    request = network.worker_job(job, specification(TIMED, False))
    request |= {"task": tasks.USUAL, "batch": BATCH, "sampling": SAMPLING, "threads": 2}
    request |= changes or {}
    cpus = machine.cpus_of_ranks(2, request["ranks"])
    return network.run(job, request, folder / "cell.log", cpus, LIMIT_SECONDS, watches)


def cell_is_timed(name: str, entry: dict[str, Any], folder: Path) -> str:
    """Checks that a cell gives samples, and all that is read beside them: GPUs of these years lack none of it."""
    watch = gpu.Watch(placement.visible_devices({}, 1)["CUDA_VISIBLE_DEVICES"].split(","))
    outcome = run_cell(name, entry, folder, (watch,))
    _refuse(outcome.status, outcome.reason, folder / "cell.log")
    times = sorted(seconds for _, seconds in outcome.samples)
    columns, facts = watch.columns(), watch.facts()
    missing = [key for key, value in columns.items() if value is None]
    if missing:
        raise Failure(f"not read: {', '.join(missing)}; read: {json.dumps(columns | facts)}")
    if not columns["device_utilisation"] or not columns["peak_device_memory_bytes"]:
        raise Failure(f"the GPU seems not to have been used: {json.dumps(columns | facts)}")
    done = outcome.events["done"]
    return (
        f"{TIMED}, mini-batch {BATCH}: median {_median(outcome):.3g} s, {times[0]:.3g} to {times[-1]:.3g} s, "
        f"{len(times)} samples, late by {done['late_seconds']:.2g} s; {json.dumps(columns | facts)}; "
        f"{json.dumps(outcome.events['ready']['settings'])}"
    )


def own_libraries(name: str, entry: dict[str, Any], folder: Path) -> str:
    """Checks that nothing is loaded from another CUDA in the user's LD_LIBRARY_PATH, here of empty files."""
    other = folder / f"other-{name}"
    other.mkdir()
    for number in range(8, 14):
        for library in ("cublas", "cublasLt", "cudart", "cudnn"):
            (other / f"lib{library}.so.{number}").touch()
    places = [str(other), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    with mock.patch.dict(os.environ, LD_LIBRARY_PATH=":".join(places)):
        outcome = run_cell(name, entry, folder)
    _refuse(outcome.status, outcome.reason, folder / "cell.log")
    taken = [path for path in outcome.libraries if "libcublas.so" in path or "libcudnn.so" in path]
    strange = [path for path in taken if path.startswith(str(other))]
    if strange:
        raise Failure(f"loaded from there: {', '.join(strange)}")
    return f"its own: {', '.join(taken) or 'none has cuBLAS or cuDNN in its name'}"


def full_is_told(name: str, entry: dict[str, Any], folder: Path) -> str:
    """Checks that a cell with too little memory is `out_of_memory`, and leaves the GPU free for the next one."""
    outcome = run_cell(name, entry, folder, variables=SCARCE)
    status, reason = outcome.status, outcome.reason
    if status != "out_of_memory" and not (status == "crashed" and gpu.was_full(reason)):
        raise Failure(f"it was {status} in place of out_of_memory: {reason}")
    if others := placement.at_work([placement.visible_devices({}, 1)["CUDA_VISIBLE_DEVICES"]]):
        raise Failure(f"the cell has ended, and {others}")
    return reason


def two_share(name: str, entry: dict[str, Any], folder: Path) -> str:
    """Checks that two ranks, each on its own GPU, train the specified network, and that a cell of them is timed."""
    if (count := len(placement.fitting_gpus({}))) < 2:
        return f"not checked, which is no fault: it takes two GPUs, and {count} may be used"
    adapter = exchanges.adapter_of(entry["adapter"], 2, "sync")
    shares, log = {"adapter": adapter, "exchange": "sync"}, folder / "two.log"
    job = network.job_of(name, entry) | shares | {"devices": 2}
    verdict, details = network.prove(job, specification(TIMED, True), "", log)
    _refuse(**verdict, log=log)
    outcome = run_cell(name, entry, folder, changes=shares | {"ranks": 2, "batch": 2 * BATCH})
    _refuse(outcome.status, outcome.reason, folder / "cell.log")
    settings = json.dumps(outcome.events["ready"]["settings"])
    return f"loss off by {details['loss_error']:.2g}; median {_median(outcome):.3g} s; {settings}"


def peak(standing: list[str]) -> str:
    """Measures products, copies and transfers."""
    if not standing:
        raise Failure("no environment is ready, so there is no cuBLAS to measure with")
    peak_row = gpu_peak.measure("local-gpu", standing)
    if "reason" in peak_row:
        raise Failure(peak_row["reason"])
    return json.dumps({name: peak_row[name] for name in PEAK})


def _median(outcome: Outcome) -> float:
    return median([seconds for _, seconds in outcome.samples])


def _refuse(status: str, reason: str, log: Path, **_: str) -> None:
    """Raises Failure where a worker failed, with the last lines that it printed."""
    lines = log.read_text(errors="replace").splitlines()[-5:] if log.is_file() else []
    if status != "ok":
        printed = f"; it printed: {' | '.join(lines)}" if lines else ""
        raise Failure(f"{status}: {reason}{printed}")


if __name__ == "__main__":
    main()
