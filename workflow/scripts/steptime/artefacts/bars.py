"""The figure of starting up: one stacked bar for each framework and network, in the order of the table."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from steptime.render import figures
from steptime.render.words import mark_notes, plural, significant, status_reason

# Of Okabe and Ito (Color Universal Design, 2008), told apart by lightness too; frameworks' colours mean frameworks.
COLOURS = ("#4D4D4D", "#009E73", "#E69F00", "#D9D9D9")
BAR_INCHES = 0.175
GAP = 0.9  # bars between two networks


def draw(data: pd.DataFrame, parts: Mapping[str, str]) -> tuple[pd.DataFrame, Figure]:
    """The rows that are drawn, those of each platform's highest thread count, and the figure; `parts` names columns."""
    highest = data.groupby("platform")["threads"].transform("max")
    drawn = data[data["threads"] == highest].reset_index(drop=True)
    several = drawn["platform"].nunique() > 1
    places, at = [], 0.0
    for network in (
        drawn["network_label"].ne(drawn["network_label"].shift()).cumsum().diff().fillna(0)
    ):
        at += 1 + GAP * network
        places.append(at)
    with figures.canvas(height=1.3 + BAR_INCHES * (at + 1)) as (drawing, axes):
        left = pd.Series(0.0, index=drawn.index)
        for colour, (column, label) in zip(COLOURS, parts.items(), strict=True):
            seconds = pd.to_numeric(drawn[column]).fillna(0)
            axes.barh(places, seconds, left=left, height=0.78, color=colour, label=label, zorder=3)
            left += seconds
        for place, total, row in zip(places, left, drawn.to_dict("records"), strict=True):
            text = (
                f"{significant(total)} s" if pd.notna(row["total_seconds"]) else f" {row['status']}"
            )
            axes.annotate(
                text,
                (total, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
                color="#444444",
            )
        axes.set_yticks(
            places, [_label(row, several) for row in drawn.to_dict("records")], fontsize=8
        )
        axes.set_ylim(at + 0.7, places[0] - 0.7)
        axes.set_xlim(0, max(left.max(), 1e-9) * 1.1)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds from the import to the end of the warm-up")
        figures.headings(axes, "What a start costs", _where(drawn))
        figures.notes_below(drawing, _notes(drawn), axes.containers, len(parts))
    return drawn, drawing


def _label(row: dict, several: bool) -> str:
    parts = [row["network_label"], row["framework_label"], *([row["platform"]] if several else [])]
    return ", ".join(parts)


def _where(drawn: pd.DataFrame) -> list[str]:
    return [
        f"on {platform}, {plural(int(rows['threads'].iloc[0]), 'thread')}"
        for platform, rows in drawn.groupby("platform", sort=False)
    ]


def _notes(drawn: pd.DataFrame) -> list[str]:
    notes = [
        "The first step traces, compiles and allocates, and is a step too. The rest of the warm-up lasts at least half "
        "a second or two steps. Medians where a cell was measured more than once."
    ]
    for row in drawn[drawn["total_seconds"].isna()].to_dict("records"):
        reason = status_reason(row["status"], row["reason"]).rstrip(".")
        notes.append(f"{row['network_label']}, {row['framework_label']}: {reason}.")
    return notes + mark_notes(drawn)
