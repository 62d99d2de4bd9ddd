"""Says which ranks take a step together. Planning uses it too: plain Python that 3.6 can import, and nothing else."""

# How many ranks take a step together, by the exchange. By any other, all do.
GROUPED = {"async": 1, "mixed": 2}
# What a worker prints where others of its cell have not come; the supervisor reads it.
UNMET = "ranks have not met"


def groups(count, exchange):
    """Returns ranks, group by group. Those of a group take each step together, and wait for no other group."""
    size = GROUPED.get(exchange, count)
    return [range(start, start + size) for start in range(0, count, size)]
