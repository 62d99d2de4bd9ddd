"""Writes docs/papers/<grid>.md: a paper's tables, figures and claims beside what a pack measured, and nothing else.

    workflow/scripts/launch page.paper --paper shi2016 --from shi2016.tar.gz

A new pack goes through the same checks as a stranger's. One that is kept already may be of an older version of this
project, which the page names. Snakemake makes tables and figures from it in a folder of its own. Nothing is measured:
the pack's machine gets a platform of its own, which this machine is not.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from markupsafe import Markup

from steptime import project, run
from steptime.carry import pack
from steptime.cells import footers, shard
from steptime.cells.expected import Expected
from steptime.page.embed import render
from steptime.plain import plural
from steptime.plan import configuration
from steptime.reading import InputError, read_yaml
from steptime.render import tables

PACKS, PAGES = Path("resources/packs"), Path("docs/papers")
# How many digits name a commit.
SHORT = 8
# Which facts say where and when; others say with what.
PLACE = re.compile(r"Measured on |Date ")
# A note on files that are in the pack.
SAMPLES = "All samples: "


def main() -> None:
    parser = argparse.ArgumentParser(prog="page.paper", description="Write the page of a paper.")
    parser.add_argument(
        "--paper", required=True, choices=papers(), help="a folder of resources/papers"
    )
    parser.add_argument(
        "--from", type=Path, dest="source", help="the pack; resources/packs/<grid>.tar.gz"
    )
    parser.add_argument(
        "--grid", help="the grid by which it was measured; that of the paper's name"
    )
    options = parser.parse_args()
    grid = options.grid or options.paper
    name = Path(grid).stem
    kept = project.ROOT / PACKS / f"{name}.tar.gz"
    source = options.source or kept
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        machine, runs = take(source, folder, is_kept=source == kept)
        make(options.paper, grid, folder, machine)
        write(options.paper, name, folder / "results", runs)
    if source != kept:
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, kept)
    write_index()
    print(f"{PAGES / name}.md is made of {plural(runs, 'run')}, kept in {PACKS / kept.name}.")


def papers() -> list[str]:
    return sorted(path.parent.name for path in project.ROOT.glob("resources/papers/*/paper.yaml"))


def take(source: Path, folder: Path, is_kept: bool) -> tuple[dict[str, Any], int]:
    """Takes a pack of one machine into a folder, under its processor's name; returns its platform and its number of
    runs.

    Raises PackError for what a stranger's pack is refused for, InputError for a pack of several machines. A pack that
    `is_kept` was checked when it came, and may be of networks and adapters that have changed since.
    """
    run.TOLD.update(platforms=configuration.platforms(project.ROOT, {}))
    expected = None if is_kept else Expected(configuration.without_grid(project.ROOT))
    results = folder / "results"
    runs = pack.take(source, results, expected)
    names = sorted(path.name for path in (results / "cells").iterdir())
    if len(names) > 1:
        raise InputError(
            f"{source} is of several machines ({', '.join(names)}): pack each by itself."
        )
    row, _, footer = shard.read_parts(next((results / "cells" / names[0]).glob("*/*.parquet")))
    cpu = footer["machine"]["cpu"]
    name = re.sub(r"[^a-z0-9]+", "-", cpu["model"].lower()).strip("-")
    for path in (*results.glob(f"cells/{names[0]}"), *results.glob(f"*/{names[0]}.json")):
        path.rename(path.with_name(f"{name}{path.suffix}"))
    entry = {"label": cpu["model"], "device": row["device"], "cores": cpu["logical_cores"]}
    # No machine has this processor: what the pack lacks is refused, and never measured here.
    written = entry | {"cpu": "of a pack", "as_measured": is_kept}
    (folder / "platforms.yaml").write_text(yaml.safe_dump({name: written}))
    return entry | {"name": name}, runs


def make(paper: str, grid: str, folder: Path, machine: dict[str, Any]) -> None:
    """Makes a paper's tables and figures from what was taken. Raises InputError with Snakemake's last words."""
    known = project.path(f"config/grids/{grid}.yaml")
    entry = read_yaml(known if known.exists() else Path(grid))
    own = {name: value for name, value in entry.items() if name != "platforms_if_present"}
    file = f"{Path(grid).stem}.yaml"
    (folder / file).write_text(yaml.safe_dump(own | {"platforms": [machine["name"]]}))
    command = [sys.executable, "-m", "snakemake", "-s", str(project.ROOT / "Snakefile")]
    command += ["--cores", "1", "--config", f"grid={file}", "platforms=platforms.yaml"]
    done = subprocess.run(
        [*command, "--", f"make_{paper}"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise InputError(f"The pack is not whole for the grid '{grid}'. {' '.join(last)}")


def write(paper: str, page: str, results: Path, runs: int) -> None:
    """Writes docs/papers/<page>.md, and its figures into a folder beside it."""
    catalogue = read_yaml(project.path(f"resources/papers/{paper}/paper.yaml"))
    pages, figures = project.ROOT / PAGES, project.ROOT / PAGES / page
    shutil.rmtree(figures, ignore_errors=True)
    figures.mkdir(parents=True)
    claims = tables.read_page(results / f"tables/{paper}_verdict.parquet")
    counts = [fact for fact in claims.facts if re.match(r"(Main claims|Results|Details): ", fact)]
    facts = [fact for fact in claims.facts if fact not in counts]
    shown, missing = [], []
    for name, entry in catalogue["artefacts"].items():
        table, figure = (
            results / f"{kind}s/{paper}_{name}.{end}"
            for kind, end in (("table", "parquet"), ("figure", "svg"))
        )
        if name == "verdict":
            continue
        if not table.exists() and not figure.exists():
            missing.append(entry["says"])
            continue
        parts = [_table(table, facts)] if table.exists() else [f"## {entry['title']}\n"]
        if figure.exists():
            shutil.copyfile(figure, figures / figure.name)
            parts.append(f"![{entry['says']}]({page}/{figure.name})\n")
        shown.append("\n".join(parts))
    words = {
        "paper": paper,
        "page": page,
        "short": catalogue["short"],
        "citation": catalogue["citation"].strip(),
    }
    shards = results.glob("cells/*/*/*.parquet")
    versions = {(footers.row(path)["workflow_commit"] or "")[:SHORT] for path in shards}
    words |= {
        "runs": plural(runs, "run"),
        "versions": sorted(versions - {""}),
        "counts": counts,
        "place": [fact for fact in facts if PLACE.match(fact)],
        "means": [fact for fact in facts if not PLACE.match(fact)],
        "notes": [note for note in claims.notes if not note.startswith(SAMPLES)],
    }
    not_made = [
        f"{each['title']} ({each['source']}): {each['why']}."
        for each in catalogue.get("not_made", {}).values()
    ]
    words |= {"shown": shown, "missing": [*missing, *not_made]}
    words |= {"claims": _claims(paper, results), "made": len(shown)}
    text = render("paper.md.jinja", **{name: _as_is(value) for name, value in words.items()})
    (pages / f"{page}.md").write_text(f"{text}\n", encoding="utf-8")


def _as_is(value: Any) -> Any:
    """Returns a value unescaped: a page in Markdown is not HTML."""
    if isinstance(value, list):
        return list(map(_as_is, value))
    return Markup(value) if isinstance(value, str) else value


def _table(path: Path, common: list[str]) -> str:
    """Returns a table in Markdown, without the facts that the page says once."""
    page = tables.read_page(path)
    kept = [note for note in page.notes if not note.startswith(SAMPLES)]
    facts = [*_beside(path), *(fact for fact in page.facts if fact not in common)]
    page = replace(page, facts=facts, notes=kept)
    return _narrow(tables.markdown(tables.read_layout(path), page), page.paper)


def _beside(path: Path) -> list[str]:
    """Says how many of a table's printed times have one of ours beside them."""
    data = pd.read_parquet(path)
    if not {"source", "theirs", "ratio"} <= {*data}:
        return []
    printed = data[(data["source"] == tables.PAPER) & data["theirs"].notna()]
    ours = data[(data["source"] == tables.OURS) & data["ratio"].notna()]
    with_ours = ours.drop_duplicates(["network", "lineage", "device", "threads"])
    return [
        f"Of {plural(len(printed), 'printed time')}, {len(with_ours)} have one of ours beside them: the same network "
        "and number of threads, the same framework or its successor."
    ]


