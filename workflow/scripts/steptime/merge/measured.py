"""What was measured here, as tables and figures read it: merged rows, their cells, machines and software."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from steptime.environments.libraries import REFERENCE
from steptime.merge.summary import COLUMNS, region_text, shortened, summarise
from steptime.reading import InputError
from steptime.statistics import words
from steptime.statistics.words import Statistics

DESCRIPTION = b"steptime"
# Beside one of these, a libblas.so multiplies nothing and leads to it, as Debian's of OpenBLAS.
MADE_FOR_PROCESSORS = {"OpenBLAS", "MKL", "ATLAS", "BLIS"}
# What is known of the compiled libraries of a cell, beside the columns of `merge.summary`.
ARITHMETIC = ["vector", "blas", "at_run_time"]
# OpenBLAS's codes for AVX2 that it may choose by itself on a processor that has more.
AVX2_CODE = re.compile(r"\bruns (?:Haswell|Zen|Excavator)\b")


@dataclass(frozen=True)
class Measured:
    """What was measured here for one artefact.

    `rows` is one row per sample, `cells` one row per cell (see `merge.summary`; for ARITHMETIC,
    `environments.libraries.summarise`). `machines` and `software` describe each machine_id and each environment.
    `statistics` is what the whole run says of how much processes differ; `source` is the path of the merged file.
    """

    rows: pd.DataFrame
    cells: pd.DataFrame
    machines: dict[str, dict[str, Any]]
    software: dict[str, dict[str, Any]]
    source: str
    statistics: Statistics = Statistics({}, {}, {})

    @classmethod
    def nothing(cls) -> "Measured":
        rows = pd.DataFrame(columns=["network", "started_at"])
        return cls(rows, pd.DataFrame(columns=[*COLUMNS, *ARITHMETIC]), {}, {}, "")

    @property
    def platforms(self) -> dict[str, dict[str, Any]]:
        """Returns the machine of every platform; {} where no row of the platform names it."""
        known = self.cells.groupby("platform", sort=False)["machine_id"].first()
        return {platform: self.machines.get(machine, {}) for platform, machine in known.items()}

    @property
    def timed_region(self) -> str:
        """Returns the timed region in words; '' where nothing was timed."""
        regions = self.cells.loc[self.cells["status"] == "ok", "timed_region"].dropna()
        # The longest, since several devices also have their exchange in it.
        return region_text(max(regions, key=len)) if len(regions) else ""

    @property
    def dates(self) -> str:
        """Returns the day of the measurements, or the first and the last day (UTC)."""
        started = pd.to_datetime(self.rows["started_at"].dropna(), utc=True, format="mixed")
        days = sorted({moment.date().isoformat() for moment in started})
        return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


def read_measured(path: Path) -> Measured:
    """Reads the merged rows of one artefact with their description. Raises InputError and MixedRowsError."""
    return of_table(read_table(path), str(path))


def read_table(path: Path) -> pa.Table:
    """Reads merged rows as `merge.cells` wrote them. Raises InputError."""
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path} cannot be read ({error}); remove it and run snakemake again."
        ) from error


def of_table(table: pa.Table, source: str) -> Measured:
    """Reads what merged rows, of the file `source`, say. Raises merge.summary.MixedRowsError."""
    description = json.loads(table.schema.metadata[DESCRIPTION])
    rows = table.to_pandas()
    rows["reason"] = rows["reason"].map(shortened, na_action="ignore")
    machines = description.get("machines", {})
    estimates = description.get("statistics")
    statistics = Statistics.from_json(estimates) if estimates else None
    summary = summarise(rows, logical_cores(machines), description.get("looks", []), statistics)
    statistics = statistics or words.estimate(summary)
    told_keys = set(description.get("told", []))
    cells = _with_arithmetic(summary, description.get("arithmetic", {}), told_keys)
    software = description.get("software", {})
    return Measured(rows, cells, machines, software, source, statistics)


def logical_cores(machines: dict[str, dict[str, Any]]) -> dict[str, int]:
    return {name: machine.get("cpu", {}).get("logical_cores") for name, machine in machines.items()}


def was_told(settings: dict[str, Any]) -> bool:
    """Tells whether `worker.kernels` told a library of products to take newer code, by the settings of a worker."""
    return str(settings.get("kernels", "")).startswith(("AVX2", "Haswell"))


def runs_avx2(software: dict[str, Any]) -> bool:
    """Tells whether an OpenBLAS says that it runs code for AVX2, whatever other code it has."""
    return bool(AVX2_CODE.search(software.get("blas") or ""))


def taken(registers: str) -> str:
    """Returns the registers that a library uses when it was told to use AVX2, from those that it has code for."""
    return registers.replace("AVX-512", "AVX2")


def _with_arithmetic(
    cells: pd.DataFrame, arithmetic: dict[str, dict[str, Any]], told_keys: Collection[str] = ()
) -> pd.DataFrame:
    """Adds ARITHMETIC, and marks results of old code, and those whose library was told to take newer code."""
    codes = [arithmetic.get(f"{cell.environment}.{cell.mode}", {}) for cell in cells.itertuples()]
    vectors = []
    for cell, known in zip(cells.itertuples(), codes, strict=True):
        vector = known.get("vector", "")
        if cell.status == "ok" and vector == "SSE" and not known["at_run_time"]:
            cell.marks.append("without AVX")
        if cell.status == "ok" and REFERENCE in _blas(known):
            cell.marks.append(REFERENCE)
        if told_keys and cell.status == "ok" and words.key(cell._asdict()) in told_keys:
            cell.marks.append("told of AVX2")
        vectors.append(taken(vector) if "told of AVX2" in cell.marks else vector)
    return cells.assign(
        vector=vectors,
        blas=[", ".join(_blas(known)) for known in codes],
        at_run_time=[known.get("at_run_time", False) for known in codes],
    )


def _blas(known: dict[str, Any]) -> list[str]:
    """Returns the libraries of products of an environment."""
    found = known.get("blas", [])
    leads = MADE_FOR_PROCESSORS & {*found}
    return [each for each in found if not (leads and each == REFERENCE)]
