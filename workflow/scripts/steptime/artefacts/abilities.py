"""What the installed frameworks can do, as really read: from timed cells, proofs, the build, the package's metadata."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Measured
from steptime.render.words import plural, significant, status_reason

BUSY = 1.2  # effective threads from which a cell used more than one
NO_SERVERS = "training over several servers is not measured here"


@dataclass(frozen=True)
class Ability:
    """What is read of one property: its text, or '' and why there is none; `note` is what a reader must know of it."""

    text: str
    note: str = ""


def read(
    measured: Measured,
    proofs: list[dict[str, Any]],
    packages: list[dict[str, Any]],
    networks: dict[str, Any],
) -> pd.DataFrame:
    """One row for each environment, in the order of the cells; columns: framework, version, and an Ability for each of
    licence, core, interface, cpu, threads, gpu, devices, devices_together, cudnn, servers, networks, data.
    """
    by_name = {package["environment"]: package for package in packages}
    rows = {}
    for (environment, framework), cells in measured.cells.groupby(
        ["environment", "framework"], sort=False
    ):
        software = measured.software.get(environment, {})
        passed = {
            proof["network"]
            for proof in proofs
            if proof["environment"] == environment and proof["status"] == "ok"
        }
        timed = cells[cells["status"] == "ok"]
        rows[environment] = {
            "framework": framework,
            "version": software.get("framework_version") or "",
            **_of_package(by_name.get(environment, {})),
            **_of_cells(timed, _why_none(cells)),
            **_of_build(timed, software),
            "networks": _networks(passed, networks),
            "data": Ability("synthetic", "cells are timed on made-up mini-batches")
            if len(timed)
            else _none("not timed"),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _of_package(package: dict[str, Any]) -> dict[str, Ability]:
    if "distribution" not in package:
        missing = _none("no package of the environment has this framework")
        return {"licence": missing, "core": missing, "interface": missing}
    source = f"metadata of the package {package['distribution']} {package['version']}"
    languages = ", ".join(package["languages"])
    share = package["compiled"] / max(1, package["compiled"] + package["python"])
    core = Ability(
        f"{100 * share:.0f} % compiled",
        f"share of the package's code by bytes; its metadata names {languages}",
    )
    return {
        "licence": Ability(package["licence"], source)
        if package["licence"]
        else _none(f"the {source} names none"),
        "core": core,
        "interface": Ability("Python", "the interface that the cells use; others are not tried"),
    }


def _of_cells(timed: pd.DataFrame, why_none: str) -> dict[str, Ability]:
    kinds = sorted(timed["device"].unique())
    on_cpu = timed[timed["device"] == "cpu"]
    found = {
        "devices": Ability(", ".join(kind.upper() for kind in kinds)) if kinds else _none(why_none),
        "cpu": Ability("yes", f"{plural(len(on_cpu), 'cell')} timed")
        if len(on_cpu)
        else _none(why_none),
        "servers": _none(NO_SERVERS),
        "threads": _none("no cell with more than one thread was timed"),
        "devices_together": _none("no cell with more than one device was timed"),
    }
    several = on_cpu[(on_cpu["threads"] > 1) & on_cpu["effective_threads"].notna()]
    if len(several):
        most = several[several["threads"] == several["threads"].max()]
        busy = most["effective_threads"].median()
        text = f"{significant(busy)} of {most['threads'].iloc[0]} busy"
        found["threads"] = Ability(
            text if busy > BUSY else f"no: {text}", "CPU seconds for each second, median of cells"
        )
    together = timed[timed["devices"] > 1]
    if len(together):
        found["devices_together"] = Ability(plural(int(together["devices"].max()), "device"))
    return found


def _of_build(timed: pd.DataFrame, software: dict[str, Any]) -> dict[str, Ability]:
    on_gpu = timed[timed["device"] == "gpu"]
    if len(on_gpu):
        gpu = Ability("yes", f"{plural(len(on_gpu), 'cell')} timed")
    elif software.get("cuda"):
        gpu = Ability(f"CUDA {software['cuda']}", "of the build; no cell on a GPU was timed")
    else:
        gpu = Ability("no", "this build is without CUDA; others of the framework may have it")
    cudnn = (
        Ability(str(software["cudnn"]))
        if software.get("cudnn")
        else Ability("no", "this build is without cuDNN")
    )
    return {"gpu": gpu, "cudnn": cudnn}


def _networks(passed: set[str], networks: dict[str, Any]) -> Ability:
    names = [entry.get("label", name) for name, entry in networks.items() if name in passed]
    return (
        Ability(", ".join(names), "proven to be the specified network")
        if names
        else _none("no proof has passed")
    )


def _why_none(cells: pd.DataFrame) -> str:
    return status_reason(cells["status"].iloc[0], cells["reason"].iloc[0] or "")


def _none(reason: str) -> Ability:
    return Ability("", reason)
