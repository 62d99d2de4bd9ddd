"""What both sides share: training on command, the clock, and the code for this processor that a library of matrix
products takes (`worker.kernels`; KERNELS names the library).

Each line of standard input is a number of steps; each answer is a JSON line on what was standard output.
"""

import json
import os
import sys
import time

if os.environ.get("KERNELS"):
    # Before the framework is imported.
    from worker import kernels

    kernels.choose(os.environ["KERNELS"])
# What a framework prints must not come between the answers.
_answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def obey(train, parameters):
    """Answers {"parameters"}, then for each command {"seconds", "loss"}.

    `train(steps)` trains so many steps, waits until the last update is done and returns the last step's loss.
    """
    _answer(parameters=int(parameters))
    for line in iter(sys.stdin.readline, ""):
        start = time.perf_counter()
        loss = train(int(line))
        _answer(seconds=time.perf_counter() - start, loss=float(loss))
    # Frameworks take up to seconds to take themselves down, and some crash while they do.
    os._exit(0)


def _answer(**fields):
    _answers.write(json.dumps(fields) + "\n")
    _answers.flush()
