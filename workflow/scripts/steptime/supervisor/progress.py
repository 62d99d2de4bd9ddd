"""Tells on the terminal which cell of how many is being measured, and about how long the rest will take."""

from contextlib import suppress

from steptime.plan import run
from steptime.say import say

# A line for each cell that was measured: its seconds, and its trial.
FINISHED = run.FOLDER / "finished"
# A line for each process that was measured again, since something else had disturbed the one before: its seconds.
AGAIN = run.FOLDER / "again"
# Of the time that all cells of a run take, what may be spent on such processes.
MOST_AGAIN = 0.1


def begin() -> None:
    """Forgets the cells of the run before."""
    FINISHED.parent.mkdir(parents=True, exist_ok=True)
    FINISHED.write_text("")
    AGAIN.write_text("")


def announce(title: str) -> None:
    """Prints what is going to be measured, as which cell of how many, and the time left."""
    say(f"{_position()}{title}{_left()}")


def report(title: str, result: str, seconds: float, trial: str) -> None:
    """Prints what came out, and counts the cell."""
    # A disk that is full by now has room for the shard and must not cost it.
    with suppress(OSError), FINISHED.open("a") as file:
        file.write(f"{seconds:.1f} {trial}\n")
    say(f"    {title}: {result}")


def finished() -> list[tuple[float, str]]:
    """Seconds and trial of each cell that this run has measured."""
    try:
        lines = FINISHED.read_text().splitlines()
        return [(float(seconds), trial) for seconds, trial in map(str.split, lines)]
    except (OSError, ValueError):
        return []


def allows_another(seconds: float) -> bool:
    """Whether this run has the time to measure a process again that took so long."""
    cells, took = run.facts().get("cells", 0), [each for each, _ in finished()] or [seconds]
    try:
        spent = sum(map(float, AGAIN.read_text().split()))
    except (OSError, ValueError):
        return False
    return spent + seconds <= MOST_AGAIN * cells * sum(took) / len(took)


def count_another(seconds: float) -> None:
    """Counts a process that was measured again."""
    with suppress(OSError), AGAIN.open("a") as file:
        file.write(f"{seconds:.1f}\n")


def ended_trial() -> str:
    """The trial that ended with the cell that was measured last, where others follow it; '' elsewhere."""
    trials, done = run.facts().get("trials", {}), [trial for _, trial in finished()]
    if not done or done.count(done[-1]) != trials.get(done[-1]):
        return ""
    return done[-1] if any(done.count(name) < cells for name, cells in trials.items()) else ""


def duration(seconds: float) -> str:
    """A number of seconds as people say it: 42 s, 7 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _position() -> str:
    cells = run.facts().get("cells", 0)
    return f"cell {min(len(finished()) + 1, cells)} of {cells}: " if cells else ""


def _left() -> str:
    cells, took = run.facts().get("cells", 0), [seconds for seconds, _ in finished()]
    if not took or cells <= len(took):
        return ""
    return f" (about {duration(sum(took) / len(took) * (cells - len(took)))} left)"
