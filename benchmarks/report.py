"""How long it takes to make, open, filter and sort a report of 20,000 cells, in the Chromium on PATH.

    .venv/bin/python benchmarks/report.py

The cells are a stand-in: merged rows with invented times. Limits of the project: 6 CPU-seconds
to make and 3 s to open the page, 0.5 s for a filter or a sort.
"""

import itertools
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "workflow" / "scripts"), str(ROOT / "tests")]

import browser  # noqa: E402

from steptime.cells import shard  # noqa: E402
from steptime.cells.schema import schema_of  # noqa: E402
from steptime.merge.measured import read_measured  # noqa: E402
from steptime.page import page  # noqa: E402
from steptime.reading import read_yaml  # noqa: E402
from steptime.render.frameworks import Frameworks  # noqa: E402

CELLS = 20_000
SAMPLES = 6
ROWS = "document.querySelectorAll('#cells-table tbody tr').length"
CHOOSE = """(() => {{ const began = performance.now(), choice = document.querySelectorAll('form select')[{place}];
choice.selectedIndex = 1; choice.dispatchEvent(new Event('change', {{bubbles: true}}));
document.body.offsetHeight; return (performance.now() - began) / 1000; }})()"""
SORT = """new Promise((done) => { const began = performance.now();
const heading = document.querySelector('#cells-table thead th:nth-child(8)');
const look = () => (heading.ariaSort ? done((performance.now() - began) / 1000) : setTimeout(look, 5));
heading.click(); look(); })"""


def stand_in(networks: list[str], path: Path) -> None:
    """Writes merged rows of CELLS invented cells, SAMPLES samples each; every twentieth cell has failed."""
    random = np.random.default_rng(1)
    environments = (
        ("torch-9.9", "torch"),
        ("tensorflow-2.21", "tensorflow"),
        ("mxnet-1.9", "mxnet"),
    )
    platforms = ("local-cpu", "server-cpu", "gtx1080", "h200")
    places = itertools.product(
        platforms, environments, networks, (1, 2, 4, 8, 16, 32), range(1, 100)
    )
    cells = pd.DataFrame(
        [
            {
                "platform": platform,
                "environment": environment,
                "framework": framework,
                "network": network,
            }
            | {"threads": threads, "batch": batch}
            for platform, (environment, framework), network, threads, batch in itertools.islice(
                places, CELLS
            )
        ]
    )
    failed = np.arange(CELLS) % 20 == 0
    cells = cells.assign(
        framework_version=cells["environment"].str.partition("-")[2],
        mode="graph",
        precision="float32",
        task="step",
        dataset="",
        exchange="",
        device="cpu",
        devices=1,
        repeat=1,
        status=np.where(failed, "timeout", "ok"),
        reason=np.where(failed, "not done after 900 s", ""),
        seconds=np.where(failed, np.nan, random.lognormal(-3, 2, CELLS)),
        flops_per_step=10**9,
        timed_region="forward,loss,backward,update,sync",
        peak_memory_bytes=random.integers(2**28, 2**33, CELLS),
        effective_threads=cells["threads"].astype(float),
        machine_id=cells["platform"],
        started_at=pd.Timestamp("2026-01-01", tz="UTC"),
    )
    rows = cells.loc[np.repeat(np.arange(CELLS), np.where(failed, 1, SAMPLES))]
    rows = rows.assign(seconds=rows["seconds"] * random.lognormal(0, 0.02, len(rows)))
    table = pa.Table.from_pandas(
        rows.reindex(columns=schema_of("step").names), schema_of("step"), preserve_index=False
    )
    described = {
        "machines": {name: {"cpu": {"logical_cores": 32}} for name in platforms},
        "software": {},
    }
    pq.write_table(
        table.replace_schema_metadata({shard.FOOTER: json.dumps(described).encode()}), path
    )


def main() -> None:
    """Prints one line for each thing that a reader waits for."""
    catalogue = read_yaml(ROOT / "config/networks.yaml")
    job = {
        "grid": "stand-in",
        "sampling": {"budget_seconds": 1, "precision": 0.1, "least_samples": 5},
    }
    job |= {"limits": {"seconds": 1}, "artefacts": []}
    frameworks = Frameworks(ROOT / "resources/papers/frameworks.yaml")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "index.html"
        merged = Path(folder) / "merged.parquet"
        stand_in(list(catalogue), merged)
        began = time.process_time()
        measured = read_measured(merged)
        path.write_text(page.build(job, [measured], {}, frameworks, catalogue, path))
        size = path.stat().st_size / 2**20
        print(
            f"make: {time.process_time() - began:.2f} CPU-s, {len(measured.cells)} cells, {size:.1f} MiB"
        )
        command = browser.find() or sys.exit(
            "There is no Chromium on PATH: install one to see how fast the page is."
        )
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
