# What jobs are told and need, and whether what lies here already is that. Functions only.
from steptime import networks
from steptime.cells import adopt
from steptime.plan.cell import precision_of, proof_name, reference_path, together_of
from shared.grouping import GROUPED
from shared.precisions import USUAL


def measuring_job(wildcards):
    """The job of the cell that a rule's wildcards name, as JSON."""
    return json.dumps(EXPECTED.job_of(cell_of(wildcards)), sort_keys=True)


def largest_searches():
    """The cell that each search for the largest mini-batch begins with, by platform/environment.mode-network-mGIB."""
    asked = CONFIGURATION.grid.get("largest", {"networks": [], "memory_gib": []})
    # The last that is seen has the most threads.
    first = {
        f"{cell.platform}/{cell.environment}.{cell.mode}-{cell.network}": cell
        for cell in sorted(STEPS.values(), key=lambda cell: (cell.threads, -cell.batch))
        if cell.network in asked["networks"] and cell.repeat == 1 and cell.precision == USUAL
        if ELSEWHERE[cell.platform] is None
    }
    return {f"{name}-m{gib}": cell for name, cell in first.items() for gib in asked["memory_gib"]}


def largest_job(wildcards):
    """All that decides what such a search finds, as JSON."""
    cell = LARGEST[f"{wildcards.platform}/{wildcards.search}"]
    job = EXPECTED.job_of(cell)
    gib = int(wildcards.search.rpartition("-m")[2])
    return json.dumps(job | {"limits": job["limits"] | {"memory_gib": gib}}, sort_keys=True)


def needed_by_search(wildcards):
    """The manifest and the proof that such a search stands on."""
    cell = LARGEST[f"{wildcards.platform}/{wildcards.search}"]
    if (
        is_main_process()
        and not Path(f"results/largest/{wildcards.platform}/{wildcards.search}.json").exists()
    ):
        stand_here(cell.environment)
    return {
        "manifest": f"results/environments/{cell.environment}.json",
        "proof": proof_path(cell),
    }


def proof_path(cell):
    """The proof that a cell stands on."""
    return f"results/proofs/{proof_name(cell.facts())}.json"


def images_of(cell):
    """The files of the images that a cell is trained on and tested with."""
    splits = ("train", "test") if cell.dataset else ()
    return [f"results/datasets/{cell.dataset}/{split}.npz" for split in splits]


def reference_of(cell):
    """Lists the reference of a cell's steps; where it has gone, a row that is there stays."""
    path, shard = reference_path(cell.facts()), shard_path(cell.key)
    if not has_reference(cell):
        return []
    if Path(path).exists() or not Path(shard).exists():
        return [path]
    again = is_main_process() and (is_outdated(cell) or is_asked_for_again(shard))
    return [path] if again else []


def has_reference(cell):
    """Whether the steps of a cell are compared with the network's reference at full size.

    That is of the whole mini-batch: where batch normalisation takes the statistics of each rank's share, it says nothing,
    nor where each rank steps by itself.
    """
    return tasks.TASKS[cell.task].needs_reference and (
        cell.devices == 1
        or cell.exchange not in GROUPED
        and not networks.normalises(networks.specify(cell.network, CONFIGURATION.networks))
    )


def stands_on(cell):
    """The files that a cell is measured with, but for its reference."""
    manifest = str(adopt.manifest_path(cell.environment))
    return [manifest, proof_path(cell), *images_of(cell)]


@cache
def here():
    """The id of this machine, as rows have it."""
    return machine.own_id()


def renewed(wildcards):
    """Nothing; asks for an environment once more where what was written down of it does not hold here."""
    path = adopt.manifest_path(wildcards.environment)
    if is_main_process() and path.exists():
        digest = EXPECTED.environment_digest(wildcards.environment)
        if not adopt.manifest_is_of(adopt.read(path), digest, here()):
            make_again(str(path))
    return []


def stand_here(environment):
    """Asks for an environment that something is to run in, where it was made on another machine alone."""
    path = adopt.manifest_path(environment)
    if adopt.lacks_environment(adopt.read(path)):
        make_again(str(path))


