"""A straggler: two ranks, one of which has half of its CPU, since something else computes there.

    python benchmarks/stragglers --environments torch-2.13 tensorflow-1.15 --steps 200

Where ranks wait for one another (`sync`), both are as slow as the slower one; where they do not (`async`), the other
goes on. The network is a narrow one with a large mini-batch: little to exchange, and steps of milliseconds. Told are
updates a second of each rank in its own steps, by itself and beside a program on the CPU of rank 1.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cells import ROOT, configuration

from steptime import machine, networks
from steptime.cells.measure import fill
from steptime.environments import interpreter
from steptime.plan import exchanges
from steptime.prove import network
from steptime.supervisor import supervise

WARM_CALLS = 1
LIMIT_SECONDS = 300


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="What a slow rank costs the other one.")
    parser.add_argument("--environments", nargs="+", default=["torch-2.13", "tensorflow-1.15"])
    parser.add_argument("--network", default="fcn5")
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    os.chdir(ROOT)
    loaded = configuration.load(ROOT, {"grid": "quick"})
    spec = networks.specify(options.network, loaded.networks, narrow=True)
    print(
        f"narrow {options.network}, mini-batch {options.batch}, 2 ranks of 1 thread, {options.steps} steps of each"
    )
    print("updates a second of rank 0 and rank 1, alone; beside a program on the CPU of rank 1")
    with tempfile.TemporaryDirectory() as folder:
        worker = Path(folder) / "worker"
        shutil.copytree(supervise.WORKER, worker)
        shutil.copy(Path(__file__).parent / "straggle.py", worker / "tasks/step.py")
        supervise.WORKER = worker
        for environment in options.environments:
            entry = loaded.entry_of(environment)
            for exchange in exchanges.of_adapter(entry["adapter"]):
                told = [
                    "{:.4g} and {:.4g}".format(
                        *rates(environment, entry, exchange, spec, options, beside, Path(folder))
                    )
                    for beside in (False, True)
                ]
                print(f"{environment:18} {exchange:6} {'; '.join(told)}", flush=True)


def rates(environment, entry, exchange, spec, options, beside, folder) -> tuple[float, float]:
    """Updates a second of both ranks, each in its own steps."""
    job = {
        "adapter": exchanges.adapter_of(entry["adapter"], 2, exchange),
        "mode": entry["modes"][0],
        "devices": 2,
        "exchange": exchange,
    }
    asked = network.worker_job(job, spec) | {"task": "step", "batch": options.batch}
    cpus, prefix = machine.cpus_of_ranks(1, 2), interpreter.prefix_of(environment)
    other = multiprocessing.Process(target=compute, args=(cpus[1],), daemon=True)
    if beside:
        other.start()
    try:
        outcome = supervise.run_worker(
            prefix,
            asked | {"steps": options.steps},
            cpus,
            fill(entry["variables"], 1, job["mode"], prefix),
            LIMIT_SECONDS,
            int(machine.usable_bytes() * 0.8),
            folder / "log",
        )
    finally:
        if beside:
            other.kill()
            other.join()
    if outcome.status != "ok":
        sys.exit(f"{environment}, {exchange}: {outcome.status}: {outcome.reason}")
    (steps, seconds, _), *_ = outcome.ranks[1]["blocks"][WARM_CALLS:]
    return options.steps / outcome.events["done"]["own"], steps / seconds


def compute(cpu: int) -> None:
    """Computes for ever on a CPU."""
    os.sched_setaffinity(0, {cpu})
    while True:
        sum(range(10**6))


if __name__ == "__main__":
    main()
