"""What `benchmarks/full_size` runs in a framework's environment: cells' proofs, once right and once for each defect.

    python inside.py < jobs

Every distance is told with its limit, refused or not; a line of JSON each. A proof ends where it is clear that it
refuses, as a cell's ends where it refuses at all: so most defects cost no second trainer.
"""

import gc
import importlib
import importlib.util
import json
import os
import sys
import time

FEW = 5
# As far above a limit, nobody takes it for noise.
CLEAR = 10.0


def main():
    for job in json.load(sys.stdin):
        _prove_each(job)


def _prove_each(job):
    os.sched_setaffinity(0, range(job["threads"]))
    from worker import building

    loaded = building.load(job)
    for defect in job["defects"]:
        began, clock = time.process_time(), time.perf_counter()
        undo, steps = _plant(defect, loaded.adapter, job)
        try:
            said = _prove(loaded, job, defect, steps)
        finally:
            undo()
        gc.collect()
        said["process_seconds"] = time.perf_counter() - clock
        said["process_cpu_seconds"] = time.process_time() - began
        print(json.dumps(dict(said, defect=defect, network=job["spec"]["network"])), flush=True)


def _plant(defect, adapter, job):
    if defect == "right":
        return lambda: None, FEW
    import planted

    # Another precision is of no layer.
    own = "parts_" + job["adapter"]
    parts = importlib.import_module(own) if importlib.util.find_spec(own) else None
    steps = planted.LATE + FEW if defect.startswith("late") else FEW
    steps = planted.STEPS.get(defect, steps)
    if any(node["op"] == "lstm" for node in job["spec"]["nodes"]):
        steps = planted.RECURRENT_STEPS.get(defect, steps)
    return planted.plant(defect, adapter, parts, job), steps


def _prove(loaded, job, defect, steps):
    from worker import full_size

    refused, said = [], {"lacking": ""}

    class Telling(full_size.Proof):
        def refuse(self, words):
            refused.append(words)

    proof = Telling(job)
    for _ in _stages(proof, loaded.adapter, job, defect, steps, said):
        most = max([0.0] + [_share(*each[2:]) for each in proof.held])
        # What is refused and has no distance is refused by an update that was left out.
        if refused and (most >= CLEAR or most <= 1):
            break
    return dict(said, held=proof.held, refused=refused)


def _stages(proof, adapter, job, defect, steps, said):
    """The proof as `worker.tasks.step` takes it, in parts, after each of which it may end."""
    import planted

    from shared import data
    from worker import building, full_size, timing

    spec, start = job["spec"], time.process_time()
    inputs, labels = data.synthetic_batch(spec, job["batch"])
    trainer = building.make(adapter, job, spec, data.initial_weights(spec), inputs, labels)
    per_block = planted.BLOCKS.get(defect, 1)
    losses = [trainer.run(1)]
    proof.look(trainer)
    yield
    losses += [trainer.run(1) for _ in range(timing.ALONE - 1)]
    proof.hold_losses(losses)
    yield
    losses += [trainer.run(1) for _ in range(steps - timing.ALONE)]
    said["steps"], said["timed_cpu_seconds"] = len(losses), time.process_time() - start
    proof.hold_steps(trainer, losses, per_block)
    yield
    if proof.plain:
        proof.keep_start(trainer)
        ends = full_size.end_blocks(per_block)
        proof.keep_end(trainer, [(count, trainer.run(count)) for count in ends])
    yield
    del trainer
    clock, cpu = time.perf_counter(), time.process_time()
    try:
        proof.hold_end(adapter)
        yield
        # A third trainer of what begins late takes right steps only.
        if not defect.startswith("late"):
            proof.hold_gradients(adapter)
    except Exception as error:
        said["lacking"] = f"{type(error).__name__}: {error}"
    said["seconds"], said["cpu_seconds"] = time.perf_counter() - clock, time.process_time() - cpu


def _share(off, limit):
    return off / limit if off == off else float("inf")


if __name__ == "__main__":
    main()
