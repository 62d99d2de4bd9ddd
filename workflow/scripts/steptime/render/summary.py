"""The last words of a run: the table, where the files are, how long it took.

    workflow/scripts/launch render.summary --succeeded --shown=steptime_times \
    results/tables/steptime_times.html ...
"""

import argparse
import os
import shutil
import time
from pathlib import Path

from steptime import run
from steptime.supervisor import progress

REPORT = Path("results/report/index.html")
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
    """Command line."""
    parser = argparse.ArgumentParser(description="Print what a run has made.")
    ended = parser.add_mutually_exclusive_group(required=True)
    ended.add_argument("--succeeded", action="store_true")
    ended.add_argument("--failed", dest="succeeded", action="store_false")
    parser.add_argument("--shown", default="", help="the table of times to print, by its name")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    made = [path for path in options.files if path.exists()]
    shown = Path(f"results/tables/{options.shown}.parquet")
    if options.succeeded:
        whole = [path for path in (REPORT, shown.with_suffix(".html")) if path in made]
        _take_over(whole)
    if shown in made:
        # Only where it is needed: it takes a second.
        from steptime.render import terminal

        terminal.show(shown)
    report = next((path for path in made if path == REPORT), None)
    made = [path for path in made if path != REPORT]
    if made:
        print("\nFiles:")
        for path, endings in sorted(_grouped(made).items()):
            print(
                f"  {path}.{{{','.join(sorted(endings))}}}"
                if len(endings) > 1
                else f"  {path}.{endings[0]}"
            )
    if report:
        print(f"\nAll of it on one page, to open in a browser: {report}")
    print(f"\n{_duration()}" + ("" if options.succeeded else _interrupted()))


def _take_over(whole: list[Path]) -> None:
    """Removes what was shown meanwhile; its page, which somebody may look at, leads on to the first of `whole`."""
    page = SO_FAR / "index.html"
    was_there = page.exists()
    shutil.rmtree(SO_FAR, ignore_errors=True)
    if was_there and whole:
        SO_FAR.mkdir(parents=True)
        to = os.path.relpath(whole[0], SO_FAR)
        page.write_text(ONWARD.format(to=to), encoding="utf-8")


def _grouped(files: list[Path]) -> dict[Path, list[str]]:
    """Endings by the path without ending."""
    groups: dict[Path, list[str]] = {}
    for path in files:
        groups.setdefault(path.with_suffix(""), []).append(path.suffix[1:])
    return groups


def _duration() -> str:
    told = run.facts()
    took = progress.duration(time.monotonic() - told["began"])
    if not told["cells"]:
        return f"Done in {took}; no cell had to be measured."
    return f"{len(progress.finished())} of {told['cells']} cells measured in {took}."


def _interrupted() -> str:
    return " The run did not end well; what was measured is kept, and the same command goes on from here."


if __name__ == "__main__":
    main()
