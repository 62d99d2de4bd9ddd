"""Prints what the worker itself prints, at no risk: a disk may be full, and a framework may close its streams."""

import contextlib
import sys
import traceback

LOST = (OSError, ValueError, AttributeError)


def print_exception():
    """Prints the traceback of the exception that is handled, if it can be printed."""
    with contextlib.suppress(*LOST):
        traceback.print_exc()


def flush():
    """Writes what is still to be printed, if it can be written."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(*LOST):
            stream.flush()
