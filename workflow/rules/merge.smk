# An artefact's merge names its own shards only; there is no file of all shards.


rule compare_results:
    """Estimate from all results how much processes differ, and say which result is fastest, slower or tied."""
    input:
        shards=compared_shards,
        proofs=compared_proofs,
    output:
        f"results/statistics/{CONFIGURATION.grid_name}.json",
    log:
        f"logs/statistics/{CONFIGURATION.grid_name}.log",
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        plan=str(PLAN_FILE),
        code=digests.program_digest("steptime.merge.statistics"),
    shell:
        '"$STEPTIME_LAUNCH" merge.statistics --plan {params.plan} --output {output} 2>&1 | tee {log} >&2'


rule merge_cells:
    """Put the shards of one artefact into one file."""
    input:
        shards=shards_of,
        added=added_to,
        made_with=made_with,
        shown=shown_beside,
        statistics=statistics_of,
    output:
        "results/merged/{artefact}.parquet",
    log:
        "logs/merged/{artefact}.log",
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        plan=str(PLAN_FILE),
        # Told in the tables of trainings. The shards' names, thousands of them, are in the plan.
        missing=PLAN.missing,
    shell:
        '"$STEPTIME_LAUNCH" merge.cells --artefact {wildcards.artefact} --plan {params.plan}'
        " --added {input.added} --statistics {input.statistics} --output {output} 2>&1 | tee {log} >&2"


# Only where the grid asks for more processes where they matter.
if PLAN.looks:

    include: "further.smk"


# Only where it is asked for: the plugin of a bucket may not be installed.
if "store" in config:

    include: "storage.smk"
