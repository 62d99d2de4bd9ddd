"""Runs uv as pip is set up on this machine: its wheel folders, indexes and certificates. Needs no package.

python -m steptime.environments.installer pip install --python .venv/bin/python -r requirements.lock
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from steptime import project

# pip's option, uv's variables for the same (except `no-index`), and the separator of several values there.
SETTINGS = {
    "find-links": (("UV_FIND_LINKS",), ","),
    "index-url": (("UV_DEFAULT_INDEX",), " "),
    "extra-index-url": (("UV_INDEX",), " "),
    "no-index": (("UV_NO_INDEX",), " "),
    "trusted-host": (("UV_INSECURE_HOST",), " "),
    "cert": (("SSL_CERT_FILE",), " "),
    "client-cert": (("SSL_CLIENT_CERT",), " "),
    "proxy": (("HTTP_PROXY", "HTTPS_PROXY"), " "),
    "timeout": (("UV_HTTP_TIMEOUT",), " "),
    "default-timeout": (("UV_HTTP_TIMEOUT",), " "),
    "retries": (("UV_HTTP_RETRIES",), " "),
}
# uv has `--no-index` and no variable for it: an index that is not there has no packages.
NOWHERE = "file:///nonexistent"
# Other names of the same settings, which uv reads too.
ALIASES = {
    "UV_DEFAULT_INDEX": ("UV_INDEX_URL",),
    "UV_INDEX": ("UV_EXTRA_INDEX_URL",),
    "UV_HTTP_TIMEOUT": ("UV_REQUEST_TIMEOUT", "HTTP_TIMEOUT"),
    "HTTP_PROXY": ("http_proxy", "ALL_PROXY", "all_proxy"),
    "HTTPS_PROXY": ("https_proxy", "ALL_PROXY", "all_proxy"),
}


def main() -> None:
    """Runs the command line: passes everything on to uv."""
    done = subprocess.run([find_uv(), *sys.argv[1:]], env=environment_variables())
    sys.exit(done.returncode)


def find_uv() -> str:
    """Returns the path of uv: beside this Python, on PATH, or in .venv, into which it is installed if need be."""
    of_python, own = Path(sys.executable).with_name("uv"), project.path(".venv/bin/uv")
    path = str(of_python) if of_python.exists() else shutil.which("uv")
    if path is None and not own.exists():
        subprocess.run(["sh", Path(__file__).with_name("bootstrap.sh")], stdout=sys.stderr)
    if path is None and not own.exists():
        sys.exit(
            "uv, which makes environments, is not there: install it beside Snakemake with "
            "`python -m pip install uv`."
        )
    return path or str(own)


def environment_variables() -> dict[str, str]:
    """Returns the variables to run uv with: the user's own, and pip's settings where the user has not set uv's."""
    cache = {"UV_CACHE_DIR": str(Path(".cache/uv").absolute())}
    variables = cache | os.environ | {"PYTHONNOUSERSITE": "1", "UV_NO_PROGRESS": "1"}
    for name in ("PYTHONPATH", "PYTHONHOME"):
        variables.pop(name, None)
    return variables | translate(pip_settings(), variables)


def pip_settings() -> dict[str, str]:
    """Returns pip's settings by option; as in pip, variables win over the section `install`, and it over `global`."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True)
    sections: dict[str, dict[str, str]] = {}
    for line in listed.stdout.splitlines():
        name, _, quoted = line.partition("=")
        section, _, option = name.rpartition(".")
        sections.setdefault(section, {})[option] = ast.literal_eval(quoted)
    # pip may be missing beside a Snakemake that the user brought along; its variables still count.
    names = {option: "PIP_" + option.upper().replace("-", "_") for option in SETTINGS}
    variables = {key: os.environ[name] for key, name in names.items() if os.environ.get(name)}
    return sections.get("global", {}) | sections.get("install", {}) | variables


def translate(settings: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Returns uv's variables for pip's settings, without those that `variables` already has."""
    translated = {}
    for option, (names, separator) in SETTINGS.items():
        for name in names:
            taken = {name, *ALIASES.get(name, ())} & variables.keys()
            if settings.get(option) and not taken:
                translated[name] = separator.join(settings[option].split())
    if translated.get("UV_NO_INDEX", "").lower() in ("1", "true", "yes", "on"):
        translated |= {"UV_DEFAULT_INDEX": NOWHERE, "UV_INDEX": ""}
    elif "UV_INDEX" in translated and "UV_INDEX_STRATEGY" not in variables:
        # As pip does: a version that the first index lacks is looked for in the next.
        translated["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return translated


if __name__ == "__main__":
    main()
