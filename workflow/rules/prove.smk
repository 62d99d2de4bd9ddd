# No network is timed in an environment before it is proven to be the same network there.


# A few seconds each, on narrow networks: not worth a job of a cluster.
localrules:
    prove_network,


# ResNet-50 at 16 takes one minute on one core.
REFERENCE_SECONDS = 1800


rule prove_network:
    """Compare a network in an environment with the golden run, on its narrow version."""
    input:
        manifest=manifest_of_proof,
    output:
        proof="results/proofs/{environment}.{mode}-{network}{mark}.json",
        details="results/proofs/{environment}.{mode}-{network}{mark}.details.json",
    log:
        "logs/proofs/{environment}.{mode}-{network}{mark}.log",
    wildcard_constraints:
        environment=choice(
            name for name in KNOWN if CONFIGURATION.entry_of(name)["device"] == "cpu"
        ),
    priority: lambda wildcards: PROOF_TURNS.get(wildcards.network, 0)
    conda:
        OWN_SOFTWARE
    params:
        job=lambda wildcards: as_json(EXPECTED.proving_job(*wildcards)),
    shell:
        '"$STEPTIME_LAUNCH" prove.network --job {params.job:q} --networks config/networks.yaml'
        " --manifest {input.manifest} --proof {output.proof} --details {output.details} --log {log}"


# On a GPU, one after another; on a cluster, on a node of the grid's first platform on which the environment runs.
GPU_PLATFORMS = {
    name: platform
    for platform in reversed(HERE)
    for name in KNOWN
    if platform in ON_GPU and runs_on(name, platform)
}


use rule prove_network as prove_network_on_gpu with:
    wildcard_constraints:
        environment=choice(GPU_PLATFORMS),
    resources:
        **asked_of_slurm(platform=lambda wildcards: GPU_PLATFORMS[wildcards.environment]),
        host=100,


rule compute_reference:
    """Compute what every framework's steps of a network and mini-batch are compared with, in float64."""
    input:
        reference_that_stays,
    output:
        reference="results/references/{network}-b{batch}{rounded}.npz",
    log:
        "logs/references/{network}-b{batch}{rounded}.log",
    wildcard_constraints:
        batch=r"\d+",
    priority: reference_turn
    conda:
        OWN_SOFTWARE
    threads: reference_threads
    resources:
        **asked_of_slurm(lambda wildcards: REFERENCE_SECONDS, lambda wildcards: REFERENCE_PLATFORM),
        host=lambda wildcards: 100 // references_at_once(wildcards),
        reference_mb=REFERENCE_MB,
    params:
        job=reference_job,
        seconds=REFERENCE_SECONDS,
    shell:
        # What an array leaves is for the next one: fresh pages took as long as all calculation, and huge ones, for
        # which a kernel moves others away, twice as long.
        "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000000 NUMPY_MADVISE_HUGEPAGE=0 MALLOC_ARENA_MAX=1 "
        '"$STEPTIME_LAUNCH" prove.reference --job {params.job:q} --networks config/networks.yaml'
        " --seconds {params.seconds} --megabytes {resources.reference_mb} --threads {threads}"
        " --reference {output.reference} --log {log}"
