"""Defaults and descriptions of the configuration are in its schemas, once, which say of a mistake what to write."""

import copy
import re

import pytest
from conftest import ROOT

from steptime.plan import checks, configuration, reference, schemas

# As the grid has it.
REPEATS = b"repeats: {least: 2, most: 8, minutes: 60}"


def test_the_page_of_all_keys_is_up_to_date():
    """A key without a description ends the program that writes it."""
    written = (ROOT / "docs/reference/configuration.md").read_text()
    assert written == reference.page(ROOT / "config/schemas"), "run `make reference`"


def test_what_is_left_out_is_filled_in_and_what_is_written_is_kept():
    loaded = configuration.load(ROOT, config := {"grid": "ci"})
    assert config == {"grid": "ci", "data": {}}
    assert (loaded.grid["modes"], loaded.grid["table_batches"]["fcn5"]) == ({}, 8)
    assert loaded.platforms["local-gpu"]["devices"] == 1
    assert "store" not in config and "memory_gib" not in loaded.grid["limits"]
    assert configuration.load(ROOT, {}).grid_name == "default"


NET = """own-mlp:
  label: Own
  family: FCN
  parameters: 30
  batch: 4
  input: {kind: dense, shape: [5]}
  sizes: {}
  narrow: {}
  layers: [{dense: {units: 5}}]
"""


