"""Environments for GPUs: their pins are closed, which a resolver says without fetching a package.

Needs an index; with STEPTIME_ZOO=all (`make test-zoo`) alone.
"""

import subprocess

import pytest
from conftest import ROOT
from today import CATALOGUE, only_zoo

from steptime.environments import build, installer, pins

pytestmark = only_zoo
# Whoever has its packages already needs no index. Some files are there before an adapter speaks to their GPU.
FILES = [
    path
    for path in sorted((ROOT / "envs").glob("*-cuda*.yaml"))
    if not any(
        entry.get("differing", {}).get(path.stem, {}).get("prepare") == "installed"
        for entry in CATALOGUE.values()
    )
]
OUT_OF_REACH = ("failed to fetch", "dns error", "could not connect", "error sending request")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_pins_of_an_environment_for_gpus_are_all_that_it_takes(path, tmp_path):
    wanted = pins.load(path)
    builder = build.Builder(wanted, tmp_path / "prefix", None)
    asked = tmp_path / "asked.txt"
    asked.write_text(
        "".join(f"{builder._exact(name)}{version}\n" for name, version in wanted.packages.items())
    )
    command = [installer.find_uv(), "pip", "compile", "--no-header", "--no-annotate"]
    # Of those times, some packages have a small source and no wheel.
    if "chainer" in wanted.packages:
        # It is built with what is pinned: newer ones lack a module that it asks for.
        limits = tmp_path / "limits.txt"
        limits.write_text(f"setuptools=={wanted.packages['setuptools'].lstrip('=')}\n")
        command += ["--build-constraints", str(limits)]
    elif wanted.python != "3.6":
        command += ["--no-build"]
    command += ["--python-version", wanted.python, "--python-platform", "x86_64-manylinux_2_28"]
    done = subprocess.run(
        [*command, "--overrides", asked, asked],
        env=builder.variables,
        capture_output=True,
        text=True,
    )
    if any(words in done.stderr.lower() for words in OUT_OF_REACH):
        pytest.skip("no index of packages can be reached")
    assert done.returncode == 0, done.stderr
    found = {pins.normalise(line.partition("==")[0]): line for line in done.stdout.splitlines()}
    assert set(found) - build.ALWAYS_THERE == set(wanted.packages) - build.ALWAYS_THERE
    assert not [line for line in found.values() if "+cpu" in line]
