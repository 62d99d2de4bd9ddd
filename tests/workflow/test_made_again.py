"""Tables and figures as data: what a folder of data is enough for, and what makes each of them again."""

import re

import pandas as pd
import pytest

CONFIG = ("--config", "grid=faults", "--")
TARGETS = (
    "standin2026_table1",
    "standin2026_fig1",
    "steptime_times",
    "steptime_proofs",
    "shi2016_table2",
)
ADAPTER = "workflow/scripts/worker/frameworks/standin/__init__.py"
LAYERS = '\n\ndef _dense(node):\n    return node\n\n\nOF_LAYERS = {"dense": _dense}\n'
MARKED = {"standin2026_table1", "standin2026_fig1", "steptime_times"}


@pytest.fixture(scope="module")
def finished(new_checkout):
    """A checkout in which two modes of the stand-in framework were proven and timed, and TARGETS were made."""
    checkout = new_checkout("faults")
    checkout.choose("good", "wrong")
    with (checkout.root / ADAPTER).open("a") as file:
        file.write(LAYERS)
    checkout.run(*CONFIG, *TARGETS)
    return checkout


@pytest.fixture
def edit(finished):
    """A function that replaces a text in one of the checkout's files, until the test is over."""
    before = {}

    def replace(name, old, new):
        path = finished.root / name
        before.setdefault(path, path.read_text())
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    yield replace
    for path, text in before.items():
        path.write_text(text)


def test_a_paper_is_a_folder_of_data(finished):
    table = pd.read_parquet(finished.root / "results/tables/standin2026_table1.parquet")
    ours = table[(table["source"] == "ours") & (table["mode"] == "good")]
    assert ours["theirs"].tolist() == [0.002] and ours["ratio"].notna().all()
    drawn = pd.read_csv(finished.root / "results/figures/standin2026_fig1.csv")
    assert set(drawn["source"]) == {"ours", "paper"}
    listed = finished.snakemake("--list-target-rules", "--config", "grid=faults").stdout
    assert "standin2026_fig1 (Figure 1 of a paper that nobody wrote: time per mini-batch" in listed


def test_the_projects_own_table_stands_on_its_own_feet(finished):
    words = (finished.root / "results/tables/steptime_times.md").read_text()
    assert "Tiny, batch 16" in words and "Ratios are ours" not in words and "theirs" not in words


def test_a_comment_makes_nothing_again_and_a_limit_each_table_that_shows_marks(finished, edit):
    limits = "workflow/scripts/steptime/machine/interference.py"
    text = (finished.root / limits).read_text()
    edit(limits, text, "# A comment.\n" + text)
    assert finished.planned(*CONFIG, *TARGETS) == {}
    name, value = re.search(r"^(\w+) = ([\d.]+)", text, re.MULTILINE).groups()
    edit(limits, f"{name} = {value}", f"{name} = {2 * float(value)}")
    jobs = finished.planned(*CONFIG, *TARGETS)
    assert MARKED <= jobs.keys()
    assert not {"measure_cell", "prove_network", "build_environment"} & jobs.keys()


def test_words_of_an_entry_make_again_what_they_stand_in_and_nothing_else(finished, edit):
    edit("resources/papers/standin2026/paper.yaml", "title: Tiny", "title: Very tiny")
    assert finished.planned(*CONFIG, *TARGETS).keys() == {"standin2026_fig1", "total"}


def test_a_table_that_holds_nothing_is_made_again(finished):
    table = finished.root / "results/tables/standin2026_table1.csv"
    content = table.read_bytes()
    table.write_bytes(b"")
    done = finished.snakemake(*CONFIG, *TARGETS)
    said = "1 files hold nothing and are made again, such as results/tables/standin2026_table1.csv."
    assert said in done.stdout and table.read_bytes() == content, done.stdout
    done = finished.snakemake("--cores", "0", *CONFIG, *TARGETS)
    assert done.returncode != 0 and "With --cores 0 no job can begin: write" in done.stdout


@pytest.mark.seldom
def test_a_new_layer_kind_of_an_adapter_times_and_proves_nothing_again(finished, edit):
    entry = '{"dense": _dense}'
    edit(ADAPTER, entry, '{"dense": _dense, "lstm": _lstm}')
    edit(ADAPTER, "def _dense(", "def _lstm(node):\n    return 4 * node\n\n\ndef _dense(")
    assert finished.planned(*CONFIG, *TARGETS) == {}
    edit(ADAPTER, "return node\n", "return 2 * node\n")
    assert finished.planned(*CONFIG, *TARGETS)["measure_cell"] == 2


@pytest.mark.seldom
def test_a_stricter_proof_proves_again_times_nothing_and_refuses_what_stood(finished, edit):
    """The good mode's verdict stays under the first limit; under the second no network of anybody passes."""

    def timed():
        return {cell: made for cell, made in finished.times().items() if ".good." in str(cell)}

    before = timed()
    name = "workflow/scripts/steptime/prove/compare.py"
    edit(name, '"cosine": 0.9999', '"cosine": 0.99991')
    # The one cell is that of the mode that was never timed: it may pass now.
    jobs = finished.planned(*CONFIG, *TARGETS)
    assert (jobs["prove_network"], jobs["measure_cell"]) == (2, 1)
    finished.run(*CONFIG, *TARGETS)
    assert before and timed() == before
    edit(name, '"cosine": 0.99991', '"cosine": 1.1')
    finished.run(*CONFIG, *TARGETS)
    assert timed() == before
    table = pd.read_parquet(finished.root / "results/tables/steptime_times.parquet")
    assert set(table["status"]) == {"not_equivalent"}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("kind: sweep", "kind: sweeps", "'sweeps' in steptime/artefacts, for standin2026_fig1"),
        ("makes: [figure]", "makes: [table]", "There is no way to make a 'table'"),
        ("needs: [cells, printed]", "needs: [cell, printed]", "possible: did you mean 'cells'?"),
    ],
)
def test_a_mistake_in_an_entry_is_one_sentence(finished, edit, old, new, sentence):
    edit("resources/papers/standin2026/paper.yaml", old, new)
    done = finished.snakemake("--dry-run", *CONFIG, *TARGETS)
    assert sentence in done.stdout and "Traceback" not in done.stdout
    assert done.returncode != 0
