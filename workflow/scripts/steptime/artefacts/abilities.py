"""What frameworks can do: as a paper says it, and as it was read here from those that are installed."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from steptime.artefacts.inputs import Inputs
from steptime.artefacts.trainings import Trained, joined
from steptime.merge.measured import Measured
from steptime.plan.exchanges import INSIDE
from steptime.render.frameworks import Frameworks
from steptime.render.tables import DASH, OURS, PAPER, Entry, Page
from steptime.render.words import plural, significant, status_reason

BUSY = 1.2  # effective threads from which a cell used more than one
NO_DEVICES = "no cell with more than one device was timed"
DEVICES = "as proven, each with CPUs of its own; several GPUs were not tried"
NO_SERVERS = "no proof of several processes was asked for: `devices` of a grid asks for such"
SERVERS = "they share gradients as proven, on one machine; several machines were not tried"


@dataclass(frozen=True)
class Ability:
    """What is read of one property: its text, or '' and why there is none; `note` is what a reader must know of it."""

    text: str
    note: str = ""


def table(inputs: Inputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the layout."""
    made_of = inputs.measured, inputs.proofs, inputs.packages, inputs.networks
    found = read(*made_of, joined(inputs))
    made = found, inputs.printed, inputs.catalogue, inputs.frameworks
    return build(*made, inputs.entry, inputs.page)


