"""JAX's own profiler, which sees what XLA made of a step."""

import collections
import re

import jax

# Instructions of XLA have such names, and a number where there are several; what only holds others is none of them.
INSTRUCTION = re.compile(r"([a-z][a-z0-9_-]*?)(?:\.\d+)*$")
HOLDS_OTHERS = {"while", "call", "conditional"}


def operators(run):
    """Returns [name, calls, seconds] of each kind of XLA's instructions that `run` executes, over all threads."""
    session = jax.profiler.ProfileSession()
    session.start()
    run()
    calls, seconds = collections.Counter(), collections.Counter()
    for plane in session.stop().planes:
        for line in plane.lines:
            for event in line.events:
                found = INSTRUCTION.match(event.name)
                if found and found.group(1) not in HOLDS_OTHERS:
                    calls[found.group(1)] += 1
                    seconds[found.group(1)] += event.duration_ns / 1e9
    return [[name, calls[name], seconds[name]] for name in calls]
