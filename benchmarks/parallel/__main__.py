"""Our adapters of two devices beside plain data-parallel scripts of experts: time per mini-batch, ours / expert.

    .venv/bin/python benchmarks/parallel [--environment mxnet-1.9] [--pairs 3] [--seconds 240]

A pair is a cell of FCN-5 as the workflow times it, and `<adapter>_fcn.py`, a script that its ranks run as its users do.
Both have the same CPUs for each rank, and the environment
variables of `config/frameworks.yaml`, and both choose the code that a library of products takes. They follow one
another in the order A B B A ... Intervals are those of the mean of the pairs' logarithms (Student's t). Limit of the
project: 1.03.
"""

import argparse
import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import fmean, median

from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from cells import ROOT, configuration

from shared import declarations  # noqa: E402
from steptime import machine, networks
from steptime.cells.measure import fill
from steptime.environments import interpreter
from steptime.machine.variables import isolated  # noqa: E402
from steptime.plan import exchanges
from steptime.prove import network
from steptime.supervisor import ranks, supervise
from worker import contract

HERE = Path(__file__).parent
RANKS, BATCH = 2, 64
# As many steps as a script takes: the first ones of a process are slower, and steps that exchange differ by half.
SAMPLING = {"budget_seconds": 1.0, "precision": 0.001, "least_samples": 15}
LIMIT_SECONDS = 120
# Whose ranks have a server besides, with a port of its own.
SERVED = ("tensorflow1",)


def main() -> None:
    """Measures pairs as long as the time allows, and prints the ratio."""
    parser = argparse.ArgumentParser(description="Time ranks beside an expert's own script.")
    frameworks = ["torch", "tensorflow", "mxnet", "jax"]
    loaded = configuration.without_grid(ROOT)
    known = [name for each in frameworks for name in loaded.environments_of(each)]
    known += ["tensorflow-1.15"]
    parser.add_argument("--environment", choices=known, default=known[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no pair after these")
    options = parser.parse_args()
    os.chdir(ROOT)
    entry = loaded.entry_of(options.environment)
    spec = networks.specify("fcn5", loaded.networks)
    script = f"{entry['adapter']}_fcn.py"
    sides = {
        "ours": lambda: ours(options.environment, entry, spec),
        "expert": lambda: expert(options.environment, entry, script),
    }
    end = time.monotonic() + options.seconds
    logarithms = []
    order = list(sides)
    for _ in range(options.pairs):
        if time.monotonic() > end:
            break
        seconds = {name: sides[name]() for name in order}
        order.reverse()
        logarithms.append(math.log(seconds["ours"] / seconds["expert"]))
        print(
            f"{options.environment}: ours {1e3 * seconds['ours']:.4g} ms, expert {1e3 * seconds['expert']:.4g} ms, "
            f"ours / expert {math.exp(logarithms[-1]):.3f}",
            flush=True,
        )
    half = 0.0
    if len(logarithms) > 1:
        half = float(stats.t.ppf(0.975, len(logarithms) - 1) * stats.sem(logarithms))
    if logarithms:
        low, middle, high = (math.exp(fmean(logarithms) + by) for by in (-half, 0.0, half))
        print(f"ours / expert {middle:.3f} ({low:.3f} to {high:.3f}), {len(logarithms)} pairs")


def ours(environment: str, entry: dict, spec: dict) -> float:
    """Seconds per mini-batch of a cell."""
    adapter = exchanges.adapter_of(entry["adapter"], RANKS, "sync")
    job = {"adapter": adapter, "mode": entry["modes"][0], "devices": RANKS, "exchange": "sync"}
    asked = network.worker_job(job, spec) | {"task": "step", "batch": BATCH, "sampling": SAMPLING}
    prefix = interpreter.prefix_of(environment)
    with tempfile.TemporaryDirectory() as folder:
        outcome = supervise.run_worker(
            *(prefix, asked, machine.cpus_of_ranks(1, RANKS)),
            *(fill(entry["variables"], 1, job["mode"], prefix), LIMIT_SECONDS),
            *(int(machine.usable_bytes() * 0.8), Path(folder) / "log"),
        )
    if outcome.status != "ok":
        sys.exit(f"{environment}: {outcome.status}: {outcome.reason}")
    return median(seconds for _, seconds in outcome.samples)


def expert(environment: str, entry: dict, script: str) -> float:
    """Seconds per mini-batch of the script's own processes, by the clock of the first."""
    prefix, adapter = interpreter.prefix_of(environment), entry["adapter"]
    cpus = ranks.shares(machine.cpus_of_ranks(1, RANKS), RANKS)
    variables = fill(entry["variables"], 1, entry["modes"][0], prefix)
    library = contract.of_mode(declarations.declared(adapter)["KERNELS"], entry["modes"][0])
    variables |= {"KERNELS": library or ""}
    python = [prefix / "bin/python", HERE / script]
    known = ",".join(map(str, ranks.free_ports(RANKS + (adapter in SERVED))))
    commands = {(*python, str(rank), known): own for rank, own in enumerate(cpus)}
    if adapter in SERVED:
        # Last of all: it is not waited for.
        commands[(*python, "server", known)] = cpus[0]
    with tempfile.TemporaryDirectory() as folder:
        given = isolated(variables | supervise.own_folders(prefix, folder), "cpu", str(HERE))
        members = [
            subprocess.Popen(
                command,
                env=given,
                stdout=subprocess.PIPE,
                preexec_fn=partial(_prepare, own),
                text=True,
            )
            for command, own in commands.items()
        ]
        try:
            told = [member.communicate(timeout=LIMIT_SECONDS)[0] for member in members[:RANKS]]
            failed = any(member.returncode for member in members[:RANKS])
        finally:
            for member in members:
                member.kill()
    if failed:
        sys.exit(f"{script} failed.")
    return median(json.loads(told[0].splitlines()[-1]))


def _prepare(cpus: list[int]) -> None:
    """Runs in a rank before Python: its CPUs, and death with the parent."""
    os.sched_setaffinity(0, cpus)
    ctypes.CDLL(None).prctl(ranks.PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
