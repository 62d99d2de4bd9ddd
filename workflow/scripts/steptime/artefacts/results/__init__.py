"""Tables and figures of steps: what was timed, and what it is a share of."""
