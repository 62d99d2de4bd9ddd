"""What `benchmarks/full_size` runs in a framework's environment: a cell's proof, once right and once for each defect.

Every distance is told with its limit, refused or not; a line of JSON each.
"""

import json
import os
import sys
import time

# A defect of every twentieth step shows in so many; others show at once.
STEPS = {"every 20th update": 24}
FEW = 5


def main():
    job = json.load(sys.stdin)
    os.sched_setaffinity(0, range(job["threads"]))
    from worker import building

    loaded = building.load(job)
    for defect in job["defects"]:
        undo = _plant(defect, loaded.adapter, job)
        print(
            json.dumps(dict(_prove(loaded, job, STEPS.get(defect, FEW)), defect=defect)), flush=True
        )
        undo()


def _plant(defect, adapter, job):
    if defect == "right":
        return lambda: None
    import torch_defects

    return torch_defects.plant(defect, adapter, job["spec"], job["batch"])


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
    del trainer
    clock, cpu = time.perf_counter(), time.process_time()
    proof.hold_gradients(loaded.adapter)
    return {
        "held": proof.held,
        "refused": refused,
        "seconds": time.perf_counter() - clock,
        "cpu_seconds": time.process_time() - cpu,
        "timed_cpu_seconds": built - start,
    }


if __name__ == "__main__":
    main()
