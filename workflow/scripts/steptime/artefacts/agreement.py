"""Whether ours agrees with what the papers printed: the order of the frameworks, and how slow each network is.

python -m report.agreement --merged results/merged/shi2016_table4.parquet --papers resources/papers --frameworks ... \
    --networks ... --table-prefix results/tables/agreement --figure-prefix results/figures/agreement
"""

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from steptime.artefacts import common, scatter
from steptime.artefacts.evidence import Paper, our_times, read_papers, their_times
from steptime.artefacts.inputs import Frameworks, Measured, read_measured, read_yaml
from steptime.render import figures, tables
from steptime.render.tables import Entry
from steptime.render.words import facts, plural, raw_data

COLUMNS = [
    "paper",
    "network",
    "device",
    "frameworks",
    "their_order",
    "our_order",
    "same_pairs",
    "pairs",
]
COLUMNS += ["tau", "low", "high", "points", "no_tau"]
FEWEST = 3  # frameworks of an order for which a correlation of ranks says anything
DRAWS = 2000
SEED = 20160901
EVERY = "every network"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="artefacts.agreement", description="Hold our order against the papers'."
    )
    parser.add_argument("--merged", type=Path, required=True, help="merged rows, Parquet")
    parser.add_argument("--papers", type=Path, required=True, help="the folder of the papers' data")
    common.run(_make, parser, "table", "figure")


def build(
    papers: list[Paper], measured: Measured, frameworks: Frameworks, catalogue: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame, tables.Page]:
    """The tidy rows (COLUMNS), the layout and the page: a row for each paper, kind of device and common network.

    A framework's place in an order is its shortest time over platforms and thread counts. Kendall's tau is that of the
    two orders; its 95 % interval is a bootstrap of our samples. The row of every network correlates all times of the
    same network, framework, kind of device and thread count; its interval is a bootstrap of these points.
    """
    rows = []
    for paper in papers:
        theirs = their_times(paper, frameworks, catalogue)
        ours = our_times([measured], theirs, frameworks, catalogue)
        for device in dict.fromkeys(theirs["device"]):
            both = [times[times["device"] == device] for times in (theirs, ours)]
            shared = [
                name for name in both[0]["network"].unique() if (both[1]["network"] == name).any()
            ]
            found = [
                _of_network(
                    *(times[times["network"] == name] for times in both), measured, frameworks
                )
                for name in shared
            ]
            rows += [
                {"paper": paper.name, "network": name, "device": device} | row
                for name, row in zip(shared, found, strict=True)
            ]
            if len(found) > 1:
                rows.append(
                    {"paper": paper.name, "network": EVERY, "device": device}
                    | _of_all(found, points(*both))
                )
    data = pd.DataFrame(rows, columns=COLUMNS)
    page = common.page(
        "agreement",
        "Whether ours agrees with the papers",
        "The order of the frameworks, fastest first, as the papers printed it and as it was measured here, for each "
        "network and kind of device that both have.",
    )
    page.facts = facts(measured)
    page.notes = [
        "A framework's place is its shortest time over platforms and thread counts; PyTorch stands for Torch. τ is "
        "Kendall's rank correlation (1: the same order, −1: the opposite one), with a bootstrap interval of 95 % "
        f"({DRAWS:,} draws): of our samples for one network, of the points for every network.",
        "Every network: τ of all times for the same network, framework and thread count. Below "
        f"{FEWEST} common frameworks, a correlation of ranks says nothing, and only the pairs are counted.",
        "Machines and versions are others, and mini-batches where the grid says so: agreement is asked, not expected.",
        raw_data(measured),
    ]
    return data, _layout(data, {paper.name: paper for paper in papers}, frameworks, catalogue), page


