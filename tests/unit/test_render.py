"""Words of a framework in tables and figures: they stand there as they are, whatever they hold."""

from xml.etree import ElementTree

import matplotlib
import pandas as pd
import pyarrow.parquet as pq

from steptime.artefacts.results import memory, ratios, throughput
from steptime.claims import answers
from steptime.render import figures, tables, words
from steptime.render.columns import laid_out

WORDS = "cannot read $HOME/.cache/{x_ nor $CACHE | <script>alert(1)</script> \\\\| end"


def test_dollars_are_no_formula_in_a_figure_and_odd_words_leave_it_xml(tmp_path):
    with figures.canvas() as (drawing, axes):
        axes.plot([1, 2], label=WORDS)
        axes.set_xticks([0], [WORDS])
        axes.legend()
        figures.headings(axes, WORDS, [WORDS])
        figures.caption(drawing, WORDS, [WORDS])
    figures.write(tmp_path / "figure", pd.DataFrame(), drawing)
    # A comment has the words of each text, too: a browser shows what is no comment.
    drawn = "".join(ElementTree.parse(tmp_path / "figure.svg").getroot().itertext())
    assert drawn.count(WORDS.strip()) == 6, drawn


def test_settings_that_a_user_has_for_matplotlib_change_no_figure():
    with matplotlib.rc_context({"axes.facecolor": "red", "text.usetex": True}):
        with figures.canvas() as (drawing, axes):
            usetex = matplotlib.rcParams["text.usetex"]
    assert axes.get_facecolor() == (1, 1, 1, 1) and not usetex


def test_a_markdown_table_keeps_its_columns_and_holds_no_html():
    index = pd.MultiIndex.from_tuples([(WORDS, "b")], names=["row", "other"])
    layout = pd.DataFrame({WORDS: [tables.Entry(WORDS, (WORDS,))]}, index=index)
    page = tables.Page("a", WORDS, WORDS, WORDS, [WORDS], [WORDS])
    lines = tables.markdown(layout, page).splitlines()
    assert not any("<script" in line.replace("\\<", "") for line in lines)
    cells = [line.replace("\\\\", "").replace("\\|", "") for line in lines if line.startswith("|")]
    assert [line.count("|") for line in cells] == [4, 4, 4]


def test_an_end_that_is_nearly_one_says_on_which_side():
    assert words.limits(1.0004, 1.1) == "1.0004 to 1.10"
    assert (words.limits(0.9, 0.9999999), words.limits(1, 1.00001)) == ("0.900 to <1", "1.00 to >1")


def test_further_runs_say_after_how_many_an_interval_was_wide():
    assert words.further({"looks": [2, 4], "repeats": 4}).endswith("was wide after 2")
    assert words.further({"looks": [2, 4], "repeats": 2}) == ""


def test_a_table_is_the_same_from_the_entries_that_lie_with_its_rows(tmp_path):
    index = pd.MultiIndex.from_tuples(
        [("a", "x"), ("a", "y"), (WORDS, "x")], names=["row", "other"]
    )
    across = pd.MultiIndex.from_tuples([("one", "1"), ("one", "2"), ("two", "1")])
    entry = tables.Entry(WORDS, (WORDS,), True, "ours words")
    layout = pd.DataFrame([[entry, tables.Entry(), "plain"]] * 3, index, across, object)
    page = tables.Page("a", WORDS, WORDS, WORDS, [WORDS], [WORDS])
    tables.write(tmp_path / "t", pd.DataFrame({"x": [1]}), layout, page)
    path = tmp_path / "t.parquet"
    again = tables.web_page(tables.read_layout(path), tables.read_page(path))
    assert (tmp_path / "t.html").read_text() == again and "<script>alert" not in again
    assert [again.count(f'="{name}"') for name in ("rowgroup", "colgroup", "row")] == [1, 1, 4]
    assert again.count('rowspan="2"') == again.count('colspan="2"') == 1
    assert again.count('class="ours words best"') == 3


def test_a_table_of_nothing_yet_is_the_same_from_what_lies_with_it(tmp_path):
    page, layout = tables.Page("a", "", "", ""), laid_out([], ["Network", "Framework"])
    tables.write(tmp_path / "t", pd.DataFrame({"x": []}), layout, page)
    again = tables.web_page(tables.read_layout(tmp_path / "t.parquet"), page)
    assert (tmp_path / "t.html").read_text() == again


def test_tables_of_one_kind_are_read_together_whether_or_not_a_column_is_empty(tmp_path):
    """After c5-table-types, polars#22322, #15747 and NVTabular#429."""
    full = {"verdict": ["holds"], "weight": [3], "ours_least": [0.5], "best": [True], "batch": [8]}
    full |= dict.fromkeys(("today_numbers", "theirs_verdict", "optimiser", "no_line"), ["words"])
    types = answers.TYPES | ratios.TYPES | throughput.TYPES | memory.TYPES
    nothing = dict.fromkeys(full, [None])
    page, layout = tables.Page("a", "", "", ""), pd.DataFrame({"x": [tables.Entry()]})
    for name, values in (("full", full), ("nothing", nothing), ("none", dict.fromkeys(full, []))):
        tables.write(tmp_path / name, pd.DataFrame(values), layout, page, types)
    schemas = [pq.read_schema(path).remove_metadata() for path in tmp_path.glob("*.parquet")]
    assert schemas[0] == schemas[1] == schemas[2]
    assert len(pd.read_parquet(sorted(tmp_path.glob("*.parquet")))) == 2


def test_a_mark_that_all_points_of_a_figure_have_is_said_without_their_names():
    names = {"network_label": "FCN-5", "framework_label": ["PyTorch", "PyTorch", "JAX"]}
    names |= {"threads": 2, "batch": [8, 16, 8]}
    rows = pd.DataFrame(names | {"marks": ["throttled, disturbed", "disturbed", "disturbed"]})
    named, of_all = words.mark_notes(rows)
    assert named.startswith("Marked (at mini-batches): PyTorch, FCN-5 at 8 (a CPU quota")
    assert of_all.startswith("All are marked: another program or another guest")
