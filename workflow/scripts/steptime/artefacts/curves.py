"""Draws curves as all figures draw them: how frameworks' lines look, their keys, and what is not drawn."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from steptime.render import figures
from steptime.render.columns import Row
from steptime.render.frameworks import Frameworks
from steptime.render.words import machine_name, plural, why

Styles: TypeAlias = dict[str, dict[str, Any]]


def styles_of(
    rows: pd.DataFrame, frameworks: Frameworks, by: str = "label", alike: Sequence[str] = ()
) -> Styles:
    """Says how each line is drawn; lines of one framework (and one of `alike`) differ only in dashes and filling."""
    named = rows.drop_duplicates(by)
    turns = named.groupby(["framework", *alike]).cumcount()
    return {
        name: frameworks[framework].line(turn)
        for name, framework, turn in zip(named[by], named["framework"], turns, strict=True)
    }


def draw(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    styles: Styles,
    by: str = "label",
    within: Sequence[str] = (),
    **more: Any,
) -> None:
    """Draws a line for each name in the column `by`, and each value of `within`, in the order of `x`."""
    for (name, *_), line in rows.groupby([by, *within], sort=False):
        line = line.sort_values(x)
        axes.plot(line[x], line[y], **{"markersize": 4, "zorder": 3} | styles[name] | more)


def whiskers(
    axes: Axes, line: pd.DataFrame, x: str, y: str, low: str, high: str, **style: Any
) -> None:
    spans = [line[y] - line[low], line[high] - line[y]]
    axes.errorbar(line[x], line[y], yerr=spans, **{"zorder": 3} | style)


def keys(styles: Styles, **more: Any) -> list[Line2D]:
    return [figures.key(name, **style | more) for name, style in styles.items()]


def threads_drawn(drawn: pd.DataFrame) -> str:
    """Says with how many threads rows were measured: '2 threads', or a number for each of several platforms."""
    most = drawn.groupby("platform", sort=False)["threads"].max()
    threads = {
        machine_name(str(name)): plural(int(count), "thread") for name, count in most.items()
    }
    if len(threads) == 1:
        return next(iter(threads.values()))
    return "; ".join(f"{name}: {count}" for name, count in threads.items())


def not_drawn(
    rows: pd.DataFrame, name: Callable[[Row], str], reason: Callable[[Row], str] = why, at: str = ""
) -> list[str]:
    """Writes a sentence for each reason for which rows have no number, with their names and values of `at`."""
    word = "with" if at == "network_label" else "at"
    sentences = []
    named = rows.assign(
        why_not=[reason(row).rstrip(".") for row in rows.to_dict("records")],
        name=[name(row) for row in rows.to_dict("records")],
    )
    for why_not, alike in named.groupby("why_not", sort=False):
        places = alike.groupby("name", sort=False)
        names = [
            f"{each} {word} {', '.join(map(str, own[at].unique()))}" if at else each
            for each, own in places
        ]
        where = " (at threads)" if at == "threads" else ""
        sentences.append(f"Not drawn{where}: {'; '.join(names)} ({why_not}).")
    return sentences
