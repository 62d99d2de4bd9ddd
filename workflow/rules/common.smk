# Reads the configuration and expands the grid, once, for all rules. Functions only.
import gc
import json
import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from snakemake.exceptions import WorkflowError

SCRIPTS = ROOT / "workflow" / "scripts"
sys.path.insert(0, str(SCRIPTS))

from steptime import networks
from steptime.cells import adopt
from steptime.environments import pins, prepare
from steptime.plan import configuration, digests, grid, trainings
from steptime.supervisor import holding, progress

# Planning makes millions of objects that all stay; to look for garbage among them took a fifth of its time.
gc.set_threshold(200_000, 50, 100)

# What the programs must know and no parameter may hold: it differs between machines and checkouts, and changes no number.
NEEDED = (
    "pandas pyarrow scipy matplotlib psutil pynvml jsonschema jinja2 itables rich yaml uv".split()
)
if all(map(find_spec, NEEDED)):
    os.environ.setdefault("STEPTIME_PYTHON", sys.executable)
os.environ.update(
    STEPTIME_LAUNCH=str(SCRIPTS / "launch"),
    STEPTIME_DEPLOYMENT="conda" if "conda" in deployment_methods() else "venv",
)

try:
    CONFIGURATION = configuration.load(ROOT, config)
    PLAN = grid.expand(CONFIGURATION, len(os.sched_getaffinity(0)))
    TRAININGS = trainings.expand(CONFIGURATION, len(os.sched_getaffinity(0)))
except configuration.ConfigurationError as error:
    # Not a WorkflowError: it would wrap the sentence in lines about this file.
    sys.exit(str(error))

hide_chatter()
share_out_host()

if is_main_process():
    # Held until this process ends; the cells end with it.
    HELD = holding.hold()
    os.environ.update(STEPTIME_RUN=str(os.getpid()))
    adopt.adopt([*PLAN.cells.values(), *TRAININGS.values()])

# The artefact whose cells stand for the grid where an artefact tells of all networks: each at one mini-batch size.
REPORTED = "shi2016_table4"
REPORTED_CELLS = [PLAN.cells[key] for key in PLAN.artefacts.get(REPORTED, [])]

# What papers' tables and figures of whole trainings are made of.
TRAINED = "results/training/all.parquet"

# The proof of every network in every environment and mode that the grid has cells of.
PROVEN = dict.fromkeys(
    f"{cell.environment}.{cell.adapter_mode}-{cell.network}" for cell in PLAN.cells.values()
)


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
    names = ["worker.__main__", "worker.building", f"worker.adapters.{adapter}"]
    return code_for(network, *names, *(f"worker.tasks.{task}" for task in tasks))


def proof_digest(network):
    """Digest of the code that collects what a proof needs and judges it: an edit of it may give another verdict."""
    return code_for(
        network, "worker.tasks.proof", "steptime.prove.compare", "steptime.prove.golden"
    )


def preparing_step(environment):
    """Name of the step that prepares an environment, '' for none."""
    return CONFIGURATION.entry_of(environment).get("prepare", "")


def environment_digest(environment):
    """Digest of the pins of an environment and of the step that prepares it."""
    step = preparing_step(environment)
    return pins.digest(pins.load(ROOT / f"envs/{environment}.yaml", step), prepare.digest(step))


@cache
def framework_facts(environment, network, *tasks):
    """The adapter of an environment, the variables that its worker gets, and the digest of its code for these tasks."""
    framework = CONFIGURATION.entry_of(environment)
    return {
        "adapter": framework["adapter"],
        "variables": framework["variables"],
        "worker_digest": worker_digest(framework["adapter"], network, *tasks),
    }


def cell_key(wildcards):
    """The key of the cell that a rule's wildcards name."""
    return (
        f"{wildcards.platform}/{wildcards.environment}.{wildcards.mode}-{wildcards.network}"
        f"-b{wildcards.batch}-t{wildcards.threads}-d{wildcards.devices}-r{wildcards.repeat}"
    )


def measuring_job(wildcards):
    """All that decides the number of a cell, as JSON: the cell, its framework's settings and how it is sampled."""
    cell = PLAN.cells[cell_key(wildcards)]
    facts = framework_facts(cell.environment, cell.network, "step") | {
        "cell": cell.facts(),
        "network_digest": network_digest(cell.network),
        "sampling": CONFIGURATION.grid["sampling"],
        "limits": CONFIGURATION.grid["limits"],
    }
    return json.dumps(facts, sort_keys=True)


def training_job(wildcards):
    """All that decides what a training takes and reaches, as JSON."""
    training = TRAININGS[
        f"{wildcards.platform}/{wildcards.environment}.{wildcards.mode}-{wildcards.network}-on-{wildcards.dataset}"
        f"-b{wildcards.batch}-t{wildcards.threads}-d{wildcards.devices}-r{wildcards.repeat}"
    ]
    facts = trainings.job_of(CONFIGURATION, training) | framework_facts(
        training.environment, training.network, "training"
    )
    facts["network_digest"] = network_digest(training.network)
    return json.dumps(facts, sort_keys=True)


