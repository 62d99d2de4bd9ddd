# What the catalogues of tables and figures (resources/) say of this grid: what each entry is made of, and whether this
# grid has it. Functions only.

CATALOGUE = CONFIGURATION.catalogue
OWN_OUTPUTS = {"table": ("parquet", "csv", "md", "html", "tex"), "figure": ("svg", "png", "csv")}
# What a reader opens of each, for `snakemake --report`.
OPENED = {"table": "html", "figure": "svg"}

# The proof of every network in every environment and mode, and number of devices, that the grid has cells of, and those
# that it asks for besides.
PROVEN = dict.fromkeys([*(cell.proof for cell in STEPS.values()), *PLAN.proven])
PEAKS = within_reach("peaks", (cell.platform for cell in STEPS.values()))
TOPOLOGIES = within_reach("topology", (cell.platform for cell in STEPS.values()))
# The searches for the largest mini-batch: the cell that each begins with, of the first repeat with the most threads.
LARGEST = largest_searches()
# Merged rows that hold each timed step of the grid; what lies within another artefact's cells is left out.
OF_STEPS = {name: frozenset(keys) for name, keys in PLAN.artefacts.items() if keys[0] in STEPS}
FIRSTS = {keys: name for name, keys in reversed(OF_STEPS.items())}
EVERY_CELL = [
    name
    for name, keys in OF_STEPS.items()
    if FIRSTS[keys] == name and not any(keys < other for other in FIRSTS)
]
# Merged rows of single operations of a step.
PARTS = [name for name, keys in PLAN.artefacts.items() if keys[0] in OPERATIONS]


def merged(names):
    """The files of merged rows."""
    return [f"results/merged/{name}.parquet" for name in names]


def trained_for(entry):
    """How many trainings of the grid on one device an entry shows: of its networks or variants of them, on its kind of
    device.
    """

    def shows(training):
        names = {training.network, CONFIGURATION.networks[training.network].get("variant_of")}
        is_of_device = entry.get("device", training.device) == training.device
        return is_of_device and bool(names & {*entry.get("networks", names)})

    return sum(shows(training) for training in TRAININGS.values() if training.devices == 1)


