# No network is timed in an environment before it is proven to be the same network there.


# A few seconds each, on narrow networks: not worth a job of a cluster.
localrules:
    prove_network,


# ResNet-50 at 16 takes one minute on one core.
REFERENCE_SECONDS = 1800


rule prove_network:
    """Compare a network in an environment with the golden run, on its narrow version."""
    input:
        manifest=NEEDED.by_proof,
    output:
        proof="results/proofs/{environment}.{mode}-{network}{mark}.json",
        details="results/proofs/{environment}.{mode}-{network}{mark}.details.json",
    log:
        "logs/proofs/{environment}.{mode}-{network}{mark}.log",
    wildcard_constraints:
        environment=choice(
            name for name in PLANNED.catalogued if CONFIGURATION.entry_of(name)["device"] == "cpu"
        ),
    priority: TURNS.of_proof
    conda:
        OWN_SOFTWARE
    params:
        job=NEEDED.job_of_proof,
    shell:
        '"$STEPTIME_LAUNCH" prove.network --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {output.proof} --details {output.details} --log {log}"


# On a GPU, one after another; on a cluster, on a node of the grid's first platform on which the environment runs.
GPU_PLATFORMS = {
    name: platform
    for platform in reversed(HERE)
    for name in PLANNED.catalogued
    if platform in PLANNED.on_gpu and PLANNED.runs_on(name, platform)
}


use rule prove_network as prove_network_on_gpu with:
    wildcard_constraints:
        environment=choice(GPU_PLATFORMS),
    resources:
        **CLUSTER.asked(platform=lambda wildcards: GPU_PLATFORMS[wildcards.environment]),
        host=100,


rule compute_reference:
    """Compute what every framework's steps of a network and mini-batch are compared with, in float64."""
    output:
        reference="results/references/{network}-b{batch}{rounded}.npz",
    log:
        "logs/references/{network}-b{batch}{rounded}.log",
    wildcard_constraints:
        batch=r"\d+",
    priority: REFERENCES.turn
    conda:
        OWN_SOFTWARE
    threads: REFERENCES.threads
    resources:
        **CLUSTER.asked(lambda wildcards: REFERENCE_SECONDS, lambda wildcards: REFERENCES.platform),
        host=REFERENCES.share_of_host,
        reference_mb=REFERENCES.megabytes,
    params:
        job=NEEDED.job_of_reference,
        seconds=REFERENCE_SECONDS,
    shell:
        # What an array leaves is for the next one: fresh pages took as long as all calculation, and huge ones, for
        # which a kernel moves others away, twice as long.
        "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000000 NUMPY_MADVISE_HUGEPAGE=0 MALLOC_ARENA_MAX=1 "
        '"$STEPTIME_LAUNCH" prove.reference --job {params.job:q} --networks config/networks.yaml'
        " --seconds {params.seconds} --megabytes {resources.reference_mb} --threads {threads}"
        " --reference {output.reference} --log {log}"
