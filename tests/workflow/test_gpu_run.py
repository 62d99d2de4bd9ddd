"""The prepared measurement for a GPU (benchmarks/gpu_run), rehearsed without a network and without a GPU.

Stand-ins take the GPU's place: NVML, CUDA's libraries, nvidia-smi, and in each worker another device under the GPU's
name (tests/stand_ins). The machine's Python has a framework and the large packages of the workflow, and nothing can be
fetched. With STEPTIME_ZOO=all (`make test-zoo`) alone.
"""

import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from importlib.metadata import distribution

import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from today import only_zoo, prefix_of

from steptime.cells import shard
from steptime.environments import offline, pins

pytestmark = only_zoo
STAND_INS = ROOT / "tests/stand_ins"
COMMIT = "0123456789ab"
# What benchmarks/gpu_run/prepare leaves out, and what installs the rest.
THERE = (
    "pip", "numpy", "pandas", "pyarrow", "scipy",
    "matplotlib", "pillow", "fonttools", "contourpy", "kiwisolver",
)  # fmt: skip
NVIDIA_SMI = """\
#!/bin/sh
case $1 in --query-gpu=name) echo "NVIDIA H100 80GB HBM3" ;; *) echo "GPU 0: NVIDIA H100 80GB HBM3" ;; esac
"""
# In the worker, behind the line that reads the job.
INSTEAD = """
    sys.path.insert(0, {!r})
    import devices

    devices.replace(job["adapter"])
"""
READS = "    job = json.load(sys.stdin)\n"
# The environment of the machine, the one that has its framework here, and what its file pins.
FRAMEWORKS = {
    "torch-2.11-cuda13": ("torch-2.13", ("torch",)),
    "jax-0.11-cuda13": ("jax-0.12", ("jax", "jaxlib")),
}


def site_packages(prefix):
    return next(prefix.glob("lib/python*/site-packages"))


def carry(name, folder):
    """Makes a wheel of an installed package."""
    package = distribution(name)
    files = [file for file in package.files if file.parts[0] != ".." and file.suffix != ".pyc"]
    (*_, tag) = [
        line[5:] for line in package.read_text("WHEEL").splitlines() if line[:5] == "Tag: "
    ]
    path = folder / f"{name.replace('-', '_')}-{package.version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in files:
            wheel.write(file.locate(), str(file))


def python_with(prefix, environment):
    """A Python of the machine, in which somebody has installed a framework."""
    there = prefix_of(environment)
    subprocess.run([there / "bin/python", "-m", "venv", "--without-pip", prefix], check=True)
    theirs = site_packages(there)
    (site_packages(prefix) / "theirs.pth").write_text(
        f"import site; site.addsitedir({str(theirs)!r})\n"
    )


