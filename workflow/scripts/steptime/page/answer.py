"""What the report opens with: who is fastest where, what has changed since the papers, which findings are decided."""

from collections import Counter
from typing import Any

import pandas as pd

from steptime.plan.cell import PLACE
from steptime.render.columns import Column, Row, columns, dash
from steptime.render.tables import Entry
from steptime.render.words import marked, plural, significant, why
from steptime.statistics.words import FASTEST, SLOWER, TIED


def matrices(ratios: pd.DataFrame | None) -> list[dict[str, Any]]:
    """For each platform and number of threads, frameworks by networks, from the rows of `artefacts.ratios`.

    Each has `title`, `says` (who is fastest, in words) and its `layout`. [] where that artefact is not made.
    """
    found = []
    places = ["platform", "devices", "threads"]
    for (platform, devices, threads), rows in ratios.groupby(places) if ratios is not None else ():
        title = f"{platform}, {plural(threads, 'thread')}"
        title += f", {plural(devices, 'device')}" if devices > 1 else ""
        layout = columns(rows, [MATRIX], {"": "framework_label"})
        found.append({"title": title, "says": _fastest(rows), "layout": layout})
    return found


def _entry(row: Row) -> Entry:
    if pd.isna(row["ratio"]):
        return dash(why(row), "")
    marks = marked(row)
    star = "*" if marks else ""
    if row["verdict"] == FASTEST:
        return Entry(f"{FASTEST}{star}", tuple(marks), True)
    if row["verdict"] is None:
        return Entry(f"alone{star}", tuple(marks))
    is_open = row["verdict"] != SLOWER
    marks = [*(["tied with the fastest"] if row["verdict"] == TIED else []), *marks]
    shown = (
        FASTEST if row["ratio"] == 1 and pd.isna(row["low"]) else f"{significant(row['ratio'])} ×"
    )
    kind, sign = ("undecided", "≈ ") if is_open else ("", "")
    return Entry(f"{sign}{shown}{star}", tuple(marks), kind=kind)


MATRIX = Column(lambda row: f"{row['network_label']}, {row['batch']}", _entry)


def _fastest(rows: pd.DataFrame) -> str:
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
    sentences += [f"{rest.format(count)}, {said}" for said, count in ends.items() if count]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def tuning(rows: pd.DataFrame | None) -> str:
    """Says whether the winner would be another without the settings, from the rows of `artefacts.tuning`."""
    if rows is None:
        return ""
    from steptime.artefacts.tuning import winners

    return winners(rows)


def changes(cells: pd.DataFrame | None, agreement: pd.DataFrame | None) -> list[str]:
    """Says what differs from the papers, in up to three sentences. `cells` are rows of `page.cells.gather`."""
    sentences = []
    both = cells[cells["theirs"].notna() & cells["ratio"].notna()] if cells is not None else None
    if both is not None and len(both):
        ratios = both["ratio"].astype(float)
        low, middle, high = (significant(ratios.quantile(share), 2) for share in (0, 0.5, 1))
        sentences.append(
            f"The papers printed {plural(len(both), 'time')} for the same network, framework and threads. "
            f"{int((ratios < 1).sum())} are shorter here; the median result takes {middle} of the printed time "
            f"({low} to {high})."
        )
        most, least = both.loc[ratios.idxmin()], both.loc[ratios.idxmax()]
        sentences.append(
            f"Biggest gain: {_place(most)}, {_change(most['ratio'])}. "
            f"{'Smallest' if least['ratio'] <= 1 else 'Biggest loss'}: {_place(least)}, {_change(least['ratio'])}."
        )
    if agreement is not None:
        # Only where it is needed: with what draws it takes half a second to load.
        from steptime.artefacts.agreement import EVERY

        rows = agreement
        rows = rows[(rows["network"] != EVERY) & (rows["decided_pairs"] > 0)]
        if len(rows):
            same, pairs = int(rows["same_pairs"].sum()), int(rows["decided_pairs"].sum())
            sentences.append(
                f"{same} of {pairs} pairs of frameworks that differ here have the same order as in the papers."
            )
    return sentences


def _change(ratio: float) -> str:
    """Says how many times faster or slower a result is whose time is `ratio` of the printed one."""
    if ratio <= 1:
        return f"{significant(1 / ratio, 2)}× faster"
    return f"{significant(ratio, 2)}× slower"


def _place(row: pd.Series) -> str:
    return (
        f"{row['network_label']} in {row['framework_label']} at {plural(row['threads'], 'thread')}"
    )


def decided(findings: pd.DataFrame | None, papers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Finds the claims that our numbers decide: one sentence on all, and the claims where our numbers contradict the
    paper's own.
    """
    if findings is None:
        return {"says": "", "changed": []}
    from steptime.artefacts.findings import FAILS, HOLDS

    rows = findings
    ours = rows[rows["ours_verdict"].isin([HOLDS, FAILS])]
    hold = int((ours["ours_verdict"] == HOLDS).sum())
    says = (
        f"Our numbers decide {len(ours)} of the papers' {len(rows)} claims: {hold} hold, {len(ours) - hold} do not."
        if len(ours)
        else f"Our numbers decide none of the papers' {len(rows)} claims."
    )
    other = ours[ours["theirs_verdict"].isin([HOLDS, FAILS])]
    other = other[other["theirs_verdict"] != other["ours_verdict"]]
    return {
        "says": says,
        "changed": [
            {
                "paper": papers.get(row["paper"], {}).get("short", row["paper"]),
                "claim": row["claim"],
                "theirs": row["theirs_verdict"],
                "ours": row["ours_verdict"],
                "numbers": row["ours_numbers"],
            }
            for row in other.to_dict("records")
        ],
    }
