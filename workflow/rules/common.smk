# Reads the configuration and expands the grid, once, for all rules. Functions only.
import gc
import json
import os
import re
import sys
import time
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from snakemake.exceptions import WorkflowError

SCRIPTS = ROOT / "workflow" / "scripts"
sys.path.insert(0, str(SCRIPTS))

from steptime import machine, networks
from steptime.cells import adopt, migrate
from steptime.environments import pins, prepare
from steptime.machine import placement
from steptime.plan import clock, configuration, digests, exchanges, grid, run, tasks, written
from steptime.plan.artefacts import TRAINED
from steptime.plan.cell import FOLDER, TOGETHER, proof_name, shard_path, together_of
from steptime.say import say
from steptime.supervisor import holding, progress

# Planning makes millions of objects that all stay; to look for garbage among them took a fifth of its time.
gc.set_threshold(200_000, 50, 100)

# What the programs must know and no parameter may hold: it differs between machines and checkouts, and changes no number.
NEEDED = (
    "pandas pyarrow scipy matplotlib psutil pynvml jsonschema jinja2 itables rich yaml uv".split()
)
if all(map(find_spec, NEEDED)):
    os.environ.setdefault("STEPTIME_PYTHON", sys.executable)
os.environ.update(STEPTIME_LAUNCH=str(SCRIPTS / "launch"))


def elsewhere(needs):
    """Why this run cannot measure cells of a platform with this entry; None where it can."""
    if not is_main_process():
        return None
    # Cells go to a cluster where jobs are counted and no host is shared out: profiles/default limits the host,
    # profiles/slurm the jobs. Snakemake itself tells its executor only after this file was read.
    if counts_jobs():
        return None if "cluster" in needs else "its entry in the file of platforms has no 'cluster'"
    if "cluster" in needs:
        return "a cluster gives it: run there with --workflow-profile profiles/slurm"
    return placement.lacking(needs)


try:
    CONFIGURATION = configuration.load(ROOT, config, lambda needs: elsewhere(needs) is None)
    PLAN_FILE = written.path_of(CONFIGURATION.grid_name)
    # A job of a cluster has CPUs of its own: it goes by the plan of the run that it belongs to.
    PLAN = (
        grid.expand(CONFIGURATION, machine.usable_cpus())
        if is_main_process()
        else written.read(PLAN_FILE)
    )
except configuration.ConfigurationError as error:
    # Not a WorkflowError: it would wrap the sentence in lines about this file.
    sys.exit(str(error))

hide_chatter()
share_out_host()

if is_main_process() and migrate.outdated(Path("results")):
    sys.exit(
        "The folder results holds shards as an older version wrote them: run `make migrate`, which measures nothing "
        "again."
    )

if is_main_process() and not only_tells():
    # Held until this process ends; the cells end with it.
    HELD = holding.hold()
    os.environ.update(STEPTIME_RUN=str(os.getpid()))
    if count := clock.to_present(map(Path, ("results", ROOT / "envs", ROOT / "config"))):
        say(
            f"{count} files bore a time that is yet to come, as from a clock that was set back: now it is the present."
        )

# The cells whose single steps are timed, and those in which a network is trained.
STEPS, TRAININGS = (
    {key: cell for key, cell in PLAN.cells.items() if cell.task == task}
    for task in ("step", "training")
)

# The tables of times: the first of them that a run makes is printed at its end.
TIMES = [
    name for name, artefact in CONFIGURATION.catalogue.items() if artefact.entry["kind"] == "times"
]

# One machine measures cells in the order of the plan, when everything is built and proven: of the jobs that are ready, the
# one of the highest priority starts first.
TURNS = {key: turn for turn, key in enumerate(reversed(PLAN.cells), 1)}
BEFORE_CELLS = len(TURNS) + 1


