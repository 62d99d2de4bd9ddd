"""The samples behind each result of a run, one line for each of its runs, with the shard that has all of it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steptime.merge.measured import Measured
from steptime.page import embed
from steptime.plan.cell import IDENTITY, key_of, shard_path
from steptime.render.words import significant
from steptime.statistics import words

MOST = 12  # samples of a run in the page; its file has them all


def gather(measured: Iterable[Measured], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Returns each timed result's runs, by its key: `repeat`, `link` from `folder` to the shard, `samples` in words."""
    by_result: dict[str, dict[int, dict[str, Any]]] = {}
    for part in measured:
        timed = part.rows[part.rows["seconds"].notna()]
        for values, rows in timed.groupby([*IDENTITY, "repeat"], sort=False):
            facts = dict(zip([*IDENTITY, "repeat"], values, strict=True))
            times = [significant(1000 * seconds) for seconds in rows["seconds"]]
            more = f" and {len(times) - MOST} more" if len(times) > MOST else ""
            run = {"repeat": facts["repeat"], "samples": " ".join(times[:MOST]) + more}
            run["link"] = embed.link(shard_path(key_of(facts)), folder)
            by_result.setdefault(words.key(facts), {})[facts["repeat"]] = run
    return {key: [runs[repeat] for repeat in sorted(runs)] for key, runs in by_result.items()}
