# What the catalogues of tables and figures (resources/) say of this grid: what each entry is made of, and whether this
# grid has it. Functions only.

CATALOGUE = CONFIGURATION.catalogue
# A run ends with the answer of the first of them that it makes.
TIMES = [artefact for artefact in CATALOGUE.values() if artefact.entry["kind"] == "times"]
OWN_OUTPUTS = {"table": ("parquet", "csv", "md", "html", "tex"), "figure": ("svg", "png", "csv")}
# What a reader opens of each, for `snakemake --report`.
OPENED = {"table": "html", "figure": "svg"}

# The proof of every network in every environment and mode, and number of devices, that the grid has cells of, and those
# that it asks for besides.
PROVEN = dict.fromkeys([*(cell.proof for cell in (STEPS | TRAININGS).values()), *PLAN.proven])
PEAKS = within_reach("peaks", (cell.platform for cell in STEPS.values()))
TOPOLOGIES = within_reach("topology", (cell.platform for cell in STEPS.values()))
# The cells of artefacts that are made of timed steps.
OF_STEPS = {name: frozenset(keys) for name, keys in PLAN.artefacts.items() if keys[0] in STEPS}
# Merged rows that hold each timed step of the grid; what lies within another artefact's cells is left out.
FIRSTS = {keys: name for name, keys in reversed(OF_STEPS.items())}
WIDEST = [keys for keys in FIRSTS if not any(keys < other for other in FIRSTS)]
EVERY_CELL = [name for name, keys in OF_STEPS.items() if keys in WIDEST and FIRSTS[keys] == name]
# Merged rows of single operations of a step.
PARTS = [name for name, keys in PLAN.artefacts.items() if keys[0] in OPERATIONS]


def merged(names):
    """The files of merged rows."""
    return [f"results/merged/{name}.parquet" for name in names]


def trained_for(entry):
    """How many trainings on one device an entry shows: of its networks or variants, on its kind of device."""

    def shows(training):
        names = {training.network, CONFIGURATION.networks[training.network].get("variant_of")}
        is_of_device = entry.get("device", training.device) == training.device
        return is_of_device and bool(names & {*entry.get("networks", names)})

    return sum(shows(training) for training in TRAININGS.values() if training.devices == 1)


def refuse(words):
    """An input function in place of files that nobody has: it says so."""

    def refused(wildcards):
        raise WorkflowError(words)

    return refused


NO_TOPOLOGY = (
    "No machine of this grid is within reach, and no results/topology/<platform>.json was fetched: make the figure "
    "on a machine that measured, or fetch its results with `make merge FROM=<its results folder>`."
)
NO_POPULARITY = "No file of how often a term was searched for is named: name one under 'popularity' in config/config.yaml."

