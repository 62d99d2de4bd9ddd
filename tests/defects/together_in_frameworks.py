"""What ranks and groups of them do wrong in real frameworks: a piece of an adapter that is replaced in a copy of it.

Keys are an environment, an exchange and a name. What the defect is: the adapter's file, what stands there, what takes
its place, what is said of it, and the kind of layer of the tiny network.
"""

from typing import NamedTuple

from today import JAX, MXNET, TENSORFLOW, TODAY, TORCH


class Defect(NamedTuple):
    adapter: str
    right: str
    wrong: str
    words: str
    kind: str = "dense"


OTHER_START = "rank 1 has other weights than rank 0 in "
OTHER_LOSS = "the first loss is "
TWICE = "every update is 2 times the specification's"
DIFFERS = "the gradient of .* differs"
HOOK = "value.register_hook(lambda gradient: gradient * (job.rank == 0))"
ALTERED = "    for values in job.weights.values():\n        values *= 1 + job.rank\n"

TORCH_GROUP = "    made = group(job) if"
PUSH = "_STORE[0].push(key, gradient, priority=-key)"
TENSORFLOW1 = "scaled = self._loss * (self._rate / job.learning_rate)"
NORM = "def _batch_norm(node, own, value):\n"
SYNCHRONOUS = {
    (TORCH, "absent"): Defect(
        "torch/ranks",
        TORCH_GROUP,
        f"    for value in network.parameters():\n        {HOOK}\n{TORCH_GROUP}",
        DIFFERS,
    ),
    (TENSORFLOW, "summed"): Defect("tensorflow/ranks", "ReduceOp.MEAN", "ReduceOp.SUM", TWICE),
    (MXNET, "summed"): Defect("mxnet/ranks", "        self.head /= job.ranks\n", "", TWICE),
    (JAX, "other_start"): Defect(
        "jax/ranks", "    meet(job)\n    return", f"    meet(job)\n{ALTERED}    return", OTHER_START
    ),
    (JAX, "whole_norm"): Defect(
        "jax/__init__",
        NORM,
        f"{NORM}    axes = (0, 1, 2)\n"
        "    mean, square = [\n"
        '        lax.pmean(jnp.mean(each, axes), "rank") for each in (value, value * value)\n'
        "    ]\n"
        '    scale = own["gamma"] * lax.rsqrt(square - mean * mean + 1e-5)\n'
        '    return (value - mean) * scale + own["beta"]\n',
        OTHER_LOSS,
        "batch_norm",
    ),
    (TODAY["paddle"], "shared_batch"): Defect(
        "paddle/ranks", "ranks.share(job)", "ranks.share(job, 0)", OTHER_LOSS
    ),
    # Its server has the one copy of all weights: no rank can start from others.
    ("tensorflow-1.15", "summed"): Defect(
        "tensorflow1/ranks", TENSORFLOW1, f"{TENSORFLOW1} * job.ranks", TWICE
    ),
    (TODAY["cntk"], "one_bit"): Defect(
        "cntk/ranks",
        "FLOAT32_BITS = 32",
        "FLOAT32_BITS = 1",
        "every update is 0[.].* times the specification's",
    ),
    (TODAY["cntk"], "summed"): Defect(
        "cntk/__init__", "labels.size * job.ranks", "labels.size", TWICE
    ),
}
APPLIED = "self._counted(self._fetched[1])"
ASYNCHRONOUS = {
    (TORCH, "twice"): Defect(
        "torch/asynchronous",
        "self._own.run(1)",
        "self._own.run(len(self._shared._counts))",
        # The second one begins where the first one has ended.
        "in the turn of rank . the update of .* is off by",
    ),
    (TORCH, "dropped"): Defect(
        "torch/asynchronous",
        "            loss = self._own.run(1)\n",
        "            kept = [each.copy() for each in self._shared.arrays]\n"
        "            loss = self._own.run(1)\n"
        "            for memory, before_it in zip(self._shared.arrays, kept):\n"
        "                memory[:] = before_it if self._shared._rank else memory\n",
        "in the turn of rank 1 no weight changes",
    ),
    (MXNET, "dropped"): Defect(
        "mxnet/asynchronous",
        PUSH,
        f"_STORE[0].rank or {PUSH}",
        "in the turn of rank . no weight changes",
    ),
    ("tensorflow-1.15", "dropped"): Defect(
        "tensorflow1/asynchronous",
        APPLIED,
        "self._counted(tf.no_op() if job.rank else self._fetched[1])",
        "in the turn of rank 1 no weight changes",
    ),
}
UPDATED = "self._lie(self._common)\n        self._descend()"
BEGUN = "self._descend = own._update\n"
GROUPED = {
    (TORCH, "absent"): Defect(
        "torch/mixed",
        BEGUN,
        f"{BEGUN}        for value in self._trained if job.rank % 2 else ():\n"
        "            value.register_hook(lambda gradient: 0 * gradient)\n",
        DIFFERS,
    ),
    (TORCH, "summed"): Defect(
        "torch/mixed",
        UPDATED,
        UPDATED.replace(
            "self._descend()",
            "[value.grad.mul_(2) for value in self._trained]\n        self._descend()",
        ),
        TWICE,
    ),
    (TORCH, "stale"): Defect(
        "torch/mixed",
        "self._copy(self._common, self._seen)\n        # Neither",
        "self._before or self._copy(self._common, self._seen)\n        # Neither",
        "in turn . of group ., .* is wrong after",
    ),
}
HEAD = "    made.head /= job.ranks\n"
WITHIN = {
    (MXNET, "absent"): Defect(
        "mxnet/inside", HEAD, f"{HEAD}    made.head *= number == 0\n", DIFFERS
    ),
}
PLANTED = {
    (environment, exchange, name): defect
    for exchange, defects in (
        ("sync", SYNCHRONOUS),
        ("async", ASYNCHRONOUS),
        ("mixed", GROUPED),
        ("inside", WITHIN),
    )
    for (environment, name), defect in defects.items()
}