def choice(names):
    """The regular expression that accepts these names and nothing else."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def known_environments():
    """Every environment of the catalogue."""
    return [
        name
        for framework in CONFIGURATION.frameworks.values()
        for name in framework["environments"]
    ]


def grid_environments():
    """The environments of the grid."""
    return CONFIGURATION.grid["environments"]


@cache
def gpu_environments():
    """Every environment of the catalogue that computes on GPUs."""
    known = known_environments()
    return [name for name in known if CONFIGURATION.entry_of(name)["device"] == "gpu"]


@cache
def network_digest(network):
    """Digest of the full-size and the narrow specification of a network."""
    return digests.digest(
        [networks.specify(network, CONFIGURATION.networks, narrow) for narrow in (False, True)]
    )


@cache
def code_for(network, *modules):
    """Digest of modules and all that they import, without what only layers, losses and optimisers need that the network
    has not.
    """
    used = networks.used_records(networks.specify(network, CONFIGURATION.networks))
    files = digests.closure(*map(digests.module_path, modules), unused=networks.RECORDS - used)
    return digests.code_digest(files, networks.RECORDS, used)


def worker_digest(adapter, network, *tasks):
    """Digest of the code that runs in a worker with this adapter for these tasks: an edit of it makes other numbers."""
    names = ["worker.__main__", "worker.building", *(f"worker.tasks.{task}" for task in tasks)]
    own = f"worker.adapters.{adapter}"
    # Where there is none, the worker says so.
    return code_for(network, *names, *([own] if digests.module_path(own).exists() else []))


def proof_digest(network):
    """Digest of the code that collects what a proof needs and judges it: an edit of it may give another verdict."""
    return code_for(
        network, "worker.tasks.proof", "steptime.prove.compare", "steptime.prove.golden"
    )


def preparing_step(environment):
    """Name of the step that prepares an environment, '' for none."""
    return CONFIGURATION.entry_of(environment).get("prepare", "")


@cache
def environment_digest(environment):
    """Digest of the pins of an environment and of the step that prepares it."""
    step = preparing_step(environment)
    return pins.digest(pins.load(ROOT / f"envs/{environment}.yaml", step), prepare.digest(step))


@cache
def framework_facts(environment, network, task="", devices=1):
    """The adapter of an environment, the variables that its worker gets, and the digest of its code for a task or none."""
    framework = CONFIGURATION.entry_of(environment)
    adapter = exchanges.adapter_of(framework["adapter"], devices)
    if task:
        adapter = tasks.TASKS[task].module.format(adapter)
    run = [*([task] if task else []), *(["follow"] if devices > 1 else [])]
    return {
        "adapter": adapter,
        "variables": framework["variables"],
        "worker_digest": worker_digest(adapter, network, *run),
    }


def key_from(wildcards):
    """The key of the cell that a rule's wildcards name."""
    return f"{wildcards.platform}/{wildcards.task}/{wildcards.cell}"


def cell_of(wildcards):
    """The cell that a rule's wildcards name."""
    key = key_from(wildcards)
    if key not in PLAN.cells:
        raise WorkflowError(
            f"There is no cell {key} in the grid '{CONFIGURATION.grid_name}': its cells are such as {next(iter(PLAN.cells))}."
        )
    return PLAN.cells[key]


def job_of(cell):
    """All that decides the number of a cell: the cell, its framework's settings and what is asked of it."""
    facts = tasks.job_of(CONFIGURATION, cell) | framework_facts(
        cell.environment, cell.network, cell.task, cell.devices
    )
    return facts | {"network_digest": network_digest(cell.network)}


def measuring_job(wildcards):
    """The job of the cell that a rule's wildcards name, as JSON."""
    return json.dumps(job_of(cell_of(wildcards)), sort_keys=True)


@cache
def is_adopted_proof(environment, name):
    """Whether a proof was copied together with the manifest of its environment."""
    return is_main_process() and adopt.knows_proof(
        environment, name, environment_digest(environment)
    )


