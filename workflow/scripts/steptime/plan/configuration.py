"""The configuration as one value: catalogues, platforms and the chosen grid, checked against one another."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steptime import networks
from steptime.networks import written
from steptime.plan import artefacts, narrowing
from steptime.plan.artefacts import Artefact
from steptime.plan.cell import images_of
from steptime.plan.schemas import ConfigurationError, check, read, require, unknown
from steptime.plan.schemas import load as load_schema

CATALOGUES = ("frameworks", "datasets")
# The grid that is measured where nobody names one, and the grid of tables and figures by name that it has not.
DEFAULT, WIDER = "default", "desktop"


@dataclass(frozen=True)
class Configuration:
    """The parsed and checked content of `config/`."""

    frameworks: dict[str, Any]
    networks: dict[str, Any]
    platforms: dict[str, Any]
    # Every artefact, and which cells those that have cells of their own are made of.
    catalogue: dict[str, Artefact]
    artefacts: dict[str, Any]
    datasets: dict[str, Any]
    grid: dict[str, Any]
    grid_name: str
    data: dict[str, str]
    # The file of a search engine's statistics, '' for none.
    popularity: str = ""
    # Which environments of the grid a platform that counts only where it is present does without, as sentences.
    left_out: list[str] = field(default_factory=list)
    # The file of each network's entry, relative to the project's folder.
    written_in: dict[str, str] = field(default_factory=dict)

    def dataset_of(self, whole: str) -> str | None:
        """Returns the first data set that can be had of `whole` and its subsets, from files or a package, or None."""
        for name, entry in self.datasets.items():
            if whole in (name, entry.get("subset_of")) and (
                name in self.data or "package" in entry
            ):
                return name
        return None

    def check_data(self, dataset: str) -> None:
        """Raises ConfigurationError where images are to be made from a file or folder that is missing."""
        place = self.data.get(dataset, "")
        is_made = Path(images_of(dataset)[0]).exists()
        if place and not is_made and "://" not in place and not Path(place).expanduser().exists():
            raise ConfigurationError(
                f"There is no file or folder {place}: write where {dataset} lies under 'data' in config/config.yaml."
            )

    def framework_of(self, environment: str) -> str:
        for name, framework in self.frameworks.items():
            if environment in framework["environments"]:
                return name
        known = [*self.frameworks, *self.known_environments]
        raise ConfigurationError(
            unknown("environment", environment, known, "config/frameworks.yaml")
        )

    @property
    def known_environments(self) -> list[str]:
        return [name for each in self.frameworks.values() for name in each["environments"]]

    @property
    def network_files(self) -> list[str]:
        """Returns the user's own files of networks, relative to the project's folder."""
        return [file for file in dict.fromkeys(self.written_in.values()) if file != written.PROJECT]

    def file_of(self, network: str) -> str:
        """Returns the file that has the entry of a network."""
        return self.written_in.get(network, written.PROJECT)

    def specify(self, network: str, narrow: bool = False) -> dict[str, Any]:
        return networks.specify(network, self.networks, narrow)

    def environments_of(self, name: str, devices: Collection[str] = ("cpu",)) -> list[str]:
        """Returns the environments that a name means: itself, or of a framework the first for each kind of device."""
        if name not in self.frameworks:
            return [name]
        own, firsts = self.frameworks[name]["environments"], dict[str, str]()
        for environment in own:
            firsts.setdefault(self.entry_of(environment)["device"], environment)
        return [first for device, first in firsts.items() if device in devices] or own[:1]

    def entry_of(self, environment: str) -> dict[str, Any]:
        """Returns the entry of the environment's framework, with the environment's own values in it."""
        entry = self.frameworks[self.framework_of(environment)]
        return entry | entry["differing"].get(environment, {})


def as_written(root: Path, config: dict[str, Any], words: Iterable[str]) -> None:
    """Puts back, in place, texts that Snakemake took for numbers: a grid may be called 2026, or 123_456.

    `words` are those of the command line.
    """
    given = {
        name: value for name, equals, value in (word.partition("=") for word in words) if equals
    }
    known = load_schema(root / "config/schemas/config.yaml")["properties"]
    for name, value in config.items():
        if known.get(name, {}).get("type") == "string" and value is not None:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            config[name] = given.get(name, str(value) if is_number else value)


def load(
    root: Path,
    config: dict[str, Any],
    is_present: Callable[[dict[str, Any]], bool] = lambda needs: False,
    capability_of: Callable[[dict[str, Any]], float | None] = lambda needs: None,
    asked: Collection[str] = (),
) -> Configuration:
    """Returns the configuration below `root`, with `config` as Snakemake has merged it. Raises ConfigurationError.

    `asked` are the names of the run's targets; those that DEFAULT does not have are in the grid WIDER. `is_present`
    says whether this run can measure an optional platform, `capability_of` which compute capability its GPUs have.
    """
    schemas = root / "config" / "schemas"
    check(config, schemas / "config.yaml", "config/config.yaml or --config")
    content = _catalogues(root, config)
    content["platforms"] = platforms(root, config)
    content["catalogue"] = _catalogue(root)
    content["artefacts"] = artefacts.selections(content["catalogue"], content["networks"])
    grids = root / "config" / "grids"
    if config["grid"] == DEFAULT and any(
        _is_of_wider(name, content["catalogue"]) for name in asked
    ):
        config["grid"] = WIDER
    chosen = Path(config["grid"])
    is_path = chosen.suffix in (".yaml", ".yml")
    path = chosen if is_path else grids / f"{config['grid']}.yaml"
    known = sorted(file.stem for file in grids.glob("*.yaml"))
    # By `os.path`, for which a name that is too long, or in a folder that is shut, is no file.
    if not (os.path.isfile(path) if is_path else config["grid"] in known):
        where = "config/grids/, nor is that the path of a .yaml file"
        raise ConfigurationError(unknown("grid", config["grid"], known, where))
    chosen_grid = read(path, schemas / "grid.yaml")
    _settle_minutes(chosen_grid, config)
    require("data set", config["data"], content["datasets"], "config/datasets.yaml")
    named = {"grid_name": path.stem, "data": config["data"], "popularity": _popularity(config)}
    loaded = Configuration(grid=chosen_grid, **named, **content)
    _settle_platforms(loaded, is_present, capability_of)
    narrowing.narrow(loaded, config)
    for name, framework in loaded.frameworks.items():
        where = f"the environments of {name} in config/frameworks.yaml, which 'differing' speaks of"
        require("environment", framework["differing"], framework["environments"], where)
    for environment in loaded.grid["environments"]:
        entry = loaded.entry_of(environment)
        needs = [f"envs/{environment}.yaml"]
        needs += [f"workflow/scripts/worker/frameworks/{entry['adapter']}/__init__.py"]
        if "prepare" in entry:
            prepare = "workflow/scripts/steptime/environments/prepare"
            needs += [f"{prepare}/{entry['prepare']}.py"]
        for missing in needs:
            if not (root / missing).is_file():
                raise ConfigurationError(
                    f"The environment '{environment}' needs the file {missing}: write it."
                )
    return loaded


def _is_of_wider(target: str, catalogue: Mapping[str, Artefact]) -> bool:
    """Tells whether a target shows more than networks' steps at all threads, or is such a whole paper."""
    papers = {artefact.owner for artefact in catalogue.values() if artefact.is_of_paper}
    if target not in catalogue:
        return target.removeprefix("make_") in papers
    artefact = catalogue[target]
    made_of = catalogue.get(artefact.made_of, artefact)
    cells = made_of.entry.get("cells", {})
    is_more = {"task", "plain", "devices"} & cells.keys() or cells.get("threads") == "above"
    needs = {*artefact.entry["needs"]} & {"trainings", "parts", "images", "pairs", "versions"}
    return bool(artefact.is_of_paper or is_more or needs)


