"""What the report opens with: who is fastest where, what has changed since the papers, which findings are decided."""

from collections import Counter
from typing import Any

import pandas as pd

from steptime.plan.cell import PLACE
from steptime.render.columns import Row
from steptime.render.tables import DASH
from steptime.render.words import limits, machine_name, marked, plural, significant, why
from steptime.statistics.words import FASTEST, SLOWER, TIED, key


def matrices(ratios: pd.DataFrame | None) -> list[dict[str, Any]]:
    """For each place networks by frameworks, the fastest first, from the rows of `artefacts.ratios`; [] without any."""
    platforms = []
    places = ["platform", "devices", "threads"]
    for (platform, devices, threads), rows in ratios.groupby(places) if ratios is not None else ():
        title = f"{machine_name(platform)}, {plural(threads, 'thread')}"
        title += f", {plural(devices, 'device')}" if devices > 1 else ""
        lines: dict[tuple[str, int], dict[str, Any]] = {}
        for row in rows.to_dict("records"):
            network = (row["network_label"], row["batch"])
            lines.setdefault(network, {})[row["framework_label"]] = _entry(row)
        runners = rows.drop_duplicates("framework_label").sort_values("overall", kind="stable")
        overall = {row["framework_label"]: _overall(row) for row in runners.to_dict("records")}
        known = {"title": title, "says": fastest(rows), "frameworks": list(overall)}
        known |= {"threads": threads, "rows": rows.index}
        most = max(1.5, rows["high"].max(), rows["ratio"].max())
        known |= {"least": min(1, rows["low"].min()), "most": most}
        platforms.append(known | {"lines": lines, "overall": overall})
    return platforms


def _entry(row: Row) -> dict[str, Any]:
    """A result: its time, its ratio, what a reader sees when pointing at it, and the key of its samples."""
    if pd.isna(row["ratio"]):
        return {"time": DASH, "ratio": "", "kind": "dash", "says": why(row), "key": ""}
    says, kind = marked(row), "best" if row["verdict"] == FASTEST else ""
    star, shown = "*" if says else "", f"{significant(row['ratio'])} ×"
    if pd.notna(row["low"]):
        says = [f"{limits(row['low'], row['high'])} times the fastest (95 %)", *says]
    if row["verdict"] in (FASTEST, None):
        shown = row["verdict"] or "alone"
    elif row["verdict"] != SLOWER:
        says = [*(["tied with the fastest"] if row["verdict"] == TIED else []), *says]
        shown, kind = f"≈ {shown}", "undecided"
    seconds = row["seconds"]
    time = f"{significant(1000 * seconds)} ms" if seconds < 10 else f"{significant(seconds)} s"
    entry: Row = {"time": f"{time}{star}", "ratio": shown, "kind": kind, "says": "; ".join(says)}
    low, high = (row["ratio"] if pd.isna(row[end]) else row[end] for end in ("low", "high"))
    entry |= {"seconds": seconds, "disturbed": "disturbed" in row["marks"]}
    return entry | {"key": key(row), "at": row["ratio"], "low": low, "high": high}


def _overall(row: Row) -> dict[str, str]:
    if pd.isna(row["overall"]):
        return {"mean": DASH, "interval": ""}
    known = pd.notna(row["overall_low"]) and row["overall_low"] < row["overall_high"]
    interval = limits(row["overall_low"], row["overall_high"]) if known else ""
    return {"mean": f"{significant(row['overall'])} ×", "interval": interval}


