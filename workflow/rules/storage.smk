# Results that meet in a store: a shared folder, or a bucket, through one of Snakemake's storage plugins. What one platform
# measured is one object there, packed as `make pack` packs it; the programs see the plugin's local copy of it.

STORE = config["store"].rstrip("/")


rule share:
    """Measure the cells of this run's own platforms, and put what was measured on them into the store."""
    input:
        [storage(f"{STORE}/{platform}.tar.gz") for platform in HERE],


rule share_platform:
    """Put what was measured on one platform into the store."""
    input:
        NEEDED.shared_by,
        lambda wildcards: [
            f"results/peaks/{name}.json" for name in CATALOGUE.peaks if name == wildcards.platform
        ],
    output:
        storage(f"{STORE}/{{platform}}.tar.gz"),
    log:
        "logs/store/{platform}.log",
    localrule: True
    conda:
        OWN_SOFTWARE
    shell:
        '"$STEPTIME_LAUNCH" carry.pack pack --platform {wildcards.platform} --to {output}'
        " 2>&1 | tee {log} >&2"


rule fetch:
    """Take from the store what other runs have measured, for all platforms of the grid that this one cannot measure."""
    input:
        [f"results/fetched/{platform}" for platform in PLANNED.remote],


rule fetch_platform:
    """Take from the store what was measured on one platform."""
    input:
        storage(f"{STORE}/{{remote}}.tar.gz"),
    output:
        touch("results/fetched/{remote}"),
    log:
        "logs/store/{remote}.log",
    wildcard_constraints:
        remote=choice(PLANNED.remote),
    localrule: True
    conda:
        OWN_SOFTWARE
    resources:
        # One after another: two platforms may bring the same proof.
        host=100,
    shell:
        '"$STEPTIME_LAUNCH" carry.pack take --from {input} 2>&1 | tee {log} >&2'