def _settle_minutes(grid: dict[str, Any], config: dict[str, Any]) -> None:
    """Puts the minutes that a user gives to a run into its grid, in place. Raises ConfigurationError."""
    if "minutes" not in config:
        return
    if not isinstance(grid["repeats"], dict):
        raise ConfigurationError(
            f"The grid '{config['grid']}' measures each result by {grid['repeats']} runs, however long that takes: "
            "leave out 'minutes'."
        )
    grid["repeats"] = grid["repeats"] | {"minutes": config["minutes"]}


def _popularity(config: dict[str, Any]) -> str:
    """Returns the file of a search engine's statistics; '' where none is named. Raises ConfigurationError."""
    named = config.get("popularity", "")
    if named and not os.path.isfile(Path(named).expanduser()):
        raise ConfigurationError(
            f"config/config.yaml or --config: there is no file '{named}', which 'popularity' names: correct it, or "
            "leave it out."
        )
    return str(Path(named).expanduser()) if named else ""


def _settle_platforms(
    loaded: Configuration,
    is_present: Callable[[dict[str, Any]], bool],
    capability_of: Callable[[dict[str, Any]], float | None],
) -> None:
    """Settles, in place, which platforms and environments a grid has; raises ConfigurationError where they do not fit.

    Optional platforms that are present are added, environments without a platform are left out, and `all` and
    frameworks become environments.
    """
    grid, known = loaded.grid, loaded.platforms
    optional = [name for name in grid["platforms_if_present"] if name not in grid["platforms"]]
    require("platform", optional, known, "config/platforms.yaml")
    firm = [name for name in grid["platforms"] if name in known]
    for name in (*firm, *optional):
        if known[name]["device"] == "gpu" and "capability" not in known[name]:
            if capability := capability_of(known[name]):
                known[name] = known[name] | {"capability": capability}
    takes_all = isinstance(grid["environments"], str)
    wanted = _all(grid["environments"], loaded) if takes_all else _named(loaded)
    devices = {name: loaded.entry_of(name)["device"] for name in wanted}
    present = [
        name
        for name in optional
        if known[name]["device"] in devices.values() and is_present(known[name])
    ]

    def has_place(environment: str, platforms: list[str]) -> bool:
        return any(fits(loaded.entry_of(environment), known[name]) for name in platforms)

    if not takes_all:
        if refused := misfits(loaded, wanted, firm):
            raise ConfigurationError(refused[0])
        loaded.left_out.extend(misfits(loaded, wanted, present))
    present = [name for name in present if any(has_place(each, [name]) for each in wanted)]
    grid["platforms"] = grid["platforms"] + present
    there = {known[name]["device"] for name in (*firm, *present)}
    absent = {known[name]["device"] for name in optional} - there
    # Without a platform of their kind, those that the grid names are a mistake, which plan.checks tells.
    grid["environments"] = [
        name
        for name in wanted
        if devices[name] not in absent
        and (has_place(name, [*firm, *present]) or (devices[name] not in there and not takes_all))
    ]