def read(
    measured: Measured,
    proofs: list[dict[str, Any]],
    packages: list[dict[str, Any]],
    networks: dict[str, Any],
    trained: Trained,
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
        own = [proof for proof in proofs if proof["environment"] == environment]
        together = [proof for proof in own if proof.get("devices", 1) > 1]
        passed = {proof["network"] for proof in own if proof["status"] == "ok"}
        timed = cells[cells["status"] == "ok"]
        rows[environment] = {
            "framework": framework,
            "version": software.get("framework_version") or "",
            **_of_package(by_name.get(environment, {})),
            **_of_cells(timed, _why_none(cells)),
            **_of_build(timed, software),
            "devices_together": _together(timed, together),
            "servers": _servers(together),
            "networks": _networks(passed, networks),
            "data": _data(len(timed), environment, trained),
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
        "threads": _none("no cell with more than one thread was timed"),
    }
    several = on_cpu[(on_cpu["threads"] > 1) & on_cpu["effective_threads"].notna()]
    if len(several):
        most = several[several["threads"] == several["threads"].max()]
        busy = most["effective_threads"].median()
        text = f"{significant(busy)} of {most['threads'].iloc[0]} busy"
        found["threads"] = Ability(
            text if busy > BUSY else f"no: {text}", "CPU seconds for each second, median of cells"
        )
    return found


def _together(timed: pd.DataFrame, proofs: list[dict[str, Any]]) -> Ability:
    """On how many devices at once it trains: as timed, or as proofs of several devices say."""
    several = timed[timed["devices"] > 1]
    if len(several):
        return Ability(plural(int(several["devices"].max()), "device"))
    right = [proof["devices"] for proof in proofs if proof["status"] == "ok"]
    if right:
        return Ability(plural(max(right), "device"), DEVICES)
    none = status_reason(proofs[0]["status"], proofs[0]["reason"]) if proofs else NO_DEVICES
    return _none(none)


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


def _servers(proofs: list[dict[str, Any]]) -> Ability:
    """Whether several processes train one network, from the proofs of such."""
    proofs = [proof for proof in proofs if proof["exchange"] != INSIDE]
    right = [proof for proof in proofs if proof["status"] == "ok"]
    if right:
        most = max(proof["devices"] for proof in right)
        ways = " and ".join(sorted({proof["exchange"] for proof in right}))
        return Ability(f"{plural(most, 'rank')}, {ways}", SERVERS)
    return _none(status_reason(proofs[0]["status"], proofs[0]["reason"]) if proofs else NO_SERVERS)


def _networks(passed: set[str], networks: dict[str, Any]) -> Ability:
    names = [entry.get("label", name) for name, entry in networks.items() if name in passed]
    return (
        Ability(", ".join(names), "proven to be the specified network")
        if names
        else _none("no proof has passed")
    )


def _data(timed: int, environment: str, trained: Trained) -> Ability:
    """On what its cells were timed, and on what it was trained to an accuracy."""
    runs = trained.runs
    own = runs[(runs["environment"] == environment) & (runs["epochs"] > 0)] if len(runs) else runs
    labels = list(dict.fromkeys(own["dataset_label"])) if len(own) else []
    if not timed and not labels:
        return _none("not timed")
    note = "steps are timed on made-up mini-batches"
    note += "; whole trainings are on real images" if labels else ""
    return Ability(", ".join([*labels, *(["synthetic"] if timed else [])]), note)


def _why_none(cells: pd.DataFrame) -> str:
    return status_reason(cells["status"].iloc[0], cells["reason"].iloc[0] or "")


def _none(reason: str) -> Ability:
    return Ability("", reason)


COLUMNS = ["source", "lineage", "framework", "label", "environment", "property", "value", "note"]
LONG = 24  # letters from which a value is broken into lines


def build(
    abilities: pd.DataFrame,
    printed: pd.DataFrame,
    paper: dict[str, Any],
    frameworks: Frameworks,
    artefact: dict[str, Any],
    page: Page,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy rows (COLUMNS, texts) and the layout: a line for each framework of the paper, below it those of ours.

    `abilities` is what `read` returns; the artefact's `here` says which of them is which property.
    """
    rows = _their_rows(printed, frameworks, artefact) + _our_rows(abilities, frameworks, artefact)
    data = pd.DataFrame(rows, columns=COLUMNS)
    order = {name: at for at, name in enumerate(dict.fromkeys(data["lineage"]))}
    data = data.sort_values(
        "lineage", key=lambda lineages: lineages.map(order), kind="stable", ignore_index=True
    )
    page.notes = [
        "What is said of a framework here holds for the one build that is installed; its footnotes say how it "
        "was read, and a dash is what was not read.",
        *page.notes,
    ]
    return data, _layout(data, paper["short"], list(artefact["here"]))


def _their_rows(
    printed: pd.DataFrame, frameworks: Frameworks, artefact: dict[str, Any]
) -> list[dict[str, Any]]:
    # One of the two headings of a printed value is the framework, the other the property.
    return [
        {
            "source": PAPER,
            "lineage": frameworks[row["framework"]].lineage,
            "framework": row["framework"],
            "label": row["row"] if row["column"] in artefact["here"] else row["column"],
            "property": row["column"] if row["column"] in artefact["here"] else row["row"],
            "value": row["value"],
            "note": row["note"],
        }
        for row in printed.to_dict("records")
    ]


def _our_rows(
    abilities: pd.DataFrame, frameworks: Frameworks, artefact: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        {
            "source": OURS,
            "lineage": frameworks[found["framework"]].lineage,
            "framework": found["framework"],
            "label": f"{frameworks[found['framework']].label} {found['version']}".strip(),
            "environment": environment,
            "property": name,
            "value": found[key].text,
            "note": found[key].note,
        }
        for environment, found in abilities.to_dict("index").items()
        for name, key in artefact["here"].items()
    ]


def _layout(data: pd.DataFrame, short: str, properties: list[str]) -> pd.DataFrame:
    table: dict[tuple[str, str], dict[str, Entry]] = {}
    for row in data.to_dict("records"):
        ours = row["source"] == OURS
        notes = (row["note"].rstrip("."),) if row["note"] else ()
        kind = f"{row['source']} words" + (" long" if len(row["value"]) > LONG else "")
        entry = Entry(row["value"] or DASH, notes, kind=kind)
        table.setdefault((row["label"], "here" if ours else short), {})[row["property"]] = entry
    index = pd.MultiIndex.from_tuples(table, names=["Framework", "Source"])
    return pd.DataFrame(
        [[entries[name] for name in properties] for entries in table.values()],
        index,
        properties,
        object,
    )
