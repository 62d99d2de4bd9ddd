"""Figure of when every cell of a run was measured, and whether any two on one machine overlapped."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from steptime.artefacts.inputs import Inputs
from steptime.plan.cell import IDENTITY, key_of
from steptime.render import figures
from steptime.render.frameworks import Frameworks

LANE_INCHES = 0.42
LONGEST_PAUSE = 120.0  # seconds; a longer pause between two cells is drawn as long as this
LONGEST_HEADING = 80  # letters
NAMED = 5  # overlaps that the sentence names
OVERLAP_COLOUR = "#CC0000"


def spans_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns each process of merged rows by its start, with the `seconds` that its job took."""
    names = ["machine_id", "environment", "framework", "mode", "repeat", "status"]
    processes = rows.drop_duplicates([*IDENTITY, "repeat"])
    keys = map(key_of, processes.to_dict("records"))
    spans = processes.assign(cell=[key.rpartition("/")[2] for key in keys])
    spans = spans[["cell", *names, "started_at", "ended_at"]]
    spans = spans.sort_values("started_at", kind="stable", ignore_index=True)
    return spans.assign(seconds=(spans["ended_at"] - spans["started_at"]).dt.total_seconds())


def overlaps(spans: pd.DataFrame) -> list[tuple[str, str]]:
    """Returns (earlier, later) of each cell that began while others of its machine ran: the one that ended last."""
    pairs = []
    for _, rows in spans.groupby("machine_id", sort=False):
        last = None
        for row in rows.sort_values("started_at").to_dict("records"):
            if last is not None and row["started_at"] < last["ended_at"]:
                pairs.append((last["cell"], row["cell"]))
            if last is None or row["ended_at"] > last["ended_at"]:
                last = row
    return pairs


def sentence(spans: pd.DataFrame) -> str:
    """Says whether runs overlapped, in one sentence."""
    pairs, machines = overlaps(spans), spans["machine_id"].nunique()
    where = "" if machines == 1 else f" of the same machine ({machines} machines)"
    if not pairs:
        return f"No two of {len(spans)} runs overlapped{where}."
    named = "; ".join(f"{earlier} and {later}" for earlier, later in pairs[:NAMED])
    more = f"; and {len(pairs) - NAMED} more" if len(pairs) > NAMED else ""
    return (
        f"{len(pairs)} of {len(spans)} runs began before another{where} had ended: {named}{more}."
    )


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    spans = spans_of(pd.concat([measured.rows for measured in inputs.every_measured]))
    print(sentence(spans))
    return draw(spans, inputs.frameworks)


def draw(spans: pd.DataFrame, frameworks: Frameworks) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows of `spans_of` with `overlaps_with`, and the figure: a lane for each environment and mode."""
    pairs = overlaps(spans)
    first = pd.Series({later: earlier for earlier, later in pairs}, dtype=object)
    data = spans.assign(overlaps_with=spans["cell"].map(first))
    lanes = data["environment"] + " " + data["mode"]
    frameworks_of = dict(zip(lanes, data["framework"], strict=True))
    order = sorted(lanes.unique(), key=lambda lane: frameworks[frameworks_of[lane]].order)
    begins, cuts = _drawn_times(data)
    involved = {cell for pair in pairs for cell in pair}
    with figures.canvas(height=1.5 + LANE_INCHES * len(order)) as (drawing, axes):
        for begin, lane, row in zip(begins, lanes, data.to_dict("records"), strict=True):
            style: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.3, "zorder": 3}
            if row["cell"] in involved:
                style = {"edgecolor": OVERLAP_COLOUR, "linewidth": 1.5, "zorder": 4}
            style |= {"left": begin / 60, "color": frameworks[row["framework"]].colour}
            axes.barh(order.index(lane), row["seconds"] / 60, height=0.62, **style)
        for cut in cuts:
            axes.axvline(cut / 60, color=figures.GREY, linestyle=":", linewidth=0.9)
        figures.name_lines(axes, range(len(order)), order)
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel("minutes since the first run began")
        verdict = sentence(spans)
        above, below = ([verdict], []) if len(verdict) <= LONGEST_HEADING else ([], [verdict])
        figures.headings(axes, "When each run was measured", above)
        dotted = f"Dotted: a pause of over {LONGEST_PAUSE / 60:g} minutes, drawn shorter."
        words = dotted if cuts else ""
        handles = _handles(data, frameworks, bool(involved))
        figures.caption(drawing, words, [*below, _note(data)], handles, 4)
    return data, drawing


def _drawn_times(data: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Returns the second at which each cell is drawn to begin, long pauses shortened, and where these pauses are."""
    begins, cuts, shift, busy_until = [], [], 0.0, None
    for row in data.to_dict("records"):
        if busy_until is None:
            shift, busy_until = row["started_at"].timestamp(), row["ended_at"]
        pause = (row["started_at"] - busy_until).total_seconds()
        if pause > LONGEST_PAUSE:
            shift += pause - LONGEST_PAUSE
            cuts.append(row["started_at"].timestamp() - shift - LONGEST_PAUSE / 2)
        begins.append(row["started_at"].timestamp() - shift)
        busy_until = max(busy_until, row["ended_at"])
    return begins, cuts


def _handles(data: pd.DataFrame, frameworks: Frameworks, overlapped: bool) -> list[Patch]:
    handles = [
        Patch(color=frameworks[name].colour, label=frameworks[name].label)
        for name in data["framework"].unique()
    ]
    wrong = Patch(facecolor="white", edgecolor=OVERLAP_COLOUR, linewidth=1.5, label="overlapped")
    return [*handles, wrong] if overlapped else handles


def _note(data: pd.DataFrame) -> str:
    began, ended = data["started_at"].min(), data["ended_at"].max()
    return (
        "A bar lasts from the start of a run's job to the writing of its shard: import, build, warm-up and samples. "
        f"Trainings are not drawn. From {began:%Y-%m-%d %H:%M:%S} to {ended:%Y-%m-%d %H:%M:%S} UTC."
    )