def largest_searches():
    """The cell that each search for the largest mini-batch begins with, by platform/environment.mode-network-mGIB."""
    asked = CONFIGURATION.grid.get("largest", {"networks": [], "memory_gib": []})
    # The last that is seen has the most threads.
    first = {
        f"{cell.platform}/{cell.environment}.{cell.mode}-{cell.network}": cell
        for cell in sorted(STEPS.values(), key=lambda cell: (cell.threads, -cell.batch))
        if cell.network in asked["networks"] and cell.repeat == 1 and cell.device == "cpu"
        if ELSEWHERE[cell.platform] is None
    }
    return {f"{name}-m{gib}": cell for name, cell in first.items() for gib in asked["memory_gib"]}


def largest_job(wildcards):
    """All that decides what such a search finds, as JSON."""
    cell = LARGEST[f"{wildcards.platform}/{wildcards.search}"]
    job = job_of(cell)
    gib = int(wildcards.search.rpartition("-m")[2])
    return json.dumps(job | {"limits": job["limits"] | {"memory_gib": gib}}, sort_keys=True)


def needed_by_search(wildcards):
    """The manifest and the proof that such a search stands on."""
    cell = LARGEST[f"{wildcards.platform}/{wildcards.search}"]
    return {
        "manifest": f"results/environments/{cell.environment}.json",
        "proof": proof_path(cell),
    }


def manifest_of_proof(wildcards):
    """The manifest of the environment that a proof is of, marked as `needed_by_cell` does."""
    path = f"results/environments/{wildcards.environment}.json"
    name = f"{wildcards.environment}.{wildcards.mode}-{wildcards.network}{wildcards.together}"
    return ancient(path) if is_adopted_proof(wildcards.environment, name) else path


def proof_path(cell):
    """The proof that a cell stands on."""
    return f"results/proofs/{proof_name(cell.facts())}.json"


def needed_by_cell(wildcards):
    """What a cell is measured with; marked as old where its shard was copied together with it, whatever time it bears."""
    cell = cell_of(wildcards)
    digest = environment_digest(cell.environment)
    copied = is_main_process() and adopt.knows_shard(cell, digest)
    mark = ancient if copied else str
    # What a stricter proof refuses is refused where rows are merged.
    stays = copied or (
        is_main_process()
        and adopt.outlives_proof(cell, proof_digest(cell.network), lambda: job_of(cell))
    )
    judged = ancient if stays else str
    files = {
        "manifest": mark(f"results/environments/{cell.environment}.json"),
        "proof": judged(proof_path(cell)),
    }
    # One function for all of them: to call one takes Snakemake longer than all that it does here.
    splits = ("train", "test") if cell.dataset else ()
    return files | {
        "images": [mark(f"results/datasets/{cell.dataset}/{split}.npz") for split in splits],
        "reference": list(map(mark, reference_of(cell))),
    }


def reference_of(cell):
    """The reference that the steps of a cell are held against: one path or none, in a list."""
    path = f"results/references/{cell.network}-b{cell.batch}.npz"
    # A cell that was measured before there was a reference stays.
    old = not Path(path).exists() and Path(shard_path(cell.key)).exists()
    return [path] if has_reference(cell) and not old else []


def has_reference(cell):
    """Whether the steps of a cell are held against the network's reference at full size.

    That is of the whole mini-batch: where batch normalisation takes the statistics of each rank's share, it says nothing.
    """
    return tasks.TASKS[cell.task].needs_reference and (
        cell.devices == 1
        or not networks.normalises(networks.specify(cell.network, CONFIGURATION.networks))
    )


def reference_job(wildcards):
    """All that decides the reference of a network and mini-batch, as JSON."""
    facts = {
        "network": wildcards.network,
        "batch": int(wildcards.batch),
        "network_digest": network_digest(wildcards.network),
        "reference_digest": code_for(wildcards.network, "steptime.prove.reference"),
    }
    return json.dumps(facts, sort_keys=True)


