"""Makes the environment of a framework from its file of pins, and writes down what was installed.

    workflow/scripts/launch environments.build --spec envs/E.yaml --environment E --prepare "" \
        --output E.json --log E.log

An environment that cannot be made is a result: a manifest with the status `install_failed`, and exit code 0. With
`snakemake --sdm conda` conda supplies the Python; uv installs the packages either way.
"""

import argparse
import errno
import fcntl
import json
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TextIO

from steptime import machine, project, run
from steptime.atomic import write_json
from steptime.environments import installer, interpreter, libraries, pins, prepare
from steptime.environments.interpreter import STAMP, SUPPLIED
from steptime.environments.prepare import InstallError
from steptime.plain import plain, plural
from steptime.say import doing, say

PREPARED = ".steptime-prepared"
INSTALLED = ".steptime-packages"
LIBRARIES = ".steptime-libraries"
TOOK = ".steptime-seconds"
# What conda and virtual environments bring along by themselves.
ALWAYS_THERE = {"pip", "setuptools", "wheel"}
# A file that pins setuptools has packages that only those old tools can build; these are there before them.
BUILDS_WITH = ("setuptools", "wheel", "cython", "numpy")
LONGEST = 600
NO_SPACE = ("No space left on device", "Disk quota exceeded")
# Messages of uv, pip, curl and conda. An index that answers that it lacks a package is not without a network.
NO_NETWORK = re.compile(
    "dns error|could not resolve host|name or service not known|temporary failure in name resolution"
    "|network is unreachable|no route to host|connection refused|connection reset"
    "|(connection|operation|read) timed out|error trying to connect|error sending request"
    "|condahttperror: http 000|connectionfailed|network connectivity was disabled",
    re.IGNORECASE,
)


