"""What begins above the size of the narrow proof is refused in real frameworks, at the size that is timed.

With STEPTIME_ZOO=all (`make test-zoo`), in TensorFlow, MXNet and JAX too, and every defect of `benchmarks/full_size`.
"""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from today import ALL, JAX, MXNET, TENSORFLOW, TORCH, entry_of, prefix_of

from steptime import networks
from steptime.cells.measure import fill
from steptime.prove import network

ENVIRONMENTS = [TORCH] + ([TENSORFLOW, MXNET, JAX] if ALL else [])
# {defect: words of what refuses it}
PLANTED = {
    "an eighth of the samples": "the first change of",
    "largest weight kept": "the gradient of",
    "every 2nd step left out": "the loss of step 3",
    "late: a sample left out": "the loss after the samples",
    "late: last layer alone in every 2nd step": "the loss after the samples",
    "late: last layer alone in each trainer": "though the loss hangs on it",
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


# A step on one word, of which rows of the table it changes.
PROGRAM = """
import json, sys, numpy as np
from shared import data
from worker import building
job = json.load(sys.stdin)
spec, start = job["spec"], data.initial_weights(job["spec"])
words = np.full((1, 1), spec["input"]["vocabulary"] - 1, np.int32)
adapter, name = building.load(job).adapter, spec["parameters"][0]["name"]
trainer = building.make(adapter, job, spec, dict(start), words, np.zeros((1, 1), np.int32))
trainer.run(1)
start = data.initial_weights(spec)[name]
print(np.flatnonzero(trainer.weights([name])[name] != start).tolist())
"""


@pytest.mark.parametrize("environment", [MXNET] + [TORCH, TENSORFLOW, JAX] * ALL)
def test_words_beyond_what_a_float32_counts_have_their_own_rows(environment):
    """After c10-big-vocabulary and tensorflow#47187."""
    words = {"kind": "tokens", "shape": [1], "vocabulary": 2**24 + 2}
    layers = [{"embedding": {"vocabulary": 2**24 + 2, "units": 1}}, {"dense": {"units": 2}}]
    entry = {"input": words, "layers": layers, "sizes": {}, "narrow": {}, "learning_rate": 0.1}
    known, prefix = entry_of(environment), prefix_of(environment)
    asked = {"adapter": known["adapter"], "mode": known["modes"][0]}
    job = network.worker_job(asked, networks.specify("n", {"n": entry})) | {"proves": "step"}
    variables = fill(known.get("variables", {}), 1, known["modes"][0], prefix)
    done = subprocess.run(
        [prefix / "bin/python", "-c", PROGRAM],
        input=json.dumps(job),
        env=os.environ | variables | {"PYTHONPATH": str(ROOT / "workflow/scripts")},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == [str([2**24 + 1])], done.stderr[-3000:]
