"""Measures what this machine itself can do at each thread count: float32 operations and bytes of memory per second.

    workflow/scripts/launch machine.peak --threads 1 2 --output results/peaks/local-cpu.json
    workflow/scripts/launch machine.peak --threads 2      prints what this very process reaches

The operations are those of matrix products with numpy's BLAS: one product on each thread at a time, of the size in
SIZES that is fastest. The bytes are those of STREAM (McCalpin 1995, "Memory bandwidth and machine balance in current
high performance computers"): bytes that a program reads and writes, of the fastest of copy, scale and add, on arrays of
at least four times the last cache. Both are the best that a library call was seen to reach, not a data sheet's number:
better kernels, or an algorithm that needs fewer operations than are counted (Winograd's), can come out above them.

Each thread count is measured in a process of its own with a worker's clean environment, since a variable of the shell
such as OPENBLAS_CORETYPE would halve it. While something else is at work on the machine, it is measured again, up to
TRIES times; if that does not help, the peak says that it is low.
"""

import argparse
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from steptime import machine
from steptime.atomic import write_json
from steptime.machine import interference, topology
from steptime.machine.alone import alone
from steptime.machine.variables import isolated
from steptime.plain import plural
from steptime.project import SCRIPTS

SIZES = (512, 1024, 2048)
SECONDS = 0.6  # for each size of a product and each memory kernel
PASS_OPERATIONS = 8e9  # of one thread between two looks at the clock, so that these cost nothing
LEAST_BYTES = 2**28
TRIES = 4
DISK_BYTES = 2**28
BLOCK_BYTES = 2**22
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the peak of this machine.")
    parser.add_argument("--threads", required=True, type=int, nargs="+", help="thread counts")
    parser.add_argument("--output", type=Path, help="without it, one thread count is printed")
    options = parser.parse_args()
    if options.output is None:
        print(json.dumps(measure_here(options.threads[0])))
        return
    described = machine.describe()
    content = {
        "machine_id": machine.identify(described),
        "cpu": described["cpu"],
        "threads": {str(threads): measure(threads) for threads in options.threads},
        "disk_bytes_per_second": disk_speed(options.output.parent),
    }
    write_json(options.output, content)


def measure(threads: int) -> dict[str, Any]:
    """Returns what `measure_once` returns, of the first undisturbed try, or else the fastest (`disturbed`)."""
    tries: list[dict[str, Any]] = []
    with alone():
        while len(tries) < TRIES and not (tries and not tries[-1]["disturbed"]):
            tries.append(measure_once(threads))
    quiet = [found for found in tries if not found["disturbed"]]
    if not quiet:
        print(
            f"Other programs disturbed all {TRIES} measurements of the peak of {plural(threads, 'thread')}: it is "
            "marked.",
            file=sys.stderr,
        )
    return max(quiet or tries, key=lambda found: found["flops_per_second"])


