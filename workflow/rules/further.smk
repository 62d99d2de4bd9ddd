# Processes where they matter: after a look at the trials so far, cells of undecided comparisons are measured further times.


checkpoint choose_further:
    """Choose the cells of undecided comparisons that are measured further times."""
    input:
        shards=looked_at,
        before=chosen_before,
    output:
        f"results/further/{CONFIGURATION.grid_name}-{{look}}.json",
    log:
        f"logs/further/{CONFIGURATION.grid_name}-{{look}}.log",
    wildcard_constraints:
        look=choice(map(str, PLAN.looks[1:])),
    # Of what is ready with it, nothing is to be measured before the cells that it chooses.
    priority: BEFORE_CELLS
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        plan=str(PLAN_FILE),
        looks=PLAN.looks,
        asked=json.dumps(
            {
                "until": looks.repeats_of(CONFIGURATION.grid).until,
                "budget_seconds": looks.repeats_of(CONFIGURATION.grid).budget_seconds,
            }
        ),
        platforms=HERE,
        code=digests.program_digest("steptime.merge.further"),
    shell:
        '"$STEPTIME_LAUNCH" merge.further --plan {params.plan} --look {wildcards.look} --asked {params.asked:q}'
        " --platforms {params.platforms} --added {input.before} --output {output} 2>&1 | tee {log} >&2"
