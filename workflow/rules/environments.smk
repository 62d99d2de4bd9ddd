# An environment is made once from its file of pins; what was installed, or why it could not be, is its manifest.


rule environments:
    """Every environment of the grid, and nothing measured."""
    input:
        expand("results/environments/{environment}.json", environment=PLANNED.environments),


rule build_environment:
    """Make one environment, or write down why it does not install."""
    output:
        manifest="results/environments/{environment}.json",
    log:
        "logs/environments/{environment}.log",
    priority: TURNS.before_cells
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        # The file itself is not an input: a comment in it would measure everything again.
        spec="envs/{environment}.yaml",
        prepare=lambda wildcards: EXPECTED.preparing_step(wildcards.environment),
    shell:
        '"$STEPTIME_LAUNCH" environments.build --spec {params.spec}'
        " --environment {wildcards.environment} --prepare={params.prepare}"
        " --output {output.manifest} --log {log}"


rule read_metadata:
    """Read what the package of a framework says of itself."""
    input:
        manifest="results/environments/{environment}.json",
    output:
        "results/metadata/{environment}.json",
    log:
        "logs/metadata/{environment}.log",
    priority: TURNS.after_steps
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        package=lambda wildcards: CONFIGURATION.framework_of(wildcards.environment),
        code=code_of("environments.metadata"),
    shell:
        '"$STEPTIME_LAUNCH" environments.metadata --manifest {input.manifest} --package {params.package:q}'
        " --output {output} 2>&1 | tee {log} >&2"