@pytest.fixture
def machine(new_checkout, tmp_path):
    """A checkout without git's folder on a machine with a GPU, with what was carried there; its variables."""
    tree, home = new_checkout().root, tmp_path / "python"
    for name, (here, packages) in FRAMEWORKS.items():
        prefix_of(here)
        wanted = pins.load(ROOT / f"envs/{here}.yaml")
        path = tree / f"envs/{name}.yaml"
        lines = [line for line in path.read_text().splitlines() if "==" not in line]
        lines += [f"      - {each}=={wanted.packages[each]}" for each in (*packages, "numpy")]
        path.write_text("\n".join(lines).replace("python=3.12", f"python={wanted.python}"))
        if here == "torch-2.13":
            python_with(home, here)
        else:
            python_with(tmp_path / "other", here)
            about = site_packages(tmp_path / "other") / "nvidia_cuda_runtime-13.0.96.dist-info"
            about.mkdir()
            (about / "METADATA").write_text("Name: nvidia-cuda-runtime\nVersion: 13.0.96\n")
    own = site_packages(home)
    for name in THERE:
        for top in {file.parts[0] for file in distribution(name).files if file.parts[0] != ".."}:
            if not (own / top).exists():
                (own / top).symlink_to(distribution(name).locate_file(top))
    libraries = own / "nvidia/cu13/lib"
    libraries.mkdir(parents=True)
    driver = tmp_path / "driver"
    driver.mkdir()
    for source, target in (
        ("cuda.c", libraries / "libcudart.so.13"),
        ("nvml.c", driver / "libnvidia-ml.so.1"),
    ):
        command = ["cc", "-shared", "-fPIC", "-w", "-o", target, STAND_INS / source]
        subprocess.run(command, check=True)
    for name in ("cublas", "cublasLt"):
        (libraries / f"lib{name}.so.13").symlink_to("libcudart.so.13")
    (driver / "nvidia-smi").write_text(NVIDIA_SMI)
    (driver / "nvidia-smi").chmod(0o755)
    folder = tree / "benchmarks/gpu_run"
    (folder / "carried/wheels").mkdir(parents=True)
    (folder / "carried/commit").write_text(f"{COMMIT}\n")
    needed = (ROOT / "requirements.lock").read_text().partition(offline.NOT_NEEDED)[0]
    for pin in offline.pins(needed):
        if pin.partition("==")[0] not in THERE:
            carry(pin.partition("==")[0], folder / "carried/wheels")
    # As many CPUs as there are here.
    platforms = folder / "platforms.yaml"
    platforms.write_text(platforms.read_text().replace("cores: 8", "cores: 2"))
    worker = tree / "workflow/scripts/worker/__main__.py"
    assert worker.read_text().count(READS) == 1
    worker.write_text(worker.read_text().replace(READS, READS + INSTEAD.format(str(STAND_INS))))
    path = [driver, home / "bin", tmp_path / "other/bin", "/usr/bin", "/bin"]
    variables = {name: os.environ[name] for name in ("HOME", "STEPTIME_LOCKS")}
    variables |= {"PATH": ":".join(map(str, path)), "LD_LIBRARY_PATH": str(driver)}
    return tree, variables | {"STANDIN_GPUS": "H100 80GB HBM3", "OUT": str(tmp_path / "out")}


def measure(tree, variables, *arguments):
    """What the prepared measurement prints, without a network where this machine lets us take it away."""
    alone = ["unshare", "-rn"]
    if shutil.which(alone[0]) is None or subprocess.run([*alone, "true"]).returncode:
        alone = []
    done = subprocess.run(
        [*alone, "bash", "benchmarks/gpu_run/measure", *arguments],
        cwd=tree,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    print(done.stdout)
    logs = sorted((tree / "benchmarks/gpu_run/made").glob("*.log"))
    print(*(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in logs), sep="\n")
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_prepared_measurement_ends_in_a_pack(machine, tmp_path):
    tree, variables = machine
    steps = ["setup", "machine", "table4", "figure1", "today", "peak", "check"]
    printed = measure(tree, variables, "20", *steps)
    # A slow machine comes to the limits, and gpu-check says that a CPU has neither TF32 nor a GPU's memory.
    how = "(done|ended with (1|124))"
    for step in steps:
        assert re.search(f"^{step}: {how} after", printed, re.MULTILINE), printed
    cells = [pq.read_table(path).to_pylist()[0] for path in tree.glob("results/cells/**/*.parquet")]
    assert {(cell["platform"], cell["status"]) for cell in cells} == {("h100", "ok")}, printed
    assert {cell["environment"] for cell in cells} == {*FRAMEWORKS}
    assert {cell["workflow_commit"] for cell in cells} == {COMMIT}
    footers = [shard.read_parts(path)[2] for path in tree.glob("results/cells/**/jax*.parquet")]
    assert {footer["software"]["cuda"] for footer in footers} <= {"13.0.96"}
    assert f"{len(cells)} cells: seconds of a step" in printed
    assert "peak of h100: {'precisions': {'float32':" in printed
    with tarfile.open(tmp_path / "out/results.tar.gz") as pack:
        assert sum(name.endswith(".parquet") for name in pack.getnames()) >= len(cells)
