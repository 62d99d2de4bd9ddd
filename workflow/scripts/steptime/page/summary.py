"""Prints the last words of a run: its answer, what was disturbed, where the report is, how long it took."""

import argparse
import json
import os
import shlex
import shutil
import textwrap
import time
from pathlib import Path
from typing import Any

from steptime import run
from steptime.plain import plural
from steptime.run import progress

REPORT = Path("results/report/index.html")
# How many tables and figures are named one by one.
FEW = 6
INTERRUPTED = (
    " The run did not end well; what was measured is kept, and the same command goes on from here."
)
# What `page.so_far` wrote meanwhile, and what becomes of its page.
SO_FAR = Path("results/so_far")
ONWARD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={to}">
<title>steptime: the run has ended</title>
</head>
<body><p>The run has ended: <a href="{to}">{to}</a> has all of it.</p></body>
</html>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Print what a run has made.")
    ended = parser.add_mutually_exclusive_group(required=True)
    ended.add_argument("--succeeded", action="store_true")
    ended.add_argument("--failed", dest="succeeded", action="store_false")
    parser.add_argument("--table", default="", help="how the table of times is made, as JSON")
    parser.add_argument("--cells", type=Path, default=Path(), help="the merged rows that it shows")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    made = [path for path in options.files if path.exists()]
    job = json.loads(options.table) if options.table else {}
    table = Path(f"results/tables/{job.get('artefact')}.html")
    if options.succeeded:
        _take_over([path for path in (REPORT, table) if path in made])
    lines = _answer(job, options.cells) if table in made and options.cells.is_file() else []
    lines += _places(made)
    took = f"{_duration()}{'' if options.succeeded else INTERRUPTED}"
    print("\n".join(["", *lines, took]), flush=True)


def _answer(job: dict[str, Any], cells: Path) -> list[str]:
    """Says who is how fast, and which results were disturbed."""
    # Only where it is needed: it takes a second.
    from steptime.artefacts.inputs import Inputs
    from steptime.page import screen

    inputs = Inputs(job["artefact"], job["data"] | {"cells": [str(cells)]}, job["facts"])
    lines, marked = screen.lines(inputs), screen.disturbed(inputs)
    if marked:
        asked = run.facts().get("asked", {}).items()
        command = " ".join(["make again", *(f"{name}={shlex.quote(it)}" for name, it in asked)])
        what = f"{plural(len(marked), 'result')} disturbed by something else, as {marked[0]}"
        lasting = progress.duration(screen.seconds_again(inputs))
        lines.append(f"{what}: `{command}` measures again (about {lasting}).")
    return [line for text in lines for line in textwrap.wrap(text, screen.WIDEST) or [""]]


def _places(made: list[Path]) -> list[str]:
    """Says where to read on: in the report, or in the files that were asked for by name."""
    folders = sorted({str(path.parent) for path in made if path != REPORT})
    others = sum(path != REPORT for path in made)
    if REPORT in made:
        return [f"Report: {REPORT} ({plural(others, 'file')} in {' and '.join(folders)})"]
    groups: dict[Path, list[str]] = {}
    for path in made:
        groups.setdefault(path.with_suffix(""), []).append(path.suffix[1:])
    named = [f"{path}.{{{','.join(sorted(endings))}}}" for path, endings in sorted(groups.items())]
    return [f"{plural(others, 'file')} in {' and '.join(folders)}"] if len(named) > FEW else named


def _take_over(whole: list[Path]) -> None:
    """Removes what was shown during the run; its page, which may be open somewhere, leads to the first of `whole`."""
    page = SO_FAR / "index.html"
    was_there = page.exists()
    shutil.rmtree(SO_FAR, ignore_errors=True)
    if was_there and whole:
        SO_FAR.mkdir(parents=True)
        to = os.path.relpath(whole[0], SO_FAR)
        page.write_text(ONWARD.format(to=to), encoding="utf-8")


def _duration() -> str:
    facts = run.facts()
    took = progress.duration(time.monotonic() - facts["began"])
    if not facts["cells"]:
        return f"Done in {took}; nothing had to be measured."
    return f"{len(progress.finished())} of {facts['cells']} runs measured in {took}."


if __name__ == "__main__":
    main()
