# A cell is one job, one worker process and one shard, whatever its task.


rule measure_cell:
    """Measure one cell, alone on its host, and write its shard."""
    input:
        unpack(NEEDED.by_cell),
    output:
        shard=f"results/{FOLDER}/{{platform}}/{{task}}/{{cell}}.parquet",
    log:
        f"logs/{FOLDER}/{{platform}}/{{task}}/{{cell}}.log",
    priority: TURNS.of_cell
    conda:
        OWN_SOFTWARE
    resources:
        **CLUSTER.asked(
            lambda wildcards: tasks.TASKS[wildcards.task].limit_seconds(CONFIGURATION.grid),
            devices=lambda wildcards: PLANNED.cell_of(wildcards).devices,
        ),
        host=100,
    params:
        job=NEEDED.job_of_cell,
    shell:
        # The shard stays even where the page that follows it fails.
        '"$STEPTIME_LAUNCH" cells.measure --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {input.proof} --images {input.images}"
        " --reference {input.reference} --shard {output.shard} --log {log}"
        " && due=.snakemake/steptime/$STEPTIME_RUN/due && if part=$(cat $due 2>/dev/null); then rm $due;"
        ' "$STEPTIME_LAUNCH" page.so_far "$part" || true; fi'
