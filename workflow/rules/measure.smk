# A cell is one job, one worker process and one shard, whatever its task.


rule measure_cell:
    """Measure one cell, alone on its host, and write its shard, which no page behind it can cost."""
    input:
        unpack(needed_by_cell),
    output:
        shard=f"results/{FOLDER}/{{platform}}/{{task}}/{{cell}}.parquet",
    log:
        f"logs/{FOLDER}/{{platform}}/{{task}}/{{cell}}.log",
    priority: lambda wildcards: TURNS[cell_of(wildcards).key]
    conda:
        OWN_SOFTWARE
    resources:
        **asked_of_slurm(
            lambda wildcards: tasks.TASKS[wildcards.task].limit_seconds(CONFIGURATION.grid),
            devices=lambda wildcards: cell_of(wildcards).devices,
        ),
        host=100,
    params:
        job=lambda wildcards: as_json(EXPECTED.job_of(cell_of(wildcards))),
    shell:
        '"$STEPTIME_LAUNCH" cells.measure --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {input.proof} --images {input.images}"
        " --reference {input.reference} --shard {output.shard} --log {log}"
        " && due=.snakemake/steptime/$STEPTIME_RUN/due && if part=$(cat $due 2>/dev/null); then rm $due;"
        ' "$STEPTIME_LAUNCH" page.so_far "$part" || true; fi'
