"""Single operations: the names in their rows that both sides must know, and how they are repeated."""

import collections

# For sums over ranks: the bytes of a number, the ways, and the role by whether the array is the gradients.
BYTES = 4
SUM, COPY = "all-reduce", "copy in memory"
ROLES = {False: "an array", True: "the gradients"}
# For steps beside a slow rank: the states of all ranks.
ALONE, SLOW = STATES = ("alone", "one slow")

# `run(times)` computes it so many times and waits until that is done; `value()` is the result as numpy's array: for a
# convolution (sample, channel, row, column), for an update the weights.
Operation = collections.namedtuple("Operation", ["run", "value"])


def repeated(step, value, wait=lambda: None):
    """Returns the operation that calls `step`, and then `wait` for a library that works in the background."""

    def run(times):
        for _ in range(times):
            step()
        wait()

    return Operation(run, value)


def latest(step, value=lambda result: result.numpy()):
    """Returns the operation whose `step` returns the finished result, which `value` turns into numpy's array."""
    kept = [None]

    def run(times):
        for _ in range(times):
            kept[0] = step()

    return Operation(run, lambda: value(kept[0]))
