"""Figure of time against threads divided by cores, a paper's and ours; right of 1 there are more threads than cores."""

from typing import Any, TypeAlias

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steptime.artefacts import curves
from steptime.artefacts.inputs import Inputs
from steptime.artefacts.results.times import SOME_OTHER_SCRIPTS, other_scripts
from steptime.claims.evidence import measured_times, their_times
from steptime.claims.papers import Paper, read_papers
from steptime.merge.others import Grid
from steptime.merge.trainings import Trained
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import NOTHING_MEASURED, environment_labels, origin

COLUMNS = ["source", "network", "framework", "line", "platform", "threads", "cores"]
COLUMNS += ["threads_per_core", "seconds"]
PANEL_INCHES = 2.1
Sources: TypeAlias = tuple[str, ...]


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn (COLUMNS; seconds) and the figure, a panel for each network, theirs hollow."""
    name = inputs.paths("catalogue")[0].parent.name
    paper = next(each for each in read_papers(inputs.paths("papers")) if each.name == name)
    trained, frameworks = inputs.trained, inputs.frameworks
    steps = inputs.every_measured if inputs.has("every_cell") else []
    cells = measured_times([Grid(steps=steps, trained=trained)])
    both = [_theirs(paper, frameworks), _ours(paper, cells, frameworks)]
    data = pd.concat(both, ignore_index=True)
    titles = _titles(data, paper, inputs)
    styles = _styles(data, frameworks)
    with figures.panels(len(titles), PANEL_INCHES, 0.7, 2, sharey=False) as (drawing, panels):
        for axes, ((network, sources), title) in zip(panels, titles.items(), strict=False):
            is_own = (data["network"] == network) & data["source"].isin(sources)
            _draw(axes, data[is_own], styles)
            axes.set_title(title, fontsize=9)
        for axes in panels[::2]:
            axes.set_ylabel("time (s), less is better")
        shares = sorted(data["threads_per_core"].unique())
        for axes in panels[-2:]:
            axes.set_xticks(shares, [f"{share:.3g}" for share in shares])
            axes.minorticks_off()
            axes.set_xlabel("threads per physical core")
            axes.tick_params(labelbottom=True)
        figures.title(drawing, inputs.entry["title"])
        others = other_scripts(data[data["source"] == "paper"], paper.catalogue, inputs)
        words = f"{_hollow(paper, inputs.entry)}{f' {SOME_OTHER_SCRIPTS}' if others else ''}"
        is_here = (data["source"] == "ours").any()
        notes = [_cores(paper), *others, *([] if is_here else [NOTHING_MEASURED])]
        for measured in (steps or [trained.times])[:1]:
            notes += origin(measured) if len(measured.cells) else []
        keys = curves.keys(styles, markersize=4.5)
        figures.caption(drawing, words, notes, keys, 3)
    return data[COLUMNS], drawing


def _titles(data: pd.DataFrame, paper: Paper, inputs: Inputs) -> dict[tuple[str, Sources], str]:
    """Returns the panels' titles, by network and sources: seconds on other data have another axis than the paper's."""
    titles: dict[tuple[str, Sources], str] = {}
    for network in paper.networks:
        sources = set(data.loc[data["network"] == network, "source"])
        label = inputs.networks.get(network, {}).get("label", network)
        trained = _trained_on(inputs.trained, network)
        if trained and sources == {"paper", "ours"}:
            titles[network, ("paper",)] = f"{label}, {paper.catalogue['short']}"
            titles[network, ("ours",)] = f"{trained}, here"
        elif sources:
            titles[network, ("paper", "ours")] = (
                (trained or label) if sources == {"ours"} else label
            )
    return titles


def _styles(data: pd.DataFrame, frameworks: Frameworks) -> curves.Styles:
    """Returns how lines look: ours solid and filled, the paper's dashed and hollow; its machines differ in dashes."""
    lines = data.drop_duplicates(["source", "line"])
    turns = lines.groupby(["source", "framework"]).cumcount()
    return {
        row.line: frameworks[row.framework].version(turn)
        if row.source == "ours"
        else frameworks[row.framework].line(turn + 1)
        for row, turn in zip(lines.itertuples(), turns, strict=True)
    }


def _theirs(paper: Paper, frameworks: Frameworks) -> pd.DataFrame:
    times = their_times(paper, frameworks)
    times = times[(times["device"] == "cpu") & times["seconds"].notna() & times["cores"].notna()]
    names = [frameworks.lineage(name).label for name in times["framework"]]
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
    """Says on what data a network was trained here, and whether on a part of them; "" where it was not trained."""
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
    style: dict[str, Any] = {"linewidth": 1.2, "markersize": 4.5}
    curves.draw(axes, own, "threads_per_core", "seconds", styles, "line", **style)
    figures.plain_logarithms(axes.yaxis)


def _hollow(paper: Paper, artefact: dict[str, Any]) -> str:
    source = f"{artefact['sources'][0]} of {paper.catalogue['short']}"
    return f"Hollow: {source}. Dotted: a thread for each physical core."


def _cores(paper: Paper) -> str:
    own = [each for each in paper.catalogue["platforms"].values() if "cores" in each]
    cores = (f"{each['cores']} of the {each['name']} ({each['machine']})" for each in own)
    return f"Cores in the paper: {'; '.join(cores)}."
