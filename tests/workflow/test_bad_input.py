"""Mistakes as a user makes them: one sentence, an exit code that is not zero, and no traceback."""

import pandas as pd
import pytest
from today import JAX

from steptime import machine
from steptime.plan import configuration, grid

MANY = f"threads: {{table: {list(range(1, 3000))}"


@pytest.fixture(scope="module")
def checkout(new_checkout):
    return new_checkout()


def refusal(root, config):
    """What planning says, asked as steptime.flow.planned asks: a Snakemake for each mistake would take seconds."""
    with pytest.raises(configuration.ConfigurationError) as refused:
        grid.expand(configuration.load(root, config), machine.usable_cpus())
    return str(refused.value)


# Of the grid `desktop`, which these tests edit.
ENVIRONMENTS = "environments: [torch, tensorflow, mxnet, cntk-2.5.1, jax-0.12-cuda]"
THREADS, SECONDS = "threads: {table: [1, all]", "limits: {seconds: 900}"
# As the grid has it.
REPEATS = "repeats: {least: 2, most: 8, minutes: 60}"
FEWER = "repeats: {least: 3, most: 2, minutes: 60}"
NOBODY_ASYNC = ENVIRONMENTS.replace("torch, tensorflow, mxnet, cntk-2.5.1", "jax")
NOBODY_ASYNC = f"devices: [1, 2]\nexchange: [async]\n{NOBODY_ASYNC}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("repeats:", "repeat:", "there is no key 'repeat': did you mean 'repeats'?"),
        ("jax-0.12-cuda]", "jax", "is not valid YAML: while parsing a flow sequence in line "),
        ("[torch,", "[torsch,", "no environment 'torsch' in config/frameworks.yaml: did you mean"),
        ("[torch,", "[tf-2.21,", "did you mean 'tensorflow-2.21'?"),
        ("[fcn5,", "[fcn55,", "no network 'fcn55' in config/networks.yaml: did you mean"),
        ("", "proven: [lenett]\n", "'lenett' in config/networks.yaml: did you mean 'lenet'?"),
        (ENVIRONMENTS, "environments: torch", "write one of all, history, a list, [torch]."),
        (THREADS, "threads: {table: [1, 3*all]", "'3*all' is not possible: did you mean '4*all'?"),
        (THREADS, "threads: {table: [010, all]", "'010' is 8 to YAML: write a number without"),
        (THREADS, MANY, "asks for more than 100,000 runs of "),
        (SECONDS, "limits: {seconds: 1:30}", "'1:30' is 90 to YAML: "),
        (SECONDS, "limits: {seconds: 1:30.5}", "'1:30.5' is 90.5 to YAML: write"),
        (SECONDS, "limits: {seconds: '1e3'}", "'1e3' is a text to YAML: write 1000.0."),
        (SECONDS, f"limits: {{seconds: {10**400}}}", "000 ... is not possible: write a number."),
        (REPEATS, FEWER, "write a larger number under 'most' of its 'repeats'"),
        (REPEATS, "repeats: {least: 3, most: 6}", "'minutes' is missing"),
        (REPEATS, "repeats: 08", "'08' is a text to YAML: write 8."),
        ("repeats: ", "table_batches: {1: 16}\nrepeats: ", "There is no network '1' in config/"),
        ("repeats: ", "table_batches: {fcn5: 3000000000}\nrepeats: ", "write 2147483647 or less."),
        ("repeats: ", "devices: [1, 4096]\nrepeats: ", "asks for 4096 devices, and local-cpu"),
        ("precision: 0.02", "precision: .nan", "nan is not possible: write a number."),
        # Asked of one that can, it is a cell; of one that cannot, beside one that can, a row.
        (ENVIRONMENTS, NOBODY_ASYNC, f"({JAX}) shares gradients by `async` between devices: add"),
    ],
)
def test_a_mistake_in_a_grid(checkout, old, new, sentence):
    text = (checkout.root / "config/grids/desktop.yaml").read_text()
    assert old in text
    (checkout.root / "mine.yaml").write_text(text.replace(old, new, 1))
    assert sentence in refusal(checkout.root, {"grid": str(checkout.root / "mine.yaml")})