class Builder:
    """Makes one environment with the preparing step `step`, '' for none; what the installers print goes to `log`."""

    def __init__(self, wanted: pins.Pins, prefix: Path, log: TextIO, step: str = "") -> None:
        self.wanted, self.prefix, self.log, self.step = wanted, prefix, log, step
        self.digest = pins.digest(wanted, prepare.digest(step))
        self.python = prefix / "bin/python"
        self.supply = prepare.supplier(step)
        self.variables = installer.environment_variables()
        # A step that supplies all packages needs no installer.
        self.uv = "" if self.supply else installer.find_uv()
        # What was printed last.
        self.printed = ""

    def stands(self) -> bool:
        """Tells whether the environment is there, was made to its end from these pins, and still has its packages."""
        stamp, packages = self.prefix / STAMP, self.prefix / INSTALLED
        return (
            stamp.is_file()
            and stamp.read_text() == self.digest
            and packages.is_file()
            and interpreter.installed(self.prefix) == json.loads(packages.read_text())
            and interpreter.version_of(self.python) is not None
        )

    def build(self) -> None:
        """Makes the environment from nothing. Raises InstallError, OSError."""
        remove(self.prefix)
        try:
            if self.supply:
                supplied = self.supply(self.prefix.absolute(), self.wanted, self.run)
                (self.prefix / SUPPLIED).write_text(json.dumps(supplied))
            else:
                if run.facts().get("deployment") == "conda":
                    self._python_by_conda()
                else:
                    self._python_by_uv()
                self._packages()
                self._check_cuda()
            if self.step:
                parts = prepare.step(self.step)(self.prefix.absolute(), self.run)
                (self.prefix / PREPARED).write_text(json.dumps(parts))
        except (InstallError, OSError):
            remove(self.prefix)
            raise
        (self.prefix / INSTALLED).write_text(json.dumps(interpreter.installed(self.prefix)))
        # Last, so that what an interrupt leaves half made is made again.
        (self.prefix / STAMP).write_text(self.digest)

    def prepared(self) -> dict[str, str]:
        """Returns what the preparing step said of each part that it added."""
        prepared = self.prefix / PREPARED
        return json.loads(prepared.read_text()) if prepared.is_file() else {}

    def installed(self) -> dict[str, str]:
        """Returns the packages of the environment with their versions."""
        if self.supply:
            return json.loads((self.prefix / SUPPLIED).read_text())
        listed = self.run(self.uv, "pip", "list", "--format", "json", "--python", self.python)
        entries = json.loads(listed.stdout)
        return {pins.normalise(entry["name"]): entry["version"] for entry in entries}

    def libraries(self) -> libraries.Libraries:
        """Inspects the environment's compiled libraries, once, since it takes seconds."""
        seen = self.prefix / LIBRARIES
        if not seen.is_file():
            seen.write_text(json.dumps(libraries.inspect(self.prefix.resolve())))
        return json.loads(seen.read_text())

    def clear_stacks(self, environment: str) -> None:
        """Removes the demand for an executable stack from the environment's libraries; says which others have it."""
        stacks = libraries.executable_stacks(self.prefix.resolve())
        names = ", ".join(path.name for path in stacks)
        if not self.supply:
            for path, place in stacks.items():
                libraries.clear(path, place)
            self.log.write(f"No executable stack any more: {names}\n" if stacks else "")
        elif stacks:
            say(
                f"{environment}: glibc 2.41 and newer may refuse to load {names}, which ask for an executable stack. "
                "If so, set GLIBC_TUNABLES=glibc.rtld.execstack=2."
            )

    def run(self, *command: str | Path, cwd: Path | None = None) -> CompletedProcess[str]:
        """Runs an installer, both of whose streams also go to the log. A missing program returns 127, as in a shell."""
        self.log.write(f"$ {' '.join(map(str, command))}\n")
        self.log.flush()
        try:
            where: dict[str, Any] = {"cwd": cwd, "env": self.variables}
            done = subprocess.run(command, input="", capture_output=True, errors="replace", **where)
        except FileNotFoundError:
            done = CompletedProcess(command, 127, "", f"{command[0]}: not found\n")
        self.printed = done.stdout + done.stderr
        self.log.write(self.printed)
        self.log.flush()
        return done

    def _python_by_uv(self) -> None:
        python = interpreter.find(self.wanted.python, partial(self.run, self.uv))
        if python is None:
            raise InstallError(
                f"no Python {self.wanted.python} was found: install it with pyenv, put it on PATH, or put "
                "a conda there, which brings its own"
            )
        done = self.run(self.uv, "venv", "--no-project", "--python", python, self.prefix)
        self._check(done, f"a virtual environment of Python {self.wanted.python} could not be made")

    def _python_by_conda(self) -> None:
        channels = [part for channel in self.wanted.channels for part in ("--channel", channel)]
        specs = [f"python={self.wanted.python}", f"pip={self.wanted.pip}", *self.wanted.conda]
        command = ("conda", "create", "--yes", "--quiet", "--no-default-packages", "--prefix")
        done = self.run(*command, self.prefix, "--override-channels", *channels, *specs)
        self._check(done, f"conda could not supply {' and '.join(specs)}")

    def _packages(self) -> None:
        advice = ""
        if self._needs_cpu_torch():
            self.variables["UV_TORCH_BACKEND"] = "cpu"
            advice = "; torch comes from PyTorch's own index unless a folder named in PIP_FIND_LINKS has its wheel"
        # Old packages contradict each other in what they ask for; the file's pins are what was seen to run.
        overrides = self.prefix / ".steptime-pins.txt"
        pinned = [self._exact(name) + version for name, version in self.wanted.packages.items()]
        overrides.write_text("\n".join([*pinned, ""]))
        install: list[str | Path] = [self.uv, "pip", "install", "--python", self.python]
        install += ["--overrides", overrides]
        parts = [each.partition("==") for each in self.wanted.requirements]
        if "setuptools" in self.wanted.packages:
            tools = ["".join(each) for each in parts if each[0] in BUILDS_WITH]
            done = self.run(*install, *tools)
            self._check(done, "the packages that build the others could not be installed")
            install.append("--no-build-isolation")
        done = self.run(*install, *(self._exact(name) + version for name, _, version in parts))
        self._check(done, "its packages could not be installed", advice)
        # Compiled once here; otherwise every cell compiles it during its import, where no bytecode can be written. A
        # package may hold files that are not for this Python, so the exit code says nothing.
        self.run(self.python, "-m", "compileall", "-q", "-j", "0", self.prefix / "lib")

    def _exact(self, name: str) -> str:
        """Returns a package with the sign before its version: torch===2.13.0, so that 2.13.0+cpu does not fit."""
        return f"{name}===" if name == "torch" and self._for_cuda() else f"{name}=="

    def _for_cuda(self) -> bool:
        """Tells whether the pins are of a build for NVIDIA's GPUs."""
        return any(name.startswith("nvidia-") for name in self.wanted.packages)

    def _check_cuda(self) -> None:
        """Raises InstallError where an environment for GPUs got a build for CPUs, or libraries that nobody pinned."""
        if not self._for_cuda():
            return
        installed = self.installed()
        torch = installed.get("torch", "")
        if torch.endswith("+cpu"):
            raise InstallError(
                f"torch {torch} is a build for CPUs and its file means the one for CUDA: take that wheel out of the "
                "folders in which pip or uv looks for wheels"
            )
        besides = installed.keys() - self.wanted.packages.keys()
        if open_ones := sorted(name for name in besides if "nvidia-" in name):
            raise InstallError(
                f"{', '.join(open_ones)} came along without a pin, and libraries of two versions of CUDA do not go "
                "together: pin each of them"
            )

    def _needs_cpu_torch(self) -> bool:
        """Tells whether uv must take torch from PyTorch's own index of CPU builds.

        Without NVIDIA's packages the pins mean the CPU build. Under that version the index of all packages has only the
        CUDA build, which needs gigabytes. A wheel in a local folder comes first. Before 1.13 the CUDA build needs
        nothing else.
        """
        version = self.wanted.packages.get("torch")
        if version is None or self._for_cuda():
            return False
        if tuple(map(int, version.split(".")[:2])) < (1, 13):
            return False
        folders = self.variables.get("UV_FIND_LINKS", "").split(",")
        wheel = f"torch-{version}*.whl"
        if any(any(Path(name.removeprefix("file://")).glob(wheel)) for name in folders if name):
            return False
        return not {"UV_TORCH_BACKEND", "UV_NO_INDEX"} & self.variables.keys()

    def _check(self, done: CompletedProcess[str], failure: str, advice: str = "") -> None:
        if done.returncode == 0:
            return
        printed = done.stderr or done.stdout
        # Nothing that the framework is to blame for, so no result.
        if any(text in printed for text in NO_SPACE):
            full = "the disk is full: free some space and run again"
            raise OSError(errno.ENOSPC, full, str(self.prefix))
        raise InstallError(reason(printed, failure) + advice)


