"""The figure of time against threads divided by cores, a paper's and ours; right of 1 are more threads than cores."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import curves
from steptime.artefacts.evidence import Paper, measured_times, read_papers, their_times
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.times import other_scripts
from steptime.merge.others import Grid
from steptime.merge.trainings import Trained
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import NOTHING_MEASURED, environment_labels, origin

COLUMNS = ["source", "network", "framework", "line", "platform", "threads", "cores"]
COLUMNS += ["threads_per_core", "seconds"]
PANEL_INCHES, NOTHING_INCHES = 1.75, 1.3


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn (COLUMNS; seconds) and the drawing: networks down, theirs and ours across."""
    name = inputs.paths("catalogue")[0].parent.name
    paper = next(each for each in read_papers(inputs.paths("papers")) if each.name == name)
    trained, frameworks = inputs.trained, inputs.frameworks
    steps = inputs.every_measured if inputs.has("every_cell") else []
    cells = measured_times([Grid(steps=steps, trained=trained)])
    both = [_theirs(paper, frameworks), _ours(paper, cells, frameworks)]
    data = pd.concat(both, ignore_index=True)
    networks = [network for network in paper.networks if (data["network"] == network).any()]
    height = NOTHING_INCHES + PANEL_INCHES * len(networks)
    # Seconds of other data are on no axis of the paper's.
    sharey = "none" if any(_trained_on(trained, network) for network in networks) else "row"
    style: dict[str, Any] = {"sharex": True, "sharey": sharey, "squeeze": False}
    with figures.canvas(len(networks), 2, height, **style) as (drawing, grid):
        styles = curves.styles_of(data, frameworks, "line", ["source"])
        for axes, network in zip(grid, networks, strict=True):
            label = inputs.networks.get(network, {}).get("label", network)
            titles = {
                "paper": f"{label}, {paper.catalogue['short']}",
                "ours": f"{_trained_on(trained, network) or label}, here",
            }
            for panel, (source, title) in zip(axes, titles.items(), strict=True):
                own = data[(data["network"] == network) & (data["source"] == source)]
                _draw(panel, own, styles)
                panel.set_title(title, fontsize=9)
            axes[0].set_ylabel("time (s), less is better")
        shares = sorted(data["threads_per_core"].unique())
        for axes in grid[-1]:
            axes.set_xticks(shares, [f"{share:.3g}" for share in shares])
            axes.minorticks_off()
            axes.set_xlabel("threads ÷ physical cores")
        figures.title(drawing, inputs.entry["title"])
        notes = _notes(paper, data, inputs.entry)
        notes += other_scripts(data[data["source"] == "paper"], paper.catalogue, inputs)
        for measured in (steps or [trained.times])[:1]:
            notes += origin(measured) if len(measured.cells) else []
        figures.notes_below(drawing, notes, curves.keys(styles, markersize=4.5), 3)
    return data[COLUMNS], drawing


def _theirs(paper: Paper, frameworks: Frameworks) -> pd.DataFrame:
    times = their_times(paper, frameworks)
    times = times[(times["device"] == "cpu") & times["seconds"].notna() & times["cores"].notna()]
    names = [f"{frameworks.lineage(name).label} there" for name in times["framework"]]
    machines = [paper.catalogue["platforms"][name]["name"] for name in times["platform"]]
    lines = [f"{name}, {machine}" for name, machine in zip(names, machines, strict=True)]
    first = [frameworks.lineage(name).name for name in times["framework"]]
    return _shared(times.assign(source="paper", line=lines, framework=first))


def _ours(paper: Paper, cells: pd.DataFrame, frameworks: Frameworks) -> pd.DataFrame:
    usual = cells["network"].map(paper.batches)
    own = cells["network"].isin(paper.networks) & (cells["task"] == paper.task)
    own &= cells["devices"] == 1
    own &= (cells["device"] == "cpu") & cells["seconds"].notna() & cells["cores"].notna()
    times = cells[own & (usual.isna() | (cells["batch"] == usual))]
    return _shared(times.assign(source="ours", line=environment_labels(frameworks, times)))


def _trained_on(trained: Trained, network: str) -> str:
    """What a network was trained on here, a subset named as one; "" where it was not."""
    runs = trained.runs
    if runs.empty:
        return ""
    own = runs[(runs["network"] == network) & (runs["variant"] == "")]
    return next(iter(own["label"]), "")


def _shared(times: pd.DataFrame) -> pd.DataFrame:
    share = times["threads"].astype(float) / times["cores"].astype(float)
    return times.assign(threads_per_core=share)[COLUMNS]


def _draw(axes: Axes, own: pd.DataFrame, styles: curves.Styles) -> None:
    axes.set(xscale="log", yscale="log")
    axes.axvline(1, color=figures.GREY, linewidth=1, linestyle=":", zorder=1)
    if own.empty:
        grey: dict[str, Any] = {"ha": "center", "color": figures.GREY}
        axes.text(0.5, 0.5, "not measured here", transform=axes.transAxes, **grey)
    style: dict[str, Any] = {"linewidth": 1.2, "markersize": 4.5}
    curves.draw(axes, own, "threads_per_core", "seconds", styles, "line", **style)
    figures.plain_logarithms(axes.yaxis)


def _notes(paper: Paper, data: pd.DataFrame, artefact: dict[str, Any]) -> list[str]:
    own = [each for each in paper.catalogue["platforms"].values() if "cores" in each]
    cores = (f"{each['cores']} of the {each['name']} ({each['machine']})" for each in own)
    notes = [
        f"Dotted: as many threads as physical cores; to the right of it there are more threads than cores. Left: "
        f"{artefact['sources'][0]} of {paper.catalogue['short']}. Cores there: {'; '.join(cores)}."
    ]
    return notes if (data["source"] == "ours").any() else [*notes, NOTHING_MEASURED]
