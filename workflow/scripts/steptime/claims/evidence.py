"""The evidence on claims: the papers' data, and their times and ours in one shape."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from shared.precisions import USUAL
from steptime.claims.functions import ALONE, HIGH, LOW, NUMBERS, PLACE, VARIED
from steptime.claims.papers import Paper
from steptime.merge.measured import Measured
from steptime.merge.others import Grid
from steptime.merge.summary import BY_REPEAT
from steptime.merge.trainings import in_step
from steptime.plan.cell import IDENTITY, PLAIN
from steptime.render.frameworks import Frameworks
from steptime.statistics.ratios import mean_of_result
from steptime.statistics.words import spreads_of_times

# Statuses of what is no time and no dash.
NO_EVIDENCE = ["install_failed", "not_equivalent"]
# Marks of a time that decides nothing.
UNDECIDING = {"disturbed", "two speeds"}
# Half of the width of a 95 % interval of a normal distribution, in standard deviations.
NORMAL = 1.96


def their_times(paper: Paper, frameworks: Frameworks) -> pd.DataFrame:
    """Returns the times that a paper prints (TIMES): frameworks are lineages, dashes NaN, threads of GPUs 0."""
    rows = paper.printed[paper.printed["file"] == paper.catalogue.get("times")]
    machines = paper.catalogue.get("platforms", {})
    return pd.DataFrame(
        {
            "network": rows["network"],
            "framework": [frameworks[name].lineage for name in rows["framework"]],
            "platform": rows["platform"],
            "threads": pd.to_numeric(rows["threads"]).fillna(0).astype(int),
            "batch": pd.to_numeric(rows["batch"]).fillna(0).astype(int),
            "device": rows["platform"].map(paper.platforms),
            "devices": 1,
            "cores": [machines[name].get("cores") for name in rows["platform"]],
            "runner": paper.name,
            "seconds": rows["number"],
        }
    )


def measured_times(grids: Collection[Grid]) -> pd.DataFrame:
    """Returns what was measured here: IDENTITY, framework, `runner`, `cores` of the machine and the name of its `grid`;
    NUMBERS (NaN for a dash), the LOW and HIGH ends of their intervals, and whether a row `decides` anything.

    Each result is there once, of the grid that measured it by most processes, of the first platform of each kind of
    device, without variants, in the papers' precision. A training on a subset of a data set counts as one on the whole.
    A framework that did not install, or trains another network, has neither time nor dash.
    """
    columns = [*IDENTITY, "framework", "framework_version", "cores", "status", "repeats", "grid"]
    columns += [*NUMBERS, "low", "high", "marks", *BY_REPEAT.values()]
    parts = [pd.DataFrame(columns=columns)]
    for grid in grids:
        own = [steps.cells.assign(cores=_cores(steps)) for steps in grid.steps]
        if len(grid.trained.runs):
            times = grid.trained.times
            # A subset of a data set is named where a variant is; its networks are the paper's own.
            plain = times.cells["variant"].isin(["", *grid.trained.runs["dataset_label"]])
            variant = times.cells["variant"].where(~plain, "")
            own.append(times.cells.assign(variant=variant, cores=_cores(times)))
        parts += [part.assign(grid=grid.name)[columns] for part in own]
    cells = pd.concat(parts, ignore_index=True)
    cells = cells[(cells["variant"] == "") & ~cells["status"].isin(NO_EVIDENCE)]
    cells = cells[(cells["precision"] == USUAL) & (cells["mode"] != PLAIN)]
    first = cells.groupby("device")["platform"].transform("first")
    cells = cells[cells["platform"] == first]
    cells = cells.sort_values("repeats", ascending=False, kind="stable").drop_duplicates(IDENTITY)
    cells = cells.sort_index().reset_index(drop=True)
    for name, of in BY_REPEAT.items():
        spreads = spreads_of_times(cells, of)
        means = [mean_of_result(row, spreads, of) for row in cells.to_dict("records")]
        ends = [mean.interval[1:] if mean else (np.nan, np.nan) for mean in means]
        cells[[f"{name}_low", f"{name}_high"]] = np.array(ends).reshape(-1, 2)
    numbers = {name: pd.to_numeric(cells[name]) for name in ("cores", *NUMBERS, *LOW, *HIGH)}
    return cells.drop(columns=["marks", *BY_REPEAT.values()]).assign(
        **numbers,
        decides=[UNDECIDING.isdisjoint(marks) for marks in cells["marks"]],
        runner=cells["environment"] + "." + cells["mode"],
        threads=cells["threads"].where(cells["device"] == "cpu", 0).astype(int),
        batch=pd.to_numeric(cells["batch"]).fillna(0).astype(int),
    )


def our_times(
    paper: Paper, cells: pd.DataFrame, frameworks: Frameworks, today: bool = False
) -> pd.DataFrame:
    """Returns what was measured of a paper's networks, frameworks and task: TIMES, environment, mode, VALUES.

    On each kind of device, one version represents a framework: the environment and mode nearest to the paper's
    (`nearest`) that has any time, else the fastest of the others in each place. With `today`, the others come first.
    `own` is the framework that was timed; `is_near` tells whether it is in `nearest`, or the paper has no `nearest` for
    it.
    """
    nearest = paper.catalogue.get("nearest", {}).items()
    lineages = {runner: name for name, runners in nearest for runner in runners}
    ranks = {runner: at for _, runners in nearest for at, runner in enumerate(runners)}
    times = cells[cells["network"].isin(paper.networks) & (cells["task"] == paper.task)]
    named = [
        frameworks[lineages.get(runner, name)].lineage
        for runner, name in zip(times["runner"], times["framework"], strict=True)
    ]
    near = times["runner"].map(ranks)
    times = times.assign(
        own=times["framework"],
        framework=named,
        rank=near.notna().astype(int) if today else near.fillna(len(ranks)),
    )
    has_nearest = times["framework"].isin({frameworks[name].lineage for name, _ in nearest})
    times = times.assign(is_near=near.notna() | ~has_nearest)
    known = {frameworks[name].lineage for name in paper.frameworks}
    times = times[times["framework"].isin(known)]
    # On one device, a time of one version is never divided by that of another.
    timed = times["rank"].where(times["seconds"].notna())
    chosen = timed.groupby([times["framework"], times["device"]]).transform("min")
    times = times[chosen.isna() | (times["rank"] == chosen)]
    times = times.sort_values(["rank", "seconds"], kind="stable")
    times = times.drop_duplicates([*PLACE, "device", "devices", "exchange"])
    return times.sort_index().drop(columns="rank")


def times_alone(grids: Collection[Grid]) -> pd.DataFrame:
    """Returns the median time of each single operation in each way (ALONE); a `framework` is environment and mode."""
    place = ["network", "environment", "mode", "threads", "part", "way", "device"]
    columns = [*place, "variant", "status", "seconds", "grid"]
    known = [pd.DataFrame(columns=columns)]
    known += [part.rows.assign(grid=grid.name)[columns] for grid in grids for part in grid.parts]
    rows = pd.concat(known)
    rows = rows[(rows["status"] == "ok") & rows["seconds"].notna() & (rows["variant"] == "")]
    # Each is taken from the first grid that has it.
    rows = rows[rows["grid"] == rows.groupby(place)["grid"].transform("first")]
    medians = rows.groupby([*place, "grid"], sort=False)["seconds"].median().reset_index()
    return medians.assign(framework=medians["environment"] + "." + medians["mode"])[ALONE]


def varied_trainings(grids: Collection[Grid]) -> pd.DataFrame:
    """Returns what variants of each network reached after their last common epoch: VARIED, medians over the seeds."""
    most = {"": pd.DataFrame(columns=VARIED)}
    for grid in grids:
        runs = grid.trained.runs
        for network, own in runs[runs["variant"] != ""].groupby("network") if len(runs) else ():
            last = in_step(grid.trained.only(own)).groupby("key").tail(1)
            last = last.assign(network=last["variant"], grid=grid.name)
            last["framework"] = last["environment"] + "." + last["mode"]
            medians = last.groupby([*VARIED[:4], "grid"])[VARIED[5:]].median().reset_index()
            if len(medians) > len(most.get(network, ())):
                most[network] = medians
    return pd.concat(most.values(), ignore_index=True)


def _cores(measured: Measured) -> pd.Series:
    cores = {
        name: machine.get("cpu", {}).get("physical_cores")
        for name, machine in measured.platforms.items()
    }
    return measured.cells["platform"].map(cores)