@cache
def is_wrong_reference(path, network, batch, precision):
    """Whether what lies here as the reference of a network, mini-batch and precision is broken, or of others."""
    return (
        is_main_process()
        and Path(path).exists()
        and not adopt.is_reference_of(
            Path(path),
            batch,
            precision,
            EXPECTED.network_digest(network),
            code_of_reference(network),
        )
    )


def whole_reference(wildcards):
    """Nothing; asks for a reference once more where what lies here is none."""
    facts = {"network": wildcards.network, "batch": wildcards.batch}
    facts |= {"precision": precision_of(wildcards.rounded)}
    path = reference_path(facts)
    if is_wrong_reference(path, *facts.values()):
        make_again(path)
    return []


def manifest_of_proof(wildcards):
    """The manifest of the environment that a proof is of, marked as `needed_by_cell` does."""
    environment, path = wildcards.environment, f"results/environments/{wildcards.environment}.json"
    if not is_main_process():
        return path
    name = f"{environment}.{wildcards.mode}-{wildcards.network}{wildcards.together}"
    file, digest = f"results/proofs/{name}.json", EXPECTED.environment_digest(environment)
    proof = adopt.read(Path(file))
    is_of = found.is_proof_of(proof, proving_facts(wildcards))
    if not is_of:
        stand_here(environment)
        if Path(file).exists():
            # Of something else, or broken.
            make_again(file)
    stays = is_of and (proof["status"], proof["environment_digest"]) == ("ok", digest)
    return ancient(path) if stays or adopt.knows_proof(environment, name, digest) else path


@cache
def differing(key):
    """What of the shard of a cell is not as this configuration asks, in words; () also where none lies here."""
    row = found.row(shard_path(key))
    return found.differing(row, EXPECTED.of(PLAN.cells[key])) if row else ()


def is_of_here(cell):
    """Whether the shard of a cell may be measured once more in its place: it is no other machine's."""
    if "cluster" in CONFIGURATION.platforms[cell.platform]:
        return True
    return found.row(shard_path(cell.key)).get("machine_id") in (None, here())


def is_made_with(job):
    """Whether a shard or a proof says that it was made with just what its job asks."""
    asked = json.loads(job.params.get("job", "{}"))
    if shard := job.output.get("shard"):
        return found.footer(shard).get("job") == asked
    if proof := job.output.get("proof"):
        return found.is_proof_of(adopt.read(Path(proof)), asked)
    return False


def is_outdated(cell):
    """Whether the row of a cell is one that this machine has measured of something else."""
    made = adopt.read(adopt.manifest_path(cell.environment)).get("status") == "ok"
    outlived = made and found.row(shard_path(cell.key)).get("status") == "install_failed"
    return bool(differing(cell.key) or outlived) and is_of_here(cell)


def must_be_measured(cell):
    """Whether a cell that this run asks for has no row, or an outdated one."""
    path = shard_path(cell.key)
    if not Path(path).exists():
        return True
    if is_outdated(cell):
        make_again(path)
        return True
    return False


def needed_by_cell(wildcards):
    """Lists the inputs of a cell. Inputs that its shard was measured with are marked as old, whatever their file times."""
    cell = cell_of(wildcards)
    manifest, proof = str(adopt.manifest_path(cell.environment)), proof_path(cell)
    judged = fed = str
    if is_main_process():
        ask_files(is_made_with)
        for file in EMPTY:
            # It is gone by now, which alone is no reason where what is made of it still stands.
            make_again(str(file))
        if must_be_measured(cell):
            stand_here(cell.environment)
        elif adopt.knows_shard(cell, EXPECTED.environment_digest(cell.environment)):
            judged = fed = ancient
        elif found.row(shard_path(cell.key)).get("status") == "ok" and not differing(cell.key):
            # What a stricter proof refuses is refused where rows are merged.
            judged = ancient
            remade = any(
                is_wrong_reference(file, cell.network, cell.batch, cell.precision)
                for file in reference_of(cell)
            )
            stays = remade or not is_of_here(cell) or adopt.knows_data(cell)
            fed = ancient if stays else str
    # One function for all of them: to call one takes Snakemake longer than all that it does here.
    return {
        "manifest": judged(manifest),
        "proof": judged(proof),
        "images": list(map(fed, images_of(cell))),
        "reference": list(map(fed, reference_of(cell))),
    }