@pytest.mark.parametrize(
    "name", ["../grids/ci", "x" * 5000, "x" * 5000 + ".yaml", "/proc/1/root/x/y.yaml"]
)
def test_a_grid_that_is_no_name_and_no_file(checkout, name):
    said = refusal(checkout.root, {"grid": name})
    assert f"There is no grid '{name}' in config/grids/, nor is that the path of a .yaml" in said
    said = refusal(checkout.root, {"grid": "ci", "popularity": name})
    assert f"there is no file '{name}', which 'popularity' names" in said


@pytest.mark.parametrize("text", ["", "# Nothing.\n", "- fcn5\n"])
def test_a_grid_without_keys(checkout, text):
    (checkout.root / "mine.yaml").write_text(text)
    said = refusal(checkout.root, {"grid": str(checkout.root / "mine.yaml")})
    assert "mine.yaml holds no" in said and "write `key: value` lines" in said


UNITS, LABEL = "{units: hidden}", "label: FCN-5"
WHOLE = "write a whole number of at least 1."


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (UNITS, "{unit: hidden}", "layer 'dense1' has no 'unit'; write 'units'."),
        ("hidden: 16", "hiden: 16", "'hiden' of 'narrow' is none of 'sizes'; write 'hidden'."),
        *(
            (UNITS, f"{{units: {value}}}", f"network fcn5: layer 'dense1' has {said}")
            for value, said in [
                ("", f"no value of 'units'; {WHOLE}"),
                ("[5]", f"'units: [5]'; {WHOLE}"),
                ("-5", f"'units: -5'; {WHOLE}"),
                ("16.0", f"'units: 16.0'; {WHOLE}"),
                ("true", f"'units: true'; {WHOLE}"),
                ("5, bias: 0", "'bias: 0'; write true or false."),
            ]
        ),
        *(("- sigmoid", f"- dropout: {{rate: {n}}}", f"has 'rate: {n}'; ") for n in (1, -1, 2)),
        ("- sigmoid", "- dropout: {rate: .nan}", "has 'rate: nan'; write a number of at least 0"),
        ("- sigmoid", "- layer_norm: {epsilon: 0.0}", "'epsilon: 0.0'; write a number above 0."),
        ("- sigmoid", "- part: {start: -1, size: 2}", "'start: -1'; write a whole number of at"),
        ("- sigmoid", "- residual", "no layer 'residual'; write `residual:` with `layers:`."),
        ("- repeat: 3", "- residual:", "is not possible: write one layer, with its values and la"),
        ("- repeat: 3", "- repeat: 0", "'fcn5.layers.0.repeat', 0 is not possible: write 1 or"),
        ("hidden: 16", "hidden: no", "at 'fcn5.narrow.hidden', YAML reads false: write a whole nu"),
        (LABEL, "label:", "at 'fcn5.label', YAML reads nothing: write a text in quotes."),
        ("fcn5:", "off:", "networks.yaml, line 5: the key 'off' is no text to YAML: write it"),
        ("units: hidden", "units: '16'", "has 'units: 16', but '16' is a text to YAML; write 16."),
        (
            "units: hidden",
            "units: 'True'",
            "has 'units: True', but 'True' is a text to YAML; write true.",
        ),
        (LABEL, f"{LABEL}\n  learning_rate: '1e-3'", "'1e-3' is a text to YAML: write 0.001."),
        (LABEL, f"{LABEL}\n  learning_rate: 1.0e-50", "1e-50 is not possible: write 1e-30 or"),
        (LABEL, f"{LABEL}\n  label_smoothing: 0.1", "leave it out: the loss is that of the plain"),
        (LABEL, f"lable: FCN-5\n  {LABEL}", "there is no key 'lable': did you mean 'label'?"),
        ("hidden: 16", "hidden: 0170", "networks.yaml, line 12: '0170' is 120 to YAML: "),
        ("shape: [inputs]", "shape: [0]", "at 'fcn5.input.shape.0', 0 is not possible: write 1 or"),
    ],
)
def test_a_mistake_in_a_network(checkout, old, new, sentence):
    path = checkout.root / "config/networks.yaml"
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    said = refusal(checkout.root, {})
    path.write_text(text)
    assert old in text and sentence in said


def test_a_mistake_is_what_snakemake_ends_with_and_nothing_else(checkout):
    (checkout.root / "mine.yaml").write_text("repeat: 3\n")
    done = checkout.snakemake("--dry-run", "--config", "grid=mine.yaml")
    lines = done.stdout.splitlines()
    assert done.returncode != 0 and "there is no key 'repeat'" in lines[-1], done.stdout
    assert "Traceback" not in done.stdout and not [line for line in lines if ".smk" in line]