def _narrow(text: str, paper: str = "") -> str:
    """Returns a table without the spaces that align its columns, under a heading without the paper's name."""
    text = text.replace(f"## {paper}: ", "## ", 1)
    return re.sub(r"(?m)^\|.*$", lambda line: re.sub(r" {2,}|-{4,}", _shorter, line[0]), text)


def _shorter(found: re.Match[str]) -> str:
    return found[0][:3].replace("   ", " ").replace("  ", " ")


def _claims(paper: str, results: Path) -> str:
    """Returns the table of claims, in the order of the paper's file."""
    path = results / f"tables/{paper}_verdict.parquet"
    layout, data = tables.read_layout(path), pd.read_parquet(path, columns=["id", "section"])
    claims: Any = read_yaml(project.path(f"resources/papers/{paper}/findings.yaml"))
    order = [each["id"] for each in claims]
    data["place"] = data["id"].map(order.index)
    data["late"] = data["section"] != "abstract"
    rows = data.sort_values(["late", "section", "place"]).index
    layout = layout.iloc[rows]
    layout.index = pd.Index(layout.index.get_level_values("Section"), name="Section")
    text = tables.markdown(layout, tables.Page(path.stem, "", "", ""))
    # Its heading is the page's.
    return _narrow(text.partition("\n")[2].strip() + "\n")


def write_index() -> None:
    """Writes docs/papers/index.md, which lists the pages."""
    folder = project.ROOT / PAGES
    pages = [path for path in sorted(folder.glob("*.md")) if path.name != "index.md"]
    entries = [
        (path.name, path.read_text().partition("\n")[0].removeprefix("# ")) for path in pages
    ]
    (folder / "index.md").write_text(render("papers.md.jinja", pages=entries) + "\n")


if __name__ == "__main__":
    main()
