# Reads the configuration, expands the grid, and prepares this process, once, for all rules. No rules.
import gc
import json
import math
import os
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from snakemake.exceptions import WorkflowError

SCRIPTS = ROOT / "workflow" / "scripts"
sys.path.insert(0, str(SCRIPTS))
# Before `steptime.run` is imported, which names this run's own folder by it.
if MAIN and not ONLY_TELLS:
    os.environ.update(STEPTIME_RUN=str(os.getpid()))
os.environ.setdefault("STEPTIME_RUN", "")

from steptime import machine, networks, run, tasks, warm
from steptime.cells import footers
from steptime.cells.current import Current
from steptime.cells.expected import Expected
from steptime.machine import energy, placement
from steptime.plain import file_name
from steptime.plan import checks, configuration, digests, folders, grid, interim, schemas, written
from steptime.plan.artefacts import TRAINED
from steptime.plan.cell import FOLDER, MARK, ROUNDED, images_of, manifest_path, precision_of
from steptime.plan.cell import proof_path, reference_path, shard_path
from steptime.plan.grid import COMPARED
from steptime.reading import InputError
from steptime.say import say, say_sentence
from steptime.supervisor import holding, progress, work

# Planning makes millions of objects that all stay; to look for garbage among them took a fifth of its time.
gc.set_threshold(200_000, 50, 100)

# What the programs must know and no parameter may hold: it differs between machines and checkouts, and changes no number.
if all(map(find_spec, (SCRIPTS / "packages.txt").read_text().split())):
    os.environ.setdefault("STEPTIME_PYTHON", sys.executable)
os.environ.update(STEPTIME_LAUNCH=str(SCRIPTS / "launch"), STEPTIME_PLANNER=sys.executable)
# Software of our rules. Programs are started by the launcher, which finds what they need or makes .venv. A conda in use
# makes environments of frameworks, and would make another for these programs after each move of the checkout. The linter
# of Snakemake asks for it.
OWN_SOFTWARE = None if USES_CONDA and "--lint" not in sys.argv else "../../envs/workflow.yaml"

# Whatever may be the name of a target, or of its file: Snakemake knows its targets only after this file was read.
ASKED = {Path(word).stem for word in sys.argv[1:]}


def why_remote(needs):
    """Why this run cannot measure cells of a platform with this entry; None where it can."""
    if not MAIN:
        return None
    # Cells go to a cluster where jobs are counted and no host is shared out: profiles/default limits the host,
    # profiles/slurm the jobs. Snakemake itself tells its executor only after this file was read.
    if COUNTS_JOBS:
        return None if "cluster" in needs else "its entry in the file of platforms has no 'cluster'"
    if "cluster" in needs:
        return "a cluster gives it: run there with --workflow-profile profiles/slurm"
    return placement.lacking(needs)


def is_shown(artefact, cell):
    """Whether an artefact shows a run of `named_batches`: it is asked for by its name, or the run lies here, as does
    the first of the result, by whose gradients the others are judged.
    """
    return artefact in ASKED or all(map(CURRENT.shard, {cell, replace(cell, repeat=1)}))


try:
    folders.check(Path("results"))
    if MAIN and not ONLY_TELLS:
        folders.check_space(holding.FOLDER)
        folders.remove_empty(Path("results"))
    configuration.as_written(ROOT, config, sys.argv[1:])
    # The compute capability of this machine's GPUs decides for a platform that is here alone.
    CONFIGURATION = configuration.load(
        ROOT,
        config,
        lambda needs: why_remote(needs) is None,
        lambda needs: placement.capability(needs) if MAIN and "cluster" not in needs else None,
        ASKED,
    )
    PLAN_FILE = written.path_of(CONFIGURATION.grid_name)
    EXPECTED = Expected(CONFIGURATION)
    CURRENT = Current(EXPECTED)
    # A job of a cluster has CPUs of its own: it goes by the plan of the run that it belongs to.
    PLAN = (
        grid.expand(CONFIGURATION, machine.usable_cpus(), is_shown)
        if MAIN
        else written.read(PLAN_FILE)
    )
    # Here, so that a mistake in a file of pins is one sentence.
    for environment in CONFIGURATION.grid["environments"]:
        EXPECTED.environment_digest(environment)
except InputError as error:
    # Not a WorkflowError: it would wrap the sentence in lines about this file.
    sys.exit(str(error))
