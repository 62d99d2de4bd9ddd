"""Describes how the machine is built: packages, cores, caches, memory nodes and devices, as the kernel reports it.

workflow/scripts/launch machine.topology --output results/topology/local-cpu.json
"""

import argparse
import os
from pathlib import Path
from typing import Any

from steptime import machine
from steptime.atomic import write_json
from steptime.machine import numbers, read_text

NODES = Path("/sys/devices/system/node")
ZONES = Path("/proc/zoneinfo")
PCI = Path("/sys/bus/pci/devices")
# The first byte of a PCI device's class, or the first two where these say more (PCI Code and ID Assignment, 1.x).
CLASSES = {"03": "GPU", "12": "accelerator", "0108": "NVMe", "01": "storage", "02": "network"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write down how this machine is built.")
    parser.add_argument("--output", required=True, type=Path)
    output = parser.parse_args().output
    described = machine.describe()
    content = {
        "machine_id": machine.identify(described),
        **{name: described[name] for name in ("cpu", "memory_bytes", "gpus")},
        "packages": packages(),
        "nodes": nodes(),
        "devices": devices(),
    }
    write_json(output, content)


def packages(cpus: Path = machine.CPUS) -> list[dict[str, Any]]:
    """Returns every package with its `cores` (lists of CPU numbers) and `caches` (level, kind, bytes, CPU numbers)."""
    found: dict[int, dict[str, Any]] = {}
    for folder in sorted(cpus.glob("cpu[0-9]*"), key=lambda path: int(path.name[3:])):
        topology = folder / "topology"
        if not topology.is_dir():
            continue
        number = int(read_text(topology / "physical_package_id") or 0)
        package = found.setdefault(number, {"cores": [], "caches": []})
        core = numbers(read_text(topology / "thread_siblings_list") or folder.name[3:])
        if core not in package["cores"]:
            package["cores"].append(core)
        for index in sorted(folder.glob("cache/index[0-9]*")):
            cache = {
                "level": int(read_text(index / "level") or 0),
                "kind": read_text(index / "type"),
                "bytes": int((read_text(index / "size") or "0K").rstrip("K")) * 1024,
                "cpus": numbers(read_text(index / "shared_cpu_list") or folder.name[3:]),
            }
            if cache not in package["caches"]:
                package["caches"].append(cache)
    return [found[number] for number in sorted(found)]


def nodes(folder: Path = NODES, zones: Path = ZONES) -> list[dict[str, Any]]:
    """Returns every memory node: its `cpus`, and `bytes` from zoneinfo (proc(5)); MemTotal may be a quarter too low."""
    pages: dict[int, int] = {}
    node = 0
    for words in map(str.split, (read_text(zones) or "").splitlines()):
        if words[:1] == ["Node"]:
            node = int(words[1].rstrip(","))
        elif words[:1] == ["present"]:
            pages[node] = pages.get(node, 0) + int(words[1])
    size = os.sysconf("SC_PAGE_SIZE")
    found = []
    for number in sorted(int(path.name[4:]) for path in folder.glob("node[0-9]*")):
        cpus = numbers(read_text(folder / f"node{number}/cpulist") or "")
        found.append({"bytes": pages.get(number, 0) * size, "cpus": cpus})
    return found


def devices(folder: Path = PCI) -> list[dict[str, Any]]:
    """Returns every PCI device of a kind in CLASSES: `kind`, memory `node` (-1: unknown), link `speed` and `width`."""
    found = []
    for device in sorted(folder.glob("*")):
        code = (read_text(device / "class") or "0x000000").removeprefix("0x")
        kind = CLASSES.get(code[:4]) or CLASSES.get(code[:2])
        if kind:
            node = int(read_text(device / "numa_node") or -1)
            facts = {"kind": kind, "address": device.name, "node": node}
            for name in ("speed", "width"):
                facts[name] = read_text(device / f"current_link_{name}")
            found.append(facts)
    return found


if __name__ == "__main__":
    main()
