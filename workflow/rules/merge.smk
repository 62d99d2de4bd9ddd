# An artefact's merge names its own shards only; there is no file of all shards.

# What the results of the run say together.
STATISTICS = f"results/statistics/{PLANNED.grid_name}.json"


rule compare_results:
    """Estimate from all results how much processes differ, and say of each two results: slower, equal or not decided."""
    input:
        shards=NEEDED.compared_shards,
        proofs=NEEDED.compared_proofs,
    output:
        STATISTICS,
    log:
        f"logs/statistics/{PLANNED.grid_name}.log",
    priority: TURNS.after_steps
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        plan=str(PLANNED.file),
        code=code_of("merge.statistics"),
    shell:
        '"$STEPTIME_LAUNCH" merge.statistics --plan {params.plan} --output {output} 2>&1 | tee {log} >&2'


rule merge_cells:
    """Put the shards of one artefact into one file."""
    input:
        shards=NEEDED.by_artefact,
        added=NEEDED.added_to,
        foundations=NEEDED.foundations,
        shown=NEEDED.showing_shards,
        statistics=lambda wildcards: STATISTICS if wildcards.artefact in CATALOGUE.of_steps else [],
    output:
        "results/merged/{artefact}.parquet",
    log:
        "logs/merged/{artefact}.log",
    priority: TURNS.after_steps
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        plan=str(PLANNED.file),
        # Told in the tables of trainings. The shards' names, thousands of them, are in the plan.
        missing=PLAN.missing,
    shell:
        '"$STEPTIME_LAUNCH" merge.cells --artefact {wildcards.artefact} --plan {params.plan}'
        " --added {input.added} --statistics {input.statistics} --output {output} 2>&1 | tee {log} >&2"


# Minutes go where they decide: after each trial, results of comparisons that are not decided are measured once more.
if PLAN.looks:

    checkpoint choose_further:
        """Choose the results that are measured once more: those of comparisons that are not decided."""
        input:
            shards=NEEDED.compared_before,
            before=NEEDED.chosen_before,
        output:
            f"results/further/{PLANNED.grid_name}-{{trial}}.json",
        log:
            f"logs/further/{PLANNED.grid_name}-{{trial}}.log",
        wildcard_constraints:
            trial=choice(map(str, PLAN.looks[1:])),
        # Of what is ready with it, nothing is to be measured before the cells that it chooses.
        priority: TURNS.before_cells
        localrule: True
        conda:
            OWN_SOFTWARE
        params:
            plan=str(PLANNED.file),
            # Not its code: what was chosen stays, until a run is given more minutes.
            platforms=HERE,
        shell:
            '"$STEPTIME_LAUNCH" merge.repeats --plan {params.plan} --trial {wildcards.trial}'
            " --platforms {params.platforms} --added {input.before} --output {output} 2>&1 | tee {log} >&2"


# Only where it is asked for: the plugin of a bucket may not be installed.
if "store" in config:

    include: "storage.smk"
