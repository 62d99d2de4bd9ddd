"""Environments: how they are made or fail to be, with a package and no network."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from examples import write_wheel
from today import TORCH

from steptime import machine
from steptime.environments import build, every, installer, interpreter, pins, prepare
from steptime.machine import gpu_peak, placement
from steptime.plan import digests as code

SPEC = """\
channels: [conda-forge]
dependencies:
  - python={python}
  - pip=25.3
  - pip:
      - {package}
"""
HERE = "{}.{}".format(*sys.version_info)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with envs/tiny-1.yaml and, where pip looks, the wheel that it pins; nothing can be downloaded."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels, "tiny", "1.0")
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_", "STEPTIME_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    (tmp_path / "pip.conf").write_text(f"[global]\nfind-links = {wheels}\nno-index = true\n")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/tiny-1.yaml").write_text(SPEC.format(python=HERE, package="tiny==1.0"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(root: Path) -> list[str]:
    """The command line that makes the environment tiny-1."""
    options = {"spec": str(root / "envs/tiny-1.yaml"), "environment": "tiny-1", "prepare": ""}
    options |= {"output": "tiny-1.json", "log": "logs/tiny-1.log"}
    named = [text for name, value in options.items() for text in (f"--{name}", value)]
    return [str(ROOT / "workflow/scripts/launch"), "environments.build", *named]


def make(root: Path, *arguments: str, expected: int = 0) -> tuple[dict, str]:
    """Makes the environment tiny-1; its manifest and what the user saw."""
    environment = os.environ | {"STEPTIME_PYTHON": sys.executable}
    done = subprocess.run(
        command(root) + [*arguments], cwd=root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr
    manifest = root / "tiny-1.json"
    return json.loads(manifest.read_text()) if manifest.exists() else {}, done.stderr


GOOD = SPEC.format(python="3.11", package="a==1")
TWICE = "nvidia-nccl-cu12==2\n      - nvidia-nccl-cu13==2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("channels: [a\nb", "is not valid YAML"),
        ("channels: [conda-forge]", "the key 'dependencies' is missing"),
        (GOOD.replace("a==1", "a>=1"), "'a>=1' is not an exact pin: write it as name==version"),
        (GOOD.replace("a==1", "a==1.*"), "'a==1.*' is not an exact pin"),
        (GOOD.replace("a==1", "a==1\n      - A==2"), "a is pinned twice, as 1 and 2"),
        (GOOD.replace("a==1", TWICE), "nvidia-nccl-cu12 and nvidia-nccl-cu13 write the same files"),
        (GOOD.replace("python=3.11", "cudnn=9"), "does not pin python"),
        (GOOD.replace("  - python=3.11\n", ""), "does not pin python"),
        (GOOD.replace("pip=25.3", "cudnn>=9"), "'cudnn>=9' cannot be used"),
        (GOOD.replace("pip=25.3", "pip=25.3\n  - openjdk=11"), "does not install without conda"),
        (GOOD + "prefix: here\n", "there is no key 'prefix'"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path, text, said):
    (tmp_path / "tiny-1.yaml").write_text(text)
    with pytest.raises(pins.InputError) as refused:
        pins.load(tmp_path / "tiny-1.yaml")
    sentence = str(refused.value)
    assert sentence.startswith(f"{tmp_path}/tiny-1.yaml") and said in sentence
    assert "\n" not in sentence


def test_a_mistake_in_a_file_is_no_result(checkout):
    (checkout / "envs/tiny-1.yaml").write_text(GOOD + "prefix: here\n")
    manifest, seen = make(checkout, expected=1)
    assert not manifest and "there is no key 'prefix'" in seen and seen.count("\n") == 1


def test_an_environment_is_made_once_and_its_manifest_tells_nothing_of_the_checkout(checkout):
    manifest, seen = make(checkout)
    assert (manifest["status"], manifest["packages"]) == ("ok", {"tiny": "1.0"})
    assert manifest["python"].startswith(HERE)
    assert str(checkout) not in json.dumps(manifest)
    python = checkout / ".environments/tiny-1/bin/python"
    assert subprocess.run([python, "-c", "import tiny"]).returncode == 0
    assert "making" in seen
    again, seen = make(checkout)
    assert again == manifest and not seen


def test_what_an_interrupt_leaves_is_made_again(checkout):
    prefix, settings = checkout / ".environments/tiny-1", checkout / "pip.conf"
    packages = settings.read_text()
    with socket.create_server(("127.0.0.1", 0)) as index:
        # It hears the installer and does not answer, so that the interrupt comes in the midst.
        settings.write_text(f"[global]\nindex-url = http://127.0.0.1:{index.getsockname()[1]}\n")
        process = subprocess.Popen(
            command(checkout),
            cwd=checkout,
            env=os.environ | {"STEPTIME_PYTHON": sys.executable, "NO_PROXY": "127.0.0.1"},
            start_new_session=True,
        )
        index.settimeout(600)
        index.accept()[0].close()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    settings.write_text(packages)
    assert (prefix / "bin/python").exists() and not (checkout / "tiny-1.json").exists()
    (prefix / "left").touch()
    manifest, _ = make(checkout)
    assert manifest["packages"] == {"tiny": "1.0"} and not (prefix / "left").exists()


def test_a_changed_pin_does_not_keep_the_old_environment(checkout):
    make(checkout)
    (checkout / "envs/tiny-1.yaml").write_text(SPEC.format(python=HERE, package="tiny==2.0"))
    manifest, seen = make(checkout)
    assert manifest["status"] == "install_failed"
    assert "tiny==2.0" in manifest["reason"]
    assert ".venv/bin/snakemake --force results/environments/tiny-1.json" in manifest["reason"]
    assert str(checkout) not in manifest["reason"]
    assert not (checkout / ".environments/tiny-1").exists()
    assert seen.count("\n") == 2


def test_an_environment_that_was_changed_is_made_again(checkout):
    """By hand, or by another program that installs into it."""
    manifest, _ = make(checkout)
    prefix = checkout / ".environments/tiny-1"
    assert interpreter.stands_as(manifest)
    (info,) = prefix.rglob("tiny-1.0.dist-info")
    shutil.copytree(info, info.with_name("mine-1.0.dist-info"))
    info.rename(info.with_name("tiny-0.9.dist-info"))
    told = interpreter.strangers(prefix, manifest["packages"])
    assert {*told.split(", ")} == {"mine 1.0 instead of none", "tiny 0.9 instead of 1.0"}
    assert not interpreter.stands_as(manifest)
    again, seen = make(checkout)
    assert again == manifest and "making the environment" in seen
    assert interpreter.stands_as(manifest)


@pytest.mark.parametrize(
    ("said", "passing"),
    [
        ("error: Failed to fetch\n  cause: dns error: failed to lookup address information", True),
        ("CondaHTTPError: HTTP 000 CONNECTION FAILED for url <...>", True),
        ("error: Request failed after 3 retries\n cause: operation timed out", True),
        ("  × No solution found\n  ╰─▶ Because a was not found in the package registry", False),
        ("PackagesNotFoundError: not available from current channels: python=3.11", False),
    ],
)
def test_a_lost_network_is_told_from_what_does_not_install(said, passing):
    assert build.is_passing(said) is passing


def test_what_failed_says_where_and_whether_the_network_was_to_blame(checkout, monkeypatch):
    """An index that nobody serves; the manifest is what planning looks at."""
    (checkout / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/simple\n")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    manifest, _ = make(checkout)
    assert manifest["status"] == "install_failed"
    assert (manifest["passing"], manifest["machine"]) == (True, machine.own_id())


def test_a_long_reason_keeps_its_end_where_the_cause_stands():
    said = "error: the build failed\n" + "a line of a compiler\n" * 200 + "cc: command not found"
    reason = build.reason(said, "it failed")
    assert (
        reason.startswith("it failed (the build failed a line") and "command not found)" in reason
    )
    assert " ... " in reason and len(reason) < build.LONGEST + 40


def test_a_python_that_is_not_there_is_a_result(checkout):
    (checkout / "envs/tiny-1.yaml").write_text(SPEC.format(python="3.4", package="tiny==1.0"))
    manifest, _ = make(checkout)
    assert manifest["status"] == "install_failed" and manifest["reason"].startswith(
        "no Python 3.4 was found: install"
    )


STEP = """
def prepare(prefix, run):
    assert run("no-such-program").returncode == 127
    if run("sh", "-c", "pwd > part", cwd=prefix).returncode:
        raise InstallError("unused")
    return {"libpart.so.1": "a stand-in"}
