"""The exchange alone: sums of an array of each of two ranks, by each framework's own way, beside a copy in memory.

    python benchmarks/exchange --environments torch-2.13 mxnet-1.9 --largest 64

algbw is bytes of the array divided by seconds, busbw what each rank sends of it: algbw * 2 (n - 1) / n for n ranks. CPU
is the CPU seconds of rank 0 in a second.
"""

import argparse
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

SMALLEST = 2**12
LIMIT_SECONDS = 600
EXACT = 0.0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="What sums over ranks take.")
    known = ["torch-2.13", "tensorflow-2.21", "mxnet-1.9", "jax-0.12", "paddle-3.3"]
    parser.add_argument("--environments", nargs="+", default=known)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--largest", type=int, default=512, help="MiB")
    options = parser.parse_args()
    os.chdir(ROOT)
    loaded = configuration.load(ROOT, {"grid": "quick"})
    sizes = [SMALLEST]
    while sizes[-1] * 2 <= options.largest * 2**20:
        sizes.append(sizes[-1] * 2)
    print("environment           KiB        ms  algbw GB/s  busbw GB/s   CPU  copy GB/s")
    with tempfile.TemporaryDirectory() as folder:
        worker = Path(folder) / "worker"
        shutil.copytree(supervise.WORKER, worker)
        for task in ("step", "follow"):
            shutil.copy(Path(__file__).parent / "reduce.py", worker / f"tasks/{task}.py")
        supervise.WORKER = worker
        for environment in options.environments:
            entry = loaded.entry_of(environment)
            outcome = summed(environment, entry, sizes, options.ranks, Path(folder) / "log")
            if outcome.status != "ok":
                sys.exit(f"{environment}: {outcome.status}: {outcome.reason}")
            for size, seconds, used, error, copy in outcome.events["done"]["sums"]:
                if error > EXACT:
                    sys.exit(f"{environment}: a sum of {size} bytes is off by {error:g}")
                rate = size / seconds / 1e9
                print(
                    f"{environment:18}{size / 1024:7.0f}{1e3 * seconds:10.3f}{rate:12.3f}"
                    f"{rate * 2 * (options.ranks - 1) / options.ranks:12.3f}"
                    f"{used / seconds:6.2f}{size / copy / 1e9:11.1f}",
                    flush=True,
                )


def summed(environment, entry, sizes, ranks, log) -> supervise.Outcome:
    """What the ranks of a framework have told of their sums."""
    adapter = exchanges.adapter_of(entry["adapter"], ranks, "sync")
    job = {"adapter": adapter, "mode": entry["modes"][0], "devices": ranks, "exchange": "sync"}
    asked = network.worker_job(job, networks.tiny("dense")) | {"task": "step", "sizes": sizes}
    prefix = interpreter.prefix_of(environment)
    return supervise.run_worker(
        prefix,
        asked,
        machine.cpus_of_ranks(1, ranks),
        fill(entry["variables"], 1, job["mode"], prefix),
        LIMIT_SECONDS,
        int(machine.usable_bytes() * 0.8),
        log,
    )


if __name__ == "__main__":
    main()
