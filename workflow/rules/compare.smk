# Two things that were measured already, compared with each other: what `make compare` does, as a target.


rule compare:
    """Say which of two is faster, cell by cell, of what is measured already: --config one=torch-1.4 other=torch."""
    input:
        NEEDED.by_comparison,
    output:
        [f"results/compare/{NEEDED.comparison}.{ending}" for ending in OUTPUTS["table"]],
    log:
        f"logs/compare/{NEEDED.comparison}.log",
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        sides=NEEDED.sides,
        margin=f"--margin {config['margin']}" if "margin" in config else "",
        platforms=["--platforms", config["platforms"]] if "platforms" in config else [],
    shell:
        '"$STEPTIME_LAUNCH" compare.results {params.sides:q} {params.margin} {params.platforms:q}'
        " --answer 2>&1 | tee {log} >&2"
