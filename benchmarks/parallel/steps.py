"""The clock of all experts: warm-up, then each step's seconds as JSON."""

import json
import time

WARM, TIMED = 5, 15


def clock(step, tells=True):
    """Takes steps, each of which ends when its update is done."""
    seconds = []
    for _ in range(WARM + TIMED):
        begun = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begun)
    if tells:
        print(json.dumps(seconds[WARM:]), flush=True)
