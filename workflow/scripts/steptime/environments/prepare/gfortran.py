"""libgfortran.so.3 (GCC 4 to 6), with which MXNet 1.0 is linked, from numpy's wheel, which brings a copy.

No distribution of today has that version. numpy's copy has a name of its own, so a link gives it the old one.
"""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from steptime.environments.prepare import InstallError

FOLDER = "lib/gfortran"


def prepare(prefix: Path, run: Callable[..., CompletedProcess[str]]) -> dict[str, str]:
    """Makes `lib/gfortran/libgfortran.so.3` below the prefix; LD_LIBRARY_PATH must name that folder."""
    found = next(prefix.glob("lib/python3*/site-packages/numpy/.libs/libgfortran-*.so.3*"), None)
    if found is None:
        raise InstallError(
            "the numpy of this environment brings no libgfortran.so.3: pin one up to 1.16.6"
        )
    folder = prefix / FOLDER
    folder.mkdir(exist_ok=True)
    # Relative, so that the environment may be moved.
    (folder / "libgfortran.so.3").symlink_to(Path("../..") / found.relative_to(prefix))
    return {"libgfortran.so.3": "the copy in numpy's wheel"}
