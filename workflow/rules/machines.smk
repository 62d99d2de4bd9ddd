# What each platform's machine is, and what it reaches by itself.


rule peak:
    """Measure what a platform's machine itself reaches at each thread count, alone on its host."""
    output:
        "results/peaks/{platform}.json",
    log:
        "logs/peaks/{platform}.log",
    wildcard_constraints:
        platform=choice(name for name in HERE if name not in PLANNED.on_gpu),
    priority: TURNS.after_trial
    conda:
        OWN_SOFTWARE
    resources:
        **CLUSTER.asked(),
        host=100,
    params:
        threads=PLANNED.threads_on,
        code=code_of("machine.peak"),
    shell:
        '"$STEPTIME_LAUNCH" machine.peak --threads {params.threads} --output {output} 2>&1 | tee {log} >&2'


rule gpu_peak:
    """Measure what a platform's GPU itself reaches, with the libraries of the grid's environments, alone on its host."""
    input:
        lambda wildcards: [
            ancient(f"results/environments/{name}.json")
            for name in PLANNED.environments_on(wildcards)
        ],
    output:
        "results/peaks/{platform}.json",
    log:
        "logs/peaks/{platform}.log",
    wildcard_constraints:
        platform=choice(name for name in HERE if name in PLANNED.on_gpu),
    priority: TURNS.after_trial
    conda:
        OWN_SOFTWARE
    resources:
        **CLUSTER.asked(),
        host=100,
    params:
        environments=PLANNED.environments_on,
        threads=PLANNED.threads_on,
        code=code_of("machine.gpu_peak"),
    shell:
        '"$STEPTIME_LAUNCH" machine.gpu_peak --platform {wildcards.platform} --threads {params.threads}'
        " --environments {params.environments} --output {output} 2>&1 | tee {log} >&2"


rule topology:
    """Write down how a platform's machine is built."""
    output:
        "results/topology/{platform}.json",
    log:
        "logs/topology/{platform}.log",
    priority: TURNS.after_steps
    conda:
        OWN_SOFTWARE
    resources:
        **CLUSTER.asked(),
    params:
        code=code_of("machine.topology"),
    shell:
        '"$STEPTIME_LAUNCH" machine.topology --output {output} 2>&1 | tee {log} >&2'