def refuse(words):
    """In place of files that nobody has: an input function that says so."""

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
    "proofs": lambda artefact: [f"results/proofs/{name}.details.json" for name in PROVEN],
    "metadata": lambda artefact: [f"results/metadata/{name}.json" for name in ENVIRONMENTS],
    "peaks": lambda artefact: [f"results/peaks/{name}.json" for name in PEAKS],
    "topologies": lambda artefact: [f"results/topology/{name}.json" for name in TOPOLOGIES]
    or refuse(NO_TOPOLOGY),
    "trainings": lambda artefact: merged([TRAINED]),
    "parts": lambda artefact: merged(PARTS),
    "grids": lambda artefact: written.of_others(CONFIGURATION.grid_name),
    "largest": lambda artefact: [f"results/largest/{name}.json" for name in LARGEST],
    "popularity": lambda artefact: CONFIGURATION.popularity or refuse(NO_POPULARITY),
    # Of a data set that nobody has, the whole one: its rule says so.
    "images": lambda artefact: [
        f"results/datasets/{CONFIGURATION.dataset_of(artefact.entry['images']) or artefact.entry['images']}/train.npz"
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
WORDS = {"frameworks": ["resources/papers/frameworks.yaml"], "networks": ["config/networks.yaml"]}
# What a program is told where its entry needs it and no file holds it.
FACTS = {
    "owners": lambda: {name: CONFIGURATION.framework_of(name) for name in ENVIRONMENTS},
    "grids": lambda: CONFIGURATION.grid_name,
    "targets": lambda: targets_of_papers() | {"grid": CONFIGURATION.grid_name},
}
# Words behind which something is that was measured here.
RESULTS = {"cells", "every_cell", "trainings"}
PRINTED_ONLY, NO_CELLS = "printed numbers only", "no results in this grid"
# Who trains, by environment and mode.
TRAINERS = {f"{cell.environment}.{cell.mode}" for cell in TRAININGS.values()}
LACKING = {
    "cells": lambda artefact: "" if artefact.made_of in PLAN.artefacts else NO_CELLS,
    # Of a grid that times nothing, no machine is looked at.
    **dict.fromkeys(("every_cell", "peaks"), lambda artefact: "" if STEPS else NO_CELLS),
    "topologies": lambda artefact: (
        "" if TOPOLOGIES else "no machine within reach" if STEPS else NO_CELLS
    ),
    "trainings": lambda artefact: "" if trained_for(artefact.entry) else NO_CELLS,
    "images": lambda artefact: (
        "" if CONFIGURATION.dataset_of(artefact.entry["images"]) else "data set not configured"
    ),
    "parts": lambda artefact: "" if PARTS else NO_CELLS,
    "pairs": lambda artefact: (
        ""
        if any({*pair} <= TRAINERS for pair in artefact.entry["pairs"].items())
        else "nothing trained both with what is above it and without"
    ),
    # A platform elsewhere may have what this machine lacks.
    "counters": lambda artefact: (
        energy.Counter().state
        if STEPS and not energy.Counter().known and {*PLATFORMS} <= {*HERE} - {*ON_GPU}
        else ""
    ),
    "popularity": lambda artefact: "" if CONFIGURATION.popularity else "file not named",
    "versions": lambda artefact: (
        ""
        if len(ENVIRONMENTS) > len(set(FACTS["owners"]().values()))
        else "no framework in two versions"
    ),
}


def lacks(artefact, words="needs"):
    """Why this grid has not all that an artefact needs, or joins; '' where it has."""
    known = (LACKING[word](artefact) for word in artefact.entry.get(words, []) if word in LACKING)
    return next(filter(None, known), "")


def is_printed_only(artefact):
    """Whether an artefact would show what a paper printed, and nothing of ours."""
    return bool(lacks(artefact, "joins")) and not RESULTS & {*artefact.entry["needs"]}


def inputs_of(artefact):
    """The files of results/ that an artefact is made of, by the words of its entry."""
    joined = [word for word in artefact.entry.get("joins", []) if not LACKING[word](artefact)]
    return {
        word: FILES[word](artefact) for word in [*artefact.entry["needs"], *joined] if word in FILES
    }


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
    files = [
        path for word, paths in data_of(artefact).items() if word != "catalogue" for path in paths
    ]
    return digests.digest([words_digest(artefact.file, artefact.key), *map(file_digest, files)])


def outputs_of(artefact):
    """The files of an artefact; what a reader opens is marked for Snakemake's own report."""
    files = {}
    for part in artefact.entry["makes"]:
        for ending in OWN_OUTPUTS[part]:
            file = f"results/{part}s/{artefact.name}.{ending}"
            if ending == OPENED[part]:
                labels = {"name": artefact.name, "kind": part, "what": artefact.entry["says"]}
                file = report(
                    file,
                    caption=str(ROOT / f"workflow/report/{part}.rst"),
                    category=artefact.owner,
                    labels=labels,
                )
            files[f"{part}_{ending}"] = file
    return files


def plain_outputs(artefacts):
    """Paths of their files: marked ones would stand in Snakemake's own report as if another rule had made them."""
    return [str(file) for artefact in artefacts for file in outputs_of(artefact).values()]


def facts_of(artefact):
    """All that a program is told of an artefact besides its files, as JSON."""
    facts = {word: FACTS[word]() for word in artefact.entry["needs"] if word in FACTS}
    told = {"artefact": artefact.name, "facts": facts, "data": data_of(artefact)}
    return json.dumps(told, sort_keys=True)


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
            "missing": "" if artefact in MADE else f"{lacks(artefact) or PRINTED_ONLY}.",
        }
        for name, artefact in CATALOGUE.items()
    ]
    policy = {name: CONFIGURATION.grid.get(name) for name in ("sampling", "limits")}
    return json.dumps({"grid": CONFIGURATION.grid_name, **policy, "artefacts": artefacts})


# What `rule all` asks for. A figure of printed numbers alone is drawn where it is asked for by its name.
MADE = [
    artefact
    for artefact in CATALOGUE.values()
    if not lacks(artefact)
    if "table" in artefact.entry["makes"] or not is_printed_only(artefact)
]
