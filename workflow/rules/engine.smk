# Finds the project, and what the rules see of Snakemake's run: ENGINE. No rules.
import sys
from pathlib import Path

# The project's folder: found by this file, not by the folder that is worked in. The programs need it on this disk, and
# Snakemake takes a module from elsewhere file by file, rules only.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).absolute().parents[1]
SCRIPTS = ROOT / "workflow" / "scripts"
if not SCRIPTS.is_dir():
    sys.exit(
        f"steptime is not on this disk ({ROOT}): clone it, and name its workflow/Snakefile here."
    )
if {"{", "}"} & {*str(ROOT)}:
    sys.exit(
        f"Snakemake takes what is in braces for names of its own: move {ROOT} to a folder without them."
    )
sys.path.insert(0, str(SCRIPTS))

from steptime.flow.engine import Engine

ENGINE = Engine(workflow, rules, checkpoints)
