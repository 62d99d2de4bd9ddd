"""What the report opens with: who is fastest where, what has changed since the papers, which findings are decided."""

from collections import Counter
from typing import Any

import pandas as pd

from steptime.artefacts.ratios import FASTEST, SAME, SLOWER, UNKNOWN
from steptime.plan.cell import PLACE
from steptime.render.words import MARK_WORDS, plural, significant, status_reason


def matrices(ratios: pd.DataFrame | None) -> list[dict[str, Any]]:
    """For each platform and number of threads, frameworks by networks, from the rows of `artefacts.ratios`.

    Each has `title`, `says` (who is fastest, in words), `networks`, and `rows` with `name` and `entries`: `text`,
    `kind` (a class of the page) and `told` (what else a reader should know, '' for nothing). [] where
    that artefact is not made.
    """
    if ratios is None:
        return []
    found = []
    for (platform, devices, threads), rows in ratios.groupby(
        ["platform", "devices", "threads"], sort=True
    ):
        title = f"{platform}, {plural(threads, 'thread')}" + (
            f", {plural(devices, 'device')}" if devices > 1 else ""
        )
        networks = dict.fromkeys(zip(rows["network_label"], rows["batch"], strict=True))
        entries: dict[str, dict[Any, dict[str, str]]] = {}
        for place, alike in rows.groupby(["network_label", "batch"], sort=False):
            shown = _shown(alike)
            for row in alike.to_dict("records"):
                entries.setdefault(row["framework_label"], {})[place] = _entry(row, shown)
        lines = [
            {"name": name, "entries": [known.get(place, _NOTHING) for place in networks]}
            for name, known in entries.items()
        ]
        names = [f"{label}, {batch}" for label, batch in networks]
        found.append({"title": title, "says": _fastest(rows), "networks": names, "rows": lines})
    return found


_NOTHING = {"text": "", "kind": "", "told": ""}


def _shown(place: pd.DataFrame) -> bool:
    """Whether the fastest of a place is shown to be faster than each of the others."""
    others = place[place["ratio"].notna() & (place["verdict"] != FASTEST)]
    return bool((others["verdict"] == SLOWER).all())


def _entry(row: dict[str, Any], shown: bool) -> dict[str, str]:
    told = [MARK_WORDS.get(mark, mark) for mark in (row["marks"] or "").split(", ") if mark]
    if pd.isna(row["ratio"]):
        return {
            "text": "–",
            "kind": "dash",
            "told": status_reason(row["status"], row["reason"] or ""),
        }
    marked = "*" if told else ""
    if row["verdict"] == FASTEST:
        text, kind = ("fastest", "best") if shown else ("≈ fastest", "undecided")
        return {"text": f"{text}{marked}", "kind": kind, "told": "; ".join(told)}
    open_question = row["verdict"] in (SAME, UNKNOWN)
    told = [f"{SAME} from the fastest" if row["verdict"] == SAME else "", *told]
    return {
        "text": f"{'≈ ' if open_question else ''}{significant(row['ratio'])} ×{marked}",
        "kind": "undecided" if open_question else "",
        "told": "; ".join(filter(None, told)),
    }


def _fastest(rows: pd.DataFrame) -> str:
    """Which framework is shown to be the fastest in how many networks."""
    winners: Counter[str] = Counter()
    undecided = 0
    for _, place in rows.groupby(PLACE, sort=False, dropna=False):
        timed = place[place["ratio"].notna()]
        if len(timed) < 2:
            continue
        if _shown(timed):
            winners[timed.loc[timed["verdict"] == FASTEST, "framework_label"].iloc[0]] += 1
        else:
            undecided += 1
    total = undecided + winners.total()
    if not total:
        return "There is nothing to compare."
    of_all = plural(total, "network")
    says = [f"{name} is fastest on {count} of {of_all}." for name, count in winners.most_common()]
    if undecided:
        says.append(f"The top two are tied on {undecided} of {of_all}.")
    return " ".join(says)


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
