"""Single operations: what their rows call themselves, where both sides must know it, and how they are repeated."""

import collections

# Of sums over ranks: the bytes of a number, the ways, and the role by whether it is the gradients.
BYTES = 4
SUM, COPY = "all-reduce", "copy in memory"
ROLES = {False: "an array", True: "the gradients"}
# Of steps beside a slow rank: the states of all ranks.
ALONE, SLOW = STATES = ("alone", "one slow")

# `run(times)` computes it so many times and waits until that is done; `value()` is the result as numpy's array: of a
# convolution (sample, channel, row, column), of an update the weights.
Operation = collections.namedtuple("Operation", ["run", "value"])


def repeated(step, value, wait=lambda: None):
    """Returns the operation that `step` does, or has done by a library for which `wait` waits."""

    def run(times):
        for _ in range(times):
            step()
        wait()

    return Operation(run, value)


def latest(step, value=lambda result: result.numpy()):
    """Returns the operation whose result `step` returns when it is done; `value` makes numpy's array of the result."""
    kept = [None]

    def run(times):
        for _ in range(times):
            kept[0] = step()

    return Operation(run, lambda: value(kept[0]))
