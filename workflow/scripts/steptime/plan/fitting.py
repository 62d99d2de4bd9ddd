"""Which environments run on which platforms: of one kind of device, and built for the GPU's compute capability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steptime.plan.configuration import Configuration


def fits(entry: Mapping[str, Any], needs: Mapping[str, Any]) -> bool:
    """Whether an environment with this entry runs on a platform that needs this. What neither says is no obstacle."""
    if entry["device"] != needs["device"]:
        return False
    built, own = entry.get("capability", {}), needs.get("capability")
    return own is None or built.get("least", own) <= own <= built.get("most", own)


def misfits(loaded: Configuration, environments: list[str], platforms: Iterable[str]) -> list[str]:
    """Says why an environment runs on none of the platforms, or none of a framework on one of them, in sentences."""
    found: dict[str, str] = {}
    for platform in platforms:
        needs = loaded.platforms[platform]
        asked: dict[str, list[str]] = {}
        for name in environments:
            if loaded.entry_of(name)["device"] == needs["device"]:
                asked.setdefault(loaded.framework_of(name), []).append(name)
        for names in asked.values():
            if not any(fits(loaded.entry_of(name), needs) for name in names):
                found.setdefault(names[0], _sentence(loaded, names[0], platform, environments))
    for name in environments:
        entry = loaded.entry_of(name)
        alike = [p for p in platforms if loaded.platforms[p]["device"] == entry["device"]]
        if alike and not any(fits(entry, loaded.platforms[p]) for p in alike):
            found.setdefault(name, _sentence(loaded, name, alike[0], environments))
    return list(found.values())


def _sentence(loaded: Configuration, name: str, platform: str, environments: list[str]) -> str:
    """Says that an environment does not run on a platform, and which one of its framework would."""
    framework, needs = loaded.framework_of(name), loaded.platforms[platform]
    known = loaded.frameworks[framework]["environments"]
    able = [each for each in known if fits(loaded.entry_of(each), needs)]
    there = [each for each in able if each in environments]
    if there:
        advice = f"take {name} out of the grid, which has {there[0]}"
    elif able:
        advice = f"write {able[0]} in its place, or {platform} into another grid"
    else:
        advice = f"no environment of {framework} is, so take {name} or {platform} out of the grid"
    return (
        f"{name} is built for GPUs of compute capability {built_for(loaded.entry_of(name))}, and that of the platform "
        f"'{platform}' is {needs['capability']:.1f}: {advice}."
    )


def built_for(entry: Mapping[str, Any]) -> str:
    """The compute capabilities that an environment is built for, in words."""
    least, most = (entry["capability"].get(key) for key in ("least", "most"))
    if most is None:
        return f"{least:.1f} and newer"
    return f"{least:.1f} to {most:.1f}" if least is not None else f"up to {most:.1f}"
