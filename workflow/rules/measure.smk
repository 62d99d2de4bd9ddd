# A cell is one job, one worker process and one shard, whatever its task.


rule measure_cell:
    """Measure one cell, alone on its host, and write its shard."""
    input:
        manifest=lambda wildcards: needed_by(
            cell_of(wildcards), f"results/environments/{cell_of(wildcards).environment}.json"
        ),
        proof=lambda wildcards: needed_by(
            cell_of(wildcards),
            "results/proofs/{0.environment}.{0.mode}-{0.network}.json".format(cell_of(wildcards)),
        ),
        images=lambda wildcards: images_for(cell_of(wildcards)),
    output:
        shard=f"results/{FOLDER}/{{platform}}/{{task}}/{{cell}}.parquet",
    log:
        f"logs/{FOLDER}/{{platform}}/{{task}}/{{cell}}.log",
    priority: lambda wildcards: TURNS[cell_of(wildcards).key]
    conda:
        "../../envs/workflow.yaml"
    resources:
        **asked_of_slurm(
            lambda wildcards: tasks.TASKS[wildcards.task].limit_seconds(CONFIGURATION.grid)
        ),
        host=100,
    params:
        job=measuring_job,
    shell:
        '"$STEPTIME_LAUNCH" cells.measure --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {input.proof} --images {input.images}"
        " --shard {output.shard} --log {log}"