"""


@pytest.fixture
def steps(checkout, monkeypatch):
    """A folder of preparing steps in the place of the project's."""
    monkeypatch.setattr(code, "SCRIPTS", checkout / "scripts")
    folder = checkout / "scripts/steptime/environments/prepare"
    folder.mkdir(parents=True)
    monkeypatch.setattr(prepare, "FOLDER", folder)
    monkeypatch.setattr(prepare, "__path__", [str(folder)])
    yield folder
    for name in [name for name in sys.modules if name.startswith("steptime.environments.prepare.")]:
        del sys.modules[name]


def test_a_preparing_step_runs_once_and_is_told_of_ever_after(checkout, steps):
    (steps / "part.py").write_text(STEP)
    first = build.make("tiny-1", checkout / "envs/tiny-1.yaml", "part", sys.stdout)
    assert first["prepared"] == {"libpart.so.1": "a stand-in"}
    prefix = checkout / ".environments/tiny-1"
    assert (prefix / "part").read_text() == f"{prefix}\n"
    (prefix / "part").unlink()
    assert build.make("tiny-1", checkout / "envs/tiny-1.yaml", "part", sys.stdout) == first
    assert not (prefix / "part").exists()


def test_a_preparing_step_that_fails_is_a_result(checkout, steps):
    (steps / "part.py").write_text(
        "from steptime.environments.build import InstallError\n\n\n"
        "def prepare(prefix, run):\n    raise InstallError('a compiler is missing: install gcc')\n"
    )
    manifest = build.make("tiny-1", checkout / "envs/tiny-1.yaml", "part", sys.stdout)
    assert manifest["status"] == "install_failed"
    assert manifest["reason"].startswith("a compiler is missing: install gcc; to try again: ")
    assert not (checkout / ".environments/tiny-1").exists()