# What a user may have said of this run, as variables of `make`.
SAID_TO_MAKE = dict(GRID="grid", ONLY="only", NETWORKS="only_networks", PLATFORMS="platforms")
# How many CPUs the jobs of this run have together: `--cores 16` is no mistake where there are two.
OWN_CORES = min(CORES or 1, machine.usable_cpus())
# The environments of the catalogue, and those of the grid.
KNOWN, ENVIRONMENTS = CONFIGURATION.known_environments, CONFIGURATION.grid["environments"]
REPEATS = interim.repeats_of(CONFIGURATION.grid)


def unknown_target(name, known):
    """The sentence for a target that no rule makes."""
    if "/" in name:
        return f"Nothing here makes the file {name}: leave it out, or name a table or figure (--list-target-rules)."
    if name in ("share", "fetch") and "store" not in config:
        return f"`{name}` needs a store: write --config store=/mnt/shared/steptime -- {name}."
    known = [*CATALOGUE, *known]
    return schemas.unknown("target", name, known, "this workflow (--list-target-rules)")


def tell_plan():
    """Prints what a run would do, and about how long it would take."""
    files = files_to_make(and_made=True)
    guessed = work.guess(files, CONFIGURATION, OWN_CORES, PLAN.cells, shown_by())
    # On a cluster, nobody knows how many run side by side.
    lasting = sum(guessed.values())
    if deadline(guessed):
        lasting = max(lasting, 60 * REPEATS.minutes)
    lasts = "" if COUNTS_JOBS else f": about {progress.duration(lasting)}"
    if guessed:
        say_sentence(f"{work.words(guessed, kins_of(guessed))}{lasts}.")
    for sentence in work.left_out(ASKED, PLAN, CONFIGURATION):
        say_sentence(sentence)


speak_plainly(unknown_target)
after_dry_run(tell_plan)
share_out_host()

if CORES is not None and CORES < 1:
    sys.exit(
        f"With --cores {CORES} no job can begin: write --cores all, or how many CPUs jobs may take."
    )
if MAIN and not ONLY_TELLS:
    for sentence in CONFIGURATION.left_out:
        say_sentence(f"Left out: {sentence}")
    # Held until this process ends; the cells end with it.
    HELD = holding.hold()
    folders.to_present(map(Path, ("results", ROOT / "envs", ROOT / "config")))

# The cells whose merged rows the catalogues' `needs` call by these words: of single steps, of trained networks, and of
# single operations of a step.
STEPS, TRAININGS, OPERATIONS = (
    {key: cell for key, cell in PLAN.cells.items() if tasks.TASKS[cell.task].feeds == word}
    for word in ("every_cell", "trainings", "parts")
)

# One machine measures cells in the order of the plan: of the jobs that are ready, the one of the highest priority starts
# first, and none of a lower one before it (`keep_turns`).
# What a network's cells stand on is made right before the first of them, so that there is a first answer early.
TURNS, PROOF_TURNS, REFERENCE_TURNS = {}, {}, {}
for turn, (key, cell) in enumerate(reversed(PLAN.cells.items()), 1):
    TURNS[key] = PROOF_TURNS[cell.network] = REFERENCE_TURNS[cell.network, str(cell.batch)] = turn
BEFORE_CELLS = len(TURNS) + 1
# Before what follows the steps, as trainings do: so little is left to make after the last result.
AFTER_STEPS = min((TURNS[key] for key in STEPS), default=0)
# Behind the first answer, and before the trials that fill the minutes.
AFTER_TRIAL = max(
    (TURNS[key] for key, cell in STEPS.items() if cell.repeat > 1), default=AFTER_STEPS
)


def choice(names):
    """The regular expression that accepts these names and nothing else."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def runs_on(environment, platform):
    """Whether an environment runs on a platform."""
    needs = CONFIGURATION.platforms[platform]
    return configuration.fits(CONFIGURATION.entry_of(environment), needs)


def cell_of(wildcards):
    """The cell that a rule's wildcards name."""
    key = f"{wildcards.platform}/{wildcards.task}/{wildcards.cell}"
    if key not in PLAN.cells:
        raise WorkflowError(
            f"There is no cell {key} in the grid '{CONFIGURATION.grid_name}', whose first is {next(iter(PLAN.cells), 'none')}."
        )
    return PLAN.cells[key]


def deadline(files):
    """When a run is to end that has minutes and measures something, in seconds since 1970; None of any other."""
    measures = any(file.startswith((f"results/{FOLDER}/", "results/further/")) for file in files)
    has_minutes = PLAN.looks and analyses_of_run() == PLAN.looks
    return progress.commanded_at() + 60 * REPEATS.minutes if measures and has_minutes else None


def kins_of(files):
    """What the runs that make these files share with others, by their files."""
    paths = {shard_path(key): cell for key, cell in PLAN.cells.items()}
    return {path: work.kin(cell.facts()) for path, cell in paths.items() if path in files}


