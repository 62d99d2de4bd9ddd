"""Makes the report: one page with all tables, figures and results of a run, made and read without a network."""

import argparse
import base64
import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from steptime import project
from steptime.claims.answers import WEIGHTS
from steptime.merge.measured import Measured, read_measured
from steptime.networks import written
from steptime.page import answer, cells, embed, explorer, samples
from steptime.page.explorer import Column
from steptime.plan.artefacts import PAPERS
from steptime.reading import InputError, read_yaml
from steptime.render.frameworks import Frameworks
from steptime.render.words import cores_text, gibibytes, machine_name, machine_text, run_name

# What the report shows of each row of the table of findings.
CLAIMS = (
    Column("paper", "Paper", "text", True),
    Column("section", "Section", "text"),
    Column("claim", "Claim, in our words", "words"),
    Column("theirs_verdict", "By their numbers", "text", True),
    Column("theirs_numbers", "Their numbers", "text"),
    Column("ours_verdict", "By ours", "text", True),
    Column("ours_numbers", "Our numbers", "text"),
    Column("today_verdict", "By ours of today", "text", True),
    Column("matters", "Main claim, result or detail", "text", True),
    Column("reading", "How it is read", "words"),
)
# The kinds of the project's own artefacts that come first, and what the catalogue says of what has no number of ours.
FIRST = ("times", "zoo", "ratios", "tuning", "throughput")
PRINTED = "printed numbers only"
# DataTables (MIT licence), with what it needs, as the wheel of itables carries it.
LIBRARY = "html/dt_bundle.js"


def main() -> None:
    parser = argparse.ArgumentParser(prog="page.page", description="Make the report.")
    parser.add_argument("--job", type=json.loads, required=True, help="grid and artefacts, JSON")
    parser.add_argument("--merged", type=Path, nargs="*", default=[], help="merged rows, Parquet")
    parser.add_argument("--output", type=Path, required=True, help="the page")
    options = parser.parse_args()
    files = sorted(project.ROOT.glob(PAPERS))
    papers = {path.parent.name: read_yaml(path) for path in files}
    measured = [read_measured(path) for path in options.merged]
    frameworks = Frameworks(project.path("resources/papers/frameworks.yaml"))
    catalogue = written.of_run()
    page = build(options.job, measured, papers, frameworks, catalogue, options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page, encoding="utf-8")


def build(
    job: dict[str, Any],
    measured: list[Measured],
    papers: dict[str, dict[str, Any]],
    frameworks: Frameworks,
    catalogue: dict[str, Any],
    output: Path,
) -> str:
    """Returns the page of a `job`: the grid's name, sampling and limits, and its artefacts.

    Each artefact has name, kind, about, paper, files, and why it is `missing`, or ''. `papers` are the contents of
    paper.yaml. Links are relative to `output`.
    """
    common = embed.common_words(job["artefacts"])
    artefacts = [embed.artefact(entry, output.parent, common) for entry in job["artefacts"]]
    own = {entry["kind"]: entry for entry in artefacts if not entry["paper"]}
    made = [(entry, pd.read_parquet(entry["rows"])) for entry in artefacts if entry["rows"]]
    compared = [(entry["short"], rows) for entry, rows in made if entry["kind"] == "times"]
    shares = [rows for entry, rows in made if entry["kind"] == "efficiency"]
    tables = {entry["kind"]: rows for entry, rows in made if entry is own.get(entry["kind"])}
    claims = tables.get("findings")
    rows = cells.gather(measured, compared, shares, frameworks, catalogue) if measured else None
    catalogued = _catalogued(tables.get("catalogue"), papers)
    for entry in artefacts:
        if entry["empty"] is None:
            entry["empty"] = catalogued["states"].get(entry["name"]) == PRINTED
    commits = [each for part in measured for each in part.rows["workflow_commit"].dropna().unique()]
    days = sorted(day for part in measured for day in part.dates.split(" to ") if day)
    return embed.render(
        "report.html.jinja",
        run=run_name(job["grid"]),
        answer={
            "matrices": answer.matrices(tables.get("ratios"), tables.get("tuning")),
            "changes": answer.changes(rows),
            "findings": answer.decided(claims),
        },
        samples=samples.gather(measured, output.parent),
        first=FIRST,
        common=common,
        sampling=job["sampling"],
        limits=job["limits"],
        artefacts=artefacts,
        own=own,
        papers=_sections(artefacts, papers, claims),
        cells=_explored_cells(rows) if rows is not None else None,
        claims=_explored_claims(claims, papers) if claims is not None else None,
        catalogue=catalogued,
        machines=_machines(measured),
        software=_software(measured),
        regions=list(dict.fromkeys(part.timed_region for part in measured if part.timed_region)),
        dates=" to ".join(dict.fromkeys([*days[:1], *days[-1:]])),
        commits=list(dict.fromkeys(commits)),
        merged=[embed.link(part.source, output.parent) for part in measured],
        library=base64.b64encode(gzip.compress(_library().read_bytes(), mtime=0)).decode(),
        script=Markup((embed.HERE / "page.js").read_text(encoding="utf-8")),
    )