# The files of results/ that stand behind the words of `needs` and `joins`.
FILES = {
    "cells": lambda artefact: merged([artefact.made_of]),
    "every_cell": lambda artefact: merged(EVERY_CELL),
    "verdicts": lambda artefact: [
        f"results/tables/{name}.parquet"
        for name, each in CATALOGUE.items()
        if each.entry["kind"] == "verdict"
    ],
    "proofs": lambda artefact: [f"results/proofs/{name}.details.json" for name in PROVEN],
    "metadata": lambda artefact: [f"results/metadata/{name}.json" for name in ENVIRONMENTS],
    "peaks": lambda artefact: [f"results/peaks/{name}.json" for name in PEAKS],
    "topologies": lambda artefact: [f"results/topology/{name}.json" for name in TOPOLOGIES]
    or refuse(NO_TOPOLOGY),
    "trainings": lambda artefact: merged([TRAINED]),
    "parts": lambda artefact: merged(PARTS),
    "grids": lambda artefact: written.of_others(CONFIGURATION.grid_name),
    "popularity": lambda artefact: CONFIGURATION.popularity or refuse(NO_POPULARITY),
    "images": lambda artefact: [
        f"results/datasets/{CONFIGURATION.dataset_of(artefact.entry['images'])}/train.npz"
    ],
}
# The project's own files behind such words; a program finds them wherever it is run.
DATA = {
    "printed": lambda artefact: [
        str(Path(artefact.file).with_name(artefact.entry.get("printed", artefact.key) + ".csv"))
    ],
    "papers": lambda artefact: PAPER_FILES,
    "releases": lambda artefact: ["resources/steptime/releases.yaml"],
}
PAPER_FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("resources/papers/*/*"))
WORDS = {
    "frameworks": ["resources/papers/frameworks.yaml"],
    "networks": ["config/networks.yaml", *CONFIGURATION.network_files],
}
# What a program is told where its entry needs it and no file holds it.
FACTS = {
    "owners": lambda: {name: CONFIGURATION.framework_of(name) for name in ENVIRONMENTS},
    "grids": lambda: CONFIGURATION.grid_name,
    "targets": lambda: targets_of_papers() | {"grid": CONFIGURATION.grid_name},
}
# Words whose own input functions say what is missing.
SAY_IT_THEMSELVES = {"cells", "topologies", "popularity"}
# Words behind which something is that was measured here.
RESULTS = {"cells", "every_cell", "trainings", "peaks"}
PRINTED_ONLY, NO_CELLS = "printed numbers only", "no results in this grid"
ONE_SIZE = "one mini-batch in this grid, which is no line"
NO_MACHINE, NO_IMAGES = "no machine within reach", "data set not configured"
# Who trains, by environment and mode.
TRAINERS = {f"{cell.environment}.{cell.mode}" for cell in TRAININGS.values()}
COUNTER = energy.Counter()
# Where each energy would be counted is here, and no GPU: a platform elsewhere may have what this machine lacks.
COUNTED_HERE = {*PLATFORMS} <= {*HERE} - {*ON_GPU}
# Why this grid has not what a word says, and whether it has it for an artefact. Of one that times nothing, no machine is
# looked at.
LACKING = {
    "cells": (NO_CELLS, lambda artefact: artefact.made_of in PLAN.artefacts),
    **dict.fromkeys(("every_cell", "peaks"), (NO_CELLS, lambda artefact: STEPS)),
    "topologies": (NO_MACHINE if STEPS else NO_CELLS, lambda artefact: TOPOLOGIES),
    "trainings": (NO_CELLS, lambda artefact: trained_for(artefact.entry)),
    "images": (NO_IMAGES, lambda artefact: CONFIGURATION.dataset_of(artefact.entry["images"])),
    "parts": (NO_CELLS, lambda artefact: PARTS),
    "pairs": (
        "nothing trained both with what is above it and without",
        lambda artefact: any({*pair} <= TRAINERS for pair in artefact.entry["pairs"].items()),
    ),
    "variants": (
        "nothing that the authors' scripts trained",
        lambda artefact: {*artefact.entry["variants"]} & {*CONFIGURATION.grid["networks"]},
    ),
    "counters": (COUNTER.state, lambda artefact: not (STEPS and COUNTED_HERE) or COUNTER.known),
    "popularity": ("file not named", lambda artefact: CONFIGURATION.popularity),
    "versions": (
        "no framework in two versions",
        lambda artefact: len(ENVIRONMENTS) > len({*map(CONFIGURATION.framework_of, ENVIRONMENTS)}),
    ),
}


def lacks(artefact, words=None):
    """Why this grid has not all that an artefact needs, or that these words say; '' where it has."""
    words = artefact.entry["needs"] if words is None else words
    known = (LACKING[word] for word in words if word in LACKING)
    return next((why for why, has in known if not has(artefact)), "")


def is_printed_only(artefact):
    """Whether an artefact would show what a paper printed, and nothing of ours."""
    lacking = lacks(artefact, artefact.entry.get("joins", []))
    return bool(lacking) and not RESULTS & {*artefact.entry["needs"]}


def has_one_size(artefact):
    """Whether a figure over mini-batches would be a dot."""
    cells = [PLAN.cells[key] for key in PLAN.artefacts.get(artefact.made_of, [])]
    return artefact.entry["kind"] == "sweep" and len({cell.batch for cell in cells}) == 1


def why_left_out(artefact):
    """Why `rule all` does not ask for an artefact; '' where it does. Of printed numbers alone, a figure is by name."""
    if lacking := lacks(artefact):
        return lacking
    if "table" not in artefact.entry["makes"] and is_printed_only(artefact):
        return PRINTED_ONLY
    return ONE_SIZE if has_one_size(artefact) else ""


