# What the papers' rules share; papers/ has one file for each paper. A table or figure reads the merged rows of its own
# cells, what the paper printed, and the code that makes it, so that an edit of any of them makes it again.

PAPERS = "workflow/scripts/steptime/artefacts"

# What every artefact of every paper reads besides its own numbers.
PAPER_INPUTS = {
    "frameworks": "resources/papers/frameworks.yaml",
    "networks": "config/networks.yaml",
    "code": [
        f"{PAPERS}/abilities.py",
        f"{PAPERS}/command.py",
        f"{PAPERS}/inputs.py",
        f"{PAPERS}/kinds.py",
        "workflow/scripts/steptime/render/words.py",
        "workflow/scripts/steptime/merge/intervals.py",
        "workflow/scripts/steptime/merge/summary.py",
        "workflow/scripts/worker/statistics.py",
    ],
}
TABLE_CODE = [
    "workflow/scripts/steptime/render/tables.py",
    "workflow/scripts/steptime/render/page.html.jinja",
    "workflow/scripts/steptime/render/style.css",
]
FIGURE_CODE = [
    "workflow/scripts/steptime/render/figures.py",
    "workflow/scripts/steptime/render/steptime.mplstyle",
]


def paper_files(paper):
    """The catalogue of a paper, and the module that makes its artefacts."""
    return {"paper": f"resources/papers/{paper}/paper.yaml", "module": f"{PAPERS}/{paper}.py"}


def table_files(name):
    """The files of a table."""
    return multiext(
        f"results/tables/{name}", parquet=".parquet", csv=".csv", md=".md", html=".html", tex=".tex"
    )


def figure_files(name):
    """The files of a figure."""
    return multiext(f"results/figures/{name}", svg=".svg", png=".png", data=".csv")


def merged_if_any(artefact):
    """The merged rows of an artefact, or nothing where the grid has no cells of it."""
    return [f"results/merged/{artefact}.parquet"] if artefact in PLAN.artefacts else []


def images_of(dataset):
    """Images of a data set, or of the subset of it that can be had; the whole one, which nobody has, where none can."""
    return f"results/datasets/{CONFIGURATION.dataset_of(dataset) or dataset}/train.npz"


def trainings_of(base=None, device=None):
    """The trainings of the grid, where any of them is of this network or a variant of it, and on this kind of device."""
    for training in TRAININGS.values():
        network = CONFIGURATION.networks[training.network].get("variant_of", training.network)
        if base in (None, network) and device in (None, training.device):
            return [TRAINED]
    return []


# What is read of the frameworks that are installed.
ABILITIES = {
    "merged": merged_if_any(REPORTED),
    "proofs": [f"results/proofs/{name}.details.json" for name in PROVEN],
    "metadata": expand("results/metadata/{environment}.json", environment=grid_environments()),
}


include: "papers/shi2016.smk"
include: "papers/shatnawi2018.smk"
include: "papers/wuensche2018.smk"
include: "papers/dai2019.smk"
