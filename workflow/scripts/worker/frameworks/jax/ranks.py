"""JAX on several ranks: processes whose compiled steps average their gradients over gloo, on GPUs over NCCL."""

import functools
import os

import numpy as np
from jax import (
    block_until_ready,
    device_put,
    devices,
    distributed,
    jit,
    lax,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    shard_map,
    value_and_grad,
)
from jax import numpy as jnp
from jax._src import distributed as joined
from jax._src import xla_bridge
from jax._src.lib import _jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shared import specification
from shared.operations import repeated

from ... import ranks
from ...contract import Unsupported
from .. import jax

OPTIMISERS = ("sgd",)
PRECISIONS = ("float32", "tf32")
TASKS = ("step", "stragglers", "sums", "training", "follow")
REASONS = {"async": "the adapter of JAX shares gradients by `sync` only"}

# Numbers: a sum by gloo takes 3.5 ms, however short it is.
SHORT = 2**20


@ranks.joined
def build(job):
    """Returns a rank's own trainer, on its share of the mini-batch."""
    if any(specification.rate_of(node) for node in job.spec["nodes"]):
        raise Unsupported("the adapter of JAX draws no masks of dropout on several devices")
    meet(job)
    return _Trainer(job)


def meet(job):
    """Joins the ranks, once."""
    if joined.global_state.client is not None:
        return
    place, interface = ranks.endpoints()[0], ranks.interface()
    os.environ["NCCL_SOCKET_IFNAME"] = interface
    distributed.initialize(
        place,
        num_processes=job.ranks,
        process_id=job.rank,
        # By itself it listens on every interface, and looks for clusters.
        coordinator_bind_address=place,
        cluster_detection_method="deactivate",
    )
    # By itself gloo asks for the machine's own name, which need not be known.
    collectives = _jax.make_gloo_tcp_collectives(
        distributed_client=joined.global_state.client, interface=interface
    )
    make = functools.partial(xla_bridge.make_cpu_client, collectives)
    xla_bridge.register_backend_factory("cpu", make, priority=0, fail_quietly=False)


def _mean(loss, gradients):
    """Averages loss and gradients over the ranks, within a step; short gradients and the loss as one array."""
    short = [name for name in sorted(gradients) if gradients[name].size <= SHORT]
    long = {name: gradient for name, gradient in gradients.items() if name not in short}
    whole = jnp.concatenate([loss[None]] + [gradients[name].ravel() for name in short])
    whole, means = lax.pmean((whole, long), "rank")
    places = np.cumsum([1] + [gradients[name].size for name in short])
    for name, start, end in zip(short, places, places[1:]):
        means[name] = whole[start:end].reshape(gradients[name].shape)
    return whole[0], means


class _Trainer(object):
    def __init__(self, job):
        on_gpu = job.device == "gpu"
        mesh = Mesh(np.array(devices(job.device)), ("rank",))
        one, all_of_them = PartitionSpec("rank"), PartitionSpec()
        self._shared, self._everywhere = NamedSharding(mesh, one), NamedSharding(mesh, all_of_them)
        self._place = jax.place_of(job)
        self._layout, self._ranks = job.layout, job.ranks
        self._values = {
            # A copy: each step writes over it.
            name: self._alike(jnp.array(job.take(name), device=self._place))
            for name in job.layout.names
        }
        # Without what masks are drawn from.
        loss_of = functools.partial(jax.compute_loss, job.spec, None)

        def train(values, batch, answers, rate):
            found = value_and_grad(loss_of)(values, batch[0], answers[0])
            loss, gradients = _mean(*found)
            return {name: values[name] - rate * gradients[name] for name in values}, loss

        sharded = shard_map(
            train,
            mesh=mesh,
            in_specs=(all_of_them, one, one, all_of_them),
            out_specs=(all_of_them, all_of_them),
            check_vma=False,
        )
        self._fed_step = jit(sharded, donate_argnums=0)
        self._fed = *self._placed(*ranks.share(job)), self._rate(job.learning_rate)
        # Here and not in the first step: it takes seconds.
        self._step = self._fed_step.lower(self._values, *self._fed).compile()
        self._judge = jit(functools.partial(jax.logits, job.spec["nodes"], None))
        self.parameters = sum(value.size for value in self._values.values())
        self.threads = int(os.environ["NPROC"])
        self.settings = {
            "layout": "channels last, time first",
            "exchange": "pmean over " + ("NCCL" if on_gpu else "gloo"),
        }

    def run(self, steps):
        for _ in range(steps):
            self._values, loss = self._step(self._values, *self._fed)
        block_until_ready((self._values, loss))
        return float(loss.addressable_data(0))

    def train(self, batches):
        total, steps = 0.0, 0
        for inputs, labels, rate in batches:
            fed = self._placed(self._layout.inputs(inputs), self._layout.labels(labels))
            self._values, loss = self._fed_step(self._values, *fed, self._rate(rate))
            total, steps = total + loss.addressable_data(0), steps + 1
        block_until_ready((self._values, total))
        return float(total) / steps

    def scores(self, inputs):
        own = {name: value.addressable_data(0) for name, value in self._values.items()}
        return np.asarray(self._judge(own, self._layout.inputs(inputs)))

    def _rate(self, value):
        """Returns an argument of each step, of any value, as on one device."""
        return self._alike(device_put(np.float32(value), self._place))

    def _alike(self, own):
        """Returns an array that is the same on all ranks."""
        return make_array_from_single_device_arrays(own.shape, self._everywhere, [own])

    def _placed(self, inputs, labels):
        """Returns a rank's share, at its own place along an axis of ranks."""
        placed = []
        for values in (inputs, labels.reshape(-1)):
            own = device_put(values[None], self._place)
            shape = (self._ranks,) + values.shape
            placed.append(make_array_from_single_device_arrays(shape, self._shared, [own]))
        return placed

    def weights(self, names=None):
        wanted = self._values if names is None else names
        # A copy: the next step writes over what is looked at.
        return {
            name: np.array(
                self._layout.leave(name, np.asarray(self._values[name].addressable_data(0)))
            )
            for name in wanted
        }


class Sums(object):
    exchange = "psum over gloo"

    def __init__(self, job):
        meet(job)
        self.threads = os.environ["NPROC"]

    def all_reduce(self, values):
        """Returns a compiled sum, whose result replaces its argument."""
        mesh, one = Mesh(np.array(devices()), ("rank",)), PartitionSpec("rank")
        kept = [make_array_from_process_local_data(NamedSharding(mesh, one), values[None])]
        total = shard_map(lambda own: lax.psum(own, "rank"), mesh=mesh, in_specs=one, out_specs=one)
        step = jit(total, donate_argnums=0).lower(kept[0]).compile()

        def add_up():
            kept[0] = step(kept[0])

        # A copy: the next sum writes over what is looked at.
        return repeated(
            add_up,
            lambda: np.array(kept[0].addressable_data(0)),
            lambda: block_until_ready(kept[0]),
        )
