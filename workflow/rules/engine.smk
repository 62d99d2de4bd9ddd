# What Snakemake does not promise to keep: its private names stand here and nowhere else. tests/workflow/test_engine.py
# asks each of these functions in a run of its own, so that a new version of Snakemake says which of them it broke.


def deployment_methods():
    """How this run gets software, in lower case, such as {'conda'}; empty where environments are our own."""
    return {method.name.lower() for method in workflow.deployment_settings.deployment_method}


def is_main_process():
    """Whether this is the process that a user started, not one that it started for a job."""
    return workflow.is_main_process


def counts_jobs():
    """Whether jobs are limited by their number, as on a cluster, and no host is shared out between them."""
    limits = workflow.resource_settings
    return limits.nodes is not None and "host" not in limits.resources


def all_rules():
    """Every rule that has been read so far."""
    return list(workflow.rules)


def jobs_to_run():
    """The jobs that this run has to do, once they are known."""
    return list(workflow.dag.needrun_jobs())


def outputs_of_jobs():
    """The files of all jobs that are part of this run, whether or not they had to be done."""
    return [file for job in workflow.dag.jobs for file in job.output]


def inputs_of_rule(name):
    """The input files of a rule."""
    return list(map(str, workflow.get_rule(name).input))


def mark_for_report(file, **mark):
    """Shows an output file of a rule in `snakemake --report`, with the arguments of Snakemake's own `report`."""
    file.set_flags(file.flags | report(str(file), **mark).flags)


def start_jobs_at_once():
    """Switches Snakemake's limit on starts per second off where all jobs run on this machine.

    With it, each round of the scheduler sets a timer that sets off a round of its own. After some dozens of jobs this
    takes 6 % of a CPU from the cell that is timed.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


# What a run says of itself that nobody reads: two lines for each of hundreds of cells, and the shell that is used.
CHATTER = ("Select jobs to execute", "Execute ", "Using shell:", "Conda environments: ignored")


def hide_chatter():
    """Leaves CHATTER out of what is printed where `--quiet progress` is set; Snakemake's log file keeps it."""
    from snakemake.logging import logger
    from snakemake.settings.enums import Quietness

    if Quietness.PROGRESS in (workflow.output_settings.quiet or ()):
        for handler in logger.handlers:
            if handler.name == "DefaultStreamHandler":
                handler.addFilter(lambda record: not record.getMessage().startswith(CHATTER))
