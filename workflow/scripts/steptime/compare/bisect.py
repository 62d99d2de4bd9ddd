"""Finds the release in which a framework became slower, or faster, on one network, by halving.

    workflow/scripts/launch compare.bisect tensorflow 2.4 2.21 --networks lstm32

Each release gets a Python for which the index has a wheel, and other packages that fit it, as the project's
environments of the framework have them. Both ends are compared first, as a watch does. Then each release in the middle
joins the end that it is nearer to, by its ratio to the oldest: of medians, or of means where the ends differ more
clearly in means. A release that cannot be installed or proven is left out. Where the time ends before this is decided,
the ratio as it is then decides, and the answer names the release.
"""

import argparse
import math
import sys
from typing import Any

from steptime.compare import interim, results, words
from steptime.compare.candidate import Folder, environment_of
from steptime.compare.releases import order
from steptime.compare.sides import CompareError
from steptime.compare.watch import Watch, add_options
from steptime.plain import file_name, plural
from steptime.plan.schemas import meant
from steptime.say import filled
from steptime.statistics.intervals import Ratio
from steptime.statistics.verdicts import EQUAL, FASTER, NOT_DECIDED, SLOWER, chance_of_none


def main() -> None:
    parser = argparse.ArgumentParser(description="Find the release that changed a time.")
    parser.add_argument("framework", help="or an environment of it, for those of a GPU")
    parser.add_argument("first", help="the older release")
    parser.add_argument("last", help="the newer release")
    parser.add_argument("--releases", nargs="+", help="those between, instead of the index's")
    add_options(parser, ["lstm32"])
    with results.complaints():
        options = parser.parse_args()
        if len(options.networks) > 1 or len(options.threads) > 1:
            raise CompareError(
                "A search takes one result: name one network and one number of threads."
            )
        base = environment_of(options.framework, options.networks)
        name = file_name(options.framework, options.first, options.last)
        with Folder(options.folder / name).kept_where_used() as folder:
            known = options.releases or folder.releases(base)
            between = within(known, options.first, options.last)
        print(filled(f"{len(between)} releases: {', '.join(between)}"), flush=True)
        sys.exit(Search(folder, base, options, between).run())


def within(known: list[str], first: str, last: str) -> list[str]:
    """Returns the releases from the first to the last, oldest first; 2.16 means any 2.16.x. Raises CompareError."""
    ordered = sorted(known, key=order)
    ends = [
        [at for at, version in enumerate(ordered) if f"{version}.".startswith(f"{end}.")]
        for end in (first, last)
    ]
    for value, verdict in zip((first, last), ends, strict=True):
        if not verdict:
            raise CompareError(f"There is no release {value}: {meant(value, ordered)}")
    start, end = ends[0][0], ends[1][-1]
    if start >= end:
        raise CompareError(f"{first} is not older than {last}: name the older release first.")
    return ordered[start : end + 1]


class Search:
    """The releases that may have brought the change: from one without the change to one with it."""

    def __init__(
        self, folder: Folder, environment: str, options: argparse.Namespace, releases: list[str]
    ) -> None:
        self.folder = folder
        self.environment = environment
        self.options = options
        self.releases = releases
        self.base = folder.add(environment, releases[0])

    def run(self) -> int:
        """Halves the releases until one is left; says which, and returns the exit status of `compare.results`."""
        apart, verdict = self._held(self.releases[-1], self.options.margin)
        if apart is None:
            print(
                f"{self.releases[0]} or {self.releases[-1]} has no time, as the table says: name another release."
            )
            return results.CANNOT_TELL
        if verdict not in (SLOWER, FASTER):
            alike = "are equal within the margin" if verdict == EQUAL else "cannot be told apart"
            print(
                f"{self.releases[0]} and {self.releases[-1]} {alike}: there is nothing to look for."
            )
            return results.NO_SLOWDOWN if verdict == EQUAL else results.CANNOT_TELL
        of = min(apart, key=lambda name: chance_of_none(apart[name]))
        whole = apart[of]
        low, high, step = 0, len(self.releases) - 1, whole
        if others := len(self.releases) - 2:
            print(
                f"{plural(others, 'release')} between them; about {self._halvings()} will be measured.",
                flush=True,
            )
        newer, against = self._halfway(whole, of)
        lost: list[str] = []
        guessed: list[str] = []
        while high - low > 1:
            middle = (low + high) // 2
            held, verdict = self._held(self.releases[middle], 0, against)
            if held is None:
                lost.append(self.releases.pop(middle))
                high -= 1
                continue
            ratio = held[of]
            if verdict == NOT_DECIDED:
                guessed.append(self.releases[middle])
                verdict = against.above if ratio.log > against.ratio.log else against.below
            if verdict == newer:
                high, step = middle, ratio
            else:
                low = middle
        side = SLOWER if whole.log > 0 else FASTER
        time = "time" if of == results.OF[0] else "mean time"
        change = f"{words.times(*step.interval)} times the {time} of {self.releases[0]}"
        if high < len(self.releases) - 1:
            change += f", and {words.times(*whole.interval)} times in {self.releases[-1]}"
        network, ends = self.options.networks[0], (self.releases[low], self.releases[high])
        between = [each for each in lost if order(ends[0]) < order(each) < order(ends[1])]
        for why, releases in (("no time", between), ("not decided, by the estimate", guessed)):
            change += f"; {why}: {', '.join(releases)}" if releases else ""
        print(filled(f"{network} became {side} between {' and '.join(ends)} ({change})."))
        return results.SLOWDOWN if side == SLOWER else results.NO_SLOWDOWN

    def _halvings(self) -> int:
        """Returns how often the releases are halved."""
        return math.ceil(math.log2(len(self.releases) - 1))

    def _halfway(self, whole: Ratio, of: str) -> tuple[str, interim.Against]:
        """Returns the verdict on a release that is nearer to the newer end, and with what a release in the middle is
        compared.

        Half of the way has an error of its own. The ratios share the older end's processes with it.
        """
        half = whole._replace(log=whole.log / 2, error=whole.error / 2)
        older, newer = (f"nearer to {self.releases[end]}" for end in (0, -1))
        sides = (older, newer) if whole.log > 0 else (newer, older)
        watches = max(1, self._halvings())
        meaning = (
            f"What is asked is which of {self.releases[0]} and {self.releases[-1]} it is nearer to. "
            f"The chance that any of the search's up to {watches} answers is wrong is at most 5 % for all looks "
            "together."
        )
        return newer, interim.Against(half, *sides, watches, meaning, (of,))

    def _held(
        self, release: str, margin: float, against: interim.Against = interim.ONE
    ) -> tuple[dict[str, Ratio] | None, str]:
        """Returns a release's ratios to the oldest, None where it has no time, and the verdict of its watch."""
        candidate = self.folder.add(self.environment, release)
        options = argparse.Namespace(**vars(self.options) | {"margin": margin})
        watch = Watch(self.folder, self.base, candidate, options, against)
        watch.measure()
        watch.tell()
        row: Any = watch.table().iloc[0]
        held = dict(zip(results.OF, row[results.KNOWN], strict=True))
        return (held if all(held.values()) else None), row["verdict"]


if __name__ == "__main__":
    main()
