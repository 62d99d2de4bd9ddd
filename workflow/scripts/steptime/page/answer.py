"""The opening of the report: who is fastest, how far the printed times are, which findings are decided."""

from collections import Counter
from typing import Any

import pandas as pd

from shared import precisions
from steptime.plan.cell import PLACE
from steptime.render.columns import Row
from steptime.render.tables import DASH
from steptime.render.words import limits, machine_name, marked, plural, ranged, significant, why
from steptime.statistics.words import EQUAL, FASTEST, NOT_DECIDED, key


def matrices(
    ratios: pd.DataFrame | None, tuning: pd.DataFrame | None = None
) -> list[dict[str, Any]]:
    """Returns networks by frameworks for each place, the fastest first, all threads and float32 first; [] without any.

    `ratios` and `tuning` are the rows of the tables of these kinds; `tuning` adds each framework's time without
    settings.
    """
    if ratios is None:
        return []
    platforms = []
    plain = _as_they_come(tuning)
    places = ["platform", "devices", "threads", "precision"]
    for (platform, devices, threads, precision), rows in ratios.groupby(places):
        title = f"{machine_name(platform)}, {plural(threads, 'thread')}"
        title += f", {plural(devices, 'device')}" if devices > 1 else ""
        title += precisions.marked(precision, ", ")
        lines: dict[tuple[str, int], dict[str, Any]] = {}
        for row in rows.to_dict("records"):
            network = (row["network_label"], row["batch"])
            lines.setdefault(network, {})[row["framework_label"]] = _entry(row)
        runners = rows.drop_duplicates("framework_label").sort_values("overall", kind="stable")
        overall = {row["framework_label"]: _overall(row) for row in runners.to_dict("records")}
        known: dict[str, Any] = {"title": title, "says": fastest(rows)}
        known |= {"device": (platform, devices), "threads": threads, "rows": rows.index}
        as_they_come = {} if precisions.marked(precision, " ") else plain
        known |= {"frameworks": list(overall), "precision": precision}
        known |= {"plain": as_they_come.get((platform, devices, threads), {})}
        most = max(1.5, rows["high"].max(), rows["ratio"].max())
        known |= {"least": min(1, rows["low"].min()), "most": most}
        platforms.append(known | {"lines": lines, "overall": overall})
    usual = precisions.USUAL
    return sorted(platforms, key=lambda each: (-each["threads"], each["precision"] != usual))


def _as_they_come(tuning: pd.DataFrame | None) -> dict[tuple[Any, ...], dict[Any, Any]]:
    """Returns, for each place, network and framework, its time without the settings that are known to be best."""
    places: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for row in tuning.to_dict("records") if tuning is not None else ():
        place = places.setdefault((row["platform"], row["devices"], row["threads"]), {})
        entries = place.setdefault((row["network_label"], row["batch"]), {})
        entries[row["framework_label"]] = _plain_entry(row)
    return places


def _plain_entry(row: Row) -> dict[str, str]:
    """Returns a framework's time without settings, and how many times its time with them this is."""
    if pd.isna(row["plain_seconds"]):
        return {"time": DASH, "ratio": "", "says": why(row)}
    says = marked({"marks": row["plain_marks"]})
    time = _time(row["plain_seconds"]) + ("*" if says else "")
    if pd.notna(row["low"]):
        says = [f"{limits(row['low'], row['high'])} times its time above", *says]
    ratio = "" if pd.isna(row["ratio"]) else f"{significant(row['ratio'])} ×"
    return {"time": time, "ratio": ratio, "says": "; ".join(says)}


def _entry(row: Row) -> dict[str, Any]:
    """Returns a result: its time, its ratio, what a reader sees when pointing at it, and the key of its samples."""
    if pd.isna(row["ratio"]):
        return {"time": DASH, "ratio": "", "kind": "dash", "says": why(row), "key": ""}
    word = row["verdict"] if pd.notna(row["verdict"]) else ""
    says, kind = marked(row), "best" if word == FASTEST else ""
    star, shown = "*" if says else "", f"{significant(row['ratio'])} ×"
    if pd.notna(row["low"]):
        says = [f"{limits(row['low'], row['high'])} times the shortest", *says]
    is_shortest = row["fastest"] == f"{row['environment']}.{row['mode']}"
    if is_shortest:
        shown = word or "alone"
    elif word == NOT_DECIDED:
        says, kind = [NOT_DECIDED, *says], "undecided"
        shown = f"{shown}?"
    else:
        says = [*filter(None, [word]), *says]
    seconds = row["seconds"]
    entry: Row = {
        "time": f"{_time(seconds)}{star}",
        "ratio": shown,
        "kind": kind,
        "says": "; ".join(says),
    }
    low, high = (row["ratio"] if pd.isna(row[end]) else row[end] for end in ("low", "high"))
    entry |= {
        "seconds": seconds,
        "is_shortest": is_shortest,
        "disturbed": "disturbed" in row["marks"],
    }
    return entry | {"key": key(row), "at": row["ratio"], "low": low, "high": high}


