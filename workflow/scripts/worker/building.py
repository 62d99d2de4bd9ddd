"""Makes the trainer of a job's network, and counts it before anything is timed."""

import collections
import importlib
import sys
import time

from shared import declarations

from . import contract, kernels, timing

CLOCK = "perf_counter"
clock = getattr(time, CLOCK)

# The adapter's module, its settings that were chosen before it was imported, and the seconds that this took.
Loaded = collections.namedtuple("Loaded", ["adapter", "chosen", "seconds"])


def load(job):
    """Returns the adapter of a job. Raises Unsupported, without its framework, where it lacks what the job asks."""
    has = declarations.declared(job["adapter"])
    contract.require(job["adapter"], has, job)
    start = clock()
    library = contract.of_mode(has["KERNELS"], job["mode"])
    kinds = {node["op"] for node in job["spec"]["nodes"]}
    library = library if not has["KERNELS_OF"] or kinds & {*has["KERNELS_OF"]} else ""
    chosen = {"kernels": kernels.choose(library)} if library else {}
    adapter = importlib.import_module("worker.frameworks." + job["adapter"])
    # A module of a framework's folder may leave these to its framework.
    framework = sys.modules["worker.frameworks." + job["adapter"].split(".")[0]]
    if hasattr(framework, "versions"):
        adapter.versions = getattr(adapter, "versions", framework.versions)
    adapter.LAYOUT = has["LAYOUT"]
    contract.complete(adapter, "the adapter " + job["adapter"], contract.OFFERED)
    return Loaded(adapter, chosen, clock() - start)


def make(adapter, job, spec, weights, inputs, labels):
    """Returns a trainer of `spec` by a module, from start values and a batch in the neutral layout."""
    from .layout import Layout

    wanted = contract.of_mode(getattr(adapter, "LAYOUT", {}), job["mode"])
    layout = Layout(spec, wanted)
    inputs, labels = layout.inputs(inputs), layout.labels(labels)
    trainer = adapter.build(contract.Job(job, layout.spec, layout, weights, inputs, labels))
    task = importlib.import_module("worker.tasks." + contract.task_of(job))
    contract.complete(trainer, "its trainer", getattr(task, "OFFERED", contract.TRAINED))
    return trainer


def versions_of(module):
    """Returns what a module says of its software, and Python's version, as texts, without what it does not know."""
    said = dict(module.versions(), python=sys.version.split()[0])
    return {name: str(version) for name, version in said.items() if version is not None}


def build(loaded, job, spec, emit):
    """Returns the trainer of a job's network `spec`, on the synthetic batch."""
    from shared import data

    start = clock()
    weights = data.initial_weights(spec, spec.get("seed", data.SEED))
    inputs, labels = data.synthetic_batch(spec, job["batch"])
    prepared = clock()
    trainer = make(loaded.adapter, job, spec, weights, inputs, labels)
    del weights, inputs, labels
    emit(
        "ready",
        versions=versions_of(loaded.adapter),
        import_seconds=loaded.seconds,
        prepare_seconds=prepared - start,
        build_seconds=clock() - prepared,
        parameters=int(trainer.parameters),
        frozen_parameters=int(getattr(trainer, "frozen_parameters", 0)),
        threads=int(trainer.threads),
        settings=dict(trainer.settings, **loaded.chosen),
        clock=timing.clock_facts(CLOCK),
    )
    if trainer.parameters != job["parameters"]:
        words = "the network has {:,} trainable parameters in the specification and {:,} in the framework"
        raise contract.NotEquivalent(words.format(job["parameters"], trainer.parameters))
    return trainer
