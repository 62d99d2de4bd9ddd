"""The printed numbers as data: every cell of every table is there, and stands where the paper means it."""

from pathlib import Path

import pytest

from steptime.claims.papers import read_printed

PAPERS = Path(__file__).parents[2] / "resources" / "papers"
SHI2016 = PAPERS / "shi2016"
COLUMNS = "paper table row column network framework platform threads batch value unit status reason note".split()

# Counted in the papers: rows x columns of each table, and how many of its cells are empty there.
TABLES = {
    "shi2016/table1": (4 * 4, 0),
    "shi2016/table2": (6 * 4, 0),
    "shi2016/table3": (5 * 3, 0),
    "shi2016/table4": (22 * 13, 16),
    "shatnawi2018/table1": (4 * 2, 0),
    "shatnawi2018/table2": (6 * 4, 0),
    "shatnawi2018/table3": (14 * 3, 0),
    "wuensche2018/table1": (3 * 4, 1),
    "dai2019/table1": (12 * 3, 0),
    "dai2019/table2": (16 * 7, 0),
}


@pytest.mark.parametrize("table", TABLES)
def test_every_printed_cell_is_there_and_each_dash_has_its_reason(table):
    printed = read_printed(PAPERS / f"{table}.csv")
    empty = printed[printed["value"] == ""]
    assert (len(printed), len(empty)) == TABLES[table]
    assert len(printed) == printed["row"].nunique() * printed["column"].nunique()
    assert (empty["reason"] != "").all()
    assert (empty["status"] != "ok").all()


@pytest.mark.parametrize(
    "path", sorted(PAPERS.glob("*/*.csv")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_every_file_of_printed_numbers_has_one_shape(path):
    printed = read_printed(path)
    assert [*printed.columns] == [*COLUMNS, "number"]
    assert set(printed["paper"]) == {path.parent.name}
    assert not printed.duplicated(["row", "column"]).any()
    assert (printed["table"] != "").all()
    assert path.stem[:5] != "table" or f"{path.parent.name}/{path.stem}" in TABLES


def test_shatnawis_table3_has_the_numbers_that_the_text_singles_out():
    """Which of CNTK and TensorFlow is faster on CIFAR-10 changes at 4 threads; a shifted row would not keep it."""
    printed = read_printed(PAPERS / "shatnawi2018/table3.csv")
    seconds = printed.pivot(index="row", columns="column", values="number")
    faster = seconds["TensorFlow"] < seconds["CNTK"]
    assert set(faster[faster].index) == {f"CIFAR-10 CPU {threads}" for threads in (4, 8, 16, 32)}
    assert (seconds.loc["CIFAR-10 GPU"] > seconds.loc["MNIST GPU"]).all()
    assert (
        seconds.loc["MNIST CPU 8", "CNTK"] == seconds.filter(like="MNIST CPU", axis=0)["CNTK"].min()
    )


def test_lists_of_dais_table2_are_lists():
    printed = read_printed(PAPERS / "dai2019/table2.csv")
    devices = printed[printed["column"] == "Hardware Devices"]["value"].str.split(", ")
    assert set(devices.explode()) == {"CPU", "GPU", "FPGA", "TPU", "Mobile"}
    assert not printed["value"].str.contains(r",\S|,,|,$|  ", regex=True).any()


def test_table4_has_the_rows_in_the_order_that_the_paper_means():
    printed = read_printed(SHI2016 / "table4.csv")
    rows = printed[["network", "framework"]].drop_duplicates()
    assert rows.groupby("network", sort=False)["framework"].agg(list).to_dict() == {
        **{
            key: ["caffe", "cntk", "tensorflow", "torch7"]
            for key in ["fcn5", "fcn8", "alexnet", "resnet50"]
        },
        **{key: ["cntk", "tensorflow", "torch7"] for key in ["lstm32", "lstm64"]},
    }
    number = printed.set_index(["network", "framework", "column"])["number"].sort_index()
    # Stated apart from the table: in the paper's text, and in the notes that recount its ratios.
    assert number["fcn5", "torch7", "Desktop CPU 1"] == 1.227
    assert number["fcn8", "torch7", "Desktop CPU 1"] == 1.316
    assert number["fcn5", "caffe", "Desktop CPU 4"] == 0.480
    alexnet, resnet = number["alexnet", "tensorflow"], number["resnet50", "tensorflow"]
    assert round(alexnet["Desktop CPU 4"] / alexnet["G.1080"]) == 112
    assert round(alexnet["Server CPU 16"] / alexnet["G.1080"]) == 43
    assert round(resnet["Server CPU 16"] / resnet["G.1080"]) == 34
    lstm = number["lstm32", "cntk"] / number["lstm32", "tensorflow"]
    assert round(lstm["G.1080"], 1) == 4.4
    assert round(lstm["G.980"], 1) == 5.0
    assert number["resnet50", "cntk"].isna().sum() == 10
    assert number["lstm64", "torch7", "T.K80"] == 0.406


def test_gpus_of_the_paper_keep_their_ratios():
    """GTX 1080 over GTX 980 lies in 0.77 to 1 but for TensorFlow's CNNs: a shifted row would not."""
    number = read_printed(SHI2016 / "table4.csv").pivot(
        index="row", columns="column", values="number"
    )
    ratio = (number["G.1080"] / number["G.980"]).dropna().round(2)
    assert ratio.pop("AlexNet TF") == 0.32
    assert ratio.pop("ResNet-50 TF") == 0.38
    assert ratio.between(0.77, 1.0).all()
