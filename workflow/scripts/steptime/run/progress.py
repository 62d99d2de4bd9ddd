"""Prints on the terminal what came out of each run, which of how many it was, and when all will be done."""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from steptime import run
from steptime.plain import machine_name, plural
from steptime.plan.cell import PLACE, key_of, shard_path
from steptime.run import estimate
from steptime.say import DOING, say, say_sentence

# A line for each cell that was measured: its seconds, the stages of the grid that it is of, and its key, as JSON.
FINISHED = run.FOLDER / "finished"
# There while a page is to be made of the cells so far: the stage of the grid that has ended, if one has.
DUE = run.FOLDER / "due"
# Seconds after which a run says what it is doing where it has said nothing meanwhile.
QUIET = 20
# A guess before the first run is right within a fifth.
SURELY = 1.2


def begin() -> None:
    """Forgets the cells of the run before."""
    FINISHED.parent.mkdir(parents=True, exist_ok=True)
    for path in (FINISHED, DOING):
        path.write_text("")


def commanded_at() -> float:
    """Returns when this process' command began, in seconds since 1970; `make` says so."""
    return float(os.environ.get("STEPTIME_BEGAN") or psutil.Process().create_time())


def plan(
    guessed: Mapping[str, float], kins: Mapping[str, list[str]], deadline: float | None
) -> list[str]:
    """Says what a run that begins has to do, and when it will be done: not before its `deadline`, if it has one."""
    lasting, left = sum(guessed.values()), (deadline or 0.0) - time.time()
    sentences = [f"{estimate.words(guessed, kins)}: done about {clock(max(lasting, left))}."]
    if deadline and lasting > SURELY * left:
        took = duration(lasting)
        sentences.append(f"Two runs of each result take {took} here, longer than was asked for.")
    return sentences


def keep_talking() -> None:
    """Makes this process say, after every QUIET seconds without a word, what its jobs are doing."""

    def talk() -> None:
        while True:
            with suppress(OSError):
                quiet = time.time() - DOING.stat().st_mtime
                if quiet >= QUIET and (doing := under_way()):
                    say(f"    ... {doing}")
            time.sleep(max(1.0, QUIET - quiet))

    threading.Thread(target=talk, daemon=True).start()


def under_way() -> str:
    """Says what programs of this run are doing, with the time that each has taken so far."""
    titles: dict[int, str] = {}
    for number, began, what in map(json.loads, DOING.read_text().splitlines()):
        titles.pop(number, None)
        # Another program may have got the number of one that has ended.
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(number).create_time() < began + 1:
                titles[number] = f"{what} ({duration(time.time() - began)})"
    return "; ".join(titles.values())


def stages_of(cell: Mapping[str, Any], shown: Collection[str]) -> list[str]:
    """Returns the stages whose end is reported: a cell's place, the first trial at its threads, the first trial."""
    if key_of(cell) not in shown or cell["repeat"] > 1:
        return []
    machine = machine_name(cell["platform"])
    where = (
        machine if cell["device"] != "cpu" else f"{plural(cell['threads'], 'thread')} of {machine}"
    )
    place = "/".join(str(cell[name]) for name in PLACE if name not in ("variant", "device"))
    return [place, f"trial 1 at {where}", "trial 1"]


def expect(cells: Sequence[Mapping[str, Any]]) -> None:
    """Counts cells that this run measures besides those that it began with."""
    known = run.facts()
    guessed, kins = known.get("work", {}), known.get("kins", {})
    for cell in cells:
        file, second = (shard_path(key_of(each)) for each in (cell, {**cell, "repeat": 2}))
        guessed[file] = guessed.get(second, estimate.FURTHER)
        kins[file] = estimate.kin(cell)
    counted = {"cells": known["cells"] + len(cells), "work": guessed, "kins": kins}
    run.begin(**known | counted)


def report(title: str, result: str, seconds: float, stages: Sequence[str], key: str) -> None:
    """Prints what came out of a cell, and counts it; `stages` are those of `stages_of`."""
    # A disk that is full by now has room for the shard and must not cost it.
    with suppress(OSError), FINISHED.open("a") as file:
        file.write(f"{json.dumps([round(seconds, 1), stages, key])}\n")
    say_sentence(f"{_position()}{title}  {result}")


def finished() -> list[tuple[float, list[str], str]]:
    """Returns seconds, stages and key of each cell that this run has measured."""
    try:
        lines = FINISHED.read_text().splitlines()
        return [(float(seconds), stages, key) for seconds, stages, key in map(json.loads, lines)]
    except (OSError, ValueError):
        return []


def began_at() -> float:
    """Returns when this run began, by the clock of files' times."""
    return time.time() - (time.monotonic() - run.facts().get("began", 0.0))


def measured(keys: Iterable[str]) -> list[str]:
    """Returns the keys of the cells whose rows are here and are not waiting to be measured again."""
    waiting, began = set(run.facts().get("waiting", [])), began_at()
    paths = {key: Path(shard_path(key)) for key in keys}
    there = {key: path.stat().st_mtime for key, path in paths.items() if path.exists()}
    return [key for key, written in there.items() if key not in waiting or written >= began]


def goes_on() -> bool:
    """Tells whether this run measures cells one after the other and has some left."""
    facts = run.facts()
    return facts.get("stages") is not None and len(finished()) < facts["cells"]


def ended() -> str:
    """Returns the largest stage that ended with the last cell; '' where none did, or no more cells follow."""
    if not goes_on():
        return ""
    stages, done = run.facts()["stages"], [stages for _, stages, _ in finished()]
    counted = Counter(stage for each in done for stage in each)
    whole = [stage for stage in (done or [[]])[-1] if 1 < counted[stage] == stages.get(stage)]
    return whole[-1] if whole else ""


def duration(seconds: float) -> str:
    """Writes a number of seconds as people say it: 42 s, 7 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def clock(seconds: float) -> str:
    """Returns the time of day after so many seconds, with the weekday where it is another day."""
    then, today = time.localtime(time.time() + seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == today[:3] else "%a %H:%M", then)


def _position() -> str:
    facts, done = run.facts(), finished()
    cells = facts.get("cells", 0)
    if not cells:
        return ""
    ends = ""
    # On a cluster nobody knows how many run side by side.
    if facts.get("stages") is not None and "work" in facts:
        took = {key: seconds for seconds, _, key in done}
        left = estimate.left(facts["work"], facts["kins"], took, began_at())
        if facts.get("deadline"):
            left = max(left, facts["deadline"] - time.time())
        ends = f"  done about {clock(left)}"
    return f"[{len(done):>{len(str(cells))}}/{cells}{ends}]  "
