"""FCN-5 on several ranks as JAX's own guide to `shard_map` has it: python jax_fcn.py RANK PORT,PORT."""

import functools
import os
import sys

rank, ports = int(sys.argv[1]), sys.argv[2].split(",")
os.environ["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"
import jax  # noqa: E402
import numpy as np  # noqa: E402
import steps  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

jax.distributed.initialize(f"127.0.0.1:{ports[0]}", num_processes=len(ports), process_id=rank)
mesh = jax.make_mesh((len(ports),), ("rank",))
shared, whole = NamedSharding(mesh, PartitionSpec("rank")), NamedSharding(mesh, PartitionSpec())
sizes = [26752] + [2048] * 3 + [26752]
random = np.random.default_rng(0)
parameters = [
    {
        "w": (random.uniform(-1, 1, (m, n)) * (3 / m) ** 0.5).astype(np.float32),
        "b": np.zeros(n, np.float32),
    }
    for m, n in zip(sizes, sizes[1:], strict=False)
]
parameters = jax.tree.map(
    lambda value: jax.make_array_from_process_local_data(whole, value), parameters
)
batch = 64 // len(ports)
inputs, labels = (
    jax.make_array_from_process_local_data(shared, values)
    for values in (
        random.uniform(-1, 1, (batch, 26752)).astype(np.float32),
        random.integers(0, 26752, batch).astype(np.int32),
    )
)


def compute_loss(parameters, inputs, labels):
    for layer in parameters[:-1]:
        inputs = jax.nn.sigmoid(inputs @ layer["w"] + layer["b"])
    logits = inputs @ parameters[-1]["w"] + parameters[-1]["b"]
    answers = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -jnp.mean(answers)


# By `jit` and shardings alone, where the compiler puts the exchange in, it takes longer here.
@functools.partial(jax.jit, donate_argnums=0)
@functools.partial(
    jax.shard_map,
    mesh=mesh,
    in_specs=(PartitionSpec(), PartitionSpec("rank"), PartitionSpec("rank")),
    out_specs=(PartitionSpec(), PartitionSpec()),
    check_vma=False,
)
def train(parameters, inputs, labels):
    found = jax.value_and_grad(compute_loss)(parameters, inputs, labels)
    loss, gradients = jax.lax.pmean(found, "rank")
    return jax.tree.map(
        lambda value, gradient: value - 0.01 * gradient, parameters, gradients
    ), loss


def step():
    global parameters
    parameters, loss = jax.block_until_ready(train(parameters, inputs, labels))
    return loss


steps.clock(step)
