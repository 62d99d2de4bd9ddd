"""Prints lines for the user, who may have stopped reading."""

import json
import os
import sys
import textwrap
import time
from contextlib import suppress

from steptime import run

# Columns of a line.
WIDEST = 120
# What the programs of a run are doing, a line each: process, when it began, words. Each line that is said touches it.
DOING = run.FOLDER / "doing"


def say(text: str) -> None:
    """Prints a line on standard error; where its reader is gone, it and later ones are lost, and nothing else."""
    try:
        # In one write: lines of jobs side by side do not tear.
        print(f"{text}\n", end="", file=sys.stderr, flush=True)
    except OSError:
        # What is left in the buffer would raise again when the program ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    with suppress(OSError):
        os.utime(DOING)


def filled(text: str, indent: str = "") -> str:
    """Breaks a sentence into as many lines as it needs, each with an indent."""
    return textwrap.fill(
        text,
        WIDEST,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say_sentence(text: str) -> None:
    """Prints a sentence in as many lines as it needs."""
    say(filled(text))


def doing(what: str) -> None:
    """Writes down what this program does from now on; the run says so if it is silent for long."""
    with suppress(OSError), DOING.open("a") as file:
        begun = os.stat(DOING).st_mtime
        file.write(f"{json.dumps([os.getpid(), time.time(), what])}\n")
        file.flush()
        # Nothing was said.
        os.utime(DOING, (begun, begun))
