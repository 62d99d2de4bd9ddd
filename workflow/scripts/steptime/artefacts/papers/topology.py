"""The figure of the machines that measured: memory, packages, caches, cores, devices, as the kernel reports them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from steptime.artefacts.inputs import Inputs
from steptime.render import figures
from steptime.render.columns import Row
from steptime.render.words import gibibytes, machine_name, plural

COLUMNS = ["platform", "part", "number", "inside", "bytes", "cpus", "text"]
WORDY = 8  # cores behind one last cache, up to which each is drawn with its own caches
ROW_HEIGHT, CORE_HEIGHT, CELL_HEIGHT, GAP = 0.55, 1.25, 0.4, 0.14  # units are about 0.7 inches
WIDTH, DEVICES_WIDTH = 10.0, 2.3
FACES = {
    "machine": "#FAFAF7",
    "memory": "#DCE9F5",
    "package": "#F1F1EC",
    "cache": "#FFFFFF",
    "core": "#FCE8C8",
}


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns every part that is drawn (COLUMNS; bytes, CPU numbers) and the figure, a panel for each platform."""
    topologies, artefact = inputs.topologies, inputs.entry
    rows = [(name, *row) for name, host in topologies.items() for row in _parts(host)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    heights = [_height(host) for host in topologies.values()]
    with figures.canvas(len(topologies), 1, 0.72 * sum(heights) + 0.7) as (drawing, grid):
        panels = list(np.atleast_1d(grid).flat)
        for panel, (name, host), height in zip(panels, topologies.items(), heights, strict=True):
            panel.set(xlim=(0, WIDTH), ylim=(0, height))
            panel.axis("off")
            _machine(panel, host, height)
            title = (
                f"{machine_name(name)}: {host['cpu']['model']}, {gibibytes(host['memory_bytes'])}"
            )
            title += ", a virtual machine" if host["cpu"]["virtual"] else ""
            panel.set_title(title, fontsize=9.5)
        figures.title(drawing, artefact["title"])
        figures.caption(drawing, "", _notes(topologies, artefact))
    return data, drawing


def _parts(host: Row) -> Iterator[tuple[str, int, str, int | None, str, str]]:
    """Yields the COLUMNS of each part of a machine, without the platform."""
    for at, node in enumerate(host["nodes"]):
        yield "memory node", at, "machine", node["bytes"], _listed(node["cpus"]), _memory(node, at)
    for at, package in enumerate(host["packages"]):
        yield "package", at, "machine", None, "", plural(len(package["cores"]), "core")
        inside = f"package {at}"
        for number, cache in enumerate(package["caches"]):
            name = f"L{cache['level']} {cache['kind']}"
            yield name, number, inside, cache["bytes"], _listed(cache["cpus"]), _size(cache)
        for number, cpus in enumerate(package["cores"]):
            yield "core", number, inside, None, _listed(cpus), plural(len(cpus), "hardware thread")
    for at, text in enumerate(_devices(host)):
        yield "device", at, "machine", None, "", text


def _listed(cpus: list[int]) -> str:
    return " ".join(map(str, cpus))


def _groups(package: Row) -> list[tuple[str, list[list[int]]]]:
    """Returns each last-level cache's text and the cores that share it; all cores where the kernel names no cache."""
    shared = [cache for cache in package["caches"] if cache["level"] >= 3]
    groups = []
    for cache in shared:
        own = [core for core in package["cores"] if core[0] in cache["cpus"]]
        groups.append((f"L{cache['level']} {_size(cache)}", own))
    return groups or [("last cache not reported", package["cores"])]


def _group_height(cores: list[list[int]]) -> float:
    if len(cores) <= WORDY:
        return ROW_HEIGHT + CORE_HEIGHT + GAP
    return ROW_HEIGHT + CELL_HEIGHT * -(-len(cores) // 16) + GAP


def _package_height(package: Row) -> float:
    return ROW_HEIGHT + sum(_group_height(cores) + GAP for _, cores in _groups(package))


def _height(host: Row) -> float:
    packages = sum(_package_height(package) + GAP for package in host["packages"])
    devices = (0.62 + GAP) * len(_devices(host))
    return max(ROW_HEIGHT + 2 * GAP + packages, GAP + devices) + GAP


def _machine(axes: Axes, host: Row, height: float) -> None:
    right = WIDTH - DEVICES_WIDTH
    _box(axes, 0, 0, WIDTH, height, "machine")
    top = height - GAP
    width = (right - 2 * GAP) / max(1, len(host["nodes"]))
    apart = GAP if len(host["nodes"]) > 1 else 0
    for at, node in enumerate(host["nodes"]):
        left = GAP + at * width
        _box(axes, left, top - ROW_HEIGHT, width - apart, ROW_HEIGHT, "memory")
        _write(axes, left + width / 2, top - ROW_HEIGHT / 2, _memory(node, at))
    top -= ROW_HEIGHT + GAP
    for at, package in enumerate(host["packages"]):
        tall = _package_height(package)
        _box(axes, GAP, top - tall, right - 2 * GAP, tall, "package")
        text = f"package {at}: {plural(len(package['cores']), 'core')}"
        _write(axes, 2 * GAP, top - ROW_HEIGHT / 2, text, "left")
        inner = top - ROW_HEIGHT
        for label, cores in _groups(package):
            _group(axes, label, cores, package, (2 * GAP, inner, right - 4 * GAP))
            inner -= _group_height(cores) + GAP
        top -= tall + GAP
    top = height - GAP
    for text in _devices(host):
        _box(axes, right + 2 * GAP, top - 0.62, DEVICES_WIDTH - 3 * GAP, 0.62, "cache")
        axes.plot([right - GAP, right + 2 * GAP], [top - 0.31] * 2, color="#888888", linewidth=1.2)
        _write(axes, right + GAP / 2 + DEVICES_WIDTH / 2, top - 0.31, text, size=7)
        top -= 0.62 + GAP


def _group(
    axes: Axes, label: str, cores: list[list[int]], package: Row, place: tuple[float, float, float]
) -> None:
    left, top, width = place
    _box(axes, left, top - _group_height(cores), width, _group_height(cores), "cache")
    _write(axes, left + GAP, top - ROW_HEIGHT / 2, label, "left")
    is_wordy = len(cores) <= WORDY
    columns = len(cores) if is_wordy else 16
    step, tall = (width - GAP) / columns, CORE_HEIGHT if is_wordy else CELL_HEIGHT
    for at, cpus in enumerate(cores):
        x, y = left + GAP + (at % columns) * step, top - ROW_HEIGHT - (at // columns + 1) * tall
        _box(axes, x, y, step - GAP, tall - (0 if is_wordy else GAP / 2), "core")
        own = [
            f"L{c['level']}{c['kind'][0].lower() if c['level'] == 1 else ''} {_size(c)}"
            for c in package["caches"]
            if c["level"] < 3 and cpus[0] in c["cpus"]
        ]
        listed = ", ".join(map(str, cpus))
        text = "\n".join([f"core, CPU {listed}", *own]) if is_wordy else listed
        size = 7 if is_wordy else 6.5
        _write(axes, x + (step - GAP) / 2, y + tall / 2, text, size=size)


def _devices(host: Row) -> list[str]:
    names = iter(gpu["model"] for gpu in host["gpus"])
    texts = []
    for device in host["devices"]:
        kind = next(names, "GPU") if device["kind"] == "GPU" else device["kind"]
        speed, width = device["speed"], device["width"]
        is_known = speed and width
        texts.append(f"{kind}\n{speed.removesuffix(' PCIe')} × {width}" if is_known else kind)
    return texts


def _memory(node: Row, at: int) -> str:
    return f"memory node {at}: {gibibytes(node['bytes'])}"


def _size(cache: Row) -> str:
    size = cache["bytes"]
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


def _box(axes: Axes, x: float, y: float, width: float, height: float, kind: str) -> None:
    style: dict[str, Any] = {"fc": FACES[kind], "ec": "#666666", "lw": 0.8}
    box = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch((x, y), width, height, box, **style))


def _write(
    axes: Axes, x: float, y: float, text: str, align: str = "center", size: float = 8
) -> None:
    axes.text(x, y, text, ha=align, va="center", fontsize=size, linespacing=1.25)


def _notes(topologies: dict[str, Row], artefact: Row) -> list[str]:
    notes = [f"{artefact['caption']}: {artefact['sources'][0]}."]
    notes += [f"{name}: no GPU is seen." for name, host in topologies.items() if not host["gpus"]]
    is_virtual = any(host["cpu"]["virtual"] for host in topologies.values())
    hidden = "A virtual machine may not see the caches and memory nodes of its host."
    return [*notes, hidden] if is_virtual else notes
