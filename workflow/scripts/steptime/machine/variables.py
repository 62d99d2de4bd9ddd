"""Makes the environment variables of a worker, which do not depend on the user's shell."""

import os

# What a worker inherits. Variables for threads, Python's own and the like must come from the cell alone. The user's
# LD_LIBRARY_PATH would bring in another OpenMP or another CUDA.
INHERITED = ("PATH", "USER", "LANG", "LC_ALL")


def isolated(variables: dict[str, str], device: str, path: str) -> dict[str, str]:
    """Returns a worker's environment variables: some inherited, Python's isolation, its `path`, the cell's own."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    own = {
        "PYTHONPATH": path,
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    return inherited | own | hidden | variables
