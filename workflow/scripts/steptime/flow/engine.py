"""A run of Snakemake, as the rules see it. Names that Snakemake does not promise to keep are here and nowhere else.

tests/workflow/test_engine.py uses each of them in a run of its own, so that a new version of Snakemake shows which of
them it broke.
"""

import atexit
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# What Snakemake is asked for where no job is to run; of these it tells a workflow's file nothing.
QUESTIONS = {"--lint", "--list-rules", "--list-target-rules", "--summary", "--rulegraph", "--dag"}
# What a run says of itself that nobody reads: two lines for each of hundreds of cells, the shell, reasons of rules.
CHATTER = (
    "Select jobs to execute",
    "Execute ",
    "Using shell:",
    "Reasons:\n",
    "Building DAG",
    "DAG of jobs will",
    "Updating checkpoint",
    "The run involves",
    "Assuming unrestricted shared",
    "Some jobs were triggered",
    "Rules with provenance",
)
MISSING = re.compile(r"MissingRuleException.*\nNo rule to produce (.+?) \(if you use", re.DOTALL)
IN_FUNCTION = re.compile(r"Error:\n *(?:Work|Config)\w+Error:\s(.*?)\nWildcards:", re.DOTALL)


class Engine:
    """A run of Snakemake; `workflow`, `rules` and `checkpoints` are what rule files call so."""

    def __init__(self, workflow: Any, rules: Any, checkpoints: Any) -> None:
        self._workflow, self._rules, self._checkpoints = workflow, rules, checkpoints
        self._limits = workflow.resource_settings
        # The words of the command line.
        self.words = sys.argv[1:]
        # Whether this is the process that a user started, not one that it started for a job.
        self.is_main: bool = workflow.is_main_process
        # Whether this process runs no job: a dry run, or a question about the rules. It must change no file.
        self.only_tells = workflow.output_settings.dryrun or bool(QUESTIONS & {*self.words})
        # Whether jobs are limited by their number, as on a cluster, and no host is shared out between them.
        self.counts_jobs = self._limits.nodes is not None and "host" not in self._limits.resources
        # How many CPUs the jobs of this run may take together on this machine; None where nobody says so.
        self.cores: int | None = self._limits.cores
        # Whether a conda in use makes the environments of frameworks; else they are our own.
        deployment = workflow.deployment_settings.deployment_method
        self.uses_conda = "CONDA" in {each.name for each in deployment}
        # The software of our rules, only for Snakemake's linter: the launcher starts programs, and finds what they need
        # or makes .venv. A conda in use makes environments of frameworks, and would make one for these programs too.
        # Without a conda, Snakemake would look at a file for each of thousands of jobs.
        self.own_software = "../../envs/workflow.yaml" if "--lint" in self.words else None

    def tell_programs(self, scripts: Path) -> None:
        """Gives programs, by variables, what no parameter may hold: it differs between machines and changes no number.

        Must be called before `steptime.run` is imported, which names this run's own folder by one of them.
        """
        if self.is_main and not self.only_tells:
            os.environ["STEPTIME_RUN"] = str(os.getpid())
        os.environ.setdefault("STEPTIME_RUN", "")
        if all(map(find_spec, (scripts / "packages.txt").read_text().split())):
            os.environ.setdefault("STEPTIME_PYTHON", sys.executable)
        os.environ.update(STEPTIME_LAUNCH=str(scripts / "launch"), STEPTIME_PLANNER=sys.executable)

    def launch(self, *words: str) -> None:
        """Runs one of our programs, whatever becomes of it."""
        subprocess.run([os.environ["STEPTIME_LAUNCH"], *words], check=False)

    def rule_of(self, name: str) -> Any:
        """Returns a rule by the name that it has in this workflow; outside, a module's rules may have other names."""
        return getattr(self._rules, name).rule

    def checkpoint(self, name: str, **wildcards: Any) -> str:
        """Returns the file of a checkpoint; raises Snakemake's exception while it is not made."""
        return str(getattr(self._checkpoints, name).get(**wildcards).output[0])

    def jobs_to_run(self, name: str) -> list[Any]:
        """Returns the wildcards of each job of a rule that the run has to do, once that is known."""
        rule = self.rule_of(name)
        return [job.wildcards for job in self._workflow.dag.needrun_jobs() if job.rule == rule]

    def files_to_make(self, and_made: bool = False) -> list[str]:
        """Returns the files of all jobs that the run has yet to do, or of all: at its end, a dry run has done all."""
        jobs = self._workflow.dag.needrun_jobs(exclude_finished=not and_made)
        return [str(file) for job in jobs for file in job.output]

    def outputs_of_jobs(self) -> list[str]:
        """Returns the files of all jobs that are part of this run, whether or not they had to be done."""
        return [str(file) for job in self._workflow.dag.jobs for file in job.output]

    def asked_targets(self) -> set[str]:
        """Returns the names of rules and files that the user asks for; none for the default target."""
        return set(self._workflow.dag_settings.targets)

    def is_forced(self, file: str) -> bool:
        """Tells whether the user wants a file made again in any case, by `--force` or `--forcerun`."""
        settings = self._workflow.dag_settings
        return file in settings.forcerun or (settings.forcetargets and file in settings.targets)

    def decide(self, made_again: dict[str, Callable[[Any], Iterable[str]]], *left: str) -> None:
        """Makes Snakemake make the files again that `made_again` returns for a job, by its rule, from its wildcards.

        It is called whenever Snakemake decides which jobs must run: once, and after each checkpoint. For the rules
        `left`, no parameter that Snakemake remembers decides.
        """
        workflow, prepare = self._workflow, self._workflow._prepare_dag

        def files() -> set[str]:
            named = {self.rule_of(name): files_of for name, files_of in made_again.items()}
            jobs = [job for job in workflow.dag.jobs if job.rule in named]
            return {file for job in jobs for file in named[job.rule](job.wildcards)}

        def prepare_dag(*arguments: Any, **named: Any) -> None:
            prepare(*arguments, **named)
            dag, ask = workflow.dag, workflow.dag.update_needrun
            rules, changed = list(map(self.rule_of, left)), workflow.persistence.params_changed

            async def update_needrun(*arguments: Any, **named: Any) -> None:
                dag.forcefiles.update(files())
                await ask(*arguments, **named)

            def params_changed(job: Any, file: Any = None) -> Any:
                found = changed(job, file)
                return type(found)() if job.rule in rules else found

            dag.update_needrun, workflow.persistence.params_changed = update_needrun, params_changed

        if self.is_main:
            workflow._prepare_dag = prepare_dag

    def make_by_default(self, name: str) -> None:
        """Makes a rule the default target. Snakemake forgets this mark of a rule in an included file."""
        self._workflow.default_target = self.rule_of(name).name

    def at_start(self, begin: Callable[[], None]) -> None:
        """Calls `begin` before the first job, also in a module, whose `onstart` Snakemake leaves out."""
        workflow = self._workflow

        def with_beginning(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def begin_and_handle(log: Any) -> None:
                begin()
                handler(log)

            return begin_and_handle

        register = workflow.onstart
        workflow._onstart = with_beginning(workflow._onstart)
        workflow.onstart = lambda handler: register(with_beginning(handler))

    def cancel_what_is_left(self) -> None:
        """Cancels this run's jobs at SLURM that Ctrl-C left: Snakemake misses those whose states it asks for."""
        if run := getattr(self._workflow.scheduler._executor, "run_uuid", None):
            # Other clusters have such runs too, and no scancel.
            with suppress(FileNotFoundError):
                subprocess.run(["scancel", f"--name={run}"], check=False)

    def share_out_host(self) -> None:
        """Gives the host to one cell at a time unless a profile does: a cell takes 100 of 100, other jobs take 10."""
        if self.counts_jobs or not self.is_main:
            return
        if "host" not in self._limits.resources:
            self._workflow.register_resource("host", 100)
        defaults = self._limits._parsed_default_resources
        for resources in (defaults, *(entry.resources for entry in self._workflow.rules)):
            if "host" not in resources:
                resources["host"] = 10

    def describe_rule(self, name: str, words: str) -> None:
        """Sets a rule's docstring, which `--list-target-rules` shows: a rule made in a loop cannot have one."""
        self.rule_of(name).docstring = words

    def keep_turns(self) -> None:
        """Lets no job begin on this machine while a job of a higher priority waits for the host.

        By itself, Snakemake fills what is free with whatever fits: a cell, which needs all of the host, would then wait
        until no small job is left. With its limit on starts per second, each round of the scheduler starts another
        round: after some dozens of jobs this takes 6 % of a CPU from the cell that is timed.
        """
        if not self._workflow.local_exec:
            return
        scheduler = self._workflow.scheduler
        scheduler.job_rate_limiter, select = None, scheduler._job_selector

        def select_in_turn(jobs: Any, *arguments: Any) -> list[Any]:
            chosen = select(jobs, *arguments)
            waiting = max((job.priority for job in jobs if job not in chosen), default=0)
            return [job for job in chosen if job.priority >= waiting]

        scheduler._job_selector = select_in_turn

    def speak_plainly(self, says_unknown: Callable[[str, list[str]], str]) -> None:
        """Removes CHATTER from what `--quiet progress` prints, and all but one sentence about a mistake."""
        from snakemake.logging import logger
        from snakemake.settings.enums import Quietness

        workflow = self._workflow
        is_quiet = Quietness.PROGRESS in (workflow.output_settings.quiet or ())

        def pass_on(record: Any) -> bool:
            text = record.getMessage()
            if found := MISSING.match(text):
                record.msg = says_unknown(found[1], [entry.name for entry in workflow.rules])
            elif found := IN_FUNCTION.search(text):
                record.msg = " ".join(found[1].split())
            return not (is_quiet and text.startswith(CHATTER))

        for handler in logger.handlers:
            if handler.name == "DefaultStreamHandler":
                handler.addFilter(pass_on)

    def after_dry_run(self, tell: Callable[[], None]) -> None:
        """Calls `tell` after a dry run has listed its jobs: Snakemake then calls none of our handlers."""

        def tell_of_jobs() -> None:
            if self._workflow.dag:
                tell()

        if self._workflow.output_settings.dryrun and self.is_main:
            atexit.register(tell_of_jobs)