def code_of_reference(network):
    """The digest of the code that computes the reference of a network."""
    return EXPECTED.code_for(network, "steptime.prove.reference")


def reference_job(wildcards):
    """All that decides the reference of a network, mini-batch and precision, as JSON."""
    facts = {
        "network": wildcards.network,
        "batch": int(wildcards.batch),
        "network_digest": EXPECTED.network_digest(wildcards.network),
        "reference_digest": code_of_reference(wildcards.network),
    }
    facts |= {"precision": precision_of(wildcards.rounded)} if wildcards.rounded else {}
    return json.dumps(facts, sort_keys=True)


def proving_facts(wildcards):
    """All that decides the proof of a network in an environment and mode, on one device or several."""
    together = together_of(wildcards.together)
    return EXPECTED.proving_job(wildcards.environment, wildcards.mode, wildcards.network, together)


def proving_job(wildcards):
    """The same as JSON."""
    return json.dumps(proving_facts(wildcards), sort_keys=True)


def shards_of(wildcards):
    """The shards that an artefact is made of."""
    keys = PLAN.artefacts.get(wildcards.artefact)
    if keys is None:
        raise WorkflowError(lacking(wildcards.artefact))
    return shards_at_hand(keys + looks.of_artefact(keys, looks.added(added_to(wildcards))))


def lacking(name):
    """Says what a grid must ask for that an artefact has cells."""
    selected, asked = CONFIGURATION.artefacts[name], []
    task = tasks.TASKS[selected.get("task", tasks.USUAL)]
    if "devices" in selected and max(CONFIGURATION.grid["devices"]) == 1:
        asked.append("`devices: [1, 2]`")
    named = selected["networks"]
    example = CONFIGURATION.grid["networks"] or ["fcn5"] if named == "all" else named
    if not {*task.policy(CONFIGURATION.grid).networks} & {*example}:
        asked.append(f"one of {', '.join(example)} under {task.asked_under}")
    mend = " and ".join(asked) or "an 'exchange' between its devices that the figure shows"
    return f"{name} has nothing to show in the grid '{CONFIGURATION.grid_name}': write {mend}."


def compared_artefacts():
    """The artefacts whose results this run compares: those that it is asked for, or all that have timed steps."""
    every = [name for name, keys in PLAN.artefacts.items() if keys[0] in STEPS]
    targets = {Path(target).stem for target in asked_targets()}
    asked = [each for each in CATALOGUE.values() if {each.name, f"make_{each.owner}"} & targets]
    if not targets <= {name for each in asked for name in (each.name, f"make_{each.owner}")}:
        return every
    words = {word for each in asked for word in inputs_of(each)}
    return every if not asked or "every_cell" in words else [each.made_of for each in asked]


@cache
def looks_of_run():
    """After how many trials this run looks at the comparisons: a table or figure that is asked for by its name has
    further runs where all that is compared is asked for with it, or lies here.
    """
    missing = (
        set(PLAN.artefacts[COMPARED]).difference(
            *(PLAN.artefacts.get(name, []) for name in compared_artefacts())
        )
        if PLAN.looks
        else ()
    )
    return PLAN.looks if all(map(is_at_hand, missing)) else []


def is_at_hand(key):
    """Whether a cell lies here as the grid asks for it."""
    return Path(shard_path(key)).exists() and not differing(key)


def compared_shards(wildcards):
    """The shards of the results that this run compares, and of those that lie here already as the grid asks for them."""
    asked = {key for name in compared_artefacts() for key in PLAN.artefacts.get(name, [])}
    chosen = {*asked, *further_cells(), *filter(is_at_hand, STEPS)}
    return shards_at_hand([key for key in STEPS if key in chosen])


def compared_proofs(wildcards):
    """The proofs behind the results that this run is asked for: a stricter one may refuse what was the fastest."""
    keys = [key for name in compared_artefacts() for key in PLAN.artefacts.get(name, [])]
    cells = (STEPS[key] for key in keys if key in STEPS)
    files = (proof_path(cell) for cell in cells if ELSEWHERE.get(cell.platform) is None)
    return list(dict.fromkeys(files))


