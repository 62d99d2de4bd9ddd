"""Style and saving of every figure: one look, plain numbers on logarithmic axes, a short caption, SVG and PNG."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.style
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, LogLocator, NullLocator

STYLE = Path(__file__).with_name("steptime.mplstyle")
GREY = "#8A8A8A"
# Around words that may be on lines.
HALO = [withStroke(linewidth=2.5, foreground="white")]
CAPTION_SIZE = 7.5
CAPTION_WIDTH = 118  # letters of a caption's line that fit the figure's width at CAPTION_SIZE
DISTURBED = "* disturbed"
TITLE_WIDTH = 86  # and of a title's
LEGEND_INCHES = 0.2  # height of a legend's line


class Drawing(Figure):
    """A figure with `notes`, in its files and not in the picture: machine, versions, marks, what is not drawn."""

    notes: Sequence[str] = ()


@contextmanager
def canvas(
    rows: int = 1, columns: int = 1, height: float | None = None, **shared: Any
) -> Iterator[tuple[Drawing, Any]]:
    """Yields a figure in the house style and its axes; `height` is in inches, `shared` are arguments of `subplots`."""
    with matplotlib.style.context(STYLE, after_reset=True):
        drawing = Drawing(layout="constrained")
        if height is not None:
            drawing.set_figheight(height)
        yield drawing, drawing.subplots(rows, columns, **{"sharex": True, "sharey": True} | shared)


@contextmanager
def panels(
    count: int, inches: float, more: float, columns: int = 1, **shared: Any
) -> Iterator[tuple[Drawing, list[Axes]]]:
    """Yields a figure of so many panels, each `inches` high, and `more` inches besides; `shared` as for `canvas`."""
    rows = max(1, math.ceil(count / columns))
    with canvas(rows, columns, more + inches * rows, squeeze=False, **shared) as (drawing, grid):
        panel_list = list(grid.flat)
        for panel in panel_list[max(count, 1) :]:
            panel.set_visible(False)
        yield drawing, panel_list[: max(count, 1)]


def say(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **style: Any
) -> Annotation:
    """Writes small words beside a point, moved by so many points to the right and up."""
    small: dict[str, Any] = {"fontsize": 7.5, "color": "#444444"}
    return axes.annotate(text, at, xytext=shift, textcoords="offset points", **small | style)


def name_lines(
    axes: Axes, places: Sequence[float], names: Sequence[str], size: float | None = None
) -> None:
    """Writes names of lines of marks or bars at the left, without ticks and rules."""
    axes.set_yticks(places, names, fontsize=size)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def headings(axes: Axes, title: str, lines: list[str]) -> None:
    """Writes a title, and below it smaller lines on where the numbers were measured."""
    axes.set_title(title, pad=10 + 12 * len(lines))
    words = say(axes, "\n".join(lines), (0, 1), (0, 7), xycoords="axes fraction", fontsize=8.5)
    # The words may be wider than the axes; the title's distance already keeps their height free.
    words.set_in_layout(False)


def batch_axis(axes: Axes, batches: list[int]) -> None:
    """Makes a base-2 axis whose ticks are exactly these mini-batch sizes."""
    axes.set_xscale("log", base=2)
    plain_logarithms(axes.xaxis, FixedLocator(batches))
    # A step of 2 to each side, so that a single mini-batch size is in the middle and nothing touches the edge.
    margin = 2 if len(batches) == 1 else 2**0.5
    axes.set_xlim(min(batches) / margin, max(batches) * margin)
    axes.set_xlabel("mini-batch size (samples)")


def time_axis(axes: Axes, lowest: float, highest: float) -> None:
    """Makes an axis of seconds: from 0 where the range is small, else logarithmic with plain numbers (0.02, 0.05)."""
    axes.set_ylabel("time per mini-batch (s), less is better")
    if highest / lowest < 4:
        axes.set_ylim(0, highest * 1.12)
        return
    axes.set_yscale("log")
    wide = highest / lowest > 300
    plain_logarithms(axes.yaxis, LogLocator(subs=(1.0,), numticks=30) if wide else None)
    axes.set_ylim(lowest / 1.4, highest * 1.4)


def plain_logarithms(axis: Axis, ticks: Locator | None = None) -> None:
    """Writes plain numbers on a logarithmic axis, at 0.02, 0.05, 0.1 and so on, or at `ticks`."""
    axis.set_major_locator(ticks or LogLocator(subs=(1.0, 2.0, 5.0), numticks=30))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def caption(
    drawing: Drawing,
    words: str,
    notes: Sequence[str] = (),
    handles: Sequence[Artist] = (),
    columns: int = 1,
) -> None:
    """Puts a line or two of words below the axes, and above them a legend of `handles`; keeps the `notes`."""
    drawing.notes = notes
    lines = textwrap.wrap(words, CAPTION_WIDTH)
    legend = LEGEND_INCHES * math.ceil(len(handles) / columns) + 0.1 if handles else 0.0
    height = len(lines) * CAPTION_SIZE * 1.35 / 72 + 0.12 + legend
    width, old = drawing.get_size_inches()
    drawing.set_size_inches(width, old + height)
    share = height / (old + height)
    engine = drawing.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, share, 1, 1 - share))
    if handles:
        # Some call this when all is drawn.
        with matplotlib.style.context(STYLE, after_reset=True):
            place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, share + 0.005)}
            keys = drawing.legend(handles=handles, ncols=columns, **place)
        keys.set_in_layout(False)
    top = share - legend / (old + height) - 0.01
    style: dict[str, Any] = {"fontsize": CAPTION_SIZE, "color": "#444444", "linespacing": 1.3}
    text = drawing.text(0.015, top, "\n".join(lines), va="top", **style)
    text.set_in_layout(False)


def stars(axes: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    """Draws a star at each point that was disturbed, by the columns `marks`, `x` and `y`."""
    for row in rows[is_disturbed(rows)].to_dict("records"):
        say(axes, "*", (row[x], row[y]), (3, 1), fontsize=9, zorder=6)


def is_disturbed(rows: pd.DataFrame) -> pd.Series:
    return rows["marks"].str.contains("disturbed", regex=False)


def starred(rows: pd.DataFrame, words: str = "") -> str:
    """Returns a caption of these words, and, where a row has a star, of what a star means."""
    return " ".join(filter(None, [words, DISTURBED if is_disturbed(rows).any() else ""]))


def key(label: str, **style: Any) -> Line2D:
    """Returns an entry of a legend; `style` are arguments of Matplotlib's `plot`."""
    return Line2D([], [], label=label, **style)


def title(drawing: Figure, text: str) -> None:
    text = textwrap.fill(text, TITLE_WIDTH)
    drawing.suptitle(text, x=0.012, ha="left", fontsize=11, fontweight="bold")


def write(prefix: Path, data: pd.DataFrame, drawing: Drawing) -> None:
    """Writes `<prefix>.svg`, `.png` and the data as `.csv`, without time stamps: the same data, the same files.

    The notes are the description in the metadata of both pictures, a line each.
    """
    described = {"Description": "\n".join(drawing.notes)} if drawing.notes else {}
    prefix.parent.mkdir(parents=True, exist_ok=True)
    data.to_csv(prefix.with_suffix(".csv"), index=False)
    with matplotlib.style.context(STYLE, after_reset=True):
        drawing.savefig(prefix.with_suffix(".svg"), metadata={"Date": None, **described})
        # All is placed: to place it once more takes as long as to draw it.
        drawing.set_layout_engine("none")
        drawing.savefig(prefix.with_suffix(".png"), metadata=described)