def _named(loaded: Configuration) -> list[str]:
    """Returns the environments that a grid names: by themselves, or, of a framework, the first for each platform."""
    grid, known = loaded.grid, loaded.platforms
    entries = [
        known[name] for name in (*grid["platforms"], *grid["platforms_if_present"]) if name in known
    ]
    names: list[str] = []
    for name in grid["environments"]:
        own = loaded.frameworks.get(name, {}).get("environments", [])
        for needs in entries:
            able = [each for each in own if fits(loaded.entry_of(each), needs)]
            names += able[:1] or loaded.environments_of(name, (needs["device"],))
        names += [] if entries else loaded.environments_of(name)
    return list(dict.fromkeys(names))


def _all(wanted: str, loaded: Configuration) -> list[str]:
    """Returns the environments that a grid means by `all` or `history`."""
    return [
        name
        for framework in loaded.frameworks.values()
        for name in framework["environments"]
        if (framework["history"] if wanted == "history" else name not in framework["history"])
    ]


def without_grid(root: Path) -> Configuration:
    """Returns the frameworks, networks and data sets of a folder, without a grid. Raises ConfigurationError."""
    nothing: dict[str, Any] = {name: {} for name in ("platforms", "catalogue", "artefacts", "data")}
    return Configuration(grid={}, grid_name="", **_catalogues(root, {}), **nothing)


