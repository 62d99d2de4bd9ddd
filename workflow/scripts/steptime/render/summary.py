"""The last words of a run: the table, where the files are, how long it took.

launch render.summary --succeeded --shown=steptime_times results/tables/steptime_times.html ...
"""

import argparse
import shutil
import time
from pathlib import Path

from steptime.plan import run
from steptime.supervisor import progress

REPORT = Path("results/report/index.html")
# What `render.so_far` wrote meanwhile.
SO_FAR = Path("results/so_far")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Print what a run has made.")
    ended = parser.add_mutually_exclusive_group(required=True)
    ended.add_argument("--succeeded", action="store_true")
    ended.add_argument("--failed", dest="succeeded", action="store_false")
    parser.add_argument("--shown", default="", help="the table of times to print, by its name")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    if options.succeeded:
        shutil.rmtree(SO_FAR, ignore_errors=True)
    made = [path for path in options.files if path.exists()]
    shown = Path(f"results/tables/{options.shown}.parquet")
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