def measure_once(threads: int) -> dict[str, Any]:
    """Returns what `measure_here` returns in a new process, in which the BLAS reads its variables afresh."""
    command = [sys.executable, "-m", "steptime.machine.peak", "--threads", str(threads)]
    clean = isolated(ONE_THREAD, "cpu", str(SCRIPTS))
    done = subprocess.run(command, env=clean, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(
            f"The peak of {plural(threads, 'thread')} could not be measured: exit code {done.returncode}."
        )
    return json.loads(done.stdout)


def measure_here(threads: int) -> dict[str, Any]:
    """Measures this process on a cell's CPUs with as many threads.

    Returns `flops_per_second`, `bytes_per_second`, each size (`products`) and kernel (`streams`), and the interference
    during the measurement.
    """
    cpus = machine.cpus_for(threads)
    os.sched_setaffinity(0, cpus)
    before, cpu, clock = interference.snapshot(cpus), time.process_time(), time.perf_counter()
    flops = {size: product_speed(size, threads) for size in SIZES}
    array_bytes = max(LEAST_BYTES, 4 * last_cache_bytes())
    streams = {name: stream_speed(name, array_bytes, threads) for name in STREAMS}
    wall, cpu = time.perf_counter() - clock, time.process_time() - cpu
    seen = interference.between([before, interference.snapshot(cpus)], wall, cpu)
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    size, stream = max(flops, key=flops.__getitem__), max(streams, key=streams.__getitem__)
    return {
        "flops_per_second": flops[size],
        "product": size,
        "products": flops,
        "blas": f"{blas.get('name')} {blas.get('version')} of numpy {np.__version__}",
        "bytes_per_second": streams[stream],
        "stream": stream,
        "streams": streams,
        "array_bytes": array_bytes,
        **seen,
        "disturbed": interference.disturbed(seen),
    }


def disk_speed(folder: Path, total: int = DISK_BYTES) -> float | None:
    """Returns bytes per second when a folder's new file is read, past the kernel's cache; None where it has no disk."""
    block = mmap.mmap(-1, BLOCK_BYTES)
    block.write(os.urandom(BLOCK_BYTES))
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file, alone():
            for _ in range(total // BLOCK_BYTES):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            # Into memory that is aligned as a disk's blocks are.
            with open(file.name, "rb", buffering=0, opener=_past_cache) as reading:
                start, read = time.perf_counter(), 0
                while count := reading.readinto(block):
                    read += count
                return read / (time.perf_counter() - start)
    except OSError:
        return None


def _past_cache(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_DIRECT)


def product_speed(size: int, threads: int) -> float:
    """Returns operations per second of float32 products of square matrices, 2 size^3 each, one on each thread."""
    operations = 2 * size**3
    times = max(1, round(PASS_OPERATIONS / operations))

    def prepare() -> Callable[[], None]:
        one, other = np.random.default_rng(1).random((2, size, size), np.float32)
        result = np.empty_like(one)

        def multiply() -> None:
            for _ in range(times):
                np.matmul(one, other, out=result)

        return multiply

    return threads * times * operations / shortest_pass(prepare, threads)


def stream_speed(name: str, array_bytes: int, threads: int) -> float:
    """Returns bytes read and written per second by a memory kernel on `array_bytes`, shared by all threads."""
    touched, kernel = STREAMS[name]
    length = array_bytes // 4 // threads

    def prepare() -> Callable[[], None]:
        # The thread that works on them makes them, so that they are in its part of the memory.
        source, target = np.ones(length, np.float32), np.zeros(length, np.float32)
        return lambda: kernel(source, target)

    return threads * touched * length * 4 / shortest_pass(prepare, threads)


def shortest_pass(prepare: Callable[[], Callable[[], None]], threads: int) -> float:
    """Returns seconds of the shortest pass within SECONDS; every thread calls once what `prepare` returned."""
    stamps: list[float] = []
    barrier = threading.Barrier(threads, action=lambda: stamps.append(time.perf_counter()))

    def work_in_step() -> None:
        try:
            work = prepare()
            while True:
                barrier.wait()
                # No thread can add a stamp before all have come here again, so all decide alike.
                if len(stamps) > 3 and stamps[-1] - stamps[0] >= SECONDS:
                    return
                work()
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work_in_step) for _ in range(threads)]:
            done.result()
    return min(after - before for before, after in zip(stamps, stamps[1:], strict=False))


def last_cache_bytes() -> int:
    """Returns the bytes of all last-level caches of the machine together; 0 where the kernel does not say."""
    caches = [cache for package in topology.packages() for cache in package["caches"]]
    last = max((cache["level"] for cache in caches), default=0)
    return sum(cache["bytes"] for cache in caches if cache["level"] == last)


# What STREAM counts for each element, in arrays read or written, and the kernel. None of them holds the GIL.
STREAMS: dict[str, tuple[int, Callable[[np.ndarray, np.ndarray], Any]]] = {
    "copy": (2, lambda source, target: np.copyto(target, source)),
    "scale": (2, lambda source, target: np.multiply(source, np.float32(3), out=target)),
    "add": (3, lambda source, target: np.add(source, target, out=target)),
}


if __name__ == "__main__":
    main()