def inputs_of(artefact):
    """The files of results/ that an artefact is made of, by the words of its entry."""
    needs = artefact.entry["needs"]
    if why := lacks(artefact, [word for word in needs if word not in SAY_IT_THEMSELVES]):
        why = "" if why == NO_CELLS else why
        return {"cells": refuse(checks.nothing_to_show(CONFIGURATION, artefact, why))}
    joined = [word for word in artefact.entry.get("joins", []) if not lacks(artefact, [word])]
    return {word: FILES[word](artefact) for word in [*needs, *joined] if word in FILES}


def data_of(artefact):
    """The project's own files that an artefact is made of, by the words of its entry."""
    own = {word: DATA[word](artefact) for word in artefact.entry["needs"] if word in DATA}
    return own | WORDS | {"catalogue": [artefact.file]}


@cache
def file_digest(path):
    """Digest of one of the project's own files, as its reader sees it: a comment in it makes nothing again."""
    file = ROOT / path
    if not file.is_file():
        raise WorkflowError(f"There is no file {path}, which an artefact needs: write it.")
    text = file.read_text(encoding="utf-8")
    return digests.digest(schemas.parse(text) if file.suffix == ".yaml" else text)


@cache
def words_digest(file, key):
    """Digest of a catalogue as it matters for one of its entries: without the others."""
    catalogue = schemas.parse((ROOT / file).read_text(encoding="utf-8"))
    return digests.digest(catalogue | {"artefacts": catalogue["artefacts"][key]})


def data_digest(artefact):
    """Digest of what an artefact reads of the project's own files."""
    files = sum((paths for word, paths in data_of(artefact).items() if word != "catalogue"), [])
    return digests.digest([words_digest(artefact.file, artefact.key), *map(file_digest, files)])


def outputs_of(artefact):
    """The files of an artefact; what a reader opens is marked for Snakemake's own report."""
    files = {}
    for part in artefact.entry["makes"]:
        labels = {"name": artefact.name, "kind": part, "what": artefact.entry["says"]}
        caption = str(ROOT / f"workflow/report/{part}.rst")
        for ending in OWN_OUTPUTS[part]:
            file = f"results/{part}s/{artefact.name}.{ending}"
            if ending == OPENED[part]:
                file = report(file, caption=caption, category=artefact.owner, labels=labels)
            files[f"{part}_{ending}"] = file
    return files


def plain_outputs(artefacts):
    """Paths of their files: marked ones would stand in Snakemake's own report as if another rule had made them."""
    return [str(file) for artefact in artefacts for file in outputs_of(artefact).values()]


def facts_of(artefact):
    """All that a program is told of an artefact besides its files, as JSON."""
    facts = {word: FACTS[word]() for word in artefact.entry["needs"] if word in FACTS}
    job = {"artefact": artefact.name, "facts": facts, "data": data_of(artefact)}
    return json.dumps(job, sort_keys=True)


@cache
def kind_digest(kind):
    """Digest of the code that makes artefacts of a kind."""
    return digests.program_digest("steptime.artefacts.make", f"steptime.artefacts.{kind}")


def targets_of_papers():
    """The papers' artefacts by name, each with its state and the number of its cells in the grid."""
    targets = {}
    for name, artefact in CATALOGUE.items():
        if artefact.is_of_paper:
            words = {*artefact.entry["needs"], *artefact.entry.get("joins", [])}
            cells = len(PLAN.artefacts.get(artefact.made_of, [])) if "cells" in words else 0
            cells += trained_for(artefact.entry) if "trainings" in words else 0
            state = lacks(artefact) or (PRINTED_ONLY if is_printed_only(artefact) else "made")
            targets[name] = {"state": state, "cells": cells}
    return {"targets": targets}


def report_job(wildcards):
    """All that the report is made of besides the numbers, as JSON: the grid's policy, and every artefact with its files."""
    artefacts = [
        {
            "name": name,
            "about": artefact.entry["says"],
            "paper": artefact.owner if artefact.is_of_paper else "",
            "kind": artefact.entry["kind"],
            "files": plain_outputs([artefact]),
            "missing": f"{why}." if (why := why_left_out(artefact)) else "",
        }
        for name, artefact in CATALOGUE.items()
    ]
    policy = {name: CONFIGURATION.grid.get(name) for name in ("sampling", "limits")}
    return json.dumps({"grid": CONFIGURATION.grid_name, **policy, "artefacts": artefacts})


# What `rule all` asks for.
MADE = [artefact for artefact in CATALOGUE.values() if not why_left_out(artefact)]