def _explored_cells(rows: pd.DataFrame) -> dict[str, Any]:
    states = rows["status"].value_counts().to_dict()
    choices = {"states": states, "marks": cells.marks_of(rows)}
    return explorer.build(rows, cells.columns_of(rows), "cells", "All results of the run") | choices


def _explored_claims(claims: pd.DataFrame, papers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    shorts = [papers.get(name, {}).get("short", name) for name in claims["paper"]]
    rows = claims.assign(paper=shorts, matters=claims["weight"].map(WEIGHTS))
    return explorer.build(rows, CLAIMS, "claims", "Claims of the papers")


def _catalogued(rows: pd.DataFrame | None, papers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns, from rows of the table `catalogue`, the state of each artefact, and what of the papers is not made."""
    if rows is None:
        return {"states": {}, "not_made": []}
    shorts = {name: paper["short"] for name, paper in papers.items()}
    short = rows["paper"].map(lambda name: shorts.get(name, name))
    rows = rows.assign(place=short + ", " + rows["sources"])
    not_made = rows.loc[rows["why"].fillna("") != "", ["place", "title", "why"]]
    return {
        "states": dict(zip(rows["target"], rows["state"], strict=True)),
        "not_made": not_made.to_dict("records"),
    }


def _sections(
    artefacts: list[dict[str, Any]], papers: dict[str, dict[str, Any]], claims: pd.DataFrame | None
) -> list[dict[str, Any]]:
    """Returns the papers, most claims first, each with its names and its artefacts, tables of times first."""
    counts = {} if claims is None else claims["paper"].value_counts().to_dict()
    names = dict.fromkeys(entry["paper"] for entry in artefacts if entry["paper"])
    artefacts = sorted(artefacts, key=lambda entry: entry["kind"] != "times")
    return [
        {
            "name": name,
            "short": papers.get(name, {}).get("short", name),
            "citation": papers.get(name, {}).get("citation", ""),
            "artefacts": [entry for entry in artefacts if entry["paper"] == name],
        }
        for name in sorted(names, key=lambda name: -counts.get(name, 0))
    ]


def _library() -> Path:
    """Returns the library's file, without importing the package, which takes longer than the rest of the page."""
    spec = find_spec("itables")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "The package itables is missing, whose table library the report uses: make adds it."
        )
    return Path(spec.submodule_search_locations[0]) / LIBRARY


def _machines(measured: list[Measured]) -> dict[str, dict[str, Any]]:
    """Returns each platform's machine, in short and with all that is known of it, in words."""
    return {
        machine_name(platform): {
            "short": machine_text(platform, machine).partition(": ")[2],
            "facts": _described(machine),
        }
        for part in measured
        for platform, machine in part.platforms.items()
        if machine
    }


def _described(machine: dict[str, Any]) -> dict[str, str]:
    cpu = machine.get("cpu", {})
    rate = f"{int(cpu['most_khz']) / 1e6:.2f} GHz" if cpu.get("most_khz") else ""
    gpus = [f"{gpu['model']}, driver {gpu['driver']}" for gpu in machine.get("gpus", [])]
    system = (machine.get(name) for name in ("os", "kernel", "glibc"))
    words = {
        "CPU": cpu.get("model", ""),
        "Cores": cores_text(cpu),
        "Instruction sets": ", ".join(cpu.get("instruction_sets", [])),
        "Highest clock rate": rate,
        "Frequency governor": cpu.get("governor") or "",
        "Virtual machine": "yes" if cpu.get("virtual") else "no",
        "Memory": gibibytes(machine.get("memory_bytes")),
        "Huge pages": machine.get("huge_pages", ""),
        "GPUs": "; ".join(gpus) or "none",
        "System": ", ".join(filter(None, system)),
    }
    return {name: text or "unknown" for name, text in words.items()}


def _software(measured: list[Measured]) -> dict[str, dict[str, str]]:
    names = {"framework_version": "Version", "python": "Python", "blas": "Linear algebra"}
    names |= {"build": "Build"}
    settings: dict[str, dict[str, dict[str, str]]] = {}
    for environment, facts in (entry for part in measured for entry in part.software.items()):
        for place, declared in facts.get("settings", {}).items():
            named = ", ".join(map(machine_name, place.split(", ")))
            settings.setdefault(environment, {}).setdefault(named, {}).update(declared)
    return {
        environment: {title: str(facts.get(name) or "unknown") for name, title in names.items()}
        | {"Settings": _declared(settings.get(environment, {}))}
        for part in measured
        for environment, facts in part.software.items()
    }


def _declared(settings: dict[str, dict[str, str]]) -> str:
    """Says what workers declare, by platform and mode; where they differ, says which one declares it."""
    places: dict[str, list[str]] = {}
    for place, set_here in settings.items():
        text = ", ".join(f"{name} {value}" for name, value in set_here.items())
        places.setdefault(text, []).append(place)
    places.pop("", None)
    if len(places) < 2:
        return "".join(places) or "unknown"
    return "; ".join(f"{text} ({'; '.join(names)})" for text, names in places.items())


if __name__ == "__main__":
    main()
