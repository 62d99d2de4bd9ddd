"""Seconds to make, open, filter and sort a report of 20,000 cells, in the Chromium on PATH.

    .venv/bin/python benchmarks/report.py

The cells are a stand-in: rows as `merge.summary` gives them, with invented times. Limits of the project: 5 s to make
and 2 s to open the page, 0.5 s for a filter or a sort.
"""

import itertools
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "workflow" / "scripts"), str(ROOT / "tests")]

import browser  # noqa: E402

from merge.summary import COLUMNS  # noqa: E402
from papers.inputs import Frameworks, Measured, read_yaml  # noqa: E402
from report import page  # noqa: E402

CELLS = 20_000
ROWS = "document.querySelectorAll('#cells-table tbody tr').length"
CHOOSE = """(() => {{ const began = performance.now(), choice = document.querySelectorAll('form select')[{place}];
choice.selectedIndex = 1; choice.dispatchEvent(new Event('change', {{bubbles: true}}));
document.body.offsetHeight; return (performance.now() - began) / 1000; }})()"""
SORT = """new Promise((done) => { const began = performance.now();
const heading = document.querySelector('#cells-table thead th:nth-child(7)');
const look = () => (heading.ariaSort ? done((performance.now() - began) / 1000) : setTimeout(look, 5));
heading.click(); look(); })"""


def stand_in(networks: list[str]) -> Measured:
    """CELLS invented cells, every twentieth of which has failed."""
    random = np.random.default_rng(1)
    places = itertools.islice(
        itertools.product(
            ("local-cpu", "server-cpu", "gtx1080", "h200"),
            (
                ("torch-2.13", "torch", "eager"),
                ("tensorflow-2.21", "tensorflow", "graph"),
                ("mxnet-1.9", "mxnet", "graph"),
            ),
            networks,
            (1, 2, 4, 8, 16, 32),
            range(1, 100),
        ),
        CELLS,
    )
    rows = []
    for number, (platform, (environment, framework, mode), network, threads, batch) in enumerate(places):
        seconds = None if number % 20 == 0 else float(random.lognormal(-3, 2))
        rows.append(
            dict.fromkeys(COLUMNS)
            | {"platform": platform, "environment": environment, "framework": framework, "adapter_mode": mode}
            | {"network": network, "variant": "", "device": "cpu", "devices": 1, "threads": threads, "batch": batch}
            | {"seconds": seconds, "low": seconds and 0.98 * seconds, "high": seconds and 1.03 * seconds}
            | {"status": "ok" if seconds else "timeout", "reason": "" if seconds else "not done after 900 s"}
            | {"samples": 12, "repeats": 1, "peak_memory_bytes": float(random.integers(2**28, 2**33)), "marks": []}
            | {"machine_id": platform, "framework_version": environment.partition("-")[2], "flops_per_step": 1e9}
        )
    cells = pd.DataFrame(rows)
    return Measured(
        pd.DataFrame({"started_at": [], "workflow_commit": []}), cells, {}, {}, "results/merged/stand-in.parquet"
    )


def main() -> None:
    """Prints one line for each thing that a reader waits for."""
    catalogue = read_yaml(ROOT / "config/networks.yaml")
    measured = stand_in([name for name in catalogue])
    job = {"grid": "stand-in", "sampling": {"budget_seconds": 1, "precision": 0.1, "least_samples": 5}}
    job |= {"limits": {"seconds": 1}, "artefacts": []}
    frameworks = Frameworks(ROOT / "resources/papers/frameworks.yaml")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "index.html"
        began = time.monotonic()
        path.write_text(page.build(job, [measured], {}, frameworks, catalogue, path))
        size = path.stat().st_size / 2**20
        print(f"make: {time.monotonic() - began:.2f} s, {len(measured.cells)} cells, {size:.1f} MiB")
        command = browser.find() or sys.exit("There is no Chromium on PATH: install one to see how fast the page is.")
        with browser.chromium(command, Path(folder) / "profile") as opened:
            began = time.monotonic()
            opened.open(path)
            opened.wait(f"{ROWS} > 1")
            print(f"open, until the table is drawn: {time.monotonic() - began:.2f} s")
            for place, name in enumerate(("network", "framework", "mini-batch")):
                print(f"filter by {name}: {opened.run(CHOOSE.format(place=place)):.2f} s")
            opened.run("document.querySelector('form button').click()")
            opened.wait("document.querySelector('.dt-info').innerText.includes('20,000')")
            print(f"sort by time: {opened.run(SORT):.2f} s")


if __name__ == "__main__":
    main()
