"""Measures what a GPU itself can do: operations of matrix products, bytes of its memory, bytes between it and the host.

    workflow/scripts/launch machine.gpu_peak --platform local-gpu --threads 2 --environments torch-1.4-cuda \
        --output results/peaks/local-gpu.json

The products are cuBLAS's: of float32 as it is, of float32 rounded to TF32, and of bfloat16, of the size in SIZES that
is fastest, on random numbers (zeros cost less power, and are faster). The bytes are those of copies within the GPU's
memory, counted as read and as written, as STREAM does. Transfers are counted once: from and to memory of the host that
is pinned, and that is not; and from the first GPU to each other one that the platform has. The GPU's own events time
all of them. The libraries are those of one of the environments; no framework is imported. Where the peak cannot be
measured, the file has a `reason` and no numbers.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shared.precisions import PRECISIONS
from steptime import machine, project
from steptime.atomic import write_json
from steptime.machine import gpu, placement
from steptime.machine.alone import alone
from steptime.machine.variables import isolated
from steptime.project import SCRIPTS

SIZES = (2048, 4096, 8192)
SECONDS = 0.3  # for each product and each copy
DEVICE_BYTES = 2**30
HOST_BYTES = 2**28
# As `cublas` of a precision says it.
PRODUCTS = {name: each.cublas for name, each in PRECISIONS.items()}
FLOAT32, PLAIN, TRANSPOSED, DEFAULT = 0, 0, 1, -1
# What cudaDeviceEnablePeerAccess says where it was done before.
ALREADY = 704
ONE_GPU = "only one GPU is measured: write how many there are under 'devices' of the platform"
TO_DEVICE, TO_HOST, WITHIN = 1, 2, 3
FAILURES = {
    2: "the GPU's memory is full",
    35: "the driver is older than this version of CUDA",
    100: "there is no GPU",
    803: "the driver's parts are of two versions: restart the machine",
}


class CudaError(Exception):
    """A call of CUDA's failed; the text is a clause that says why."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the peak of a GPU.")
    parser.add_argument("--platform", required=True)
    parser.add_argument("--threads", required=True, type=int, nargs="+", help="of its cells")
    parser.add_argument("--environments", required=True, nargs="+", help="with CUDA's libraries")
    parser.add_argument("--output", type=Path, help="without it, one GPU is measured and printed")
    options = parser.parse_args()
    if options.output is None:
        try:
            print(json.dumps(measure_here(find_libraries(options.environments))))
        except CudaError as error:
            sys.exit(f"The peak of {options.platform} is not known: {error}.")
        return
    described = machine.describe()
    found = measure(options.platform, options.environments)
    content = {
        "machine_id": machine.identify(described),
        "cpu": described["cpu"],
        "gpus": described["gpus"],
        "reason": found.pop("reason", ""),
        # A cell's threads are of the host, and change nothing of this.
        "threads": dict.fromkeys(map(str, options.threads), found) if found else {},
    }
    write_json(options.output, content)
    if content["reason"]:
        print(f"The peak of {options.platform} is not known: {content['reason']}.", file=sys.stderr)


def measure(platform: str, environments: list[str]) -> dict[str, Any]:
    """Returns what `measure_here` returns in a process that sees a cell's GPUs; {"reason"} where it fails."""
    try:
        libraries = find_libraries(environments)
    except CudaError as error:
        return {"reason": str(error)}
    needs = placement.entry(platform)
    shown = placement.visible_devices(needs, needs.get("devices", 1))
    command = [sys.executable, "-m", "steptime", "machine.gpu_peak", "--platform", platform]
    command += ["--threads", "1", "--environments", *environments]
    with alone(), tempfile.TemporaryDirectory() as scratch:
        places = [*dict.fromkeys(str(each.parent) for each in libraries.values())]
        places += filter(None, [gpu.driver_links(Path(scratch) / "driver")])
        folder = project.environment("any").absolute().parent
        told = {"LD_LIBRARY_PATH": ":".join(places), "STEPTIME_ENVIRONMENTS": str(folder)}
        clean = isolated(shown | told, "gpu", str(SCRIPTS))
        done = subprocess.run(command, env=clean, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"reason": f"CUDA's libraries failed ({last[:200]})"}


