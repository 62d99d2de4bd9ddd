# A data set is read, checked and written once, as plain arrays that every worker can read.


rule prepare_dataset:
    """Check the published files of a data set, and write its images for training and for testing as plain arrays."""
    input:
        lambda wildcards: CONFIGURATION.check_data(wildcards.dataset) or [],
    output:
        train="results/datasets/{dataset}/train.npz",
        test="results/datasets/{dataset}/test.npz",
    log:
        "logs/datasets/{dataset}.log",
    priority: TURNS.before_cells
    # They may be fetched, which a node of a cluster often cannot.
    localrule: True
    conda:
        OWN_SOFTWARE
    params:
        entry=lambda wildcards: digests.digest(CONFIGURATION.datasets[wildcards.dataset]),
        code=code_of("datasets.splits"),
    shell:
        '"$STEPTIME_LAUNCH" datasets.splits --dataset {wildcards.dataset}'
        " --train {output.train} --test {output.test} 2>&1 | tee {log} >&2"
