"""What begins above the size of the narrow proof is refused in real frameworks, at the size that is timed.

With STEPTIME_ZOO=all (`make test-zoo`), in TensorFlow, MXNet and JAX too, and every defect of `benchmarks/full_size`.
"""

import json
import subprocess
import sys

import pytest
from conftest import ROOT
from today import ALL, JAX, MXNET, TENSORFLOW, TORCH, prefix_of

ENVIRONMENTS = [TORCH] + ([TENSORFLOW, MXNET, JAX] if ALL else [])
# {defect: words of what refuses it}
PLANTED = {
    "an eighth of the samples": "the first change of",
    "largest weight kept": "the gradient of",
    "every 2nd step left out": "the loss of step 3",
    "late: a sample left out": "the loss after the samples",
    "late: last layer alone in every 2nd step": "the loss after the samples",
    "one step of a block": "the loss after the samples",
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_what_begins_above_the_narrow_size_is_refused_in_real_frameworks(environment, tmp_path):
    prefix_of(environment)
    kept = tmp_path / "rows.json"
    # None are all.
    defects = [] if ALL else list(PLANTED)
    asked = ["--networks", "lstm32", "--batch", "8", "--defects", *defects, "--rows", kept]
    program = [sys.executable, ROOT / "benchmarks/full_size", "--environment", environment]
    subprocess.run([*program, *asked], check=True, capture_output=True, timeout=1800)
    rows = {row["defect"]: row for row in map(json.loads, kept.read_text().splitlines())}
    right = rows.pop("right")
    assert not right["refused"] and right["lacking"] == ""
    assert max(off / limit for *_, off, limit in right["held"]) < 0.5
    assert set(rows) >= set(PLANTED)
    assert [name for name, row in rows.items() if not row["refused"]] == []
    for name, words in PLANTED.items():
        assert any(words in told for told in rows[name]["refused"]), (name, rows[name]["refused"])
