"""Estimates how long a run will take: a guess for each file, corrected by what the run has shown so far."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime import project
from steptime.plain import plural
from steptime.plan.cell import FOLDER, Cell, key_of, reference_path, shard_path
from steptime.reading import read_yaml
from steptime.tasks import TASKS

if TYPE_CHECKING:
    from steptime.plan.configuration import Configuration
    from steptime.plan.grid import Plan

# Seconds of one job of a kind, by its file, besides what it computes.
KINDS = {
    r"results/environments/(?P<environment>.*)\.json": 1.0,
    r"results/proofs/(?P<proof>.*)(?<!\.details)\.json": 3.0,
    r"results/references/(?P<reference>.*)\.npz": 3.0,
    rf"results/{FOLDER}/(?P<run>.*)\.parquet": 5.0,
    r"results/peaks/.*\.json": 15.0,
    r"results/further/(?P<trial>.*)\.json": 1.5,
    r"results/(metadata|topology|statistics)/.*\.json": 1.5,
    r"results/merged/.*\.parquet": 1.0,
    r"results/tables/(?P<table>.*)\.parquet": 1.0,
    r"results/figures/(?P<figure>.*)\.svg": 1.0,
    r"results/report/.*\.html": 5.0,
}
# To fetch and install an environment, and its size where nobody has looked; a run that was asked for on the way.
INSTALL, USUAL_MB, FURTHER = 15.0, 700, 15.0
# Operations a second and thread, and how many steps a run and a reference compute.
SPEED, STEPS, STEPS_OF_REFERENCE = 150e9, 12, 30
# How many epochs a training has unless something ends it before, and how many times as long as its operations each
# takes.
EPOCHS, FED = 5, 3.0
# A run that shows the gradients of others takes as long as so many of them.
SHOWS = 2.0
# How many seconds of guesses count as much as what an environment has shown.
WORTH = 20.0


def guess(
    files: Iterable[str],
    configuration: "Configuration",
    cores: int,
    cells: Mapping[str, Cell],
    shown: Collection[str],
) -> dict[str, float]:
    """Returns the seconds of each job, by its file. `shown` are those of `cells` whose gradients other cells show."""
    grid = configuration.grid
    of_shard = {shard_path(key): cell for key, cell in cells.items()}
    of_reference = {reference_path(cell.facts()): cell for cell in cells.values()}

    @cache
    def operations(task: str, network: str, batch: int) -> int:
        spec = configuration.specify(network)
        return TASKS[task].operations(spec, batch)

    seconds = {}
    for file in files:
        kind, named = _kind(file)
        if kind is None:
            continue
        seconds[file] = kind
        if "environment" in named and not _stands(named["environment"]):
            seconds[file] += INSTALL
        comes_along = project.path(f"resources/references/{Path(file).name}").exists()
        if (cell := of_reference.get(file)) and not comes_along:
            count = operations("step", cell.network, cell.batch)
            seconds[file] += STEPS_OF_REFERENCE * count / (SPEED * cores)
        if cell := of_shard.get(file):
            count = operations(cell.task, cell.network, cell.batch)
            if TASKS[cell.task].needs_images:
                images = configuration.datasets[cell.dataset]["counts"]["train"]
                epochs = min(EPOCHS, grid["training"].get("most_epochs", EPOCHS))
                computed = FED * epochs * images / cell.batch * count
                lasting = computed / (SPEED * min(cell.threads, cores))
                seconds[file] += min(grid["training"]["budget_seconds"], lasting)
            else:
                seconds[file] += grid["sampling"]["budget_seconds"]
                seconds[file] += STEPS * count / (SPEED * min(cell.threads, cores))
                shows = TASKS[cell.task].needs_reference and cell.key not in shown
                seconds[file] *= SHOWS if shows else 1.0
    return seconds


def kin(axes: Mapping[str, Any]) -> list[str]:
    """Returns what a run has in common with others, nearest kin first.

    These are: all but the trial; all but trial and threads; network, environment and task; environment and task; task.
    """
    way = f"{axes['task']}/{axes['environment']}.{axes['mode']}"
    wholes = [key_of({**axes, "repeat": 0}), key_of({**axes, "repeat": 0, "threads": 0})]
    return [*wholes, f"{way}-{axes['network']}", way, axes["task"]]


def words(guessed: Mapping[str, float], kins: Mapping[str, list[str]]) -> str:
    """Says what is to be done: runs, environments with sizes, tables, figures. `kins` has the `kin` of each run."""
    named = [_kind(file)[1] for file in guessed]
    runs = [file for file in guessed if file in kins]
    results = {kins[file][0] for file in runs}
    environments = [each["environment"] for each in named if "environment" in each]
    lacking = [name for name in environments if not _stands(name)]
    count = {name: sum(name in each for each in named) for name in ("proof", "reference")}
    shown = {each.get("table", each.get("figure")) for each in named} - {None}
    parts = [f"{plural(len(results), 'result')} in {plural(len(runs), 'run')}"] if runs else []
    parts += [plural(number, name) for name, number in count.items() if number]
    if lacking:
        sizes = read_yaml(project.path("resources/steptime/sizes.yaml"))
        about = f"about {sum(sizes.get(name, USUAL_MB) for name in lacking) / 1000:.1f} GB"
        made = f"{plural(len(lacking), 'environment')} to make"
        parts.append(f"{made} ({', '.join(lacking)}; {about})")
    things = "table or figure" if len(shown) == 1 else "tables and figures"
    parts += [f"{len(shown)} {things}"] if shown else []
    return ", ".join(parts) or plural(len(guessed), "file")


def left_out(asked: Collection[str], plan: "Plan", configuration: "Configuration") -> list[str]:
    """Says which mini-batches of the grid `paper` a figure that is asked for by its name leaves out."""
    whole = read_yaml(project.path("config/grids/paper.yaml"))["figure_batches"]
    sentences = []
    for name, keys in plan.artefacts.items():
        entry = configuration.catalogue[name].entry if name in asked else {}
        measured = {plan.cells[key].batch for key in keys}
        more = [size for size in whole.get(entry.get("network"), []) if size not in measured]
        if more:
            sentences.append(
                f"{name} leaves out the mini-batches {', '.join(map(str, more))}, which take longer: "
                f"`make GRID=paper TARGET={name}` has them."
            )
    return sentences


def left(
    guessed: Mapping[str, float],
    kins: Mapping[str, list[str]],
    took: Mapping[str, float],
    began: float,
) -> float:
    """Returns the seconds of the jobs whose file is missing, or older than `began`, when the run began.

    `kins` has the `kin` of each run, by its file; `took` are the seconds of finished runs, by their keys. Each guess is
    corrected by its nearest kin that has finished: by how many times longer that took than it was guessed to take.
    """
    sums: dict[str, tuple[float, float]] = {}
    for key, seconds in took.items():
        file = shard_path(key)
        for common in kins.get(file, ()):
            real, planned = sums.get(common, (0.0, 0.0))
            sums[common] = real + seconds, planned + guessed[file]
    waiting = {file: each for file, each in guessed.items() if not _is_done(file, began)}
    return sum(_mended(kins.get(file, ()), each, sums) for file, each in waiting.items())


def _mended(kin: Sequence[str], thought: float, sums: Mapping[str, tuple[float, float]]) -> float:
    if not kin:
        return thought
    *near, environment, every = (sums.get(common, (0.0, 0.0)) for common in kin)
    for real, guessed in near:
        if guessed:
            return thought * real / guessed
    usual = (every[0] + WORTH) / (every[1] + WORTH)
    return thought * (environment[0] + WORTH * usual) / (environment[1] + WORTH)


def _kind(file: str) -> tuple[float | None, dict[str, str]]:
    for pattern, seconds in KINDS.items():
        if match := re.fullmatch(pattern, file):
            return seconds, match.groupdict()
    return None, {}


def _stands(environment: str) -> bool:
    return project.environment(environment).exists()


def _is_done(file: str, began: float) -> bool:
    path = Path(file)
    return path.exists() and path.stat().st_mtime >= began
