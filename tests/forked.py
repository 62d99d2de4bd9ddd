"""Runs of Snakemake in processes that have it imported already: to import it takes half as long as a dry run.

What hears signals, or is about how a run starts, is a process of its own: `Checkout.start`, and the runs of `make`.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
# Nothing of ours: that is of a checkout, which nobody knows yet. What else is imported, Snakemake imports in each run.
SERVER = """
import gc, json, os, signal, sys
import docutils.parsers.rst.directives.images, jsonschema, pandas, smart_open
import snakemake.report.html_reporter, snakemake_executor_plugin_slurm
from snakemake.cli import main

gc.freeze()
for line in sys.stdin:
    if not (number := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)
else:
    sys.exit()
sys.argv, folder, variables, output, seconds = json.loads(line)
sys.path[0] = os.path.dirname(sys.argv[0])
signal.alarm(seconds)
os.environ.clear()
os.environ.update(variables)
os.chdir(folder)
for stream, path in enumerate((os.devnull, output, output)):
    os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), stream)
sys.exit(main())
"""


@cache
def server() -> subprocess.Popen[str]:
    """The process that forks, until `end`."""
    return subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def end() -> None:
    """Ends the process that forks: tests of other files ask which processes are left of what they began."""
    if server.cache_info().currsize:
        server().communicate()
        server.cache_clear()


def run(
    command: list[str], folder: Path, variables: Mapping[str, str], output: Path, seconds: int
) -> int:
    """The exit code of `snakemake ...` in a folder; both its streams are appended to `output`."""
    process = server()
    asked = [command, str(folder), dict(variables), str(output), seconds]
    print(json.dumps(asked), file=process.stdin, flush=True)
    return int(process.stdout.readline())