def _time(seconds: float) -> str:
    return f"{significant(1000 * seconds)} ms" if seconds < 10 else f"{significant(seconds)} s"


def _overall(row: Row) -> dict[str, str]:
    if pd.isna(row["overall"]):
        return {"mean": DASH, "interval": ""}
    known = pd.notna(row["overall_low"])
    interval = limits(row["overall_low"], row["overall_high"]) if known else ""
    sign = "?" if row["overall_word"] == NOT_DECIDED else ""
    return {"mean": f"{significant(row['overall'])} ×{sign}", "interval": interval}


def fastest(rows: pd.DataFrame) -> str:
    """Says which framework is fastest overall, which on single networks, and what is not decided."""
    if not rows["verdict"].notna().any():
        return "There is nothing to compare."
    runners = rows.drop_duplicates("framework_label").dropna(subset="overall")
    runners = runners.sort_values("overall", kind="stable")
    places = [place for _, place in rows.groupby(PLACE, sort=False, dropna=False)]
    sentences = [_leads(runners, len(places))] if len(runners) > 1 else []
    winners = Counter(rows.loc[rows["verdict"] == FASTEST, "framework_label"])
    if winners and len(places) > 1:
        named = [f"{name} on {count}" for name, count in winners.most_common()]
        sentences.append(f"Fastest on single networks, of {len(places)}: {', '.join(named)}.")
    return " ".join([*sentences, *_still_open(rows.iloc[0])])


def _leads(runners: pd.DataFrame, networks: int) -> str:
    """Says which of the frameworks, the leading one first, is fastest over all networks, or which are not told apart.

    Where a framework has no time, or only disturbed ones, the overall comparison is over fewer of the `networks`.
    """
    leader, *others = runners.to_dict("records")
    name, count = leader["framework_label"], int(leader["overall_networks"])
    where = "Overall" if count == networks else f"On {count} of {networks} networks"
    close = [row for row in others if row["overall_word"] in (EQUAL, NOT_DECIDED)]
    slower = [
        f"{row['framework_label']} takes {ranged(row['overall'], row['overall_low'], row['overall_high'])} times"
        for row in others
        if row not in close
    ]
    takes = ", ".join([*slower[:-1], f"{slower[-1]} as long"]) if slower else ""
    if not close:
        return f"{where}, {name} is fastest; {takes}."
    words = {row["overall_word"] for row in close}
    are = f"are {EQUAL} within 5 %" if words == {EQUAL} else "are not told apart"
    names = ", ".join([name, *(row["framework_label"] for row in close[:-1])])
    alike = f"{where}, {names} and {close[-1]['framework_label']} {are}"
    return f"{alike}; {takes} as {name}." if takes else f"{alike}."


def _still_open(row: pd.Series) -> list[str]:
    """Says how many pairs of a table are not decided, and what it would take."""
    pairs, left = int(row["compared_pairs"]), int(row["open_pairs"])
    if not left:
        return []
    says = f"Not decided: {left} of {plural(pairs, 'pair')}"
    if row["decidable_pairs"] and row["seconds_to_decide"]:
        which = (
            "them" if row["decidable_pairs"] == left else f"{int(row['decidable_pairs'])} of them"
        )
        minutes = max(1, round(row["seconds_to_decide"] / 60))
        says += f"; about {plural(minutes, 'more minute')} would decide {which}"
    return [f"{says}."]


def changes(cells: pd.DataFrame | None) -> str:
    """Says how our times compare with the printed ones. `cells` are rows of `page.cells.gather`."""
    if cells is None:
        return ""
    alike = cells[cells["theirs"].notna() & cells["ratio"].notna() & (cells["caveat"] == "")]
    if alike.empty:
        return ""
    ratios = alike["ratio"].astype(float)
    low, high = (significant(ratio, 2) for ratio in (ratios.min(), ratios.max()))
    count, shorter = len(alike), int((ratios < 1).sum())
    if count == 1:
        return f"1 printed time can be compared. Here it is {low} of the paper's."
    which = f"All {count}" if shorter == count else f"{shorter}" if shorter else "None"
    are = "is" if shorter in (0, 1) else "are"
    return f"{count} printed times can be compared. {which} {are} shorter here: {low} to {high} of the paper's."


def decided(findings: pd.DataFrame | None) -> dict[str, Any]:
    """Finds the claims that our numbers answer: a sentence on all, and by paper a sentence and its rows."""
    if findings is None:
        return {"says": "", "papers": {}}
    from steptime.claims.checks import ANSWERED, UNDECIDED

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