def begin_run():
    """Writes down what the programs of this run must know and no parameter may hold: the plan, and what is told here."""
    try:
        folders.check_writable(files_to_make())
        expected = {key: EXPECTED.of(cell) for key, cell in PLAN.cells.items()}
        plan = replace(PLAN, expected=expected)
        if CONFIGURATION.grid_name in run.grids_of_others() and not written.is_there(
            plan, PLAN_FILE
        ):
            raise WorkflowError(
                f"Another run in this folder measures other results of the grid '{CONFIGURATION.grid_name}': wait until it "
                "ends, or work in another folder (--directory)."
            )
        written.write(plan, PLAN_FILE)
    except configuration.ConfigurationError as error:
        # Not a WorkflowError: it would wrap the sentence in lines about this file.
        sys.exit(str(error))
    except OSError as error:
        raise WorkflowError(
            f"The plan {PLAN_FILE} cannot be written ({error.strerror}): free some space and run again."
        ) from error
    waiting = [cell_of(wildcards) for wildcards in jobs_to_run("measure_cell")]
    shown = shown_so_far()
    keys = set(shown.get("cells", []))
    stages = Counter(each for cell in waiting for each in progress.stages_of(cell.facts(), keys))
    guessed = work.guess(files_to_make(), CONFIGURATION, OWN_CORES, PLAN.cells, shown_by())
    runners = {(cell.environment, cell.mode) for cell in PLAN.cells.values()}
    varied = ["mode"] if len(runners) > len({environment for environment, _ in runners}) else []
    varied += ["platform"] if len({cell.platform for cell in PLAN.cells.values()}) > 1 else []
    run.begin(
        began=time.monotonic(),
        grid=config["grid"],
        asked={name: config[key] for name, key in SAID_TO_MAKE.items() if key in config},
        deployment="conda" if USES_CONDA else "venv",
        platforms=CONFIGURATION.platforms,
        networks=CONFIGURATION.network_files,
        data=CONFIGURATION.data,
        cells=len(waiting),
        waiting=[cell.key for cell in waiting if cell.key in keys],
        # Where cells are measured one by one, each stage of the grid ends before the next begins.
        stages=None if COUNTS_JOBS else stages,
        shown=shown,
        looks=PLAN.looks,
        shown_by=shown_by(),
        work=guessed,
        kins=kins_of(guessed),
        varied=varied,
        deadline=deadline(guessed),
        minutes=REPEATS.minutes,
    )
    progress.begin()
    if guessed and not COUNTS_JOBS:
        for sentence in progress.plan(guessed, kins_of(guessed), deadline(guessed)):
            say_sentence(sentence)
        for sentence in work.left_out(ASKED, PLAN, CONFIGURATION):
            say_sentence(sentence)
        progress.keep_talking()
    warm.begin()
    keep_turns()


def shown_so_far():
    """What is shown while cells are measured: how the tables of times and of ratios are made, and of which cells; or {}."""
    ratios = [artefact for artefact in CATALOGUE.values() if artefact.entry["kind"] == "ratios"]
    for artefact in TIMES:
        if not lacks(artefact) and set(inputs_of(artefact)) == {"cells"}:
            keys = PLAN.artefacts[artefact.made_of]
            others = PLAN.cells.keys() - keys if PLAN.looks else ()
            further = sorted(interim.of_artefact(keys, others, PLAN.cells))
            jobs = [facts_of(each) for each in (artefact, *ratios)]
            grid_name = CONFIGURATION.grid_name
            cells = {"cells": keys + further, "further": further}
            return {"grid": grid_name, "jobs": jobs} | cells
    return {}


def end_run(succeeded):
    """Prints the answer of the run, or of what was measured until it was interrupted, where its files are, and its time."""
    if not succeeded:
        shell('"$STEPTIME_LAUNCH" page.so_far interrupted || true')
    # What could not be made again is that of an earlier run, maybe of another grid.
    old = {*files_to_make()}
    files = [
        file
        for file in outputs_of_jobs()
        if re.match(r"results/(tables|figures|report)/", file) and file not in old
    ]
    # Of the tables of times, the first of the catalogue that was made.
    shown = next((each for each in TIMES if f"results/tables/{each.name}.parquet" in files), None)
    table = facts_of(shown) if shown else ""
    cells = merged([shown.made_of]) if shown else "."
    status = "--succeeded" if succeeded else "--failed"
    # What was made stands, whether or not anyone reads the last words.
    shell(
        '"$STEPTIME_LAUNCH" page.summary {status} --table={table:q} --cells={cells} {files:q} || true'
    )
