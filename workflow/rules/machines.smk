# What each platform's machine is, and what it reaches by itself.


rule peak:
    """Measure what a platform's machine itself reaches at each thread count, alone on its host."""
    output:
        "results/peaks/{platform}.json",
    log:
        "logs/peaks/{platform}.log",
    wildcard_constraints:
        platform=choice(name for name in HERE if name not in ON_GPU),
    priority: AFTER_TRIAL
    conda:
        OWN_SOFTWARE
    resources:
        **asked_of_slurm(),
        host=100,
    params:
        threads=threads_on,
        code=lambda wildcards: digests.program_digest("steptime.machine.peak"),
    shell:
        '"$STEPTIME_LAUNCH" machine.peak --threads {params.threads} --output {output} 2>&1 | tee {log} >&2'


rule gpu_peak:
    """Measure what a platform's GPU itself reaches, with the libraries of the grid's environments, alone on its host."""
    input:
        lambda wildcards: [ancient(manifest_path(name)) for name in environments_on(wildcards)],
    output:
        "results/peaks/{platform}.json",
    log:
        "logs/peaks/{platform}.log",
    wildcard_constraints:
        platform=choice(name for name in HERE if name in ON_GPU),
    priority: AFTER_TRIAL
    conda:
        OWN_SOFTWARE
    resources:
        **asked_of_slurm(),
        host=100,
    params:
        environments=environments_on,
        threads=threads_on,
        code=lambda wildcards: digests.program_digest("steptime.machine.gpu_peak"),
    shell:
        '"$STEPTIME_LAUNCH" machine.gpu_peak --platform {wildcards.platform} --threads {params.threads}'
        " --environments {params.environments} --output {output} 2>&1 | tee {log} >&2"


rule topology:
    """Write down how a platform's machine is built."""
    output:
        "results/topology/{platform}.json",
    log:
        "logs/topology/{platform}.log",
    priority: AFTER_STEPS
    conda:
        OWN_SOFTWARE
    resources:
        **asked_of_slurm(),
    params:
        code=lambda wildcards: digests.program_digest("steptime.machine.topology"),
    shell:
        '"$STEPTIME_LAUNCH" machine.topology --output {output} 2>&1 | tee {log} >&2'