def proving_job(wildcards):
    """All that decides the proof of a network in an environment and mode, as JSON."""
    facts = framework_facts(wildcards.environment, wildcards.network) | {
        "environment": wildcards.environment,
        "mode": wildcards.mode,
        "network": wildcards.network,
        "network_digest": network_digest(wildcards.network),
        "proof_digest": proof_digest(wildcards.network),
    }
    return json.dumps(facts, sort_keys=True)


def shard_path(key):
    """Path of the shard of a cell."""
    return f"results/shards/{key}.parquet"


def shards_of(wildcards):
    """The shards that an artefact is made of."""
    keys = PLAN.artefacts.get(wildcards.artefact)
    if keys is None:
        selected = CONFIGURATION.artefacts[wildcards.artefact]["networks"]
        raise WorkflowError(
            f"{wildcards.artefact} has no cell in the grid '{CONFIGURATION.grid_name}': "
            f"add one of {', '.join(selected)} to the grid's networks."
        )
    return shards_at_hand(keys)


def paper_of(entry):
    """The paper that a rule makes an artefact of, '' where it is none's."""
    paper = entry.name.partition("_")[0]
    return paper if (ROOT / "resources" / "papers" / paper).is_dir() else ""


def every_artefact():
    """The files of every artefact that the grid has all for."""
    return [
        file
        for entry in all_rules()
        if paper_of(entry) and not lacks(entry)
        for file in entry.output
    ]


def lacks(entry):
    """What a rule reads that this configuration has not, as a state of its artefact; '' where it has all."""
    for path in map(str, entry.input):
        merged = re.fullmatch(r"results/merged/(.+)\.parquet", path)
        images = re.fullmatch(r"results/datasets/(.+)/\w+\.npz", path)
        if (merged and merged[1] not in PLAN.artefacts) or (path == TRAINED and not TRAININGS):
            return "no cells in this grid"
        if images and not CONFIGURATION.dataset_of(images[1]):
            return "data set not configured"
    return ""


def targets_of_papers(wildcards):
    """The papers' artefacts by name, each with its state and the number of its cells in the grid, as JSON."""
    targets = {}
    for entry in all_rules():
        if paper_of(entry):
            merged = [
                Path(str(path)).stem
                for path in entry.input
                if str(path).startswith("results/merged/")
            ]
            # The rule may have rows of ours, but the grid has none for it.
            rows = [
                getattr(entry.input, name)
                for name in ("merged", "trained")
                if hasattr(entry.input, name)
            ]
            state = lacks(entry) or ("made" if all(rows) else "printed numbers only")
            cells = sum(len(PLAN.artefacts[name]) for name in merged if name in PLAN.artefacts)
            cells += len(TRAININGS) if TRAINED in entry.input else 0
            targets[entry.name] = {"state": state, "cells": cells}
    return json.dumps(targets)


def result_kind(file):
    """'tables' or 'figures' where a file is of an artefact, '' elsewhere."""
    found = re.match(r"results/(tables|figures)/", str(file))
    return found[1] if found else ""


def every_shown_file(wildcards):
    """The tables and figures that `rule all` asks for, which the report shows."""
    return [file for file in inputs_of_rule("all") if result_kind(file)]


def report_job(wildcards, input):
    """All that the report is made of besides the numbers, as JSON: the grid's policy, and every artefact with its files."""
    artefacts = []
    for entry in all_rules():
        files = [str(file) for file in entry.output if result_kind(file)]
        unread = lacks(entry) == "data set not configured"
        why = (
            "its data set is not configured."
            if unread
            else f"the grid {CONFIGURATION.grid_name} has no cell of it."
        )
        missing = why if set(files) - set(input.shown) else ""
        facts = {
            "name": entry.name,
            "about": entry.docstring,
            "paper": paper_of(entry),
            "files": files,
        }
        artefacts += [facts | {"missing": missing}] if files else []
    policy = {name: CONFIGURATION.grid[name] for name in ("sampling", "limits")}
    return json.dumps({"grid": CONFIGURATION.grid_name, **policy, "artefacts": artefacts})


def mark_for_reports():
    """Marks what a reader opens of every artefact for `snakemake --report`, in whichever file its rule stands."""
    captions = {
        ("tables", ".html"): "table",
        ("figures", ".svg"): "figure",
        ("report", ".html"): "page",
    }
    for entry in all_rules():
        for file in entry.output:
            caption = captions.get((Path(file).parent.name, Path(file).suffix))
            if caption:
                mark_for_report(
                    file,
                    caption=str(ROOT / f"workflow/report/{caption}.rst"),
                    category=paper_of(entry) or "steptime",
                    labels={"name": entry.name, "kind": caption, "what": entry.docstring},
                )


def begin_run():
    """Notes how many cells this run will measure, for the progress that each of them prints."""
    progress.begin(count_jobs_to_run("measure_cell", "train_network"))
    start_jobs_at_once()


def end_run(succeeded):
    """Prints what the run has made: the table, where the files are, how long it took."""
    files = [
        file for file in outputs_of_jobs() if re.match(r"results/(tables|figures|report)/", file)
    ]
    status = "--succeeded" if succeeded else "--failed"
    shell('"$STEPTIME_LAUNCH" render.summary {status} {files:q}')
