"""Writes docs/reference/matrix.md: the table of `steptime_matrix` as it was measured last.

workflow/scripts/launch page.matrix > docs/reference/matrix.md
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from steptime import project
from steptime.plan import configuration, grid
from steptime.plan.cell import proof_name
from steptime.plan.schemas import ConfigurationError

TABLE = Path("results/tables/steptime_matrix")
HEAD = """# Networks by framework

`make matrix` writes this page. It proves each network of `config/networks.yaml` that is trained on no
data set, in its narrow version, in every environment for CPUs, and times nothing. What a network is
stands in [networks](networks.md).
"""


def main() -> None:
    """Prints the page; ends in one sentence where the table was not made."""
    try:
        loaded = configuration.load(project.ROOT, {"grid": "matrix", "data": {}})
        asked = set(grid.expand(loaded, cores=1).proven)
        rows = pd.read_parquet(TABLE.with_suffix(".parquet"))
        table = TABLE.with_suffix(".md").read_text(encoding="utf-8")
    except OSError as error:
        sys.exit(
            f"{TABLE}.md cannot be read ({error.strerror}): run `make matrix`, which makes it."
        )
    except ConfigurationError as error:
        sys.exit(str(error))
    lacking = asked - set(map(proof_name, rows.to_dict("records")))
    print(
        page(table, {name for name in loaded.grid["environments"] if _lacks(name, lacking)}), end=""
    )


def page(table: str, missing: Iterable[str]) -> str:
    """The page of an artefact's Markdown; `missing` are environments of which it has not all proofs."""
    body = re.sub(r"^## .*\n+", "", table)
    # Columns are not padded: a change of one entry is one line.
    body = re.sub(r"(?<=\|) +| +(?=\|)", " ", body)
    body = re.sub(r":?-{3,}:?", "---", body)
    names = ", ".join(sorted(missing))
    told = f"It has not all proofs of {names} yet.\n\n" if names else ""
    return f"{HEAD}\n{told}{body}"


def _lacks(environment: str, proofs: set[str]) -> bool:
    return any(proof.startswith(f"{environment}.") for proof in proofs)


if __name__ == "__main__":
    main()