def is_passing(output: str) -> bool:
    """Tells whether an installer failed because it had no network: then no framework is to blame."""
    return NO_NETWORK.search(output) is not None


def reason(output: str, failure: str) -> str:
    """Returns one clause that says why an installer failed, from the beginning and the end of what it printed."""
    # Begins at the first error, without uv's drawing of the chain of causes. Hints, addresses and paths belong to this
    # machine, and so does the time for which uv tried.
    output = "\n".join(map(plain, output.splitlines()))
    text = re.split(r"(?:^|\n)\s*(?:×|error:|\w*Error:)", output, maxsplit=1)[-1]
    text = re.split(r"(?m)^\s*(?:hint|help):", text)[0].replace("│", " ")
    text = re.sub(r"\s*cause:|\s*[├╰]─▶", ":", text)
    text = re.sub(r"\S*(?:://|(?<![\w.])/)\S*", "...", text)
    text = re.sub(r" in [\d.]+ ?m?s\b", "", " ".join(text.split())).rstrip(".")
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2].rstrip()} ... {text[-LONGEST // 2 :].lstrip()}"
    return f"{failure} ({text})" if text else failure


def remove(prefix: Path) -> None:
    """Removes an environment under another name, so that a half removed one is never taken for a whole one."""
    if prefix.exists():
        doomed = prefix.with_name(f".{prefix.name}.removed")
        shutil.rmtree(doomed, ignore_errors=True)
        prefix.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def unpinned(installed: dict[str, str], wanted: pins.Pins) -> list[str]:
    """Returns requirements for the installed packages that the file does not pin."""
    extra = installed.keys() - wanted.packages.keys() - ALWAYS_THERE
    return [f"{name}=={installed[name].partition('+')[0]}" for name in sorted(extra)]


def make(environment: str, spec: Path, step: str, log: TextIO) -> dict[str, Any]:
    """Makes an environment and returns its manifest. Raises InputError, OSError."""
    wanted = pins.load(spec, step)
    prefix = project.environment(environment)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    builder = Builder(wanted, prefix, log, step)
    manifest = {"schema": 1, "environment": environment, "digest": builder.digest}
    manifest |= {"status": "ok", "reason": "", "python": None, "packages": {}}
    start = time.monotonic()
    try:
        # Several checkouts may share the folder of the environments.
        with prefix.with_name(f".{environment}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not builder.stands():
                count = plural(len(wanted.packages), "package")
                doing(f"making the environment {environment}")
                say(f"{environment}: making the environment, Python {wanted.python} with {count}")
                builder.build()
                (prefix / TOOK).write_text(f"{time.monotonic() - start:.0f}")
                say(f"{environment}: ready after {time.monotonic() - start:.0f} s")
            builder.clear_stacks(environment)
    except InstallError as error:
        log.write(f"took {time.monotonic() - start:.0f} s\n")
        again = f".venv/bin/snakemake --force results/environments/{environment}.json"
        say(f"{environment}: {error} (all that was printed: {log.name})")
        # On another machine it is tried again, and so it is here where the network was to blame.
        return manifest | {
            "status": "install_failed",
            "reason": f"{error}; to try again: `{again}`",
            "machine": machine.own_id(),
            "passing": is_passing(builder.printed),
        }
    installed = builder.installed()
    if (prefix / TOOK).is_file():
        log.write(f"took {(prefix / TOOK).read_text()} s\n")
    lines = [] if builder.supply else unpinned(installed, wanted)
    if lines:
        say(f"{environment}: {spec} does not pin {', '.join(lines)}: add them to its list 'pip:'")
    manifest |= {"python": interpreter.version_of(builder.python), "packages": installed}
    manifest["libraries"] = builder.libraries()
    prepared = builder.prepared()
    return manifest | {"prepared": prepared} if prepared else manifest


def main() -> None:
    parser = argparse.ArgumentParser(description="Make an environment from its file of pins.")
    parser.add_argument("--spec", required=True, type=project.path, help="conda file with the pins")
    parser.add_argument("--environment", required=True, help="name of the environment")
    parser.add_argument("--prepare", required=True, help="the preparing step, '' for none")
    parser.add_argument("--output", required=True, type=Path, help="manifest to write")
    parser.add_argument("--log", required=True, type=Path, help="all that the installers print")
    options = parser.parse_args()
    try:
        options.log.parent.mkdir(parents=True, exist_ok=True)
        with options.log.open("w") as log:
            made = make(options.environment, options.spec, options.prepare, log)
            write_json(options.output, made)
    except OSError as error:
        sys.exit(f"{options.environment}: {error.filename or options.output}: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
