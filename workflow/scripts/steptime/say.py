"""Lines for the user, who may have stopped to read them."""

import os
import sys


def say(text: str) -> None:
    """Prints a line beside the output; where its reader is gone, this and later ones are lost and nothing else is."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        # What is left in the buffer would raise again when the program ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
