# What Snakemake does not promise to keep: its private names stand here and nowhere else. tests/workflow/test_engine.py
# asks each of them in a run of its own, so that a new version of Snakemake says which of them it broke.

import atexit
import re
import sys
from pathlib import Path

# The project's folder: found by this file, not by the folder that is worked in. The programs need it on this disk, and
# Snakemake takes a module from elsewhere file by file, rules only.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).absolute().parents[1]
if not (ROOT / "workflow/scripts").is_dir():
    sys.exit(
        f"steptime is not on this disk ({ROOT}): clone it, and name its workflow/Snakefile here."
    )
if {"{", "}"} & {*str(ROOT)}:
    sys.exit(
        f"Snakemake takes what is in braces for names of its own: move {ROOT} to a folder without them."
    )
# What Snakemake is asked for where no job is to run; of these it tells a workflow's file nothing.
QUESTIONS = {"--lint", "--list-rules", "--list-target-rules", "--summary", "--rulegraph", "--dag"}
# What a run says of itself that nobody reads: two lines for each of hundreds of cells, the shell, reasons of rules.
CHATTER = (
    "Select jobs to execute",
    "Execute ",
    "Using shell:",
    "Reasons:\n",
    "Conda environments: ignored",
)
CHATTER += ("Building DAG", "DAG of jobs will", "Updating checkpoint", "The run involves")
CHATTER += ("Assuming unrestricted shared", "Some jobs were triggered", "Rules with provenance")
MISSING = re.compile(r"MissingRuleException.*\nNo rule to produce (.+?) \(if you use", re.DOTALL)
IN_FUNCTION = re.compile(r"Error:\n *(?:Work|Config)\w+Error:\s(.*?)\nWildcards:", re.DOTALL)
# Whether this is the process that a user started, not one that it started for a job.
MAIN = workflow.is_main_process
# Whether this process runs no job: a dry run, or a question about the rules. It must change no file.
ONLY_TELLS = workflow.output_settings.dryrun or bool(QUESTIONS & {*sys.argv})
# Whether jobs are limited by their number, as on a cluster, and no host is shared out between them.
LIMITS = workflow.resource_settings
COUNTS_JOBS = LIMITS.nodes is not None and "host" not in LIMITS.resources
# How many CPUs the jobs of this run may take together on this machine; None where nobody says so.
CORES = LIMITS.cores
# Whether a conda in use makes the environments of frameworks; else they are our own.
USES_CONDA = "CONDA" in {each.name for each in workflow.deployment_settings.deployment_method}


def rule_of(name):
    """A rule of this workflow by the name that it has here; a module's rules may be called otherwise outside."""
    return getattr(rules, name).rule


def jobs_to_run(name):
    """The wildcards of each job of a rule that the run has to do, once that is known."""
    return [job.wildcards for job in workflow.dag.needrun_jobs() if job.rule == rule_of(name)]


def files_to_make(and_made=False):
    """The files of all jobs that the run has yet to do, or of all: a dry run has done all at its end."""
    jobs = workflow.dag.needrun_jobs(exclude_finished=not and_made)
    return [str(file) for job in jobs for file in job.output]


def outputs_of_jobs():
    """The files of all jobs that are part of this run, whether or not they had to be done."""
    return [file for job in workflow.dag.jobs for file in job.output]


def asked_targets():
    """The names of the rules and files that the user asks for; none where it is the default target."""
    return workflow.dag_settings.targets


def make_again(file):
    """Has a file made again where this run asks for it. To be called by the function of some rule's input."""
    workflow.dag.forcefiles.add(file)


def is_asked_for_again(file):
    """Whether a file is to be made again whatever it is: by `make_again`, or by the user's `--force`."""
    return file in workflow.dag.forcefiles


def leave_to_files(*names):
    """Has `make_again`, and not parameters that Snakemake remembers, say what is made of these rules."""
    persistence = workflow.persistence
    if "params_changed" in vars(persistence):
        return
    remembered, left = persistence.params_changed, [rule_of(name) for name in names]

    def params_changed(job, file=None):
        changed = remembered(job, file)
        return type(changed)() if job.rule in left else changed

    persistence.params_changed = params_changed


def make_by_default(name):
    """Makes a rule the one that is run when none is named; that of an included file is forgotten after it was read."""
    workflow.default_target = rule_of(name).name


def at_start(begin):
    """Has `begin` called before the first job: of a module, Snakemake leaves `onstart` out."""

    def with_beginning(handler):
        return lambda log: (begin(), handler(log))

    register = workflow.onstart
    workflow._onstart = with_beginning(workflow._onstart)
    workflow.onstart = lambda handler: register(with_beginning(handler))


def cancel_what_is_left():
    """Cancels this run's jobs at SLURM that Ctrl-C left: Snakemake misses those whose states it just asks for."""
    if run := getattr(workflow.scheduler._executor, "run_uuid", None):
        shell("scancel --name={run:q} || true")


def share_out_host():
    """Gives the host to one cell at a time where no profile does, as in a module: a cell weighs all, other jobs 10."""
    if COUNTS_JOBS or not MAIN:
        return
    if "host" not in LIMITS.resources:
        workflow.register_resource("host", 100)
    defaults = LIMITS._parsed_default_resources
    for resources in (defaults, *(entry.resources for entry in workflow.rules)):
        if "host" not in resources:
            resources["host"] = 10


def describe_rule(name, words):
    """Sets the docstring of a rule, which `--list-target-rules` shows; a rule of a loop can have none of its own."""
    rule_of(name).docstring = words


def keep_turns():
    """Lets no job begin on this machine while one of a higher priority waits for the host.

    By itself, Snakemake fills what is free with whatever fits: a cell, which needs all of the host, would then wait until
    no small job is left. With its limit on starts per second, each round of the scheduler sets off another one: after some
    dozens of jobs this takes 6 % of a CPU from the cell that is timed.
    """
    if not workflow.local_exec:
        return
    scheduler = workflow.scheduler
    scheduler.job_rate_limiter, select = None, scheduler._job_selector

    def select_in_turn(jobs, *arguments):
        chosen = select(jobs, *arguments)
        waiting = max((job.priority for job in jobs if job not in chosen), default=0)
        return [job for job in chosen if job.priority >= waiting]

    scheduler._job_selector = select_in_turn


def speak_plainly(says_unknown):
    """Leaves CHATTER out of what is printed where `--quiet progress` is set, and all but one sentence of a mistake."""
    from snakemake.logging import logger
    from snakemake.settings.enums import Quietness

    is_quiet = Quietness.PROGRESS in (workflow.output_settings.quiet or ())

    def pass_on(record):
        text = record.getMessage()
        if found := MISSING.match(text):
            record.msg = says_unknown(found[1], [entry.name for entry in workflow.rules])
        elif found := IN_FUNCTION.search(text):
            record.msg = " ".join(found[1].split())
        return not (is_quiet and text.startswith(CHATTER))

    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(pass_on)


def after_dry_run(tell):
    """Has `tell` called when a dry run has told what it would do: Snakemake calls nothing of ours then."""
    if workflow.output_settings.dryrun and MAIN:
        atexit.register(lambda: workflow.dag and tell())
