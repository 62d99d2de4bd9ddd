# Where a cell may be measured, and what a cluster is asked for. Functions only.

# What SLURM has as an option of its own; the keys are those of `cluster` in config/platforms.yaml.
OPTIONS = {"partition": "slurm_partition", "account": "slurm_account"}
OPTIONS |= {name: name for name in ("qos", "gres", "constraint")}
# A cell's time limit is kept by its supervisor; SLURM's lies above it, for the starts of Snakemake and the framework.
START_MINUTES = 10
# Why this run cannot measure some platforms of the grid, and which it can.
PLATFORMS = {name: CONFIGURATION.platforms[name] for name in CONFIGURATION.grid["platforms"]}
REMOTE = {name: why for name, needs in PLATFORMS.items() if (why := why_remote(needs))}
HERE = [name for name in PLATFORMS if name not in REMOTE]
# A platform has a peak, and proofs, of its kind of device.
ON_GPU = [name for name, needs in PLATFORMS.items() if needs["device"] == "gpu"]
# Where a cluster computes references, which take memory and no GPU.
REFERENCE_PLATFORM = max(
    (name for name, needs in PLATFORMS.items() if "cluster" in needs),
    key=lambda name: (not PLATFORMS[name].get("gpu"), PLATFORMS[name]["memory_gib"]),
    default=None,
)
# The memory that a reference may take where this process runs.
GIVEN_MB = [machine.usable_bytes() / 2**20]
GIVEN_MB += [PLATFORMS[REFERENCE_PLATFORM]["memory_gib"] * 1024] if REFERENCE_PLATFORM else []
REFERENCE_MB = int(0.9 * min(GIVEN_MB))
# So many references side by side, at most, and as many CPUs for each, at least: it computes two steps side by side, each
# of which takes memory.
MOST_REFERENCES = 4
LEAST_CPUS = STEPS_AT_ONCE = 2


def references_at_once(wildcards):
    """How many references like one may be computed side by side: much of NumPy's work is done on one CPU."""
    spec = CONFIGURATION.specify(wildcards.network)
    needed = STEPS_AT_ONCE * networks.bytes_of_reference(spec, int(wildcards.batch)) / 2**20
    return max(1, min(MOST_REFERENCES, OWN_CORES // LEAST_CPUS, int(REFERENCE_MB / needed)))


def reference_turn(wildcards):
    """On this machine, right before the first cell that needs it, so that there is a first answer early. Elsewhere the
    longest first, or all CPUs but its own would wait for it.
    """
    if not COUNTS_JOBS:
        return REFERENCE_TURNS.get((wildcards.network, wildcards.batch), BEFORE_CELLS)
    spec = CONFIGURATION.specify(wildcards.network)
    return BEFORE_CELLS - 1e9 / (1e9 + networks.flops_per_step(spec, int(wildcards.batch)))


def reference_threads(wildcards):
    """The CPUs that a reference takes: Snakemake tells NumPy's libraries."""
    if REFERENCE_PLATFORM:
        return PLATFORMS[REFERENCE_PLATFORM]["cores"]
    return max(1, OWN_CORES // references_at_once(wildcards))


def within_reach(folder, platforms):
    """Those platforms whose machine this run can look at, or whose file results/<folder>/<platform>.json was fetched."""
    fetched = lambda name: Path(f"results/{folder}/{name}.json").exists()
    return [name for name in dict.fromkeys(platforms) if name in HERE or fetched(name)]


def shards_at_hand(keys):
    """The shards of cells, given by their keys, of which those that this run cannot measure must be there already."""
    for platform, reason in REMOTE.items():
        paths = [shard_path(key) for key in keys if key.startswith(f"{platform}/")]
        if missing := [path for path in paths if not Path(path).exists()]:
            raise WorkflowError(
                f"{len(missing)} shards of the platform '{platform}' are missing, such as {missing[0]}, and "
                f"this run cannot measure them: {reason}. Fetch what was measured there with "
                f"`make merge FROM=<its results folder>`, or leave the platform out of the grid."
            )
    if MAIN:
        refuse_others(keys)
    return list(map(shard_path, keys))


def refuse_others(keys):
    """Raises WorkflowError for shards of another network, adapter and so on, which this run must not measure anew."""
    others = [
        footers.Outdated(key, words, footers.row(shard_path(key)))
        for key in keys
        if (words := CURRENT.differing(cell := PLAN.cells[key]))
        and (cell.platform in REMOTE or not CURRENT.is_of_here(cell))
    ]
    advice = (
        "measure them there again with this version and take them with `make merge`. Without them, those that "
        "this machine can measure are measured here: `rm {files}`."
    )
    if others:
        raise WorkflowError(footers.name_outdated(others, f"results/{FOLDER}", advice))


def asked_of_slurm(
    seconds=lambda wildcards: CONFIGURATION.grid["limits"]["seconds"],
    platform=lambda wildcards: wildcards.platform,
    devices=lambda wildcards: 1,
):
    """The resources of a rule that runs on a platform, for so many seconds at most, on so many devices, by its wildcards."""
    if not any("cluster" in needs for needs in PLATFORMS.values()):
        return {}

    def of_entry(value, otherwise):
        def resource(wildcards):
            needs = CONFIGURATION.platforms[platform(wildcards)]
            return value(needs, wildcards) if "cluster" in needs else otherwise

        return resource

    def nodes(needs, wildcards):
        return placement.nodes_of(needs, devices(wildcards))

    def tasks_of(needs, wildcards):
        return None if "gpu" in needs["cluster"].get("gres", "") else nodes(needs, wildcards)

    # Only what some platform says: a resource of the rule, even an empty one, hides --default-resources.
    entries = CONFIGURATION.platforms.values()
    named = {key for entry in entries for key in entry.get("cluster", {})}
    requested = {
        resource: lambda needs, _, key=key: needs["cluster"].get(key)
        for key, resource in OPTIONS.items()
        if key in named
    }
    if any(placement.nodes_of(entry, 2) > 1 for entry in entries):
        # As many tasks, or SLURM would give one node for the one task; beside GPUs they would be those of each GPU.
        requested |= {"nodes": nodes, "tasks": tasks_of}
    requested |= {
        "mem_mb": lambda needs, _: int(needs["memory_gib"] * 1024),
        # All CPUs of the node, not the cell's threads: a step that is bound to 2 CPUs may get two halves of one core, and
        # the supervisor could not take one of each.
        "cpus_per_task": lambda needs, _: needs["cores"],
        "slurm_extra": lambda needs, _: f"--exclusive {needs['cluster']['extra']}".strip(),
        "runtime": lambda _, wildcards: math.ceil(seconds(wildcards) / 60) + START_MINUTES,
    }
    return {name: of_entry(value, {"mem_mb": 0}.get(name)) for name, value in requested.items()}
