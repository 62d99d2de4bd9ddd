"""Preparing steps: what they ask for when the user's machine lacks something, as one clause."""

import importlib
import shutil
import subprocess

import pytest

from steptime.environments.prepare import InstallError, debian

deeplearning4j = importlib.import_module("steptime.environments.prepare.deeplearning4j")
neon = importlib.import_module("steptime.environments.prepare.neon")
torch7 = importlib.import_module("steptime.environments.prepare.torch7")


def run(*command, **_):
    """As the builder runs programs."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_packages_of_debian_need_its_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="no apt-get on PATH"):
        debian.unpack(tmp_path / "debian", run, "bullseye", ["hello"])


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="there is no apt-get")
def test_a_mirror_that_the_user_names_is_taken_and_a_wrong_one_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv(debian.MIRROR, (tmp_path / "nothing").as_uri())
    with pytest.raises(InstallError, match="index of Debian bullseye could not be read"):
        debian.unpack(tmp_path / "debian", run, "bullseye", ["hello"])
    assert "nothing bullseye main" in (tmp_path / "debian-apt/etc/sources.list").read_text()


def test_neon_asks_for_its_source_and_says_what_is_wrong_with_it(tmp_path, monkeypatch):
    monkeypatch.delenv(neon.SOURCE, raising=False)
    with pytest.raises(InstallError, match=f"clone NervanaSystems/neon.*set {neon.SOURCE}"):
        neon.prepare(tmp_path, run)
    monkeypatch.setenv(neon.SOURCE, str(tmp_path))
    with pytest.raises(InstallError, match="is not the source of neon"):
        neon.prepare(tmp_path, run)
    (tmp_path / "neon/backends").mkdir(parents=True)
    (tmp_path / "neon/backends/nervanacpu.py").touch()
    (tmp_path / "setup.py").write_text("VERSION = '1.9.0'\n")
    with pytest.raises(InstallError, match="holds neon 1.9.0, not 2.6.0"):
        neon.prepare(tmp_path, run)
    (tmp_path / "setup.py").write_text("VERSION = '2.6.0'\n")
    packages = tmp_path / "prefix/lib/python3.6/site-packages"
    packages.mkdir(parents=True)
    assert neon.prepare(tmp_path / "prefix", run) == {
        "neon": "2.6.0, from a folder with its source"
    }
    assert (packages / "neon/backends/nervanacpu.py").is_file()
    assert (packages / "neon/version.py").read_text() == "VERSION = '2.6.0'\n"


def test_torch7_asks_for_its_sources_and_for_a_compiler_and_leaves_the_environment_alone_until_then(
    tmp_path, monkeypatch
):
    prefix = tmp_path / "prefix"
    monkeypatch.delenv(torch7.SOURCE, raising=False)
    with pytest.raises(
        InstallError, match=f"clone torch/cwrap, torch/paths, torch/torch7, .*set {torch7.SOURCE}"
    ):
        torch7.prepare(prefix, run)
    monkeypatch.setenv(torch7.SOURCE, str(tmp_path))
    for part, file in torch7.PARTS.items():
        with pytest.raises(InstallError, match=f"no folder {part} with the source of torch/{part}"):
            torch7.prepare(prefix, run)
        (tmp_path / part / file).parent.mkdir(parents=True)
        (tmp_path / part / file).touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="no gcc on PATH"):
        torch7.prepare(prefix, run)
    assert not prefix.exists()


def test_deeplearning4j_asks_for_its_archives_and_takes_none_that_was_changed(
    tmp_path, monkeypatch
):
    prefix = tmp_path / "prefix"
    monkeypatch.delenv(deeplearning4j.SOURCE, raising=False)
    with pytest.raises(InstallError, match=f"`mvn -f envs/.*` and set {deeplearning4j.SOURCE}"):
        deeplearning4j.prepare(prefix, run)
    monkeypatch.setenv(deeplearning4j.SOURCE, str(tmp_path))
    names = [line.split()[1] for line in deeplearning4j.SUMS.read_text().splitlines()]
    for name in names[1:]:
        (tmp_path / name).touch()
    with pytest.raises(InstallError, match=f"lacks {names[0]}, and 0 more of 34 archives: run"):
        deeplearning4j.prepare(prefix, run)
    (tmp_path / names[0]).touch()
    with pytest.raises(InstallError, match=f"{names[0]} .* is not what was published"):
        deeplearning4j.prepare(prefix, run)
    assert not prefix.exists()
