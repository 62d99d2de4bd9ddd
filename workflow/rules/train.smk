# A training is one job, one worker process and one file, as a cell is; it comes after all cells of its run.


localrules:
    merge_trainings,


# What tables and figures of whole trainings are made of.
TRAINED = "results/training/all.parquet"


rule train_network:
    """Train one network on real images until its accuracy, alone on its host, and write down every epoch."""
    input:
        manifest="results/environments/{environment}.json",
        proof="results/proofs/{environment}.{mode}-{network}.json",
        train="results/datasets/{dataset}/train.npz",
        test="results/datasets/{dataset}/test.npz",
    output:
        shard="results/training/{platform}/{environment}.{mode}-{network}-on-{dataset}-b{batch}-t{threads}-d{devices}-r{repeat}.parquet",
    log:
        "logs/training/{platform}/{environment}.{mode}-{network}-on-{dataset}-b{batch}-t{threads}-d{devices}-r{repeat}.log",
    conda:
        "../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(trainings.limit_seconds(CONFIGURATION)),
        host=100,
    params:
        job=training_job,
    shell:
        '"$STEPTIME_LAUNCH" cells.train --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {input.proof} --train {input.train} --test {input.test}"
        " --shard {output.shard} --log {log}"


rule merge_trainings:
    """Put the trainings of the grid into one file."""
    input:
        lambda wildcards: files_at_hand(
            {key: f"results/training/{key}.parquet" for key in TRAININGS}
        ),
    output:
        TRAINED,
    log:
        "logs/training/all.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        config=json.dumps(config, sort_keys=True),
    shell:
        '"$STEPTIME_LAUNCH" merge.trainings --config {params.config:q} --output {output} 2>&1 | tee {log} >&2'
