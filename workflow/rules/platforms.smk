# Where a cell may be measured, and what a cluster is asked for. Functions only.
import math

# What SLURM has as an option of its own; the keys are those of `cluster` in config/platforms.yaml.
OPTIONS = {
    "partition": "slurm_partition",
    "account": "slurm_account",
    "qos": "qos",
    "gres": "gres",
    "constraint": "constraint",
}
# A cell's time limit is kept by its supervisor; SLURM's lies above it, for the starts of Snakemake and the framework.
START_MINUTES = 10


# What helps where results of another machine are of another network, adapter and so on.
OTHERS_ADVICE = (
    "measure them there again with this version and take them with `make merge`. Without them, those that "
    "this machine can measure are measured here: `rm {files}`."
)

# Why this run cannot measure a platform of the grid, None where it can.
ELSEWHERE = {
    platform: elsewhere(CONFIGURATION.platforms[platform])
    for platform in CONFIGURATION.grid["platforms"]
}

# A platform has a peak, and proofs, of its kind of device.
ON_GPU = [name for name in ELSEWHERE if CONFIGURATION.platforms[name]["device"] == "gpu"]


# Where a cluster computes references, which take memory and no GPU.
REFERENCE_PLATFORM = max(
    [name for name in ELSEWHERE if "cluster" in CONFIGURATION.platforms[name]],
    key=lambda name: (
        not CONFIGURATION.platforms[name].get("gpu"),
        CONFIGURATION.platforms[name]["memory_gib"],
    ),
    default=None,
)


def reference_mb():
    """The memory that a reference may take where this process runs."""
    given = [machine.usable_bytes() / 2**20]
    if REFERENCE_PLATFORM:
        given.append(CONFIGURATION.platforms[REFERENCE_PLATFORM]["memory_gib"] * 1024)
    return int(0.9 * min(given))


# So many references side by side, at most, and as many CPUs for each, at least: it computes two steps side by side, each
# of which takes memory.
MOST_REFERENCES = 4
LEAST_CPUS = STEPS_AT_ONCE = 2


def references_at_once(wildcards):
    """How many references like one may be computed side by side: much of NumPy's work is done on one CPU."""
    spec = networks.specify(wildcards.network, CONFIGURATION.networks)
    needed = STEPS_AT_ONCE * networks.bytes_of_reference(spec, int(wildcards.batch)) / 2**20
    most = own_cores() // LEAST_CPUS
    return max(1, min(MOST_REFERENCES, most, int(reference_mb() / needed)))


def reference_turn(wildcards):
    """On this machine, right before the first cell that needs it, so that there is a first answer early. Elsewhere the
    longest first, or all CPUs but its own would wait for it.
    """
    if not counts_jobs():
        return REFERENCE_TURNS.get((wildcards.network, wildcards.batch), BEFORE_CELLS)
    spec = networks.specify(wildcards.network, CONFIGURATION.networks)
    return BEFORE_CELLS - 1e9 / (1e9 + networks.flops_per_step(spec, int(wildcards.batch)))


def reference_host(wildcards):
    """The share of this host that a reference takes."""
    return 100 // references_at_once(wildcards)


def reference_threads(wildcards):
    """The CPUs that a reference takes: Snakemake tells NumPy's libraries."""
    if REFERENCE_PLATFORM:
        return CONFIGURATION.platforms[REFERENCE_PLATFORM]["cores"]
    return max(1, own_cores() // references_at_once(wildcards))


def within_reach(folder, platforms):
    """Those platforms whose machine this run can look at, or whose file results/<folder>/<platform>.json was fetched."""
    return [
        platform
        for platform in dict.fromkeys(platforms)
        if ELSEWHERE[platform] is None or Path(f"results/{folder}/{platform}.json").exists()
    ]


def shards_at_hand(keys):
    """The shards of cells, given by their keys, of which those that this run cannot measure must be there already."""
    paths = {key: shard_path(key) for key in keys}
    for platform, reason in ELSEWHERE.items():
        missing = [
            path
            for key, path in paths.items()
            if key.startswith(f"{platform}/") and not Path(path).exists()
        ]
        if reason and missing:
            raise WorkflowError(
                f"{len(missing)} shards of the platform '{platform}' are missing, such as {missing[0]}, and "
                f"this run cannot measure them: {reason}. Fetch what was measured there with "
                f"`make merge FROM=<its results folder>`, or leave the platform out of the grid."
            )
    if is_main_process():
        refuse_others(keys)
    return list(paths.values())


def refuse_others(keys):
    """Raises WorkflowError for shards of another network, adapter and so on, which this run must not measure anew."""
    others = [
        found.Other(key, differing(key), found.row(shard_path(key))["workflow_commit"])
        for key in keys
        if differing(key)
        and (ELSEWHERE[PLAN.cells[key].platform] or not is_of_here(PLAN.cells[key]))
    ]
    if others:
        raise WorkflowError(found.name_others(others, f"results/{FOLDER}", OTHERS_ADVICE))


def asked_of_slurm(
    seconds=lambda wildcards: CONFIGURATION.grid["limits"]["seconds"],
    platform=lambda wildcards: wildcards.platform,
    devices=lambda wildcards: 1,
):
    """The resources of a rule that must run on a platform for so many seconds at most, on so many devices, as functions
    of its wildcards.
    """
    catalogue = CONFIGURATION.platforms
    if not any("cluster" in catalogue[name] for name in ELSEWHERE):
        return {}
    asked = {}
    for key, resource in OPTIONS.items():
        # Only what some platform says: a resource of the rule, even an empty one, hides --default-resources.
        if any(key in entry.get("cluster", {}) for entry in catalogue.values()):
            asked[resource] = from_cluster(
                platform, lambda needs, key=key: needs["cluster"].get(key)
            )

    def nodes(wildcards):
        return placement.nodes_of(catalogue[platform(wildcards)], devices(wildcards))

    if any(placement.nodes_of(entry, 2) > 1 for entry in catalogue.values()):
        # As many tasks, or SLURM would give one node for the one task; beside GPUs they would be those of each GPU.
        asked |= {
            "nodes": nodes,
            "tasks": lambda wildcards: (
                None
                if "gpu" in catalogue[platform(wildcards)].get("cluster", {}).get("gres", "")
                else nodes(wildcards)
            ),
        }
    return asked | {
        "mem_mb": from_cluster(platform, lambda needs: int(needs["memory_gib"] * 1024), 0),
        # All CPUs of the node, not the cell's threads: a step that is bound to 2 CPUs may get two halves of one core, and
        # the supervisor could not take one of each.
        "cpus_per_task": from_cluster(platform, lambda needs: needs["cores"]),
        "slurm_extra": from_cluster(
            platform, lambda needs: f"--exclusive {needs['cluster']['extra']}".strip()
        ),
        "runtime": lambda wildcards: from_cluster(
            platform, lambda needs: math.ceil(seconds(wildcards) / 60) + START_MINUTES
        )(wildcards),
    }


def from_cluster(platform, value, otherwise=None):
    """A function of the wildcards that gives `value` of a platform's entry, or `otherwise` where no cluster does."""

    def resource(wildcards):
        needs = CONFIGURATION.platforms[platform(wildcards)]
        return value(needs) if "cluster" in needs else otherwise

    return resource
