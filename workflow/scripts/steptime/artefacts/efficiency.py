"""The share of the machine's peak that every network reaches in every framework, as a table and a roofline figure.

python -m report.efficiency --merged results/merged/shi2016_table4.parquet --peaks results/peaks/local-cpu.json
    --frameworks ... --networks ... --table-prefix results/tables/efficiency --figure-prefix results/figures/efficiency
"""

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from steptime import networks
from steptime.artefacts import common, roofline
from steptime.artefacts.inputs import Frameworks, InputError, Measured, read_measured, read_yaml
from steptime.render import figures, tables
from steptime.render.tables import Entry
from steptime.render.words import (
    MARK_WORDS,
    facts,
    plural,
    processes,
    raw_data,
    significant,
    status_reason,
)

COLUMNS = [
    "network",
    "network_label",
    "variant",
    "batch",
    "environment",
    "framework",
    "framework_label",
    "adapter_mode",
    "platform",
    "devices",
    "threads",
    "status",
    "reason",
    "marks",
    "seconds",
    "low",
    "high",
    "flops_per_step",
    "bytes_per_step",
    "intensity",
    "flops_per_second",
    "peak_flops_per_second",
    "peak_bytes_per_second",
    "share_of_peak",
    "no_peak",
    "peak_disturbed",
    "best",
]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="artefacts.efficiency", description="Make the table and figure of efficiency."
    )
    parser.add_argument("--merged", type=Path, required=True, help="merged rows, Parquet")
    parser.add_argument(
        "--peaks", type=Path, nargs="*", default=[], help="the peak of each platform, JSON"
    )
    common.run(_make, parser, "table", "figure")


def build(
    measured: Measured, peaks: dict[str, Any], frameworks: Frameworks, catalogue: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame, tables.Page]:
    """The tidy rows (COLUMNS; seconds per mini-batch, operations and bytes per second), the layout and the page.

    `peaks` holds, for each platform, what `measure.peak` wrote.
    """
    cells = measured.cells.assign(variant=measured.cells["variant"].fillna(""))
    cells["network"] = [common.whole_name(cell) for cell in cells.to_dict("records")]
    rows = common.labelled(cells, frameworks, catalogue)
    specs = {name: networks.specify(name, catalogue) for name in rows["network"].unique()}
    data = pd.DataFrame(
        [_row(cell, specs[cell["network"]], peaks) for cell in rows.to_dict("records")],
        columns=COLUMNS,
    )
    place = data.groupby(["network", "batch", "platform", "devices", "threads"])["flops_per_second"]
    data["best"] = (data["flops_per_second"] == place.transform("max")) & (
        place.transform("count") > 1
    )
    page = common.page(
        "efficiency",
        "Share of the machine's own peak",
        "Floating-point operations of one training step divided by its median time, beside the fastest matrix product "
        "that the same threads of the same machine were seen to reach.",
    )
    page.facts = [*facts(measured), *_peak_facts(peaks)]
    page.notes = [
        "Operations per step follow from the specification: 2 for each multiply-add of the matrix products and "
        "convolutions, forward and backward. Element-wise work counts for nothing, and an algorithm that needs fewer "
        "operations (Winograd's convolution) counts as if it needed them all.",
        "Operations per byte: operations divided by the least bytes that a step must move through memory when every "
        "layer touches each of its arrays once, a model of the specification (Williams et al. 2009). The true number "
        "is lower.",
        "The peak is that of a library's matrix product, measured by the rule `peak`; it is not a data sheet's number. "
        "The best of a network in each column is bold.",
        processes(measured.cells),
        raw_data(measured),
    ]
    return data, _layout(data), page


def _make(options: argparse.Namespace) -> None:
    measured = read_measured(options.merged)
    peaks = {path.stem: _read_peak(path) for path in options.peaks}
    frameworks, catalogue = Frameworks(options.frameworks), read_yaml(options.networks)
    data, layout, page = build(measured, peaks, frameworks, catalogue)
    tables.write(options.table_prefix, data, layout, page)
    figures.write(options.figure_prefix, *roofline.draw(data, peaks, frameworks, measured))


def _read_peak(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); remove it and run snakemake again."
        ) from error