def fastest(rows: pd.DataFrame) -> str:
    """Say which framework is fastest on how many networks."""
    words = [
        set(place["verdict"].dropna())
        for _, place in rows.groupby(PLACE, sort=False, dropna=False)
        if place["verdict"].notna().any()
    ]
    if not words:
        return "There is nothing to compare."
    winners = Counter(rows.loc[rows["verdict"] == FASTEST, "framework_label"])
    first = f"fastest on {{}} of {plural(len(words), 'network')}"
    parts = [
        f"{name} is {first.format(count)}" if at == 0 else f"{name} on {count}"
        for at, (name, count) in enumerate(winners.most_common())
    ]
    rest = "On the other {}" if parts else f"On {{}} of {plural(len(words), 'network')}"
    tied = sum(TIED in place for place in words)
    unknown = len(words) - winners.total() - tied
    ends = {
        "the top frameworks are tied": tied,
        "one run of each cannot tell which is the fastest": unknown,
    }
    sentences = [", ".join(parts)]
    sentences += [f"{rest.format(count)}, {ending}" for ending, count in ends.items() if count]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def changes(cells: pd.DataFrame | None, agreement: pd.DataFrame | None) -> list[str]:
    """Says what differs from the papers, in up to four sentences. `cells` are rows of `page.cells.gather`."""
    sentences = []
    if cells is not None:
        both = cells[cells["theirs"].notna() & cells["ratio"].notna()]
        alike = both[both["caveat"] == ""]
        if len(alike):
            ratios = alike["ratio"].astype(float)
            low, middle, high = (significant(ratios.quantile(share), 2) for share in (0, 0.5, 1))
            sentences.append(
                f"The papers printed {plural(len(alike), 'time')} for the same framework, threads and network, as "
                f"their scripts have it. {int((ratios < 1).sum())} are shorter here; results take {low} to {high} of "
                f"the printed time, {middle} in the median."
            )
            most, least = alike.loc[ratios.idxmin()], alike.loc[ratios.idxmax()]
            end = "Smallest" if least["ratio"] <= 1 else "Biggest loss"
            sentences.append(f"Biggest gain: {_change(most)}. {end}: {_change(least)}.")
        if apart := len(both) - len(alike):
            sentences.append(
                f"Left out: {plural(apart, 'time')} whose authors' scripts trained another network or timed something "
                "else."
            )
    if agreement is not None:
        # Only where it is needed: with what draws it takes half a second to load.
        from steptime.artefacts.agreement import APART, EVERY

        rows = agreement[(agreement["network"] != EVERY) & (agreement["decided_pairs"] > 0)]
        if len(rows):
            same, pairs = int(rows["same_pairs"].sum()), int(rows["decided_pairs"].sum())
            apart = int(rows["apart_pairs"].sum())
            sentences.append(
                f"{same} of {pairs} pairs of frameworks that differ here have the same order as in the papers"
                + (f"; {apart} of the {pairs} are {APART}." if apart else ".")
            )
    return sentences


def _change(row: pd.Series) -> str:
    """Says of which result it is, and how many times faster or slower than the printed time."""
    where = (
        f"{row['network_label']} in {row['framework_label']} at {plural(row['threads'], 'thread')}"
    )
    faster, slower = significant(1 / row["ratio"], 2), significant(row["ratio"], 2)
    return f"{where}, {faster}× faster" if row["ratio"] <= 1 else f"{where}, {slower}× slower"


def decided(findings: pd.DataFrame | None) -> dict[str, Any]:
    """Finds the claims that our numbers answer: a sentence on all, and by paper a sentence and its rows."""
    if findings is None:
        return {"says": "", "papers": {}}
    from steptime.artefacts.findings import ANSWERED, UNDECIDED

    names = {name: (name, name.replace("holds", "hold").replace("does", "do")) for name in ANSWERED}
    names[UNDECIDED] = ("is undecided", "are undecided")

    def sentence(rows: pd.DataFrame) -> str:
        counts = rows["ours_verdict"].value_counts()
        numbers = [
            f"{counts[name]} {word if counts[name] > 1 else words[0]}"
            for name, (*words, word) in names.items()
            if name in counts
        ]
        known = sum(counts.get(verdict, 0) for verdict in names)
        answers = f"{known} of {plural(len(rows), 'claim')} can be checked here"
        return f"{answers}: {', '.join(numbers)}." if numbers else f"{answers}."

    ours = findings[findings["ours_verdict"].isin(names)]
    ours = ours.sort_values("weight", ascending=False, kind="stable")
    papers = {
        paper: {"says": sentence(rows), "claims": ours[ours["paper"] == paper].to_dict("records")}
        for paper, rows in findings.groupby("paper", sort=False)
    }
    return {"says": sentence(findings), "papers": papers}
