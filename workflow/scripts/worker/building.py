"""From a job to the trainer of its network, which is counted before anything is timed.

Plain Python that 3.6 can import: standard library, numpy and the framework.
"""

import importlib
import sys
import time

from . import timing
from .contract import NotEquivalent, Unsupported

CLOCK = "perf_counter"
clock = getattr(time, CLOCK)


def load(job):
    """The adapter of a job. Raises Unsupported where it lacks what the job asks for."""
    adapter = importlib.import_module("worker.adapters." + job["adapter"])
    require(adapter, job["spec"])
    return adapter


def require(adapter, spec):
    """Raises Unsupported where the adapter does not have the specification's optimiser."""
    name = spec["optimiser"]["name"]
    if name not in getattr(adapter, "OPTIMISERS", ("sgd",)):
        raise Unsupported("the adapter has no optimiser '{}'".format(name))


def build(job, spec, emit):
    """The trainer of a job's network `spec`, on the synthetic batch."""
    start = clock()
    adapter = load(job)
    imported = clock()
    # Numpy after the framework, which may want another one's libraries.
    from . import data

    weights = data.initial_weights(spec, spec.get("seed", data.SEED))
    inputs, labels = data.synthetic_batch(spec, job["batch"])
    prepared = clock()
    trainer = adapter.build(
        spec, weights, inputs, labels, job["mode"], job["threads"], job["device"]
    )
    del weights, inputs, labels
    emit(
        "ready",
        versions=dict(adapter.versions(), python=sys.version.split()[0]),
        import_seconds=imported - start,
        prepare_seconds=prepared - imported,
        build_seconds=clock() - prepared,
        parameters=int(trainer.parameters),
        frozen_parameters=int(trainer.frozen_parameters),
        threads=int(trainer.threads),
        settings=trainer.settings,
        clock=timing.clock_facts(CLOCK),
    )
    if trainer.parameters != job["parameters"]:
        raise NotEquivalent(
            "the network has {:,} trainable parameters in the specification and {:,} in the framework".format(
                job["parameters"], trainer.parameters
            )
        )
    return trainer