def find_libraries(environments: list[str]) -> dict[str, Path]:
    """Returns the paths of CUDA's run time and of cuBLAS, by their names, from the first environment that has both."""
    for name in environments:
        packages = project.environment(name).absolute() / "lib"
        found = {
            library: sorted(packages.glob(f"python*/site-packages/nvidia/**/{library}.so.*"))
            for library in ("libcudart", "libcublasLt", "libcublas")
        }
        if all(found.values()):
            return {library: paths[0] for library, paths in found.items()}
    names = ", ".join(environments)
    raise CudaError(f"none of {names} stands and has CUDA's libraries as packages")


def measure_here(libraries: dict[str, Path]) -> dict[str, Any]:
    """Measures the first GPU that this process sees: `flops_per_second` of float32, `bytes_per_second`, each product,
    copy and transfer that it can do, and `peers` (`peer_speed`); {"reason"} where a call fails.
    """
    try:
        cuda = Cuda(libraries)
        products = {name: product_speeds(cuda, *how) for name, how in PRODUCTS.items()}
        copied = 2 * copy_speed(cuda, WITHIN, "device")
        transfers = {
            f"{way}_{kind}": copy_speed(cuda, direction, kind)
            for way, direction in (("to_device", TO_DEVICE), ("to_host", TO_HOST))
            for kind in ("pinned", "pageable")
        }
        peers = [peer_speed(cuda, device) for device in range(1, cuda.count())]
    except CudaError as error:
        return {"reason": str(error)}
    size = max(products["float32"], key=products["float32"].__getitem__)
    return {
        "flops_per_second": products["float32"][size],
        "product": size,
        "products": products["float32"],
        "precisions": {name: max(found.values()) for name, found in products.items() if found},
        "blas": f"cuBLAS {libraries['libcublas'].name.partition('.so.')[2]}",
        "bytes_per_second": copied,
        "stream": "copy",
        "streams": {"copy": copied},
        "transfers": transfers,
        "peers": peers,
        "no_peers": "" if peers else ONE_GPU,
        "disturbed": False,
    }


def product_speeds(cuda: "Cuda", kind: int, computed: int) -> dict[int, float]:
    """Returns operations per second of products of square matrices of a `kind` of numbers, 2 size^3 each, by size."""
    found = {}
    for size in SIZES:
        width = 4 if kind == FLOAT32 else 2
        random = np.random.default_rng(1).standard_normal((size, size), np.float32)
        # The upper half of a float32 is a bfloat16.
        values = random if width == 4 else random.view(np.uint16)[:, 1::2].copy()
        with cuda.memory(values.nbytes) as one, cuda.memory(4 * size * size) as result:
            cuda.copy(one, values.ctypes.data, values.nbytes, TO_DEVICE)
            if not cuda.multiply(size, one, result, kind, computed):
                return {}
            work = partial(cuda.multiply, size, one, result, kind, computed)
            seconds = shortest(cuda, work)
        found[size] = 2 * size**3 / seconds
    return found


def copy_speed(cuda: "Cuda", direction: int, kind: str) -> float:
    """Returns bytes per second of copies within the GPU, or between it and a kind of the host's memory."""
    size = DEVICE_BYTES if direction == WITHIN else HOST_BYTES
    other = {"device": cuda.memory, "pinned": cuda.pinned, "pageable": pageable}[kind]
    with cuda.memory(size) as here, other(size) as there:
        source, target = (there, here) if direction == TO_DEVICE else (here, there)
        return size / shortest(cuda, partial(cuda.copy, target, source, size, direction))


def peer_speed(cuda: "Cuda", device: int) -> dict[str, Any]:
    """Returns `bytes_per_second` from the first GPU to another, and whether `directly`, not through the host."""
    directly = cuda.reach(device)
    with cuda.memory(HOST_BYTES) as here, cuda.memory(HOST_BYTES, device) as there:
        work = partial(cuda.copy_to_peer, there, device, here, HOST_BYTES)
        speed = HOST_BYTES / shortest(cuda, work)
    return {"device": device, "bytes_per_second": speed, "directly": directly}


def shortest(cuda: "Cuda", work: Callable[[], Any]) -> float:
    """Returns the seconds of `work`, the fastest of many blocks that the GPU's events time."""
    work()
    once = cuda.seconds(work, 1)
    times = max(1, int(SECONDS / 5 / max(once, 1e-7)))
    return min(cuda.seconds(work, times) / times for _ in range(5))


@contextmanager
def pageable(size: int) -> Iterator[int]:
    """Yields ordinary memory of the host that was written to once."""
    values = np.ones(size, np.uint8)
    yield values.ctypes.data


