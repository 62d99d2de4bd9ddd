# What each platform's machine is, and what it reaches by itself.


rule peak:
    """Measure what a platform's machine itself reaches at each thread count, alone on its host."""
    output:
        "results/peaks/{platform}.json",
    log:
        "logs/peaks/{platform}.log",
    conda:
        "../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(),
        host=100,
    params:
        threads=lambda wildcards: sorted(
            {cell.threads for cell in STEPS.values() if cell.platform == wildcards.platform}
        ),
        code=digests.program_digest("steptime.machine.peak"),
    shell:
        '"$STEPTIME_LAUNCH" machine.peak --threads {params.threads} --output {output} 2>&1 | tee {log} >&2'


rule topology:
    """Write down how a platform's machine is built."""
    output:
        "results/topology/{platform}.json",
    log:
        "logs/topology/{platform}.log",
    conda:
        "../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(),
    params:
        code=digests.program_digest("steptime.machine.topology"),
    shell:
        '"$STEPTIME_LAUNCH" machine.topology --output {output} 2>&1 | tee {log} >&2'