def test_an_unknown_key_or_data_set_is_refused_and_missing_files_write_nothing(checkout):
    said = refusal(checkout.root, {"data": {"mnits": "x"}})
    assert "There is no data set 'mnits' in config/datasets.yaml: did you mean 'mnist'?" in said
    said = refusal(checkout.root, {"gird": "paper"})
    assert "there is no key 'gird': did you mean 'grid'?" in said
    asked = configuration.load(checkout.root, {"data": {"mnist": "nothere"}})
    with pytest.raises(configuration.ConfigurationError, match="no file or folder nothere: write"):
        asked.check_data("mnist")
    (checkout.root / "empty").mkdir()
    done = checkout.snakemake(
        "--config", "data={mnist: empty}", "--", "results/datasets/mnist/train.npz"
    )
    assert done.returncode != 0
    assert (
        "MNIST: there is no file train-images-idx3-ubyte or train-images-idx3-ubyte.gz and 3 more in"
        in done.stdout
    )
    assert "Traceback" not in done.stdout and not list(
        (checkout.root / "results/datasets").rglob("*.npz")
    )


def test_an_artefact_without_cells_in_the_grid(checkout):
    text = (checkout.root / "config/grids/ci.yaml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("networks")]
    (checkout.root / "mine.yaml").write_text("\n".join([*lines, "networks: [fcn5]"]))
    done = checkout.snakemake("--dry-run", "--config", "grid=mine.yaml", "--", "shi2016_fig1d")
    assert done.returncode != 0
    assert done.stdout.endswith(
        "in the grid 'mine': write one of resnet50, resnet34, resnet50-group-norm under 'networks'.\n"
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "shatnawi2018_above",
            "without): write `make GRID=shatnawi2018 TARGET=shatnawi2018_above`.",
        ),
        pytest.param(
            "shatnawi2018_fig2",
            "(data set not configured): name the files of cifar10 under 'data' of ",
            marks=pytest.mark.seldom,
        ),
    ],
)
def test_what_would_be_empty_is_refused_before_anything_is_measured(checkout, name, says):
    done = checkout.snakemake("--dry-run", "--config", "grid=desktop", "--", name)
    assert done.returncode != 0
    assert f"{name} has nothing to show in the grid 'desktop'" in done.stdout
    assert says in done.stdout and "This was a dry-run" not in done.stdout


def test_a_misspelt_target_is_answered_and_a_dry_run_says_how_much_there_is(checkout):
    done = checkout.snakemake("--dry-run", "shi2016_table5")
    assert done.returncode and done.stdout.endswith("did you mean 'shi2016_table4'?\n"), done.stdout
    done = checkout.snakemake("--dry-run", "share")
    assert done.stdout.endswith(
        "needs a store: write --config store=/mnt/shared/steptime -- share.\n"
    )
    done = checkout.snakemake("--dry-run", "--config", "grid=ci", "--", "shi2016_fig1d")
    assert "leaves out the mini-batches 8, 16, 32, 64, which take longer" in done.stdout
    # Wrapped where the time is long.
    said = " ".join(done.stdout.split())
    assert "6 results in 6 runs, 3 proofs, 2 references, " in said, said
    assert " 1 table or figure: about " in said and "Reasons:" not in said


def test_a_machine_that_is_not_at_hand_is_not_drawn_and_the_catalogue_says_why(checkout):
    text = (checkout.root / "config/grids/ci.yaml").read_text()
    (checkout.root / "mine.yaml").write_text(text.replace("local-cpu", "far"))
    (checkout.root / "far.yaml").write_text("far: {label: F, device: cpu, cores: 2, cpu: other}\n")
    asked = ("--config", "grid=mine.yaml", "platforms=far.yaml", "--")
    done = checkout.snakemake("--dry-run", *asked, "wuensche2018_fig4")
    assert done.returncode != 0
    assert "No machine of this grid is within reach" in done.stdout
    checkout.run(*asked, "steptime_catalogue")
    rows = pd.read_parquet(checkout.root / "results/tables/steptime_catalogue.parquet")
    states = rows.set_index("target")["state"]
    assert states["wuensche2018_fig4"] == states["dai2019_fig3"] == "no machine within reach"
