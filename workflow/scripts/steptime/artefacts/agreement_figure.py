"""The drawing of `agreement`: our times against those that the papers printed."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from steptime.merge.measured import Measured
from steptime.render import figures
from steptime.render.frameworks import Frameworks
from steptime.render.words import facts, raw_data

POINTS_PER_INCH, LETTER = 72, 4.3  # a letter of the names is about so many points wide
RATIOS = ((1, "ours = theirs"), (10, "10 times as fast"), (100, "100 times as fast"))
NOTHING = "no time was measured here for a network, framework and thread count that a paper printed"


def draw(
    both: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any], measured: Measured
) -> tuple[pd.DataFrame, Figure]:
    """The points and the figure. `both` has network, framework (a lineage), threads, device, theirs and ours (seconds),
    paper and short; the points of one network and framework are joined in the order of their threads.
    """
    with figures.canvas(height=5.4) as (drawing, axes):
        if len(both):
            _frame(axes, both)
            _points(axes, both, frameworks, catalogue)
        figures.headings(
            axes,
            "Our times against the papers'",
            ["points of one network and framework are joined"],
        )
        axes.set_xlabel("time per mini-batch as printed (s)")
        axes.set_ylabel("time per mini-batch here (s)")
        notes = [
            "Filled: CPU, outlined: GPU. PyTorch here stands for Torch. The paper's shortest time where several of its "
            "machines have one.",
            *_other_batches(both, catalogue),
            *facts(measured),
        ]
        notes = notes if len(both) else [f"Nothing is drawn: {NOTHING}.", *facts(measured)]
        figures.notes_below(
            drawing, [" ".join(notes), raw_data(measured)], _handles(both, frameworks), 3
        )
    return both, drawing


def _frame(axes: Axes, both: pd.DataFrame) -> None:
    limits = [both["theirs"].min() / 1.8, both["theirs"].max() * 1.8]
    heights = [both["ours"].min() / 1.8, both["ours"].max() * 1.8]
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=heights)
    figures.plain_logarithms(axes.xaxis)
    figures.plain_logarithms(axes.yaxis)
    for ratio, name in RATIOS:
        ends = [max(limits[0], heights[0] * ratio), min(limits[1], heights[1] * ratio)]
        if ends[0] >= ends[1]:
            continue
        axes.plot(
            ends,
            [end / ratio for end in ends],
            color=figures.GREY,
            linewidth=1,
            linestyle=":",
            zorder=1,
        )
        look = {"ha": "right", "va": "top", "color": "#6A6A6A", "path_effects": figures.HALO}
        figures.say(axes, name, (ends[1], ends[1] / ratio), (-4, -4), **look)


def _points(
    axes: Axes, both: pd.DataFrame, frameworks: Frameworks, catalogue: dict[str, Any]
) -> None:
    for (_, _, name, device), line in both.groupby(
        ["paper", "network", "framework", "device"], sort=False
    ):
        line = line.sort_values("threads")
        framework = frameworks.lineage(name)
        axes.plot(
            line["theirs"],
            line["ours"],
            **framework.look,
            markerfacecolor=framework.colour if device == "cpu" else "white",
            linewidth=1,
            zorder=3,
        )
    ends = (
        both.sort_values("threads")
        .groupby(["paper", "network", "framework", "device"], sort=False)
        .last()
    )
    first = both["paper"].iloc[0]
    names = [
        catalogue[network]["label"] + ("" if paper == first else f" ({end['short']})")
        for (paper, network, _, _), end in ends.iterrows()
    ]
    _labels(axes, ends[["theirs", "ours"]].to_numpy(), names)


def _labels(axes: Axes, ends: np.ndarray, names: list[str]) -> None:
    """Names beside their points, each at the first of the places around it where it touches no name and no point."""
    pixels = axes.transData.transform(ends) * POINTS_PER_INCH / axes.figure.dpi
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in pixels]
    for (x, y), end, name in zip(pixels, ends, names, strict=True):
        boxes = []
        width = LETTER * len(name)
        for right, up in ((1, 3), (1, -10), (-1, 3), (-1, -10), (0, 9), (0, -16)):
            left = x + (6 if right > 0 else -6 - width if right < 0 else -width / 2)
            boxes.append(((left, y + up, left + width, y + up + 8), left - x, up))
        free = [box for box in boxes if not any(_touch(box[0], other) for other in taken)]
        box, shift, up = free[0] if free else boxes[0]
        taken.append(box)
        look = {"color": "#333333", "path_effects": figures.HALO, "zorder": 4}
        figures.say(axes, name, end, (shift, up), **look)


def _touch(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _other_batches(both: pd.DataFrame, catalogue: dict[str, Any]) -> list[str]:
    """A sentence on the networks whose mini-batch here is another than the paper's."""
    other = both[both["theirs_batch"] != both["ours_batch"]].drop_duplicates("network")
    names = [
        f"{catalogue[row['network']]['label']} {row['ours_batch']} for {row['theirs_batch']}"
        for row in other.to_dict("records")
    ]
    return [f"Other mini-batches here than printed: {', '.join(names)}."] if names else []


def _handles(both: pd.DataFrame, frameworks: Frameworks) -> list[Line2D]:
    found = [frameworks.lineage(name) for name in both["framework"].unique()]
    return [
        figures.key(framework.label, **framework.look, linewidth=1)
        for framework in sorted(found, key=lambda framework: framework.order)
    ]
