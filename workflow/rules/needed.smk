# What jobs are given and made of. What of it is made again, `steptime.cells.current` decides. Functions only.

# The rules of whose files CURRENT alone says whether they stay.
DECIDED = ("build_environment", "prove_network", "prove_network_on_gpu", "compute_reference")
DECIDED += ("measure_cell",)


def as_json(facts):
    """All that decides a job, as text."""
    return json.dumps(facts, sort_keys=True)


def stays(cell):
    """Whether the shard of a cell is not measured again, neither for what it says nor for `--force`."""
    return CURRENT.shard(cell) and not is_asked_for_again(shard_path(cell.key))


def reference_of(cell):
    """Lists the reference of a cell's steps; where it has gone, a row that is there stays."""
    if not EXPECTED.has_reference(cell):
        return []
    path = reference_path(cell.facts())
    return [path] if Path(path).exists() or not stays(cell) else []


def stands_on(cell):
    """The files that a cell is compared with; of one of this run also those that it is measured with."""
    if cell.platform in REMOTE:
        return reference_of(cell)
    own = [manifest_path(cell.environment), proof_path(cell.proof)]
    return [*own, *images_of(cell.dataset), *reference_of(cell)]


def made_again(path, stays, environment=""):
    """Nothing; has what lies here made again where it does not stay, in an environment that stands here."""
    if MAIN:
        leave_to_files(*DECIDED)
        if not stays and Path(path).exists():
            make_again(str(path))
        if not stays and environment and CURRENT.lacks_environment(environment):
            make_again(manifest_path(environment))
    return []


def manifest_that_stays(wildcards):
    """Nothing; has an environment made again where what was written down of it does not hold here."""
    name = wildcards.environment
    return made_again(manifest_path(name), CURRENT.manifest(name))


def reference_axes(wildcards):
    """What a reference is of."""
    axes = {"network": wildcards.network, "batch": int(wildcards.batch)}
    return axes | {"precision": precision_of(wildcards.rounded)}


def reference_that_stays(wildcards):
    """Nothing; has a reference computed again where what lies here is none."""
    axes = reference_axes(wildcards)
    return made_again(reference_path(axes), CURRENT.reference(*axes.values()))


def reference_job(wildcards):
    """All that decides the reference of a network, mini-batch and precision."""
    digests_of = {
        "network_digest": EXPECTED.network_digest(wildcards.network),
        "reference_digest": EXPECTED.reference_digest(wildcards.network),
    }
    return as_json(reference_axes(wildcards) | digests_of)


def manifest_of_proof(wildcards):
    """The manifest of the environment of a proof (environment, mode, network, mark), which one that stays does not follow."""
    known = CURRENT.proof(*wildcards)
    made_again(proof_path("{}.{}-{}{}".format(*wildcards)), known, wildcards.environment)
    return (ancient if known else str)(manifest_path(wildcards.environment))


def needed_by_cell(wildcards):
    """Lists the inputs of a cell. A shard that stays follows none of them but images that are made again."""
    cell = cell_of(wildcards)
    made_again(shard_path(cell.key), CURRENT.shard(cell), cell.environment)
    # One function for all of them: to call one takes Snakemake longer than all that it does here.
    judged = ancient if stays(cell) else str
    fed = ancient if CURRENT.is_older_than_its_images(cell) else str
    return {
        "manifest": judged(manifest_path(cell.environment)),
        "proof": judged(proof_path(cell.proof)),
        "images": list(map(fed, images_of(cell.dataset))),
        "reference": list(map(judged, reference_of(cell))),
    }


def shards_of(wildcards):
    """The shards that an artefact is made of."""
    keys = PLAN.artefacts.get(wildcards.artefact)
    if keys is None:
        names = [each.name for each in CATALOGUE.values() if each.made_of == wildcards.artefact]
        asked = [name for name in asked_targets() if name in names]
        raise WorkflowError(checks.lacking(CONFIGURATION, wildcards.artefact, *asked[:1]))
    further = interim.added(added_to(wildcards))
    return shards_at_hand(keys + interim.of_artefact(keys, further, PLAN.cells))


def compared_artefacts():
    """The artefacts whose results this run compares: those that it is asked for, or all that have timed steps."""
    targets = {Path(target).stem for target in asked_targets()}
    artefacts = [each for each in CATALOGUE.values() if {each.name, f"make_{each.owner}"} & targets]
    known = {name for each in artefacts for name in (each.name, f"make_{each.owner}")}
    words = {word for each in artefacts for word in inputs_of(each)}
    if not artefacts or not targets <= known or "every_cell" in words:
        return list(OF_STEPS)
    return [each.made_of for each in artefacts]


def keys_of(artefacts):
    """The keys of the cells of artefacts, each once."""
    return dict.fromkeys(key for name in artefacts for key in PLAN.artefacts.get(name, []))


