# Reads the configuration, expands the grid, and gives the rules what they name. No rules.
import gc
import json
import re

ENGINE.tell_programs(SCRIPTS)

from steptime import tasks
from steptime.flow.catalogue import OUTPUTS, Catalogue, merged
from steptime.flow.needed import Needed
from steptime.flow.planned import Planned
from steptime.flow.resources import Cluster, References, Turns
from steptime.flow.running import Running
from steptime.plan import digests
from steptime.plan.cell import FOLDER, MARK, ROUNDED
from steptime.reading import InputError

# Planning makes millions of objects that all stay; to look for garbage among them took a fifth of its time.
gc.set_threshold(200_000, 50, 100)

try:
    PLANNED = Planned(ROOT, config, ENGINE)
except InputError as error:
    # Not a WorkflowError: it would wrap the sentence in lines about this file.
    sys.exit(str(error))
CATALOGUE = Catalogue(PLANNED)
NEEDED = Needed(PLANNED, CATALOGUE)
RUNNING = Running(PLANNED, CATALOGUE, NEEDED)
TURNS = Turns(PLANNED)
REFERENCES = References(PLANNED, TURNS)
CLUSTER = Cluster(PLANNED)
CONFIGURATION, PLAN, EXPECTED = PLANNED.configuration, PLANNED.plan, PLANNED.expected
HERE, OWN_SOFTWARE = PLANNED.here, ENGINE.own_software

ENGINE.speak_plainly(RUNNING.unknown_target)
ENGINE.after_dry_run(RUNNING.tell)
ENGINE.share_out_host()
NEEDED.decide()

if ENGINE.cores is not None and ENGINE.cores < 1:
    sys.exit(
        f"With --cores {ENGINE.cores} no job can begin: write --cores all, or how many CPUs jobs may take."
    )
if ENGINE.is_main and not ENGINE.only_tells:
    PLANNED.begin()


def choice(names):
    """Returns the regular expression that accepts these names and nothing else."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def code_of(program):
    """Returns a parameter that makes files again where the code of a program has changed."""
    return lambda wildcards: digests.program_digest(f"steptime.{program}")
