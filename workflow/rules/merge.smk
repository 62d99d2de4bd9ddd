# An artefact's merge names its own shards only; there is no file of all shards.


localrules:
    merge_shards,


rule merge_shards:
    """Put the shards of one artefact into one file."""
    input:
        shards=shards_of,
    output:
        "results/merged/{artefact}.parquet",
    log:
        "logs/merged/{artefact}.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        # The grid names the shards again inside the program: thousands of paths do not fit on a command line.
        config=json.dumps(config, sort_keys=True),
    shell:
        '"$STEPTIME_LAUNCH" merge.shards --artefact {wildcards.artefact} --config {params.config:q}'
        " --output {output} 2>&1 | tee {log} >&2"


# Only where it is asked for: the plugin of a bucket may not be installed.
if "store" in config:

    include: "storage.smk"