def _row(cell: dict[str, Any], spec: dict[str, Any], peaks: dict[str, Any]) -> dict[str, Any]:
    flops, moved = (
        networks.flops_per_step(spec, cell["batch"]),
        networks.bytes_per_step(spec, cell["batch"]),
    )
    peak, no_peak = _peak_of(cell, peaks)
    timed = cell["status"] == "ok" and pd.notna(cell["seconds"])
    speed = flops / cell["seconds"] if timed else None
    return {name: cell[name] for name in COLUMNS if name in cell} | {
        "marks": ", ".join(cell["marks"]),
        "flops_per_step": flops,
        "bytes_per_step": moved,
        "intensity": flops / moved,
        "flops_per_second": speed,
        "peak_flops_per_second": peak.get("flops_per_second"),
        "peak_bytes_per_second": peak.get("bytes_per_second"),
        "share_of_peak": speed / peak["flops_per_second"] if speed and peak else None,
        "no_peak": no_peak,
        "peak_disturbed": peak.get("disturbed", False),
    }


def _peak_of(cell: dict[str, Any], peaks: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The peak that a cell is held against, or {} and why there is none."""
    platform = cell["platform"]
    if platform not in peaks:
        return {}, f"no peak of {platform} is measured, which is done for CPUs only"
    if cell["machine_id"] != peaks[platform]["machine_id"]:
        return {}, (
            f"the peak of {platform} is another machine's: on the one that measured the cells, run "
            f"`rm results/peaks/{platform}.json && snakemake efficiency`"
        )
    known = peaks[platform]["threads"].get(str(cell["threads"]))
    return (
        known or {},
        ""
        if known
        else f"no peak of {platform} is measured for {plural(cell['threads'], 'thread')}",
    )


def _peak_facts(peaks: dict[str, Any]) -> list[str]:
    return [
        f"Peak of {platform} with {plural(int(threads), 'thread')}: "
        f"{significant(known['flops_per_second'] / 1e9)} GFLOP/s (matrix product of {known['product']} x "
        f"{known['product']} float32, {known['blas']}), {significant(known['bytes_per_second'] / 1e9)} GB/s (STREAM "
        f"{known['stream']})" + (f", {roofline.LOW_PEAK}." if known.get("disturbed") else ".")
        for platform, peak in peaks.items()
        for threads, known in peak["threads"].items()
    ]


def _layout(data: pd.DataFrame) -> pd.DataFrame:
    places = (
        data[["platform", "devices", "threads"]]
        .drop_duplicates()
        .sort_values(["platform", "devices", "threads"])
    )
    columns: list[tuple[str, str]] = []
    table: dict[tuple[str, str], dict[tuple[str, str], Entry]] = {}
    for place in places.to_dict("records"):
        columns += [_column("share of peak", place), _column("GFLOP/s", place)]
    columns.sort(key=lambda column: "GFLOP" in column[0])
    for row in data.to_dict("records"):
        network = f"{row['network_label']}, batch {row['batch']}"
        entries = table.setdefault((network, row["framework_label"]), {})
        entries["One step", "GFLOP"] = Entry(significant(row["flops_per_step"] / 1e9))
        entries["One step", "FLOP per byte"] = Entry(f"≤ {significant(row['intensity'])}")
        entries[_column("share of peak", row)] = _share(row)
        entries[_column("GFLOP/s", row)] = _speed(row)
    columns = [("One step", "GFLOP"), ("One step", "FLOP per byte"), *columns]
    body = [[entries.get(column, Entry()) for column in columns] for entries in table.values()]
    index = pd.MultiIndex.from_tuples(list(table), names=["Network", "Framework"])
    return pd.DataFrame(body, index=index, columns=pd.MultiIndex.from_tuples(columns), dtype=object)


def _column(what: str, place: dict[str, Any]) -> tuple[str, str]:
    group = f"{place['platform']}, {what}, threads"
    devices = f" x {place['devices']}" if place["devices"] > 1 else ""
    return group, f"{place['threads']}{devices}"


def _share(row: dict[str, Any]) -> Entry:
    if pd.isna(row["flops_per_second"]):
        return common.dash(status_reason(row["status"], row["reason"]))
    if pd.isna(row["share_of_peak"]):
        return common.dash(row["no_peak"])
    low = (f"of a peak that was {roofline.LOW_PEAK}",) if row["peak_disturbed"] else ()
    return Entry(
        f"{significant(100 * row['share_of_peak'], 2)} %", _remarks(row) + low, row["best"], "ours"
    )


def _speed(row: dict[str, Any]) -> Entry:
    if pd.isna(row["flops_per_second"]):
        return common.dash(status_reason(row["status"], row["reason"]))
    return Entry(significant(row["flops_per_second"] / 1e9), _remarks(row), row["best"], "ours")


def _remarks(row: dict[str, Any]) -> tuple[str, ...]:
    texts = [MARK_WORDS.get(mark, mark) for mark in row["marks"].split(", ") if mark]
    return tuple(texts + ([row["reason"].rstrip(".")] if row["reason"] else []))


if __name__ == "__main__":
    main()
