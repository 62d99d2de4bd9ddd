"""Finds the release in which a framework became slower, or faster, on one network, by halving.

    launch compare.bisect torch-2.13 2.0.0 2.13.0 --networks lstm32

The environment says of which framework, and with which other packages. Both ends are held against each other first;
then each release in the middle against the older end, as a watch does. One that cannot be installed or proven is left
out.
"""

import argparse
import re
import subprocess
import sys
from typing import Any

from steptime.compare import results, words
from steptime.compare.candidate import Folder
from steptime.compare.sides import CompareError, slug
from steptime.compare.verdicts import FASTER, SLOWER
from steptime.compare.watch import Watch, add_options, complaints
from steptime.merge.intervals import Ratio

FOUND = re.compile(r"Available versions: (.*)")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Find the release that changed a time.")
    parser.add_argument("environment", help="whose file of pins is used for every release")
    parser.add_argument("first", help="the older release")
    parser.add_argument("last", help="the newer release")
    parser.add_argument("--releases", nargs="+", help="those between, instead of the index's")
    add_options(parser, ["lstm32"])
    options = parser.parse_args()
    with complaints():
        if len(options.networks) > 1 or len(options.threads) > 1:
            raise CompareError(
                "A search is of one cell: name one network and one number of threads."
            )
        folder = Folder(
            options.folder / f"{slug(options.environment)}_{options.first}_{options.last}"
        )
        between = options.releases or releases(*folder.package_of(options.environment))
        sys.exit(Search(folder, options, within(between, options.first, options.last)).run())


def releases(package: str, python: str) -> list[str]:
    """The releases of a package that the index has wheels of for this Python, oldest first. Raises CompareError."""
    asked = ["index", "versions", package, "--python-version", python, "--only-binary", ":all:"]
    done = subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True, text=True)
    found = FOUND.search(done.stdout)
    if done.returncode or found is None:
        raise CompareError(
            f"The index does not tell the releases of {package}: name them, --releases 2.1.0 2.2.0."
        )
    # A build of one's own, as 2.13.0+cpu in a folder of wheels, is no other release.
    return [version for version in reversed(found[1].split(", ")) if "+" not in version]


def within(known: list[str], first: str, last: str) -> list[str]:
    """The releases from the first to the last, oldest first; 2.16 means the first that begins so, or the last.

    Raises CompareError where there is none, or where the last is not newer.
    """
    ordered = sorted(known, key=_order)
    ends = [
        [at for at, version in enumerate(ordered) if f"{version}.".startswith(f"{end}.")]
        for end in (first, last)
    ]
    for asked, found in zip((first, last), ends, strict=True):
        if not found:
            raise CompareError(
                f"There is no release {asked} for this Python: write one of {', '.join(ordered)}."
            )
    start, end = ends[0][0], ends[1][-1]
    if start >= end:
        raise CompareError(f"{first} is not older than {last}: name the older release first.")
    return ordered[start : end + 1]


def _order(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


class Search:
    """The releases that may have brought the change: between one that has it not, and one that has it."""

    def __init__(self, folder: Folder, options: argparse.Namespace, known: list[str]) -> None:
        self.folder, self.options, self.known = folder, options, known
        self.base = folder.add(options.environment, known[0])

    def run(self) -> int:
        """Halves the releases until one is left; says which, and returns the exit status of `compare.results`."""
        whole, status = self._held(self.known[-1])
        if whole is None:
            print(
                f"{self.known[0]} or {self.known[-1]} has no time, as the table says: name another release."
            )
            return results.CANNOT_TELL
        if status == results.CANNOT_TELL:
            print(
                f"{self.known[0]} and {self.known[-1]} cannot be told apart: there is nothing to look for."
            )
            return results.CANNOT_TELL
        low, high = 0, len(self.known) - 1
        while high - low > 1:
            middle = (low + high) // 2
            ratio, _ = self._held(self.known[middle])
            if ratio is None:
                del self.known[middle]
                high -= 1
                continue
            # Whichever end it is nearer to.
            low, high = (low, middle) if ratio.log / whole.log > 0.5 else (middle, high)
        side = SLOWER if whole.log > 0 else FASTER
        print(
            f"{self.options.networks[0]} became {side} between {self.known[low]} and {self.known[high]} "
            f"({words.times(*whole.interval)} times the time of {self.known[0]} in {self.known[-1]})."
        )
        return results.SLOWDOWN if side == SLOWER else results.NO_SLOWDOWN

    def _held(self, release: str) -> tuple[Ratio | None, int]:
        """The ratio of a release to the oldest, None where it has no time, and the exit status of its watch."""
        candidate = self.folder.add(self.options.environment, release)
        watch = Watch(self.folder, self.base, candidate, self.options)
        watch.measure()
        status = watch.tell()
        found: Any = watch.table()["known"].iloc[0]
        return found, status


if __name__ == "__main__":
    main()
