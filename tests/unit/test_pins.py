"""The files of pins: exact, closed, the same for pip and conda, and of one digest whatever stands beside the pins."""

import re
from datetime import date
from importlib.metadata import distribution

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement

from steptime.environments import offline, pins

SPECS = sorted((ROOT / "envs").glob("*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_file_pins_exact_versions_that_any_index_has(path):
    wanted = pins.load(path, step="any")
    assert wanted.packages
    assert not [version for version in wanted.packages.values() if "+" in version]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_the_pip_of_a_file_is_one_for_its_python(path):
    """A real conda finds no solution otherwise. The last pip for each old Python, from pip's release notes."""
    wanted = pins.load(path, step="any")
    python, pip = (tuple(map(int, version.split("."))) for version in (wanted.python, wanted.pip))
    last = {(3, 6): (21, 3, 1), (3, 7): (24, 0), (3, 8): (25, 0, 1)}.get(python[:2], (26,))
    assert pip <= last and python >= (3, 6)


def test_every_release_of_a_history_has_its_day():
    released = yaml.safe_load((ROOT / "resources/steptime/releases.yaml").read_text())
    frameworks = yaml.safe_load((ROOT / "config/frameworks.yaml").read_text())
    for framework in frameworks.values():
        if "history" in framework:
            names = [*framework["history"], *framework["environments"]]
            assert not [name for name in names if "cuda" not in name and name not in released]
    assert {path.stem for path in SPECS} > set(released)
    assert all(date.fromisoformat(day) for day in released.values())


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_conda_env_create_takes_every_file(path):
    content = yaml.safe_load(path.read_text())
    assert list(content) == ["name", "channels", "dependencies"] and content["name"] == path.stem
    *plain, by_pip = content["dependencies"]
    assert list(by_pip) == ["pip"] and all(isinstance(each, str) for each in plain)
    assert all(Requirement(each).specifier for each in by_pip["pip"])


def test_lock_sums_and_conda_file_of_the_workflow_are_the_same():
    lock = (ROOT / "requirements.lock").read_text()
    pinned = sorted(offline.pins(lock))
    assert pinned == list(pins.load(ROOT / "envs/workflow.yaml").requirements)
    assert pinned == sorted(offline.pins((ROOT / "requirements.sums").read_text()))
    chosen = re.sub(r"# What th.se need\.\n([^#].*\n)*", "", lock)
    lines = [line for line in chosen.splitlines() if line[0] != "#"]
    assert lines and all(re.search(r"==\S+  # \w", line) for line in lines)


@pytest.mark.parametrize("groups", [[], ["cluster"], ["docs"], ["docs", "tests"]])
def test_each_group_of_the_workflow_s_packages_is_whole(groups):
    lock = (ROOT / "requirements.lock").read_text()
    first, *rest = re.split(r"^# Group (\w+):", lock, flags=re.MULTILINE)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    text = first if groups else first.partition(offline.NOT_NEEDED)[0]
    listed = offline.pins("\n".join([text, *map(parts.get, groups)]))
    names = {pin.partition("==")[0] for pin in listed}
    for name in names:
        for text in distribution(name).requires or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                assert pins.normalise(wanted.name) in names | {"pulp"}, f"{name} needs {text}"


def test_digest_is_blind_to_comments_and_order_and_sees_a_pin():
    def of(*dependencies, channel="conda-forge"):
        content = {"channels": [channel], "dependencies": list(dependencies)}
        return pins.digest(pins.parse(content, "x"))

    first = of("python=3.11", "pip=25.3", {"pip": ["A_b==1", "c==2"]})
    other = of({"pip": ["c==2", "a-b==1"]}, "pip=24.0", "python=3.11", channel="mine")
    assert first == other != of("python=3.11", "pip=25.3", {"pip": ["A_b==1", "c==3"]})
