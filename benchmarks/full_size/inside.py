"""What `benchmarks/full_size` runs in a framework's environment: a cell's proof, once right and once for each defect.

Every distance is told with its limit, refused or not; a line of JSON each.
"""

import importlib
import json
import os
import sys
import time

FEW = 5


def main():
    job = json.load(sys.stdin)
    os.sched_setaffinity(0, range(job["threads"]))
    from worker import building

    loaded = building.load(job)
    for defect in job["defects"]:
        undo, steps = _plant(defect, loaded.adapter, job)
        try:
            said = _prove(loaded, job, steps)
        finally:
            undo()
        print(json.dumps(dict(said, defect=defect)), flush=True)


def _plant(defect, adapter, job):
    if defect == "right":
        return lambda: None, FEW
    import planted

    parts = importlib.import_module("parts_" + job["adapter"])
    steps = planted.LATE + FEW if defect.startswith("late") else planted.STEPS.get(defect, FEW)
    return planted.plant(defect, adapter, parts, job), steps


def _prove(loaded, job, steps):
    from worker import building, data, full_size, timing

    spec, refused = job["spec"], []

    class Telling(full_size.Proof):
        def refuse(self, words):
            refused.append(words)

    proof = Telling(job)
    start = time.process_time()
    inputs, labels = data.synthetic_batch(spec, job["batch"])
    trainer = building.make(loaded.adapter, job, spec, data.initial_weights(spec), inputs, labels)
    losses = [trainer.run(1)]
    proof.look(trainer)
    losses += [trainer.run(1) for _ in range(steps - 1)]
    proof.hold_losses(losses[: timing.ALONE])
    built = time.process_time()
    proof.hold_steps(trainer, losses, 1)
    proof.keep_end(trainer)
    del trainer
    clock, cpu = time.perf_counter(), time.process_time()
    lacking = ""
    try:
        proof.hold_end(loaded.adapter)
        proof.hold_gradients(loaded.adapter)
    except Exception as error:
        lacking = f"{type(error).__name__}: {error}"
    return {
        "held": proof.held,
        "refused": refused,
        "lacking": lacking,
        "seconds": time.perf_counter() - clock,
        "cpu_seconds": time.process_time() - cpu,
        "timed_cpu_seconds": built - start,
    }


if __name__ == "__main__":
    main()
