# A cell is one job, one worker process and one shard.


rule measure_cell:
    """Time one cell, alone on its host, and write its shard."""
    input:
        manifest="results/environments/{environment}.json",
        proof="results/proofs/{environment}.{mode}-{network}.json",
    output:
        shard="results/shards/{platform}/{environment}.{mode}-{network}-b{batch}-t{threads}-d{devices}-r{repeat}.parquet",
    log:
        "logs/shards/{platform}/{environment}.{mode}-{network}-b{batch}-t{threads}-d{devices}-r{repeat}.log",
    priority: lambda wildcards: TURNS[cell_key(wildcards)]
    conda:
        "../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(),
        host=100,
    params:
        job=measuring_job,
    shell:
        '"$STEPTIME_LAUNCH" cells.measure --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {input.proof} --shard {output.shard} --log {log}"