def points(theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Times of the same network, framework and thread count: `theirs` and `ours`, seconds; the shortest of several.

    `theirs_batch` and `ours_batch` are the mini-batch sizes, which may differ.
    """
    place = ["network", "framework", "threads", "device"]
    shortest = []
    for name, times in (("theirs", theirs), ("ours", ours)):
        kept = (
            times[times["seconds"].notna()]
            .sort_values("seconds")
            .drop_duplicates(place)
            .set_index(place)
        )
        shortest.append(
            kept[["seconds", "batch"]].set_axis([name, f"{name}_batch"], axis="columns")
        )
    return pd.concat(shortest, axis=1, join="inner").reset_index()


def correlation(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Kendall's tau-b (SciPy); NaN where one side is constant."""
    return float(kendalltau(theirs, ours).statistic)


def interval(draw: Callable[[np.random.Generator], float]) -> tuple[float, float]:
    """The middle 95 % of DRAWS draws, NaN ones left out."""
    generator = np.random.default_rng(SEED)
    drawn = np.array([draw(generator) for _ in range(DRAWS)])
    drawn = drawn[~np.isnan(drawn)]
    return tuple(np.quantile(drawn, [0.025, 0.975])) if len(drawn) else (np.nan, np.nan)


def _of_network(
    theirs: pd.DataFrame, ours: pd.DataFrame, measured: Measured, frameworks: Frameworks
) -> dict[str, Any]:
    printed = theirs.groupby("framework", sort=False)["seconds"].min().dropna()
    timed = (
        ours[ours["seconds"].notna()]
        .sort_values("seconds")
        .drop_duplicates("framework")
        .set_index("framework")
    )
    names = [name for name in printed.index if name in timed.index]
    row = {
        "frameworks": len(names),
        "their_order": " ".join(sorted(names, key=lambda name: printed[name])),
        "our_order": " ".join(sorted(names, key=lambda name: timed.loc[name, "seconds"])),
        "pairs": len(names) * (len(names) - 1) // 2,
        "same_pairs": sum(
            (printed[one] < printed[other])
            == (timed.loc[one, "seconds"] < timed.loc[other, "seconds"])
            for one, other in combinations(names, 2)
        ),
        "points": len(names),
        "no_tau": "",
    }
    if len(names) < FEWEST:
        return row | {"no_tau": f"too few: {plural(len(names), 'framework')} in common"}
    them = printed[names].to_numpy()
    samples = [_samples(measured, timed.loc[name], name, frameworks) for name in names]

    def draw(generator: np.random.Generator) -> float:
        return correlation(
            them, np.array([np.median(generator.choice(known, len(known))) for known in samples])
        )

    low, high = interval(draw)
    return row | {
        "tau": correlation(them, timed.loc[names, "seconds"].to_numpy(float)),
        "low": low,
        "high": high,
    }


def _samples(
    measured: Measured, cell: pd.Series, lineage: str, frameworks: Frameworks
) -> np.ndarray:
    """The samples of a lineage's fastest environment and mode at the place of `cell`."""
    rows = measured.rows
    here = rows[
        rows["seconds"].notna()
        & (rows["network"] == cell["network"])
        & (rows["platform"] == cell["platform"])
        & (rows["batch"] == cell["batch"])
        & rows["variant"].fillna("").eq("")
        & rows["framework"].map(lambda name: frameworks[name].lineage).eq(lineage)
    ]
    here = here[here["threads"] == cell["threads"]] if cell["device"] == "cpu" else here
    runs = [run["seconds"].to_numpy() for _, run in here.groupby(["environment", "adapter_mode"])]
    return min(runs, key=np.median)


def _of_all(found: list[dict[str, Any]], both: pd.DataFrame) -> dict[str, Any]:
    them, us = both["theirs"].to_numpy(), both["ours"].to_numpy()
    row = {name: sum(entry[name] for entry in found) for name in ("pairs", "same_pairs")} | {
        "points": len(both)
    }
    row |= {
        "frameworks": both["framework"].nunique(),
        "their_order": "",
        "our_order": "",
        "no_tau": "",
    }
    if len(both) < FEWEST:
        return row | {"no_tau": f"too few: {plural(len(both), 'time')} for the same threads"}

    def draw(generator: np.random.Generator) -> float:
        chosen = generator.integers(0, len(both), len(both))
        return correlation(them[chosen], us[chosen])

    low, high = interval(draw)
    return row | {"tau": correlation(them, us), "low": low, "high": high}


def _layout(
    data: pd.DataFrame, papers: dict[str, Paper], frameworks: Frameworks, catalogue: dict[str, Any]
) -> pd.DataFrame:
    body = []
    for row in data.to_dict("records"):
        orders = [
            " < ".join(frameworks.lineage(name).label for name in row[f"{side}_order"].split())
            for side in ("their", "our")
        ]
        entries = [Entry(orders[0], kind="words"), Entry(orders[1], kind="ours words")]
        entries.append(
            Entry(
                f"{row['same_pairs']} of {row['pairs']}" if row["pairs"] else tables.DASH, _why(row)
            )
        )
        if row["no_tau"]:
            entries += [common.dash(row["no_tau"])] * 2
        else:
            entries += [
                Entry(_number(row["tau"])),
                Entry(f"{_number(row['low'])} to {_number(row['high'])}"),
            ]
        body.append([*entries, Entry(str(row["points"]))])
    index = pd.MultiIndex.from_tuples(
        [
            (
                papers[row["paper"]].catalogue["short"],
                row["device"].upper(),
                catalogue.get(row["network"], {}).get("label", row["network"]),
            )
            for row in data.to_dict("records")
        ],
        names=["Paper", "Device", "Network"],
    )
    columns = [
        "Their order",
        "Our order",
        "Pairs in the same order",
        "Kendall's τ",
        "95 % interval",
        "Points",
    ]
    return pd.DataFrame(body, index=index, columns=columns, dtype=object)


def _why(row: dict[str, Any]) -> tuple[str, ...]:
    return () if row["pairs"] else ("fewer than two frameworks in common",)


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _make(options: argparse.Namespace) -> None:
    papers, measured = read_papers(options.papers), read_measured(options.merged)
    frameworks, catalogue = Frameworks(options.frameworks), read_yaml(options.networks)
    tables.write(options.table_prefix, *build(papers, measured, frameworks, catalogue))
    drawn = []
    for paper in papers:
        theirs = their_times(paper, frameworks, catalogue)
        both = points(theirs, our_times([measured], theirs, frameworks, catalogue))
        drawn.append(both.assign(paper=paper.name, short=paper.catalogue["short"]))
    figures.write(
        options.figure_prefix,
        *scatter.draw(pd.concat(drawn, ignore_index=True), frameworks, catalogue, measured),
    )


if __name__ == "__main__":
    main()
