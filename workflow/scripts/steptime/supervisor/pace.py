"""Compares a worker's clock with this machine's: an adapter, or a library of its own, may have changed it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

# This process looks twice a second. If it comes later, it was stopped or had no CPU, and what went on is not known.
MOST_SECONDS = 1.0
# All but a hundredth of a window's seconds are in its samples. Where samples have less than this share of the window,
# less one second, the worker's clock is wrong.
LEAST_SHARE = 0.5
SLACK_SECONDS = 1.0
# To tell of a sample takes some 0.05 ms, more where CPUs are wanted, and short blocks are many.
TELLING_SECONDS = 0.0003


class Pace:
    """A watch that counts the seconds during which a worker does what it is measured by: never too many of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._last: float | None = None

    def begin(self) -> None:
        if self._last is not None:
            # Samples are taken once more: what came before is left out, as they are.
            self.seconds = 0.0
        self._last = self._clock()

    def end(self) -> None:
        self.look(0)
        self._last = None

    def look(self, pid: int) -> None:
        if self._last is not None:
            now = self._clock()
            self.seconds += min(now - self._last, MOST_SECONDS)
            self._last = now

    def refusal(
        self, samples: Sequence[tuple[int, float]], epochs: Sequence[dict[str, Any]]
    ) -> str:
        """Says why the seconds of all samples, or of all epochs and their tests, cannot be true; "" where they can."""
        timed = sum(steps * seconds for steps, seconds in samples)
        timed += sum(epoch["seconds"] + (epoch.get("test_seconds") or 0.0) for epoch in epochs)
        most = timed + TELLING_SECONDS * len(samples)
        if not timed or most >= LEAST_SHARE * (self.seconds - SLACK_SECONDS):
            return ""
        return f"its clock goes wrong: what it timed took {self.seconds:.3g} s, and by its clock {timed:.3g} s"
