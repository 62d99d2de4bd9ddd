"""Table of times, per mini-batch or of a training: networks and frameworks down; ours, ratios, the paper's across."""

from typing import Any, TypeAlias

import pandas as pd

from steptime import networks as specifications
from steptime.artefacts import common
from steptime.artefacts.inputs import Inputs
from steptime.merge.measured import Measured
from steptime.plan.cell import IDENTITY
from steptime.render import words
from steptime.render.columns import Row, laid_out
from steptime.render.frameworks import Frameworks
from steptime.render.tables import COUNT, DASH, FLAG, OURS, PAPER, SEPARATOR, TEXT, Entry
from steptime.statistics.words import FASTEST

COLUMNS = ["source", *IDENTITY, "network_label", "lineage", "framework", "framework_label"]
COLUMNS += ["column_group", "column", "ours", "low", "high", "theirs", "theirs_platform", "ratio"]
COLUMNS += ["unit", "samples", "repeats", "effective_threads", "peak_memory_bytes", "status"]
COLUMNS += ["reason", "marks", "further", "printed", "peak_share", "best", "footnote", "caveat"]
TYPES = dict.fromkeys(["lineage", "column_group", "column", "theirs_platform", "unit"], TEXT)
TYPES |= dict.fromkeys(["further", "printed", "footnote"], TEXT)
TYPES |= {"samples": COUNT, "best": FLAG}
MOST_OF_PEAK = "most of the peak"
ABOVE = "no processor does more than its peak, so less was computed than in a step of ours"
# Printed seconds by network, lineage, threads (None on a GPU) and mini-batch.
Printed: TypeAlias = dict[tuple[str, str, int | None, int | None], float]
# What names the printed platforms that ours is compared with, one or several, by the kind of device.
COMPARED = {"cpu": "compared_with", "gpu": "compared_gpu"}


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    return build(inputs, inputs.measured)


