"""Open MPI among ranks that the supervisor has started, and not its `mpirun`.

Open MPI tells processes by their environment variables who they are, and whom to ask about the others. Its own `mpirun`
starts a program for each rank, beside rank 0. The program puts its variables down in the folder in which ranks meet
(see `worker.ranks`), and rests. The rank takes them for its own.
"""

import ctypes
import json
import os
import sys
import time

from . import ranks
from .contract import Unsupported

WAIT_SECONDS = 0.01
# Which variables are of Open MPI.
OWN = ("OMPI_", "OPAL_", "ORTE_", "PMIX_")
# Messages go through memory that the ranks have in common. Its files lie where the supervisor takes them away.
SETTINGS = {
    "btl": "self,vader",
    "btl_vader_backing_directory": "{folder}",
    "orte_tmpdir_base": "{folder}",
    # On this machine alone, whatever a cluster's variables say.
    "plm": "isolated",
    "ras": "simulator",
    "pml": "ob1",
    # Each rank has CPUs of its own, however many there are.
    "mpi_yield_when_idle": "0",
}
RESTS = ranks.ENDS_WITH_PARENT + "from worker import openmpi; openmpi.rest()"
COMM_WORLD, FLOAT, SUM = "ompi_mpi_comm_world", "ompi_mpi_float", "ompi_mpi_op_sum"
# MPI_IN_PLACE and MPI_THREAD_SERIALIZED of mpi.h.
IN_PLACE, SERIALIZED = 1, 2
_LOADED = []


def load():
    """Loads the environment's library for all that is loaded later. Raises Unsupported where there is none."""
    if not _LOADED:
        path = os.path.join(sys.prefix, "lib", "libmpi.so.40")
        if not os.path.exists(path):
            raise Unsupported("this environment has no Open MPI (the package openmpi)")
        _LOADED.append(ctypes.CDLL(path, ctypes.RTLD_GLOBAL))
    return _LOADED[0]


def join(job):
    """Tells Open MPI who this rank is. Raises Unsupported, or RuntimeError where `mpirun` has ended."""
    ranks.require_own_network("Open MPI")
    manager = job.rank == 0 and ranks.start("from worker import openmpi; openmpi.manage()")
    place = _place(job.rank)
    while not os.path.exists(place):
        if manager and manager.poll() is not None:
            raise RuntimeError("mpirun has ended with {}".format(manager.returncode))
        time.sleep(WAIT_SECONDS)
    with open(place) as lines:
        os.environ.update(json.load(lines))


def manage():
    """Becomes the `mpirun` of as many programs as there are ranks."""
    command = ["mpirun", "-n", str(len(ranks.endpoints())), "--oversubscribe", "--bind-to", "none"]
    for name, value in SETTINGS.items():
        command += ["--mca", name, value.format(folder=os.environ["STEPTIME_MEETING"])]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    os.execve(
        os.path.join(sys.prefix, "bin", "mpirun"),
        command + [sys.executable, "-c", RESTS],
        dict(os.environ, OPAL_PREFIX=sys.prefix, **allowed),
    )


def rest():
    """Puts the variables down that `mpirun` has given this program, and does nothing more."""
    own = {name: value for name, value in os.environ.items() if name.startswith(OWN)}
    place = _place(own["OMPI_COMM_WORLD_RANK"])
    with open(place + ".part", "w") as lines:
        json.dump(own, lines)
    os.rename(place + ".part", place)
    while True:
        time.sleep(3600)


def start():
    """Initialises MPI, where the framework does not do it."""
    load().MPI_Init_thread(None, None, SERIALIZED, ctypes.byref(ctypes.c_int()))


def add_up(values):
    """Sums an array of float32 over all ranks, in its place."""
    library = load()
    kind, operation, everyone = (_handle(name) for name in (FLOAT, SUM, COMM_WORLD))
    failed = library.MPI_Allreduce(
        ctypes.c_void_p(IN_PLACE),
        ctypes.c_void_p(values.ctypes.data),
        *(ctypes.c_int(values.size), kind, operation, everyone),
    )
    if failed:
        raise RuntimeError("MPI_Allreduce has failed with {}".format(failed))


def _handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(load(), name)))


def _place(rank):
    return os.path.join(os.environ["STEPTIME_MEETING"], "openmpi.{}".format(rank))