def test_networks_of_a_user_are_in_files_of_theirs(tmp_path, monkeypatch):
    """Those of the folder `networks`, or where the configuration says; a mistake names the file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "networks").mkdir()
    path = tmp_path / "networks/own.yaml"
    path.write_text(NET)
    grid = grid_file(tmp_path, lambda content: content.replace(b"[fcn5,", b"[own-mlp, fcn5,"))
    for named in ({}, {"networks": "networks"}, {"networks": str(path)}):
        loaded = configuration.load(ROOT, {"grid": str(grid)} | named)
        assert {"own-mlp", "fcn5"} <= {*loaded.networks}
        (file,) = loaded.network_files
        assert (ROOT / file).samefile(path)
        checks.check(loaded)
    path.write_text(NET.replace("30", "31"))
    with pytest.raises(configuration.ConfigurationError, match=r"own.yaml, own-mlp: .* 30 "):
        checks.check(configuration.load(ROOT, {"grid": str(grid)}))
    with pytest.raises(schemas.InputError, match="no file or folder 'gone', which 'networks'"):
        configuration.load(ROOT, {"networks": "gone"})


def test_no_default_takes_the_place_of_what_an_environment_shares_with_its_framework():
    loaded = configuration.load(ROOT, {})
    assert "variables" not in loaded.frameworks["jax"]["differing"]["jax-0.4.13"]
    assert loaded.entry_of("jax-0.4.13")["variables"]["NPROC"] == "{threads}"


@pytest.mark.parametrize("label", ["FCN-5", "FCN-5 ", "fcn5-table2"])
def test_two_networks_of_one_label_are_refused_since_one_would_hide_the_other(label):
    entries = {"fcn5": {"label": "FCN-5"}, "fcn5-table2": {"variant_of": "fcn5"}}
    with pytest.raises(
        configuration.ConfigurationError, match="both called .* give each a 'label'"
    ):
        configuration._check_labels(entries | {"copied": {"label": label}}, "networks")


@pytest.mark.parametrize(
    ("value", "word"),
    [(2026, "grid=2026"), (123456, "grid=123_456"), (1e5, "grid=1e5"), (True, "grid=on")],
)
def test_a_grid_that_is_called_like_a_number_has_the_name_that_was_typed(value, word):
    config = {"grid": value, "minutes": 5}
    configuration.as_written(ROOT, config, ["--config", word, "minutes=5"])
    assert config == {"grid": word.removeprefix("grid="), "minutes": 5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1E-12", 1e-12),
        ("2.5e3", 2500.0),
        (".5e-2", 0.005),
        ("-1e-3", -0.001),
        ("1e3", 1000),
    ],
)
def test_numbers_are_read_as_people_write_them(text, value):
    read = schemas.parse(f"a: {text}")["a"]
    assert read == value and type(read) is type(value)
    assert schemas.parse("a: [1e, e5, 1-e5, v1e5, 1e5b]")["a"] == [
        "1e",
        "e5",
        "1-e5",
        "v1e5",
        "1e5b",
    ]


def grid_file(folder, change):
    path = folder / "mine.yaml"
    content = change((ROOT / "config/grids/desktop.yaml").read_bytes())
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"\xef\xbb\xbf" + content,
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(REPEATS, b"repeats: &n 2\ntable_batches: {fcn5: *n}"),
    ],
    ids=["a mark of the order of bytes", "lines of Windows", "an anchor"],
)
def test_files_as_editors_write_them_are_read(tmp_path, change):
    path = grid_file(tmp_path, change)
    assert configuration.load(ROOT, {"grid": str(path)}).grid["plain"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content + b"\nrepeats: 5\n", "the key 'repeats' stands twice"),
        (lambda content: content.replace(REPEATS, b"\trepeats: 2"), ": a tab: write spaces."),
        (lambda content: content.decode().encode("utf-16"), "is no text in UTF-8"),
        (lambda content: b"[" * 5_000, "is not valid YAML"),
        (lambda content: content.replace(REPEATS, b"repeats: 0"), "at 'repeats', 0 is not"),
        (lambda content: content.replace(REPEATS, b"repeats: -1"), "at 'repeats', -1 is"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path, change, said):
    path = grid_file(tmp_path, change)
    with pytest.raises(configuration.ConfigurationError, match=said) as refused:
        configuration.load(ROOT, {"grid": str(path)})
    assert "\n" not in str(refused.value) and str(path) in str(refused.value)


@pytest.mark.parametrize(
    "name", ["x'; touch y; '", "../../x", "", "torch\n", "x" * 65, "é"], ids=ascii
)
def test_names_that_become_files_and_words_of_a_shell_have_plain_letters(tmp_path, name):
    entry = {"adapter": "torch", "modes": ["eager"], "environments": ["torch-1.4"]}
    schema = ROOT / "config/schemas/frameworks.yaml"
    with pytest.raises(configuration.ConfigurationError):
        schemas.check({name: entry}, schema, "frameworks.yaml")
    with pytest.raises(configuration.ConfigurationError):
        schemas.check({"x": entry | {"environments": [name]}}, schema, "frameworks.yaml")
    schemas.check({"x": entry}, schema, "frameworks.yaml")


@pytest.mark.parametrize("value", ["{thread}", "{", "{}", "a}"])
def test_an_unknown_word_in_a_variable_is_told(value):
    differing = {"jax-0.1": {"variables": {"OK": "{{{threads}}}", "NPROC": value}}}
    entry = {"adapter": "jax", "modes": ["graph"], "environments": ["jax-0.1"]}
    schema = ROOT / "config/schemas/frameworks.yaml"
    with pytest.raises(configuration.ConfigurationError) as refused:
        schemas.check({"jax": entry | {"differing": differing}}, schema, "frameworks.yaml")
    assert "jax-0.1.variables.NPROC', " in str(refused.value)
    assert "write a text with {threads}, {mode} or {prefix}" in str(refused.value)


FILES = [
    ("config", "config/config.yaml"),
    ("grid", "config/grids/desktop.yaml"),
    ("grid", "config/grids/ranks.yaml"),
    ("platforms", "config/platforms.example.yaml"),
    ("datasets", "config/datasets.yaml"),
    ("frameworks", "config/frameworks.yaml"),
    ("networks", "config/networks.yaml"),
    ("environment", "envs/torch-2.13.yaml"),
    ("catalogue", "resources/papers/shi2016/paper.yaml"),
]
# Keys that config.yaml has in comments alone.
BESIDES = {
    "data": {"mnist": "x"},
    "popularity": "x",
    "platforms": "x",
    "networks": "x",
    "store": "x",
    "one": "x",
}
BESIDES |= {"other": "x", "margin": 0.02}
WRONG = ("nonesuch", [[]], {"zzz": 1}, -1, None)


def places(node, at=()):
    """The first place of each shape in a file; of a list or of names the first alone."""
    if isinstance(node, dict | list):
        for key in list(node if isinstance(node, dict) else range(min(1, len(node)))):
            yield (*at, key)
            yield from places(node[key], (*at, key))


@pytest.mark.parametrize(("name", "file"), FILES)
def test_every_mistake_is_one_sentence_with_advice_that_works(name, file):
    """Each key with a wrong word and type, lost, misspelt, and one too many."""
    schema, content = (
        ROOT / f"config/schemas/{name}.yaml",
        schemas.parse((ROOT / file).read_text()),
    )
    if name == "config":
        content |= BESIDES
    if name == "networks":
        content = {key: content[key] for key in ("fcn5", "fcn5-momentum")}
    if name in ("datasets", "frameworks"):
        content = dict(list(content.items())[:1])
    if name == "catalogue":
        content["artefacts"] = {key: content["artefacts"][key] for key in ("table4", "fig1a")}
    accepted = schemas.load(schema)
    said = {}

    def refusal(change):
        changed = copy.deepcopy(content)
        change(changed)
        error = schemas.best_match(schemas._VALIDATOR(accepted).iter_errors(changed))
        return schemas._sentence(error) if error else ""

    def put(at, value):
        def change(node):
            for key in at[:-1]:
                node = node[key]
            if value is not ...:
                node[at[-1]] = value
            else:
                del node[at[-1]]

        return change

    for at in places(content):
        for value in (*WRONG, ...):
            said[at, repr(value)] = refusal(put(at, value))
            if near := re.search(
                r"(?:did you mean '|write one of )([^',.]+)['.,]", said[at, repr(value)]
            ):
                assert said[at, repr(value)] != refusal(put(at, near[1])), near
    for sentence in filter(None, said.values()):
        assert re.fullmatch(
            r"(at '[^']+', )?.*(is missing|is not possible|YAML reads|there is no key).*[.?]",
            sentence,
        ), sentence
        assert not re.search(r"is not of type|not valid under|does not match|\^|\$", sentence), (
            sentence
        )


def test_a_grid_is_narrowed_to_frameworks_and_networks():
    asked = {"grid": "desktop", "only": "torch", "only_networks": "fcn5 mnist"}
    loaded = configuration.load(ROOT, asked, lambda needs: False)
    assert [loaded.framework_of(name) for name in loaded.grid["environments"]] == ["torch"]
    assert loaded.grid["networks"] == loaded.grid["plain"] == ["fcn5"]
    assert loaded.grid["training"]["networks"] == ["mnist"]
    others = configuration.load(ROOT, {"only_networks": "lenet fcn5"})
    assert others.grid["networks"] == ["fcn5", "lenet"]
    for mistake, meant in (("torhc", "torch"), ("cntk-2.5", "cntk-2.5.1")):
        with pytest.raises(schemas.ConfigurationError, match=f"did you mean '{meant}'"):
            configuration.load(ROOT, {"grid": "desktop", "only": mistake})
