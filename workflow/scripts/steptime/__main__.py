"""Runs one of the workflow's programs, as `python -m` does.

    workflow/scripts/launch carry.pack pack --to results.tar.gz

A mistake or a full disk ends it with one sentence; a reader that is gone, as `head` is after ten lines, with none.
"""

import errno
import os
import runpy
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steptime import warm
from steptime.reading import InputError

# What a module has that is a program.
STARTS = 'if __name__ == "__main__":'
# No space, no quota left, or a file above the limit of the shell (`ulimit -f`).
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Runs the command line: the program's module and its own arguments."""
    del sys.argv[0]
    name = next(iter(sys.argv), "launch")
    with said_in_words(name):
        _require_program(sys.argv[:1])
        if (status := warm.status_of(sys.argv)) is not None:
            sys.exit(status)
        runpy.run_module(f"steptime.{name}", run_name="__main__", alter_sys=True)


def _require_program(named: list[str]) -> None:
    """Ends with the list of programs where none of them is named."""
    folder = Path(__file__).parent
    paths = {path.relative_to(folder).with_suffix(""): path for path in folder.rglob("*.py")}
    modules = {".".join(relative.parts): path for relative, path in paths.items()}
    if named and named[0] in modules:
        return
    programs = sorted(name for name, path in modules.items() if STARTS in path.read_text("utf-8"))
    programs.remove("__main__")
    listed = "\n  ".join(programs)
    if named and named[0] in ("-h", "--help"):
        print(f"usage: launch PROGRAM ..., and launch PROGRAM --help; the programs are\n  {listed}")
        sys.exit()
    what = f"There is no program '{named[0]}'" if named else "Name a program"
    sys.exit(f"{what}: launch PROGRAM ..., with one of\n  {listed}")


@contextmanager
def said_in_words(name: str) -> Iterator[None]:
    """Ends a program of this name with a sentence, whatever stops it (see above)."""
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        # As a shell reports Ctrl-C.
        sys.exit(130)
    except InputError as error:
        sys.exit(str(error))
    except BrokenPipeError:
        if _has_reader():
            raise
        _drop_output()
        # As a shell reports SIGPIPE.
        sys.exit(141)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        _drop_output()
        sys.exit(
            f"{name}: a file could not be written ({os.strerror(error.errno)}): free some space and run again."
        )


def _drop_output() -> None:
    """Drops what is left to be printed: it would raise again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _has_reader() -> bool:
    """Tells whether anybody may still read what is printed."""
    asked = select.poll()
    asked.register(sys.stdout, 0)
    return not any(event & select.POLLERR for _, event in asked.poll(0))


if __name__ == "__main__":
    main()
