"""What each rank does in this benchmark in place of its task: sums of all ranks, by the framework's own way.

Plain Python that 3.6 can import: standard library, numpy and the framework.
"""

import time

import numpy as np

from .. import building, data, ranks

# So many bytes are summed of each size at most, in so many sums.
MOST_BYTES, MOST, LEAST = 2**27, 200, 3


def run(loaded, job, emit):
    """Sums arrays of each of `sizes` bytes; tells seconds and CPU seconds of one sum, and the largest error."""
    # Each rank for itself: there is no leader.
    ranks.joined = lambda job, build: build(job)
    spec, start = job["spec"], data.initial_weights(job["spec"])
    inputs, labels = data.synthetic_batch(spec, job["batch"])
    # It makes the ranks meet.
    trainer = building.make(loaded.adapter, job, spec, start, inputs, labels)
    found = []
    for size in job["sizes"]:
        reduce = WAYS[job["adapter"]](size // 4, job["ranks"])
        count = max(LEAST, min(MOST, MOST_BYTES // size))
        error = float(np.abs(reduce() - job["ranks"]).max())
        begun, used = time.perf_counter(), time.process_time()
        for _ in range(count):
            reduce()
        seconds = (time.perf_counter() - begun) / count
        found.append([size, seconds, (time.process_time() - used) / count, error, _copy(size)])
    del trainer
    if job["rank"]:
        emit("followed", sums=found)
    emit("done", sums=found)


def _copy(size):
    """Seconds of a copy of as much in memory: the median of some."""
    source, target, seconds = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32), []
    for _ in range(7):
        begun = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begun)
    return sorted(seconds)[3]


def _torch(count, number):
    import torch
    from torch import distributed

    values = torch.ones(count)

    def reduce():
        values.fill_(1)
        distributed.all_reduce(values)
        return values.numpy()

    return reduce


def _paddle(count, number):
    import paddle
    from paddle import distributed

    def reduce():
        values = paddle.ones([count])
        distributed.all_reduce(values)
        return values.numpy()

    return reduce


def _mxnet(count, number):
    import mxnet as mx

    from ..adapters import mxnet_ranks

    store, values = mxnet_ranks._STORE[0], mx.nd.ones((count,))
    # Behind those of the network.
    total, key = mx.nd.zeros((count,)), 1000 + count
    store.init(key, total)

    def reduce():
        store.push(key, values)
        store.pull(key, out=total)
        return total.asnumpy()

    return reduce


def _tensorflow(count, number):
    import tensorflow as tf

    from ..adapters import tensorflow_ranks

    strategy, values = tensorflow_ranks._STRATEGY[0], tf.ones([count])

    def of_rank(values):
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, values, tensorflow_ranks._RING)

    step = tf.function(lambda: strategy.run(of_rank, [values]))
    return lambda: step().numpy()


def _jax(count, number):
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh, one = Mesh(np.array(jax.devices()), ("rank",)), PartitionSpec("rank")
    values = jax.make_array_from_process_local_data(
        NamedSharding(mesh, one), np.ones((1, count), np.float32)
    )
    step = jax.jit(
        jax.shard_map(lambda own: jax.lax.psum(own, "rank"), mesh=mesh, in_specs=one, out_specs=one)
    )
    return lambda: np.asarray(step(values).addressable_data(0))


WAYS = {
    "torch_ranks": _torch,
    "paddle_ranks": _paddle,
    "mxnet_ranks": _mxnet,
    "tensorflow_ranks": _tensorflow,
    "jax_ranks": _jax,
}