def _catalogues(root: Path, config: dict[str, Any]) -> dict[str, Any]:
    folder = root / "config"
    content: dict[str, Any] = {
        name: read(folder / f"{name}.yaml", folder / "schemas" / f"{name}.yaml")
        for name in CATALOGUES
    }
    for framework in content["frameworks"].values():
        # Nobody but a grid that asks for `all` tells them apart.
        framework["environments"] += framework["history"]
    content["networks"], content["written_in"] = {}, {}
    for file in (written.PROJECT, *written.files_of_user(config)):
        entries = read(root / file, folder / "schemas" / "networks.yaml")
        content["networks"] |= entries
        content["written_in"] |= dict.fromkeys(entries, file)
    _check_labels(content["networks"], "networks")
    _check_labels(content["datasets"], "data sets")
    return content


def _check_labels(entries: dict[str, Any], kind: str) -> None:
    """Raises ConfigurationError for two entries with one label: one would hide the other in tables and figures."""
    owners: dict[str, str] = {}
    for name, entry in entries.items():
        # A variant without a label is called by its name. Pages show one space where there are several.
        label = " ".join(entry.get("label", name).split())
        owner = owners.setdefault(label, name)
        if owner != name:
            raise ConfigurationError(
                f"The {kind} '{owner}' and '{name}' are both called '{label}' in tables: give each a 'label' of its "
                "own."
            )


def _catalogue(root: Path) -> dict[str, Artefact]:
    """Returns every artefact of every catalogue. Raises ConfigurationError for an unknown kind, or unknown cells."""
    known: dict[str, Artefact] = {}
    for file in artefacts.files(root):
        content = read(root / file, root / "config" / "schemas" / "catalogue.yaml")
        known |= artefacts.artefacts(file, content)
    own = [
        name for name, artefact in known.items() if isinstance(artefact.entry.get("cells"), dict)
    ]
    kinds = artefacts.kinds()
    for name, artefact in known.items():
        kind, where = artefact.entry["kind"], f"steptime/artefacts, for {name} of {artefact.file}"
        require("kind", [kind], kinds, where)
        makes = artefact.entry["makes"]
        require("way to make a", makes, kinds[kind], f"the kind '{kind}', {where}")
        if "cells" in (*artefact.entry["needs"], *artefact.entry.get("joins", [])):
            where = f"the catalogues that has cells, {where}"
            require("artefact", [artefact.made_of], own, where)
    return known


def platforms(root: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Returns the platforms of `config/` and those of the user's own file, which win where names are the same."""
    own = [Path(config["platforms"])] if "platforms" in config else []
    known: dict[str, Any] = {}
    for path in (root / "config" / "platforms.yaml", *own):
        known |= read(path, root / "config" / "schemas" / "platforms.yaml")
    return known


def fits(entry: Mapping[str, Any], needs: Mapping[str, Any]) -> bool:
    """Tells whether an environment with this entry runs on a platform with these needs; what is not stated fits."""
    if entry["device"] != needs["device"]:
        return False
    built, own = entry.get("capability", {}), needs.get("capability")
    return own is None or built.get("least", own) <= own <= built.get("most", own)


def misfits(loaded: Configuration, environments: list[str], platforms: Iterable[str]) -> list[str]:
    """Says which environments run on none of the platforms, and which frameworks lack one for a platform."""
    sentences: dict[str, str] = {}
    for platform in platforms:
        needs = loaded.platforms[platform]
        by_framework: dict[str, list[str]] = {}
        for name in environments:
            if loaded.entry_of(name)["device"] == needs["device"]:
                by_framework.setdefault(loaded.framework_of(name), []).append(name)
        for names in by_framework.values():
            if not any(fits(loaded.entry_of(name), needs) for name in names):
                sentences.setdefault(names[0], _sentence(loaded, names[0], platform, environments))
    for name in environments:
        entry = loaded.entry_of(name)
        alike = [p for p in platforms if loaded.platforms[p]["device"] == entry["device"]]
        if alike and not any(fits(entry, loaded.platforms[p]) for p in alike):
            sentences.setdefault(name, _sentence(loaded, name, alike[0], environments))
    return list(sentences.values())


def _sentence(loaded: Configuration, name: str, platform: str, environments: list[str]) -> str:
    """Says that an environment does not run on a platform, and which environment of its framework would."""
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
    """Returns the compute capabilities that an environment is built for, in words."""
    least, most = (entry["capability"].get(key) for key in ("least", "most"))
    if most is None:
        return f"{least:.1f} and newer"
    return f"{least:.1f} to {most:.1f}" if least is not None else f"up to {most:.1f}"
