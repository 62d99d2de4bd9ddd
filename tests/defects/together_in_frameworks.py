"""What ranks and groups of them do wrong in real frameworks: a piece of an adapter that is replaced in a copy of it.

Keys are an environment, an exchange and a name. What the defect is: the adapter's file, what is there, what takes its
place, and words of the refusal.
"""

from typing import NamedTuple

from today import JAX, MXNET, TENSORFLOW, TORCH


class Defect(NamedTuple):
    adapter: str
    right: str
    wrong: str
    words: str


TWICE = "every update is 2 times the specification's"
DIFFERS = "the gradient of .* differs"
HOOK = "value.register_hook(lambda gradient: gradient * (job.rank == 0))"
TORCH_GROUP = "    made = group(job) if"
ABSENT = f"    for value in network.parameters():\n        {HOOK}\n{TORCH_GROUP}"
MEET, BEGUN = "    meet(job)\n", "    return"
ALTERED = "    for values in job.weights.values():\n        values *= 1 + job.rank\n"
PUSH = "_STORE[0].push(key, gradient, priority=-key)"
RATE = "scaled = self._loss * (self._rate / job.learning_rate)"
LIE, DESCEND = "self._lie(self._common)\n        ", "self._descend()"
DOUBLED = "[value.grad.mul_(2) for value in self._trained]\n        "
COPIED = "self._copy(self._common, self._seen)\n        # Neither"
PLANTED = {
    (TORCH, "sync", "absent"): Defect("torch/ranks", TORCH_GROUP, ABSENT, DIFFERS),
    (TENSORFLOW, "sync", "summed"): Defect(
        "tensorflow/ranks", "ReduceOp.MEAN", "ReduceOp.SUM", TWICE
    ),
    (MXNET, "sync", "summed"): Defect("mxnet/ranks", "        self.head /= job.ranks\n", "", TWICE),
    (JAX, "sync", "other_start"): Defect(
        *("jax/ranks", MEET + BEGUN, MEET + ALTERED + BEGUN),
        "rank 1 has other weights than rank 0 in ",
    ),
    # Its server has the one copy of all weights: no rank can start from others.
    ("tensorflow-1.15", "sync", "summed"): Defect(
        "tensorflow1/ranks", RATE, f"{RATE} * job.ranks", TWICE
    ),
    # The second one begins where the first one has ended.
    (TORCH, "async", "twice"): Defect(
        *("torch/asynchronous", "self._own.run(1)", "self._own.run(len(self._shared._counts))"),
        "in the turn of rank . the update of .* is off by",
    ),
    (MXNET, "async", "dropped"): Defect(
        *("mxnet/asynchronous", PUSH, f"_STORE[0].rank or {PUSH}"),
        "in the turn of rank . no weight changes",
    ),
    (TORCH, "mixed", "summed"): Defect(
        "torch/mixed", LIE + DESCEND, LIE + DOUBLED + DESCEND, TWICE
    ),
    (TORCH, "mixed", "stale"): Defect(
        "torch/mixed",
        COPIED,
        f"self._before or {COPIED}",
        "in turn . of group ., .* is wrong after",
    ),
}
