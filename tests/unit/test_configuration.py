"""Defaults and descriptions of the configuration stand in its schemas, once."""

from pathlib import Path

import yaml

from steptime.plan import configuration, reference

ROOT = Path(__file__).parents[2]


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
    assert configuration.load(ROOT, {}).grid_name == "quick"


def test_no_default_takes_the_place_of_what_an_environment_shares_with_its_framework():
    loaded = configuration.load(ROOT, {})
    assert "variables" not in loaded.frameworks["paddle"]["differing"]["paddle-1.8"]
    assert loaded.entry_of("paddle-1.8")["variables"]["OMP_NUM_THREADS"] == "{threads}"


def test_a_default_is_nobody_elses_list():
    """A platform that is changed must leave the schema's own default, and the next platform's, as they are."""
    schema = {"additionalProperties": {"properties": {"list": {"default": []}}}}
    content = {"one": {}, "other": {}}
    configuration.fill(content, schema, {})
    content["one"]["list"].append(1)
    assert content["other"]["list"] == []


def test_labels_of_older_files_of_platforms_are_still_accepted(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"mine": {"label": "my machine", "device": "cpu"}}))
    assert "mine" in configuration.platforms(ROOT, {"platforms": str(path)})
