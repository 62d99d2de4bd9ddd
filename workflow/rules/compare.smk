# Two things that were measured already, compared with each other: what `make compare` does, as a target.


rule compare:
    """Say which of two is faster, cell by cell, of what is measured already: --config one=torch-1.4 other=torch."""
    input:
        compared_anew,
    output:
        [f"results/compare/{COMPARISON}.{ending}" for ending in OWN_OUTPUTS["table"]],
    log:
        f"logs/compare/{COMPARISON}.log",
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        sides=SIDES,
        margin=f"--margin {config['margin']}" if "margin" in config else "",
        platforms=["--platforms", config["platforms"]] if "platforms" in config else [],
    shell:
        '"$STEPTIME_LAUNCH" compare.results {params.sides:q} {params.margin} {params.platforms:q}'
        " --answer 2>&1 | tee {log} >&2"
