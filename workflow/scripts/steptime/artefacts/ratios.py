"""How much slower every framework is than the fastest one, with intervals, as a table and a forest plot.

python -m report.ratios --merged results/merged/shi2016_table4.parquet --frameworks ... --networks ...
    --table-prefix results/tables/ratios --figure-prefix results/figures/ratios
"""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from steptime.artefacts import common, forest
from steptime.artefacts.inputs import Frameworks, Measured, read_measured, read_yaml
from steptime.merge import intervals
from steptime.render import figures, tables
from steptime.render.tables import Entry
from steptime.render.words import MARK_WORDS, facts, processes, raw_data, significant, status_reason

PLACE = ["network", "batch", "platform", "devices", "threads"]
FASTEST, SLOWER, FASTER, SAME, UNKNOWN = (
    "fastest",
    "slower",
    "faster",
    "no difference shown",
    "not known",
)
COLUMNS = [
    *PLACE,
    "network_label",
    "environment",
    "framework",
    "framework_label",
    "adapter_mode",
    "status",
    "reason",
    "marks",
    "seconds",
    "repeats",
    "fastest",
    "ratio",
    "low",
    "high",
    "verdict",
]
NO_INTERVAL = (
    "fewer than two repeats of both were measured, so nothing is known of how much processes differ: "
    "set `repeats` in the grid to 3 or more"
)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="artefacts.ratios", description="Make the table and figure of ratios."
    )
    parser.add_argument("--merged", type=Path, required=True, help="merged rows, Parquet")
    common.run(_make, parser, "table", "figure")


def build(
    measured: Measured, frameworks: Frameworks, catalogue: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame, tables.Page]:
    """The tidy rows (COLUMNS; `fastest` names the environment and mode that a row is divided by), the layout, the page.

    The verdict is 'no difference shown' where the 95 % interval of the ratio holds 1, and 'not known' where there is no
    interval.
    """
    cells = measured.cells.assign(variant=measured.cells["variant"].fillna(""))
    cells["network"] = [common.whole_name(cell) for cell in cells.to_dict("records")]
    rows = common.labelled(cells, frameworks, catalogue)
    found = [row for _, place in rows.groupby(PLACE, sort=False) for row in _ratios(place)]
    data = pd.DataFrame(found, columns=COLUMNS)
    page = common.page(
        "ratios",
        "Times slower than the fastest",
        "Time of a training step divided by that of the fastest framework of the same network, mini-batch and thread "
        "count, with the 95 % interval of the ratio. Where it holds 1, no difference is shown.",
    )
    page.facts = facts(measured)
    page.notes = [
        "A ratio is the geometric mean of the ratios of the repeats, each of two processes that ran in the same trial; "
        "its interval is Student's, of their logarithms. It may differ a little from the ratio of two medians.",
        "The fastest is the one with the shortest median. Each interval is one of 95 % by itself: of twenty ratios of "
        "equal cells, one is called different.",
        processes(measured.cells),
        raw_data(measured),
    ]
    return data, _layout(data), page


def _make(options: argparse.Namespace) -> None:
    measured = read_measured(options.merged)
    frameworks, catalogue = Frameworks(options.frameworks), read_yaml(options.networks)
    data, layout, page = build(measured, frameworks, catalogue)
    tables.write(options.table_prefix, data, layout, page)
    figures.write(options.figure_prefix, *forest.draw(data, frameworks, measured))


def _ratios(place: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of one place, each divided by the fastest of them."""
    timed = place[(place["status"] == "ok") & place["seconds"].notna()]
    fastest = timed.loc[timed["seconds"].astype(float).idxmin()] if len(timed) else None
    rows = []
    for at, row in place.iterrows():
        found = {name: row[name] for name in COLUMNS if name in row} | {
            "marks": ", ".join(row["marks"])
        }
        found |= dict.fromkeys(["fastest", "ratio", "low", "high", "verdict"])
        if at in timed.index:
            found["fastest"] = f"{fastest['environment']}.{fastest['adapter_mode']}"
            found |= (
                _ratio(row, fastest) if at != fastest.name else {"ratio": 1.0, "verdict": FASTEST}
            )
        rows.append(found)
    return rows


def _ratio(row: pd.Series, fastest: pd.Series) -> dict[str, Any]:
    interval = intervals.of_ratio(row["medians"], fastest["medians"])
    if interval is None:
        return {
            "ratio": row["seconds"] / fastest["seconds"],
            "low": None,
            "high": None,
            "verdict": UNKNOWN,
        }
    ratio, low, high = interval
    verdict = SLOWER if low > 1 else FASTER if high < 1 else SAME
    return {"ratio": ratio, "low": low, "high": high, "verdict": verdict}


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    places = (
        data[["platform", "devices", "threads"]]
        .drop_duplicates()
        .sort_values(["platform", "devices", "threads"])
    )
    columns = [_column(place) for place in places.to_dict("records")]
    table: dict[tuple[str, str], dict[tuple[str, str], Entry]] = {}
    for row in data.to_dict("records"):
        name = (f"{row['network_label']}, batch {row['batch']}", row["framework_label"])
        table.setdefault(name, {})[_column(row)] = _entry(row)
    body = [[entries.get(column, Entry()) for column in columns] for entries in table.values()]
    index = pd.MultiIndex.from_tuples(list(table), names=["Network", "Framework"])
    return pd.DataFrame(body, index=index, columns=pd.MultiIndex.from_tuples(columns), dtype=object)


def _column(place: dict[str, Any]) -> tuple[str, str]:
    devices = f" x {place['devices']}" if place["devices"] > 1 else ""
    return f"{place['platform']}, times the fastest, threads", f"{place['threads']}{devices}"


def _entry(row: dict[str, Any]) -> Entry:
    if pd.isna(row["ratio"]):
        return common.dash(status_reason(row["status"], row["reason"]))
    texts = [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]
    texts += [row["reason"].rstrip(".")] if row["reason"] else []
    if row["verdict"] == FASTEST:
        return Entry("fastest", tuple(texts), True, "ours")
    if row["verdict"] == UNKNOWN:
        return Entry(significant(row["ratio"]), (NO_INTERVAL, *texts), kind="ours")
    said = f" {SAME}" if row["verdict"] == SAME else ""
    limits = f"{significant(row['low'])} to {significant(row['high'])}"
    return Entry(f"{significant(row['ratio'])} ({limits}){said}", tuple(texts), kind="ours")


if __name__ == "__main__":
    main()
