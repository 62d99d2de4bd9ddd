"""What a worker does in this benchmark in place of timing steps: so many on several ranks, and rank 0's own seconds.

Plain Python that 3.6 can import.
"""

from .. import building

WARM = 5


def run(loaded, job, emit):
    """Trains `steps` of the job's network in one call."""
    trainer = building.build(loaded, job, job["spec"], emit)
    trainer.run(WARM)
    warm, start = trainer.own_seconds, building.clock()
    trainer.run(job["steps"])
    whole, own = building.clock() - start, trainer.own_seconds - warm
    trainer.weights([job["spec"]["parameters"][0]["name"]])
    emit("done", whole=whole, own=own)
