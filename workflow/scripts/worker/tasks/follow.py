"""What every rank but rank 0 does: what rank 0 tells it to (see `worker.ranks`), until rank 0 has ended.

Events are

    followed   blocks: (steps, seconds by this rank's own clock, CPU seconds) of each call of the first trainer, which
               is timed; exchange_seconds of a step, None where the framework does not know; staleness: how many updates
               of other ranks come between a rank's reading of weights and its own update, in the mean of all, where
               ranks do not wait for one another and it is known
    done
"""

import gc
import importlib
import time

from .. import building, contract, ranks

_KEPT = []


def run(loaded, job, emit):
    """Builds, trains and shows weights as rank 0 says."""
    (link,) = ranks.links()
    trainer, built, blocks, facts, burden = None, 0, [], {}, []
    if "images" in job:
        # Not while the first epoch is timed.
        _task("training").prepare(job)
    while True:
        asked = link.hear()
        if asked is None or asked["do"] == "build":
            if built == 1 and not facts:
                facts = _facts(trainer)
        if asked is None:
            # To take a trainer down may wait for a server that has ended.
            _KEPT.append(trainer)
            break
        if asked["do"] == "build":
            trainer = None
            gc.collect()
            trainer, built = _build(loaded, job, **asked), built + 1
            link.tell()
        elif asked["do"] in ("run", "train"):
            start, used = building.clock(), time.process_time()
            loss = (
                trainer.run(asked["steps"])
                if asked["do"] == "run"
                else _train(trainer, job, **asked)
            )
            seconds = building.clock() - start
            link.tell(loss=loss, seconds=seconds)
            if built == 1:
                blocks.append((asked["steps"], seconds, time.process_time() - used))
        elif asked["do"] == "burden":
            for program in burden:
                program.kill()
            burden = [ranks.start(ranks.COMPUTES) for _ in range(asked["programs"])]
            link.tell()
        else:
            found = ranks.sums(trainer.weights(asked["names"]))
            if built == 1:
                # While rank 0 is there, whose server may have to be asked.
                facts = _facts(trainer)
            link.tell(sums=found)
    emit("followed", blocks=blocks, **facts)
    emit("done")


def _build(loaded, job, do, spec, arrays):
    """Returns the same trainer as rank 0's; rank 0 has already laid out the mini-batch."""
    from ..layout import Layout

    layout = Layout(spec, contract.of_mode(loaded.adapter.LAYOUT, job["mode"]))
    inputs, labels = arrays.pop(ranks.INPUTS), arrays.pop(ranks.LABELS)
    return loaded.adapter.build(contract.Job(job, layout.spec, layout, arrays, inputs, labels))


def _train(trainer, job, do, task, number, steps, arrays):
    """Trains on this rank's share of the mini-batches that rank 0 is fed."""
    return trainer.train(_task(task).fed(job, number))


def _task(name):
    return importlib.import_module("worker.tasks." + name)


def _facts(trainer):
    tells = {name: getattr(trainer, name, None) for name in ("exchange_seconds", "staleness")}
    return {name: tell() if tell else None for name, tell in tells.items()}