class Cuda:
    """The few calls of CUDA that are needed, from libraries given by their paths. They raise CudaError."""

    def __init__(self, libraries: dict[str, Path]) -> None:
        try:
            # cuBLAS asks for its other part by name.
            ctypes.CDLL(str(libraries["libcublasLt"]), ctypes.RTLD_GLOBAL)
            self.runtime = ctypes.CDLL(str(libraries["libcudart"]))
            self.blas = ctypes.CDLL(str(libraries["libcublas"]))
        except OSError as error:
            raise CudaError(f"a library does not load ({error})") from error
        self.count()
        self.handle, self.begun, self.ended = (ctypes.c_void_p() for _ in range(3))
        self._check(self.blas.cublasCreate_v2(ctypes.byref(self.handle)), "cublasCreate", {})
        for event in (self.begun, self.ended):
            self.call("cudaEventCreate", ctypes.byref(event))

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the run time."""
        self._check(getattr(self.runtime, name)(*arguments), name, FAILURES)

    def count(self) -> int:
        """Returns how many GPUs this process sees."""
        number = ctypes.c_int()
        self.call("cudaGetDeviceCount", ctypes.byref(number))
        return number.value

    @contextmanager
    def memory(self, size: int, device: int = 0) -> Iterator[int]:
        """Yields the address of memory of a GPU."""
        address = ctypes.c_void_p()
        self.call("cudaSetDevice", device)
        self.call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(size))
        self.call("cudaSetDevice", 0)
        try:
            yield address.value or 0
        finally:
            self.call("cudaFree", address)

    @contextmanager
    def pinned(self, size: int) -> Iterator[int]:
        """Yields the address of pinned memory of the host."""
        address = ctypes.c_void_p()
        self.call("cudaMallocHost", ctypes.byref(address), ctypes.c_size_t(size))
        try:
            yield address.value or 0
        finally:
            self.call("cudaFreeHost", address)

    def copy(self, target: int, source: int, size: int, direction: int) -> None:
        """Copies bytes; with pinned memory, it may return before they have arrived."""
        pointers = ctypes.c_void_p(target), ctypes.c_void_p(source), ctypes.c_size_t(size)
        self.call("cudaMemcpyAsync", *pointers, direction, None)

    def reach(self, device: int) -> bool:
        """Lets the first GPU write to the memory of another `device`; False where no direct way joins them."""
        able = ctypes.c_int()
        self.call("cudaDeviceCanAccessPeer", ctypes.byref(able), 0, device)
        if able.value:
            code = self.runtime.cudaDeviceEnablePeerAccess(device, 0)
            self._check(0 if code == ALREADY else code, "cudaDeviceEnablePeerAccess", FAILURES)
        return bool(able.value)

    def copy_to_peer(self, target: int, device: int, source: int, size: int) -> None:
        """Copies bytes from the first GPU to another `device`."""
        pointers = ctypes.c_void_p(target), device, ctypes.c_void_p(source), 0
        self.call("cudaMemcpyPeerAsync", *pointers, ctypes.c_size_t(size), None)

    def multiply(self, size: int, values: int, result: int, kind: int, computed: int) -> bool:
        """Multiplies a square matrix by its transpose; returns False where this kind of numbers is not known."""
        one, none = ctypes.c_float(1), ctypes.c_float(0)
        matrix = ctypes.c_void_p(values), kind, size
        factors = ctypes.byref(one), *matrix, *matrix, ctypes.byref(none)
        product = ctypes.c_void_p(result), FLOAT32, size
        sizes = size, size, size
        code = self.blas.cublasGemmEx(
            self.handle, PLAIN, TRANSPOSED, *sizes, *factors, *product, computed, DEFAULT
        )
        # CUBLAS_STATUS_INVALID_VALUE, _ARCH_MISMATCH, _NOT_SUPPORTED.
        if code in (7, 8, 15):
            return False
        self._check(code, "cublasGemmEx", {})
        return True

    def seconds(self, work: Callable[[], Any], times: int) -> float:
        """Returns seconds between two events of the GPU around so many times of `work`."""
        self.call("cudaEventRecord", self.begun, None)
        for _ in range(times):
            work()
        self.call("cudaEventRecord", self.ended, None)
        self.call("cudaEventSynchronize", self.ended)
        passed = ctypes.c_float()
        self.call("cudaEventElapsedTime", ctypes.byref(passed), self.begun, self.ended)
        return passed.value / 1000

    def _check(self, code: int, name: str, known: dict[int, str]) -> None:
        if code:
            raise CudaError(known.get(code, f"{name} failed with code {code}"))


if __name__ == "__main__":
    main()