@pytest.mark.parametrize(("version", "status"), [("1.0", "ok"), ("2.0", "install_failed")])
def test_packages_that_a_machine_has_already_are_taken_as_they_are(
    checkout, monkeypatch, version, status
):
    """Somebody's virtual environment, as on a machine without a network."""
    theirs = checkout / "theirs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", theirs], check=True)
    folder = next(theirs.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(checkout / "wheels/tiny-1.0-py3-none-any.whl") as wheel:
        wheel.extractall(folder)
    (folder / "nvidia/cu13/lib").mkdir(parents=True)
    for name in ("cudart", "cublas", "cublasLt"):
        (folder / f"nvidia/cu13/lib/lib{name}.so.13").touch()
    monkeypatch.setenv("PATH", str(theirs / "bin"), prepend=os.pathsep)
    (checkout / "envs/tiny-1.yaml").write_text(SPEC.format(python=HERE, package=f"tiny=={version}"))
    shutil.rmtree(checkout / "wheels")
    manifest = build.make("tiny-1", checkout / "envs/tiny-1.yaml", "installed", sys.stdout)
    assert manifest["status"] == status
    if status == "ok":
        assert manifest["packages"] == {"tiny": "1.0"} and "packages" in manifest["prepared"]
        python = checkout / ".environments/tiny-1/bin/python"
        assert subprocess.run([python, "-c", "import tiny"]).returncode == 0
        assert gpu_peak.find_libraries(["tiny-1"])["libcublas"].is_relative_to(checkout)
    else:
        assert "lacks tiny 2.0" in manifest["reason"]


@pytest.mark.parametrize(
    "text", ["No space left on device (os error 28)", "Disk quota exceeded (os error 122)"]
)
def test_a_full_disk_is_no_result(checkout, text):
    builder = build.Builder(
        pins.load(checkout / "envs/tiny-1.yaml"), checkout / "prefix", sys.stdout
    )
    said = f"error: Failed to install: a.whl\n  cause: failed to copy\n  cause: {text}\n"
    with pytest.raises(OSError, match="the disk is full: free some space and run again"):
        builder._check(subprocess.CompletedProcess([], 2, "", said), "it failed")


def test_pip_is_followed_unless_uv_is_set_up():
    settings = {"find-links": "/a b", "index-url": "u", "extra-index-url": "v\nw"}
    translated = installer.translate(settings, {"UV_INDEX_URL": "mine"})
    assert translated == {
        "UV_FIND_LINKS": "/a,b",
        "UV_INDEX": "v w",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_what_a_company_sets_for_pip_reaches_uv_and_what_is_set_for_both_stays():
    settings = {"proxy": "http://p:1", "client-cert": "c.pem", "timeout": "60", "retries": "9"}
    assert installer.translate(settings, {"https_proxy": "mine", "UV_HTTP_TIMEOUT": "5"}) == {
        "HTTP_PROXY": "http://p:1",
        "SSL_CLIENT_CERT": "c.pem",
        "UV_HTTP_RETRIES": "9",
    }


def builder_of(checkout, *packages):
    """What would make an environment of these packages."""
    dependencies = ["python=3.11", "pip=25.3", {"pip": list(packages)}]
    wanted = pins.parse({"channels": ["c"], "dependencies": dependencies}, "x")
    return build.Builder(wanted, checkout / "prefix", sys.stdout)


@pytest.mark.parametrize(
    ("packages", "variables", "expected"),
    [
        (["torch==9.9.0"], {}, True),
        (["torch==9.9.0"], {"UV_FIND_LINKS": "wheels"}, False),
        (["torch==2.12.0"], {"UV_FIND_LINKS": "wheels"}, True),
        (["torch==9.9.0", "nvidia-cublas==13.0"], {}, False),
        (["torch==1.4.0"], {}, False),
        (["torch==9.9.0"], {"UV_TORCH_BACKEND": "cu130"}, False),
        (["tiny==1.0"], {}, False),
    ],
)
def test_the_cpu_build_of_torch_is_asked_for_where_the_pins_mean_it(
    checkout, packages, variables, expected
):
    (checkout / "wheels/torch-9.9.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    builder = builder_of(checkout, *packages)
    builder.variables = variables
    assert builder._needs_cpu_torch() is expected


@pytest.mark.parametrize(
    ("wheel", "pins_", "said"),
    [
        # It satisfies torch==1.0 in all but its meaning.
        (("torch", "1.0+cpu"), "torch==1.0\n      - nvidia-tiny==1.0", "No solution found"),
        (("torch", "1.0", "nvidia-other"), "torch==1.0\n      - nvidia-tiny==1.0", "nvidia-other came along"),
        (("torch", "1.0"), "torch==1.0\n      - nvidia-tiny==1.0", ""),
    ],
)  # fmt: skip
def test_an_environment_for_gpus_is_what_its_pins_mean_or_none(checkout, wheel, pins_, said):
    for each in (wheel, ("nvidia_tiny", "1.0"), ("nvidia_other", "3.0")):
        write_wheel(checkout / "wheels", *each)
    (checkout / "envs/tiny-1.yaml").write_text(SPEC.format(python=HERE, package=pins_))
    manifest, _ = make(checkout)
    assert said in manifest["reason"]
    assert manifest["status"] == ("install_failed" if said else "ok")


def test_a_python_that_does_not_run_is_passed_over(tmp_path, monkeypatch):
    """As pyenv's shim of a version that is not active does not."""
    shim = tmp_path / f"python{HERE}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "_base_executable", str(shim), raising=False)
    found = interpreter.find(HERE, lambda *_: subprocess.CompletedProcess([], 1, ""))
    assert found != shim and (found is None or interpreter.version_of(found, HERE))


def test_environments_to_make_are_named_by_themselves_or_by_their_framework(monkeypatch):
    monkeypatch.setattr(placement, "is_here", lambda needs: False)
    assert every.chosen(["torch", "theano-0.9", TORCH]) == [TORCH, "theano-0.9"]


@pytest.fixture
def copied(tmp_path):
    """What sets a checkout up, with a lock of its own and a folder with one wheel."""
    scripts = Path("workflow/scripts/steptime")
    for name in ("bootstrap.sh", "installer.py", "offline.py"):
        (tmp_path / scripts / "environments").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / scripts / "environments" / name, tmp_path / scripts / "environments")
    shutil.copy(ROOT / scripts / "project.py", tmp_path / scripts)
    (tmp_path / "wheels").mkdir()
    write_wheel(tmp_path / "wheels", "made_here", "1.0")
    return tmp_path


def set_up(root, lock):
    """Makes .venv of a lock and the folder, where there is no index."""
    (root / "requirements.lock").write_text(lock)
    variables = {"PYTHON": sys.executable, "PIP_NO_INDEX": "1"}
    return subprocess.run(
        ["sh", "workflow/scripts/steptime/environments/bootstrap.sh"],
        cwd=root,
        env=os.environ | variables | {"PIP_FIND_LINKS": str(root / "wheels")},
        capture_output=True,
        text=True,
    )


def test_without_an_index_there_are_wheels_of_a_folder_and_the_packages_of_the_python(copied):
    # Another version of PyYAML will do, and what only tests need may be lacking.
    done = set_up(
        copied, "made-here==1.0  # a reason\npyyaml==0\n# To install more.\nabsent==1.0\n"
    )
    assert done.returncode == 0, done.stderr
    python = copied / ".venv/bin/python"
    subprocess.run([python, "-c", "import made_here, yaml"], check=True)
    assert not set_up(copied, (copied / "requirements.lock").read_text()).stdout


def test_without_an_index_what_is_lacking_is_said(copied):
    done = set_up(copied, "made-here==1.0\nabsent==1.0\n# To install more.\n")
    assert done.returncode == 1
    assert (
        "lacks absent==1.0: put their wheels into a folder that PIP_FIND_LINKS names" in done.stderr
    )
    assert not (copied / ".venv/.steptime-lock").exists()


def test_where_no_python_is_new_enough_uv_brings_one_and_groups_are_added(copied):
    """PATH has what a shell needs, an old Python, and a uv that may have a newer one."""
    tools, newer = copied / "tools", copied / "newer"
    tools.mkdir()
    for name in ("sh", "sed", "cat", "cksum", "rm", "ls", "cp", "mkdir", "grep", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    made = f'case "$*" in "-m venv .venv") mkdir -p .venv/bin; cp "{newer}" .venv/bin/python;; esac'
    brings = f'[ -z "$FAILS" ] || exit 1; [ "$2" = install ] || echo "{newer}"'
    for path, text in {tools / "python3": "exit 1", tools / "uv": brings, newer: made}.items():
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (copied / "requirements.lock").write_text("uv==1\n# Group tests: more.\nmade-here==1.0\n")
    (copied / "requirements.sums").write_text("uv==1\n")

    def run(*groups, **variables):
        script = "workflow/scripts/steptime/environments/bootstrap.sh"
        variables |= {"PATH": str(tools), "PYENV_ROOT": "/nonexistent"}
        return subprocess.run(
            ["sh", script, *groups], cwd=copied, env=variables, capture_output=True, text=True
        )

    assert "and uv could not bring one, as said above: install one, or uv" in run(FAILS="1").stderr
    assert "no group 'test' in requirements.lock" in run("test").stderr
    assert not run("tests").returncode
    assert run("tests").stdout == run("tests").stderr == ""
    assert (copied / ".venv/pins.txt").read_text() == "made-here==1.0\n"