def proving_job(wildcards):
    """All that decides the proof of a network in an environment and mode, on one device or several, as JSON."""
    together = together_of(wildcards.together)
    devices = together.get("devices", 1)
    facts = framework_facts(wildcards.environment, wildcards.network, devices=devices) | {
        "environment": wildcards.environment,
        "mode": wildcards.mode,
        "network": wildcards.network,
        "network_digest": network_digest(wildcards.network),
        "proof_digest": proof_digest(wildcards.network),
    }
    # Only where it is one: a word more would prove every network on CPUs again.
    on_gpu = {"device": "gpu"} if wildcards.environment in gpu_environments() else {}
    return json.dumps(facts | together | on_gpu, sort_keys=True)


def shards_of(wildcards):
    """The shards that an artefact is made of."""
    keys = PLAN.artefacts.get(wildcards.artefact)
    if keys is None:
        selected = CONFIGURATION.artefacts[wildcards.artefact]
        task = selected.get("task", "step")
        where = "the grid's networks" if task == "step" else f"'{task}' in 'parts' of the grid"
        raise WorkflowError(
            f"{wildcards.artefact} has no cell in the grid '{CONFIGURATION.grid_name}': "
            f"add one of {', '.join(selected['networks'])} to {where}."
        )
    return shards_at_hand(keys)


def proofs_of(wildcards):
    """The proofs that the cells of an artefact stand on, as far as they lie here: one may refuse what was measured before it."""
    cells = map(PLAN.cells.get, PLAN.artefacts.get(wildcards.artefact, []))
    return list(
        dict.fromkeys(proof_path(cell) for cell in cells if ELSEWHERE.get(cell.platform) is None)
    )


def references_of(wildcards):
    """The references that the cells of an artefact are held against when they are merged, whoever measured them."""
    cells = map(PLAN.cells.get, PLAN.artefacts.get(wildcards.artefact, []))
    return list(dict.fromkeys(path for cell in cells for path in reference_of(cell)))


def begin_run():
    """Writes down what the programs of this run must know and no parameter may hold: the plan, and what is told here."""
    try:
        written.write(PLAN, PLAN_FILE)
    except OSError as error:
        raise WorkflowError(
            f"The plan {PLAN_FILE} cannot be written ({error.strerror}): free some space and run again."
        ) from error
    waiting = [cell_of(wildcards) for wildcards in jobs_to_run("measure_cell")]
    trials = Counter(str(cell.repeat) for cell in waiting if cell.task == "step")
    run.begin(
        began=time.time(),
        deployment="conda" if "conda" in deployment_methods() else "venv",
        platforms=CONFIGURATION.platforms,
        data=CONFIGURATION.data,
        cells=len(waiting),
        # Where cells are measured one by one, each trial of the grid ends before the next begins.
        trials={} if counts_jobs() else trials,
        shown=shown_so_far(),
    )
    progress.begin()
    start_jobs_at_once()


def shown_so_far():
    """The table of times that is printed after each trial: how it is made, and of which cells; {} where there is none."""
    for artefact in map(CATALOGUE.get, TIMES):
        if not lacks(artefact) and set(inputs_of(artefact)) == {"cells"}:
            return {"job": facts_of(artefact), "cells": PLAN.artefacts[artefact.made_of]}
    return {}


def end_run(succeeded):
    """Prints what the run has made: the table, where the files are, how long it took."""
    files = [
        file for file in outputs_of_jobs() if re.match(r"results/(tables|figures|report)/", file)
    ]
    # Of the tables of times, the first of the catalogue that was made.
    shown = next((name for name in TIMES if f"results/tables/{name}.parquet" in files), "")
    status = "--succeeded" if succeeded else "--failed"
    shell('"$STEPTIME_LAUNCH" render.summary {status} --shown={shown:q} {files:q}')