@cache
def analyses_of_run():
    """After how many trials this run checks the comparisons. What is asked for by its name has further runs where the
    user gives it minutes, and all that is compared is asked for with it or lies here; else those that lie here.
    """
    if not PLAN.looks:
        return []
    missing = keys_of([COMPARED]).keys() - keys_of(compared_artefacts())
    has_minutes = "minutes" in config or not asked_targets()
    if has_minutes and all(map(is_at_hand, missing)):
        return PLAN.looks
    return [each for each in PLAN.looks if Path(further_path(each)).exists()]


def further_path(trial):
    """The file of the results that are measured in a trial since their comparison was not decided before it."""
    return f"results/further/{CONFIGURATION.grid_name}-{trial}.json"


def is_at_hand(key):
    """Whether a cell lies here as the grid asks for it."""
    return Path(shard_path(key)).exists() and not CURRENT.differing(PLAN.cells[key])


def compared_shards(wildcards):
    """The shards of the results that this run compares, and of those that lie here already as the grid asks for them."""
    compared, further = keys_of(compared_artefacts()), interim.added(chosen_until())
    chosen = {*compared, *further, *filter(is_at_hand, STEPS)}
    return shards_at_hand([key for key in STEPS if key in chosen])


def compared_proofs(wildcards):
    """The proofs behind the results that this run is asked for: a stricter one may refuse what was the fastest."""
    cells = (STEPS[key] for key in keys_of(compared_artefacts()) if key in STEPS)
    return list(dict.fromkeys(proof_path(cell.proof) for cell in cells if cell.platform in HERE))


def added_to(wildcards):
    """The files of the interim analyses that may have chosen further cells of an artefact."""
    first = PLAN.cells[PLAN.artefacts[wildcards.artefact][0]]
    return chosen_until() if tasks.TASKS[first.task].is_compared else []


def chosen_until(trial=math.inf):
    """The files of what was chosen by analyses until trial `trial`; raises Snakemake's exception while one is not made.

    The first analysis chooses nothing: it is after the trials that every cell has. Where one chooses nothing, no other
    follows.
    """
    made = []
    for each in analyses_of_run():
        if each == PLAN.looks[0]:
            continue
        if each > trial or (made and not interim.added(made[-1:])):
            break
        # Snakemake leaves out what is not there where all behind it is newer than the rest.
        if analyses_of_run() == PLAN.looks and not interim.is_chosen(
            further_path(each), REPEATS.minutes
        ):
            make_again(further_path(each))
        made.append(str(checkpoints.choose_further.get(trial=each).output[0]))
    return made


def compared_before(wildcards):
    """The shards that an analysis needs: all that this run compares, of all trials before those that it chooses cells for."""
    keys = keys_of([COMPARED, *compared_artefacts()])
    return shards_at_hand([*keys, *interim.added(chosen_until(int(wildcards.trial) - 1))])


def foundations(wildcards):
    """All that the cells of an artefact stand on: a proof may refuse what stood.

    Where something is made again that a cell need not follow, Snakemake would not look at what follows the cell.
    """
    files = (file for key in keys_of([wildcards.artefact]) for file in stands_on(PLAN.cells[key]))
    return list(dict.fromkeys(files))


@cache
def shown_by():
    """The cells that show the gradients of others, by these."""
    return grid.shown_by(PLAN.cells, machine.usable_cpus())


def showing_shards(wildcards):
    """The shards of cells that show the gradients of an artefact's, and are none of them."""
    keys = keys_of([wildcards.artefact])
    shown = dict.fromkeys(map(shown_by().get, keys)).keys() - keys - {None}
    return [shard_path(key) for key in sorted(shown) if PLAN.cells[key].platform in HERE]


def threads_on(wildcards):
    """The thread counts of timed steps on the platform that a rule's wildcards name."""
    return sorted({each.threads for each in STEPS.values() if each.platform == wildcards.platform})


def environments_on(wildcards):
    """The environments of the grid that run on this platform."""
    return [name for name in ENVIRONMENTS if runs_on(name, wildcards.platform)]


# The two that the target `compare` compares, and what its files are called; '' where the configuration does not name both.
SIDES = [config[side] for side in ("one", "other") if side in config]
COMPARISON = file_name(*SIDES) if len(SIDES) == 2 else ""


def compared_anew(wildcards):
    """Nothing; has the comparison made again, since what it reads may lie anywhere, and is no input."""
    if not COMPARISON:
        # Not a WorkflowError: it would wrap the sentence in lines about this file.
        lacks = " and ".join(f"'{side}'" for side in ("one", "other") if side not in config)
        sys.exit(f"`compare` lacks {lacks}: write --config one=torch-1.4 other=torch -- compare.")
    make_again(f"results/compare/{COMPARISON}.md")
    return []
