"""Sums over ranks of JAX, each alone (see `worker.tasks.sums`)."""

import os

import numpy as np
from jax import (
    block_until_ready,
    devices,
    jit,
    lax,
    make_array_from_process_local_data,
    shard_map,
)
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...parts import Operation
from . import ranks as jax_ranks

MODES = jax_ranks.MODES
EXCHANGES = jax_ranks.EXCHANGES
TASKS = ("sums",)
REASONS = {
    "gpu": "sums of gradients are timed on CPUs only",
    "async": "the adapter of JAX shares gradients by `sync` only",
}
versions = jax_ranks.versions


def start(job):
    """Joins the ranks."""
    jax_ranks.meet(job)
    return {"threads": os.environ["NPROC"], "settings": {"exchange": "psum over gloo"}}


def build(part):
    """A compiled sum, whose result takes the place of what it was given."""
    mesh, one = Mesh(np.array(devices()), ("rank",)), PartitionSpec("rank")
    kept = [make_array_from_process_local_data(NamedSharding(mesh, one), part.values[None])]
    total = shard_map(lambda own: lax.psum(own, "rank"), mesh=mesh, in_specs=one, out_specs=one)
    step = jit(total, donate_argnums=0).lower(kept[0]).compile()

    def run(times):
        for _ in range(times):
            kept[0] = step(kept[0])
        block_until_ready(kept[0])

    # A copy: the next sum writes over what is looked at.
    return Operation(run, lambda: np.array(kept[0].addressable_data(0)))
