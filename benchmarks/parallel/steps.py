"""The clock of all experts: warm-up, then each step's seconds as JSON.

To be imported before the framework: it chooses the code that a library of products takes (`worker.kernels`; KERNELS
names the library).
"""

import json
import os
import sys
import time

if os.environ.get("KERNELS"):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../workflow/scripts"))
    from worker import kernels

    kernels.choose(os.environ["KERNELS"])

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
