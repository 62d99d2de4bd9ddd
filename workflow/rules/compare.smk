# Two things that were measured already, compared with each other: what `make compare` does, as a target.


# The two that the target `compare` compares, by example.
SIDES = {"one": "torch-1.4", "other": "torch"}
# What the files of the comparison are called that this run's configuration names, '' where it names none.
COMPARISON = names.pair(config["one"], config["other"]) if SIDES.keys() <= config.keys() else ""


def compared_anew(wildcards):
    """Nothing; has the comparison made again, since what it reads may lie anywhere, and is no input."""
    if not COMPARISON:
        missing = " nor ".join(f"'{side}'" for side in SIDES if side not in config)
        example = " ".join(f"{side}={config.get(side, name)}" for side, name in SIDES.items())
        # Not a WorkflowError: it would wrap the sentence in lines about this file.
        sys.exit(
            f"The configuration does not name {missing}, of the two that are compared: write --config {example} -- compare."
        )
    make_again(f"results/compare/{COMPARISON}.md")
    return []


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
        sides=[config.get(side, "") for side in SIDES],
        margin=f"--margin {config['margin']}" if "margin" in config else "",
        platforms=["--platforms", config["platforms"]] if "platforms" in config else [],
        output=lambda wildcards, output: output[0].rpartition(".")[0],
    shell:
        '"$STEPTIME_LAUNCH" compare.results {params.sides:q} {params.margin} {params.platforms:q}'
        " --answer --output {params.output:q} 2>&1 | tee {log} >&2"
