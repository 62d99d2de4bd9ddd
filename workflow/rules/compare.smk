# Two things that were measured already, compared with each other: what `make compare` does, as a target.


localrules:
    compare,
    write_comparison,


rule compare:
    """Say which of two is faster, cell by cell, of what is measured already: --config one=torch-1.4 other=torch."""
    input:
        comparison,


rule write_comparison:
    """Write a comparison, whichever of the two is faster; where it means nothing, there is none."""
    output:
        [f"results/compare/{{comparison}}.{ending}" for ending in OWN_OUTPUTS["table"]],
    log:
        "logs/compare/{comparison}.log",
    wildcard_constraints:
        comparison=choice([COMPARISON] if COMPARISON else []),
    conda:
        OWN_SOFTWARE
    params:
        one=lambda wildcards: config["one"],
        other=lambda wildcards: config["other"],
        margin=f"--margin {config['margin']}" if "margin" in config else "",
        platforms=["--platforms", config["platforms"]] if "platforms" in config else [],
    shell:
        '"$STEPTIME_LAUNCH" compare.results {params.one:q} {params.other:q} {params.margin} {params.platforms:q}'
        " --answer --output results/compare/{wildcards.comparison} 2>&1 | tee {log} >&2"
