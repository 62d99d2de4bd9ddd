"""Defects of layer kinds, losses and optimisers in a real framework: a program that proves several in one process.

    python in_frameworks.py < jobs

Jobs come as a JSON list. Each is that of a proof, and may have `mutated`, another specification that the adapter builds
in place of the job's own, `planted`, a function of `planted_in_<adapter>` that says what breaks the framework while
this job is run, or `dropout`, a way of `planted_dropout`. Plain Python that 3.6 can import: standard library and numpy.
"""

import importlib
import json
import sys
from types import SimpleNamespace

import planted_dropout

from shared import data
from worker import building, contract
from worker.tasks import proof, step


def main():
    """Command line."""
    for job in json.load(sys.stdin):
        adapter = building.load(job).adapter
        kept = plant(job) if {"planted", "dropout"} & set(job) else []
        if "mutated" in job:
            adapter = mutated(adapter, job, job["mutated"])
        try:
            if job["task"] == "step":
                _write_refusal(adapter, job)
            else:
                proof.write(job["output"], proof.collect(adapter, job))
        except contract.Unsupported:
            # What a single mode lacks, no declaration says: there is no output.
            pass
        for place in kept:
            put(*place)


def _write_refusal(adapter, job):
    """Times a cell, and writes why its proof at full size refuses it, or what it lacks."""
    said = {}
    try:
        step.run(
            building.Loaded(adapter, {}, 0.0),
            job,
            lambda event, **facts: said.update({event: facts}),
        )
        refusal = said["proven"]["lacking"]
    except contract.NotEquivalent as error:
        refusal = str(error)
    with open(job["output"], "w") as file:
        json.dump(refusal, file)


def plant(job):
    """Breaks the framework; returns what puts it right again."""
    name = job["adapter"]
    below = importlib.import_module("worker.frameworks." + name)
    if "dropout" in job:
        return [put(*each) for each in planted_dropout.plant(name, below, job["dropout"])]
    defects = importlib.import_module("planted_in_" + name)
    return [put(*getattr(defects, job["planted"])(below))]


def mutated(adapter, asked, other):
    """The adapter, but that it builds `other`, whose parameters start as those of the same name and shape."""

    def build(job):
        # Proofs take their own rates, and a mutation may take another optimiser.
        rate = job.spec["optimiser"]["learning_rate"]
        optimiser = dict(other["optimiser"], learning_rate=rate)
        if job.spec["optimiser"]["name"] == "sgd":
            optimiser = job.spec["optimiser"]
        spec = dict(other, optimiser=optimiser)
        weights = data.initial_weights(spec)
        for name, values in weights.items():
            if name in job.weights and job.weights[name].shape == values.shape:
                weights[name] = job.weights[name]
        return building.make(adapter, asked, spec, weights, job.inputs, job.labels)

    return SimpleNamespace(build=build)


def put(owner, name, value):
    """Sets an attribute or an entry; returns what puts the old one back."""
    if isinstance(owner, dict):
        old, owner[name] = owner[name], value
    else:
        old = getattr(owner, name)
        setattr(owner, name, value)
    return owner, name, old


if __name__ == "__main__":
    main()
