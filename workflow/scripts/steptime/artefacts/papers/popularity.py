"""The figure of how often a term was searched for, from an export of a search engine's statistics."""

import csv
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts.inputs import Inputs
from steptime.reading import InputError
from steptime.render import figures

COLUMNS = ["date", "percent", "term"]
PERIODS = ("month", "week", "day", "date", "time")


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the rows that are drawn (COLUMNS; percent of the highest) and the drawing."""
    path, artefact = inputs.paths("popularity")[0], inputs.entry
    data = read(path)
    with figures.canvas() as (drawing, axes):
        axes.plot(pd.to_datetime(data["date"]), data["percent"], color="#0072B2", linewidth=1.4)
        axes.axvline(pd.Timestamp(f"{artefact['year']}-01-01"), color=figures.GREY, linestyle=":")
        axes.set_ylim(0, 105)
        axes.set_ylabel("searches (% of the most)")
        figures.headings(axes, artefact["title"], [data["term"].iloc[0]])
        short = inputs.catalogue["short"]
        words = f"{short} says that its curve rises steeply around {artefact['year']} (dotted)."
        notes = [f"Drawn from {path}, which the configuration names. {short} prints no numbers."]
        figures.caption(drawing, words, notes)
    return data, drawing


def read(path: Path) -> pd.DataFrame:
    """Reads the first series of an export as CSV: a heading, and below it lines of a month, week or day and a number.

    Numbers become percent of the highest; '<1' counts as 0. Raises InputError.
    """
    try:
        lines = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): name a CSV file in UTF-8.") from error
    heads = [
        at for at, line in enumerate(lines) if len(line) > 1 and line[0].strip().lower() in PERIODS
    ]
    if not heads:
        raise InputError(
            f"{path} has no line such as 'Month,deep learning': export the statistics as CSV and name that file."
        )
    rows = [line[:2] for line in lines[heads[0] + 1 :] if len(line) > 1]
    values = pd.to_numeric(pd.Series([value.replace("<1", "0") for _, value in rows]), "coerce")
    dates = pd.to_datetime(pd.Series([date for date, _ in rows]), errors="coerce")
    if values.isna().any() or dates.isna().any() or not values.max() > 0:
        wrong = int((values.isna() | dates.isna()).idxmax()) + heads[0] + 2
        raise InputError(f"{path}, line {wrong}: write a date and a number, such as '2014-01,12'.")
    return pd.DataFrame(
        {
            "date": dates.dt.date.astype(str),
            "percent": 100 * values / values.max(),
            "term": lines[heads[0]][1],
        }
    )