def statistics_of(wildcards):
    """What the results of the run say together, where an artefact is made of timed steps."""
    is_of_steps = PLAN.artefacts[wildcards.artefact][0] in STEPS
    return f"results/statistics/{CONFIGURATION.grid_name}.json" if is_of_steps else []


def added_to(wildcards):
    """The files of the looks that may have chosen further cells of an artefact."""
    first = PLAN.cells[PLAN.artefacts[wildcards.artefact][0]]
    return chosen_until() if tasks.TASKS[first.task].is_compared else []


def chosen_until(look=None):
    """The files of what was chosen by looks that end with trial `look`, or by all; raises Snakemake's exception while one is not made.

    The first look chooses nothing: it is at the trials that every cell has.
    """
    return [
        str(checkpoints.choose_further.get(look=each).output[0])
        for each in looks_of_run()[1:]
        if look is None or each <= look
    ]


def further_cells():
    """The keys of all cells that looks have chosen."""
    return looks.added(chosen_until())


def cells_of_run():
    """The keys of all cells that this run is to measure, those that looks have chosen among them."""
    return dict.fromkeys([*sum(PLAN.artefacts.values(), []), *further_cells()])


def looked_at(wildcards):
    """The shards that a look needs: all that this run compares, of all trials before those that it chooses cells for."""
    names = [COMPARED, *compared_artefacts()]
    keys = dict.fromkeys(key for name in names for key in PLAN.artefacts.get(name, []))
    return shards_at_hand([*keys, *looks.added(chosen_before(wildcards))])


def chosen_before(wildcards):
    """The files of the looks before the one that a rule's wildcards name."""
    return chosen_until(int(wildcards.look) - 1)


def made_with(wildcards):
    """All that the cells of an artefact stand on, but for those of other machines: a proof may refuse what stood.

    Where something is made again that a cell need not follow, Snakemake would not look at what follows the cell.
    """
    cells = map(PLAN.cells.get, PLAN.artefacts.get(wildcards.artefact, []))
    files = (
        file for cell in cells if ELSEWHERE.get(cell.platform) is None for file in stands_on(cell)
    )
    return list(dict.fromkeys(files))


def references_of(wildcards):
    """The references that the cells of an artefact are compared with when they are merged, whoever measured them."""
    cells = map(PLAN.cells.get, PLAN.artefacts.get(wildcards.artefact, []))
    return list(dict.fromkeys(path for cell in cells for path in reference_of(cell)))


@cache
def shown_elsewhere():
    """The cells that show the gradients of others, by these."""
    return grid.shown_elsewhere(PLAN.cells, machine.usable_cpus())


def shown_beside(wildcards):
    """The shards of cells that show the gradients of an artefact's, and are none of them."""
    keys = dict.fromkeys(PLAN.artefacts.get(wildcards.artefact, []))
    found = dict.fromkeys(map(shown_elsewhere().get, keys))
    return [
        shard_path(key)
        for key in found
        if key and key not in keys and ELSEWHERE.get(PLAN.cells[key].platform) is None
    ]


# The two that the target `compare` holds against each other, by example.
SIDES = {"one": "torch-1.4", "other": "torch"}
# What the files of the comparison are called that this run's configuration names, '' where it names none.
COMPARISON = names.pair(config["one"], config["other"]) if SIDES.keys() <= config.keys() else ""


def comparison(wildcards):
    """The page of the comparison that is asked for, anew: what it reads may lie anywhere, and is no input."""
    if not COMPARISON:
        missing = " nor ".join(f"'{side}'" for side in SIDES if side not in config)
        example = " ".join(f"{side}={config.get(side, name)}" for side, name in SIDES.items())
        # Not a WorkflowError: it would wrap the sentence in lines about this file.
        sys.exit(
            f"The configuration does not name {missing}, of the two that are compared: write --config {example} -- compare."
        )
    page = f"results/compare/{COMPARISON}.md"
    make_again(page)
    return page