def build(inputs: Inputs, measured: Measured) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the tidy rows (COLUMNS; seconds of the entry's `quantity`) and the layout of what was measured.

    A row of ours has `theirs` and `ratio` (ours / theirs) only where both are alike: the same network, mini-batch,
    threads and lineage, on the printed platform `compared_with`; for a GPU, on the first of `compared_gpu`.
    """
    paper, page = inputs.catalogue, inputs.page
    rows = [*_our_rows(measured, inputs), *_their_rows(inputs)]
    data = _in_order(pd.DataFrame(rows, columns=[*COLUMNS, "ratios", "word"]), inputs)
    data["best"] = _best(data)
    data["footnote"] = [_footnote(row) for row in data.to_dict("records")]
    page.facts = words.facts(measured)
    page.notes = _notes(measured, paper, inputs.entry) + page.notes
    return data[[*COLUMNS]], _layout(data, paper, inputs.frameworks)


def _our_rows(measured: Measured, inputs: Inputs) -> list[Row]:
    frameworks, reference = inputs.frameworks, _reference(inputs)
    caveat_of = caveats(inputs.catalogue, frameworks)
    labels = words.environment_labels(frameworks, measured.cells)
    cells = measured.cells.assign(framework_label=labels)
    rows = []
    for cell in cells.to_dict("records"):
        lineage, on_cpu = frameworks[cell["framework"]].lineage, cell["device"] == "cpu"
        place = (cell["network"], lineage, cell["threads"] if on_cpu else None)
        comparable = cell["devices"] in (0, 1) and not cell["variant"]
        # Where a paper prints no mini-batch size, its time is for any size.
        printed_by = {
            platform: times.get((*place, cell["batch"]), times.get((*place, None)))
            for platform, times in reference.items()
            if comparable and platform in _compared(cell["device"], inputs.catalogue)
        }
        printed = {platform: seconds for platform, seconds in printed_by.items() if seconds}
        first, theirs = next(iter(printed.items()), (None, None))
        devices, timed = words.plural(cell["devices"], "device"), pd.notna(cell["seconds"])
        ratios = {name: cell["seconds"] / seconds for name, seconds in printed.items() if timed}
        rows.append(
            {column: cell[column] for column in [*COLUMNS, "word"] if column in cell}
            | {
                "source": OURS,
                "network_label": cell["variant"] or _label(cell["network"], inputs),
                "lineage": lineage,
                "column_group": f"Here: {words.machine_name(cell['platform'])}"
                + (", threads" if on_cpu else ""),
                "column": str(cell["threads"]) if on_cpu else devices,
                "ours": cell["seconds"],
                "theirs": theirs,
                "theirs_platform": first,
                "ratio": ratios.get(first or ""),
                "ratios": ratios,
                "unit": "s",
                "marks": ", ".join(cell["marks"]),
                "further": words.further(cell),
                "caveat": caveat_of.get((cell["network"], lineage), "") if theirs else "",
            }
        )
    return rows


def caveats(catalogue: dict[str, Any], frameworks: Frameworks) -> dict[tuple[str, str], str]:
    """Says, by network and lineage, where the authors' scripts train another network or time something else."""
    return {
        (entry["network"], frameworks[entry["framework"]].lineage): entry["text"]
        for entry in catalogue.get("caveats", [])
    }


SOME_OTHER_SCRIPTS = "Some scripts of the authors trained another network or timed something else."


def other_scripts(printed: pd.DataFrame, paper: dict[str, Any], inputs: Inputs) -> list[str]:
    """Returns a sentence on the printed times, each of a `network` and `framework`, that have a caveat."""
    caveat_of, frameworks = caveats(paper, inputs.frameworks), inputs.frameworks
    lineages = (frameworks[name].lineage for name in printed["framework"])
    names = [
        f"{frameworks.lineage(lineage).label}'s {inputs.networks[network]['label']}"
        for network, lineage in dict.fromkeys(zip(printed["network"], lineages, strict=True))
        if (network, lineage) in caveat_of
    ]
    what = "Scripts of the authors that trained another network or timed something else"
    return [f"{what}: {', '.join(names)}."] if names else []


def _their_rows(inputs: Inputs) -> list[Row]:
    frameworks, rows = inputs.frameworks, list[Row]()
    caveat_of = caveats(inputs.catalogue, frameworks)
    for row in common.printed_rows(inputs):
        lineage = frameworks[row["framework"]].lineage
        platform = inputs.catalogue["platforms"][row["platform"]]
        rows.append(
            row
            | {
                "network_label": _label(row["network"], inputs),
                "lineage": lineage,
                "framework_label": row["label"],
                "column_group": platform["group"],
                "column": str(row["threads"] or platform["name"]),
                "theirs": row["seconds"],
                "theirs_platform": row["platform"],
                "marks": "",
                "further": "",
                "printed": row["value"],
                "peak_share": _peak_share(row, inputs),
                "caveat": caveat_of.get((row["network"], lineage), ""),
            }
        )
    return rows


def _peak_share(row: Row, inputs: Inputs) -> float | None:
    """Returns the share of the data sheet's peak at which a printed time does the operations of our network."""
    platform = inputs.catalogue["platforms"][row["platform"]]
    if "peak_gflops" not in platform or pd.isna(row["seconds"]):
        return None
    # The data sheet's is of one core; more threads than cores reach no more.
    cores = min(row["threads"], platform["cores"]) if row["threads"] else 1
    spec = specifications.specify(row["network"], inputs.networks)
    operations = specifications.flops_per_step(spec, row["batch"])
    return operations / row["seconds"] / (1e9 * platform["peak_gflops"] * cores)


def _compared(device: str, paper: dict[str, Any]) -> list[str]:
    """Returns the printed platforms with which ours is compared on a kind of device."""
    named = paper.get(COMPARED[device], [])
    return [named] if isinstance(named, str) else named


def _reference(inputs: Inputs) -> dict[str, Printed]:
    """Returns what was printed on the platforms with which ours is compared, by platform."""
    platforms = [name for kind in COMPARED for name in _compared(kind, inputs.catalogue)]
    reference: dict[str, Printed] = {name: {} for name in platforms}
    for row in common.printed_rows(inputs):
        if row["platform"] in reference and pd.notna(row["seconds"]):
            lineage = inputs.frameworks[row["framework"]].lineage
            place = (row["network"], lineage, row["threads"], row["batch"])
            reference[row["platform"]][place] = row["seconds"]
    return reference


def _label(network: str, inputs: Inputs) -> str:
    """Returns the network's label in the catalogue; in the paper's where the catalogue has no such network."""
    known = inputs.networks.get(network)
    return known["label"] if known else inputs.catalogue["labels"][network]


def _in_order(data: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    frameworks, theirs = inputs.frameworks, inputs.catalogue.get("networks", [])
    order = [*theirs, *[name for name in inputs.networks if name not in theirs]]
    keys = pd.DataFrame(
        {
            "network": data["network"].map(order.index),
            "variant": data["variant"],
            "batch": data["batch"],
            "lineage": data["lineage"].map(lambda name: frameworks.lineage(name).order),
            "source": data["source"],
            "environment": data["environment"].astype(object).fillna("").map(words.version_order),
            "mode": data["mode"].astype(object).fillna(""),
            "precision": data["precision"].astype(object).fillna(""),
        }
    )
    sorted_data = data.loc[keys.sort_values(list(keys), kind="stable").index].reset_index(drop=True)
    whole = ["batch", "devices", "threads", "samples", "repeats"]
    return sorted_data.astype(dict.fromkeys(whole, "Int64"))


def _best(data: pd.DataFrame) -> pd.Series:
    """Tells which rows are best: ours shown to be the fastest, theirs the shortest of several printed ones."""
    time = data["theirs"].where(data["source"] == PAPER).astype(float)
    place = [data[name] for name in ("source", "network", "variant", "platform")]
    place += [data["precision"].astype(object).fillna("")]
    place += [data[name].fillna(0) for name in ("batch", "devices", "threads")]
    grouped = time.groupby(place)
    shortest = (time == grouped.transform("min")) & (grouped.transform("count") > 1)
    return shortest | (data["word"] == FASTEST)


def _footnote(row: Row) -> str:
    """Says what a reader must know of this time or this dash; SEPARATOR is between several things."""
    ours, texts = row["source"] == OURS, words.remarks(row)
    if pd.isna(row["ours"] if ours else row["theirs"]):
        texts = [words.why(row) if ours else row["reason"]]
    return SEPARATOR.join(text.rstrip(".") for text in texts)


def _layout(data: pd.DataFrame, paper: dict[str, Any], frameworks: Frameworks) -> pd.DataFrame:
    short, sizes = paper["short"], paper.get("sizes", {})
    table: dict[tuple[str, str, str], dict[Any, Entry]] = {}
    blocks = ["network_label", "batch", "lineage"]
    for (label, batch, lineage), rows in data.groupby(blocks, sort=False, dropna=False):
        network = label if pd.isna(batch) else f"{label}, batch {batch}"
        ours, theirs = rows[rows["source"] == OURS], rows[rows["source"] == PAPER]
        for row in ours.to_dict("records"):
            name = row["framework_label"]
            if len(theirs):
                # PyTorch has its own name where it represents Torch.
                usual = frameworks[row["framework"]].label
                name += frameworks.standing(row["framework"]).removeprefix(usual)
            entries = table.setdefault((network, lineage, name), {})
            entries[row["column_group"], row["column"]] = _entry(row)
            for platform, ratio in row["ratios"].items():
                text = words.significant(ratio, 2)
                entries[_ratio_group(platform, paper), row["column"]] = Entry(text, kind="ratio")
        own = (key for key in table if key[:2] == (network, lineage))
        first_line = table.setdefault(next(own, (network, lineage, "")), {})
        for row in theirs.to_dict("records"):
            notes_of = tuple(filter(None, (row["caveat"], sizes.get(row["network"]))))
            first_line[short, "framework"] = Entry(row["framework_label"], notes_of, kind="words")
            first_line[row["column_group"], row["column"]] = _entry(row)
        if theirs["peak_share"].notna().any():
            first_line[short, MOST_OF_PEAK] = _most_of_peak(theirs, paper)
    columns = _columns(data, paper)
    names = _lineage_names(data, frameworks)
    named = [
        ((network, names[lineage], label), entries)
        for (network, lineage, label), entries in table.items()
    ]
    if not (data["source"] == PAPER).any():
        alone = [((network, label), entries) for (network, _, label), entries in named]
        return laid_out(alone, ["Network", "Framework"], columns)
    return laid_out(named, ["Network", "Framework", "Measured here"], columns)


def _lineage_names(data: pd.DataFrame, frameworks: Frameworks) -> dict[str, str]:
    """Returns the names of lineages: the lineage's own where the paper prints it (Torch), else ours (PyTorch)."""
    own = data[data["source"] == OURS].drop_duplicates("lineage").set_index("lineage")["framework"]
    printed = data.loc[data["source"] == PAPER, "lineage"].unique()
    names = {lineage: frameworks[name].label for lineage, name in own.items()}
    return names | {lineage: frameworks.lineage(lineage).label for lineage in printed}


def _most_of_peak(theirs: pd.DataFrame, paper: dict[str, Any]) -> Entry:
    """Returns the largest share of a processor's peak that a line's printed times need; notes those above 100 %."""
    shares, platforms = theirs["peak_share"].astype(float), paper["platforms"]
    above = [
        f"{platforms[row['platform']]['name']}, {row['column']}: {100 * row['peak_share']:.0f} %"
        for row in theirs[shares > 1].to_dict("records")
    ]
    notes = (f"{ABOVE} ({'; '.join(above)})",) if above else ()
    return Entry(f"{100 * shares.max():.0f} %", notes, bool(above), PAPER)


def _ratio_group(platform: str, paper: dict[str, Any]) -> str:
    theirs = paper["platforms"][platform]
    heading = f"Ours ÷ theirs on the {theirs['name']}"
    return f"{heading}, threads" if theirs["device"] == "cpu" else heading


def _columns(data: pd.DataFrame, paper: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the columns: ours by platform and rising threads, then the paper's, each followed by its ratios."""
    ours, theirs = data[data["source"] == OURS], data[data["source"] == PAPER]
    places = ours[["column_group", "column", "devices", "threads"]].drop_duplicates()
    places = places.sort_values(["column_group", "devices", "threads"])
    shared = ours[ours["ratio"].notna()].sort_values(["device", "threads"])
    columns = list(zip(places["column_group"], places["column"], strict=True))
    shown = shared.to_dict("records")
    behind: dict[str, list[tuple[str, str]]] = {}
    for platform in (name for device in COMPARED for name in _compared(device, paper)):
        own = dict.fromkeys(row["column"] for row in shown if platform in row["ratios"])
        group = paper["platforms"][platform]["group"]
        behind.setdefault(group, []).extend((_ratio_group(platform, paper), name) for name in own)
    columns += [(paper["short"], "framework")] if len(theirs) else []
    # Every row has the paper's columns in the paper's order, so the first appearance is that order.
    for group, printed in theirs.groupby("column_group", sort=False):
        columns += [(group, name) for name in printed["column"].unique()] + behind.get(group, [])
    if theirs["peak_share"].notna().any():
        columns.append((paper["short"], MOST_OF_PEAK))
    return columns


def _entry(row: Row) -> Entry:
    footnotes = tuple(row["footnote"].split(SEPARATOR)) if row["footnote"] else ()
    time = row["ours"] if row["source"] == OURS else row["theirs"]
    if pd.isna(time):
        return Entry(DASH, footnotes, kind=row["source"])
    if row["source"] == PAPER:
        return Entry(row["printed"], footnotes, bool(row["best"]), PAPER)
    text = f"{words.significant(time)} {words.spread(time, row['low'], row['high'])}".strip()
    return Entry(text, footnotes, bool(row["best"]), OURS)


def _notes(measured: Measured, paper: dict[str, Any], artefact: dict[str, Any]) -> list[str]:
    theirs = _notes_on_theirs(paper)
    if measured.cells.empty:
        return [f"{artefact['quantity']}. {words.NOTHING_MEASURED}", *theirs[1:]]
    more = " or is not in the paper" if theirs else ""
    repeated = words.seeds if "epoch" in measured.rows else words.processes
    return [
        f"{artefact['quantity']}, ± 95 % interval (the wider side). Ours is bold where it is shown to be the fastest; "
        "where none is bold, none is shown to be. A dash is a time that does not exist, for the reason in its "
        f"footnote; an empty place was not measured here{more}.",
        *theirs[:1],
        repeated(measured.cells),
        words.raw_data(measured),
        *theirs[1:],
    ]


def _notes_on_theirs(paper: dict[str, Any]) -> list[str]:
    """Says what ratios are and where the paper measured; nothing for a table of the project's own."""
    if "compared_with" not in paper:
        return []
    reference = paper["platforms"][paper["compared_with"]]
    platforms = paper["platforms"].values()
    machines = "; ".join(f"{entry['name']}: {entry['machine']}" for entry in platforms)
    gpus = _compared("gpu", paper)
    names = ", ".join(paper["platforms"][name]["name"] for name in gpus)
    more = f", and those of a GPU by what it printed for the {names}" if len(gpus) > 1 else ""
    peaks = [
        f"{entry['name']} {entry['peak_gflops']}{' a core' if entry['device'] == 'cpu' else ''}"
        for entry in platforms
        if "peak_gflops" in entry
    ]
    of_peak = (
        f"{MOST_OF_PEAK.capitalize()}: the operations of a step of ours, divided by the printed time and by the "
        f"GFLOP/s that the data sheet gives; the largest share in each line ({', '.join(peaks)})."
    )
    return [
        f"Ratios are ours divided by what {paper['short']} printed for the same thread count on their "
        f"{reference['name']} ({reference['machine']}){more}: another machine, another version of the framework.",
        f"{paper['short']} measured on {machines}.",
        *([of_peak] if peaks else []),
    ]
