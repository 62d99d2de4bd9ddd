"""Reads the configuration, checks it against its schemas, and says in one sentence what is wrong with it."""

import copy
import difflib
import math
import re
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, TypeChecker, validators
from jsonschema.exceptions import ValidationError, best_match

from steptime.plan import artefacts
from steptime.plan.artefacts import Artefact

CATALOGUES = ("frameworks", "networks", "datasets")
# What is filled into the values of a framework's `variables`.
FILLED = ("threads", "mode", "prefix")
# What a schema calls a type, in words.
KINDS = {"integer": "a whole number", "array": "a list", "string": "a text", "object": "keys"}

MERGE = "tag:yaml.org,2002:merge"
# Values of a file, each alias written out; the largest of ours has some thousands.
MOST_VALUES = 1_000_000


class ConfigurationError(Exception):
    """A mistake in the configuration; the text is the whole message for the user."""


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

    def dataset_of(self, whole: str) -> str | None:
        """The data set that stands for `whole`: itself or a subset of it, whichever comes first of those that can be
        had: the configuration says where their files lie, or a package brings them. None where none can.
        """
        for name, entry in self.datasets.items():
            if whole in (name, entry.get("subset_of")) and (
                name in self.data or "package" in entry
            ):
                return name
        return None

    def framework_of(self, environment: str) -> str:
        """Name of the framework that has this environment."""
        for name, framework in self.frameworks.items():
            if environment in framework["environments"]:
                return name
        known = [
            name for framework in self.frameworks.values() for name in framework["environments"]
        ]
        raise ConfigurationError(
            unknown("environment", environment, known, "config/frameworks.yaml")
        )

    def entry_of(self, environment: str) -> dict[str, Any]:
        """The entry of the environment's framework, with what differs in this environment in its place."""
        entry = self.frameworks[self.framework_of(environment)]
        return entry | entry["differing"].get(environment, {})


def load(
    root: Path,
    config: dict[str, Any],
    is_present: Callable[[dict[str, Any]], bool] = lambda needs: False,
) -> Configuration:
    """The configuration below `root`, with `config` as Snakemake has merged it from config.yaml and the command line.

    `is_present` says of a platform's entry whether this run can measure it, for those that count only then.
    Raises ConfigurationError.
    """
    schemas = root / "config" / "schemas"
    check(config, schemas / "config.yaml", "config/config.yaml or --config")
    content = _catalogues(root)
    content["platforms"] = platforms(root, config)
    content["catalogue"] = _catalogue(root)
    content["artefacts"] = artefacts.selections(content["catalogue"], content["networks"])
    grids = root / "config" / "grids"
    chosen = Path(config["grid"])
    path = chosen if chosen.suffix in (".yaml", ".yml") else grids / f"{config['grid']}.yaml"
    if not path.is_file():
        known = sorted(file.stem for file in grids.glob("*.yaml"))
        raise ConfigurationError(
            unknown("grid", config["grid"], known, "config/grids/, or the path of a .yaml file")
        )
    chosen_grid = read(path, schemas / "grid.yaml")
    data = config["data"]
    for name in data:
        if name not in content["datasets"]:
            raise ConfigurationError(
                unknown("data set", name, list(content["datasets"]), "config/datasets.yaml")
            )
    named = {"grid_name": path.stem, "data": data, "popularity": _popularity(config)}
    loaded = Configuration(grid=chosen_grid, **named, **content)
    _settle_platforms(loaded, is_present)
    for name, framework in loaded.frameworks.items():
        for environment in framework["differing"]:
            if environment not in framework["environments"]:
                where = f"the environments of {name} in config/frameworks.yaml, which 'differing' speaks of"
                raise ConfigurationError(
                    unknown("environment", environment, framework["environments"], where)
                )
        _check_variables(name, framework)
    for environment in loaded.grid["environments"]:
        entry, scripts = loaded.entry_of(environment), root / "workflow" / "scripts"
        needs = [
            root / "envs" / f"{environment}.yaml",
            scripts / "worker" / "adapters" / f"{entry['adapter']}.py",
        ]
        needs += (
            [scripts / "steptime" / "environments" / "prepare" / f"{entry['prepare']}.py"]
            if "prepare" in entry
            else []
        )
        for needed in needs:
            if not needed.is_file():
                missing = needed.relative_to(root)
                raise ConfigurationError(
                    f"The environment '{environment}' needs the file {missing}: write it."
                )
    return loaded


def _popularity(config: dict[str, Any]) -> str:
    """The file of a search engine's statistics, '' where none is named. Raises ConfigurationError."""
    named = config.get("popularity", "")
    if named and not Path(named).expanduser().is_file():
        raise ConfigurationError(
            f"config/config.yaml or --config: there is no file '{named}', which 'popularity' names: correct it, or "
            "leave it out."
        )
    return str(Path(named).expanduser()) if named else ""


def _settle_platforms(loaded: Configuration, is_present: Callable[[dict[str, Any]], bool]) -> None:
    """Adds to the grid's platforms, in place, those of `platforms_if_present` that are. Environments for the kind of
    device of the others alone are left out, and `all` are those of the kinds that are there.
    """
    grid, known = loaded.grid, loaded.platforms
    optional = [name for name in grid["platforms_if_present"] if name not in grid["platforms"]]
    for name in optional:
        if name not in known:
            raise ConfigurationError(
                unknown("platform", name, list(known), "config/platforms.yaml")
            )
    takes_all = isinstance(grid["environments"], str)
    wanted = _named(grid["environments"], loaded) if takes_all else grid["environments"]
    devices = {name: loaded.entry_of(name)["device"] for name in wanted}
    grid["platforms"] = grid["platforms"] + [
        name
        for name in optional
        if known[name]["device"] in devices.values() and is_present(known[name])
    ]
    there = {known[name]["device"] for name in grid["platforms"] if name in known}
    absent = {known[name]["device"] for name in optional} - there
    grid["environments"] = [
        name
        for name in wanted
        if devices[name] not in absent and (devices[name] in there or not takes_all)
    ]


def _named(wanted: str, loaded: Configuration) -> list[str]:
    """The environments that a grid means by `all` or `history`."""
    return [
        name
        for framework in loaded.frameworks.values()
        for name in framework["environments"]
        if (framework["history"] if wanted == "history" else name not in framework["history"])
    ]


def without_grid(root: Path) -> Configuration:
    """The frameworks, networks and data sets below `root`, for who has no grid. Raises ConfigurationError."""
    nothing: dict[str, Any] = {name: {} for name in ("platforms", "catalogue", "artefacts", "data")}
    return Configuration(grid={}, grid_name="", **_catalogues(root), **nothing)


def _catalogues(root: Path) -> dict[str, Any]:
    folder = root / "config"
    content = {
        name: read(folder / f"{name}.yaml", folder / "schemas" / f"{name}.yaml")
        for name in CATALOGUES
    }
    for framework in content["frameworks"].values():
        # Nobody but a grid that asks for `all` tells them apart.
        framework["environments"] += framework["history"]
    return content


def _catalogue(root: Path) -> dict[str, Artefact]:
    """Every artefact of every catalogue. Raises ConfigurationError for a kind or cells that are not there."""
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
        if kind not in kinds:
            raise ConfigurationError(unknown("kind", kind, list(kinds), where))
        for part in artefact.entry["makes"]:
            if part not in kinds[kind]:
                raise ConfigurationError(
                    unknown("way to make a", part, kinds[kind], f"the kind '{kind}', {where}")
                )
        if {"cells"} & {*artefact.entry["needs"], *artefact.entry.get("joins", [])}:
            if artefact.made_of not in own:
                raise ConfigurationError(
                    unknown(
                        "artefact", artefact.made_of, own, f"the catalogues that has cells, {where}"
                    )
                )
    return known


def platforms(root: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The platforms of `config/`, and those of the user's own file, which take the place of the same names."""
    paths = [
        root / "config" / "platforms.yaml",
        *([Path(config["platforms"])] if "platforms" in config else []),
    ]
    known: dict[str, Any] = {}
    for path in paths:
        known |= read(path, root / "config" / "schemas" / "platforms.yaml")
    return known


def read(path: Path, schema: Path) -> Any:
    """The content of a YAML file that its schema accepts."""
    try:
        content = _content(path)
        check(content, schema, str(path))
    except RecursionError as error:
        raise ConfigurationError(f"{path} is nested too deeply: write it flatter.") from error
    return content


def _content(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(), Loader=_Loader)
        _check_aliases(content, {})
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is no text in UTF-8 ({error}): save it as such."
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(
            f"{path} is not valid YAML: {' '.join(str(error).split())}."
        ) from error
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{path} holds {'nothing' if content is None else 'no keys'}: write `key: value` lines, as the files of "
            "config/ have them."
        )
    return content


def parse(text: str) -> Any:
    """The content of a text in YAML."""
    return yaml.load(text, Loader=_Loader)


def check(content: Any, schema: Path, where: str) -> None:
    """Fills in, in place, what holds where the content says nothing.

    Raises ConfigurationError with one sentence when the schema does not accept the content.
    """
    accepted = yaml.load(schema.read_text(), Loader=_Loader)
    error = best_match(_VALIDATOR(accepted).iter_errors(content))
    if error is not None:
        raise ConfigurationError(f"{where}: {_sentence(error)}")
    fill(content, accepted, accepted.get("$defs", {}))


def fill(content: Any, schema: dict[str, Any], named: dict[str, Any]) -> None:
    """Adds to content that a schema accepts, in place, the schema's `default` of each key that is left out.

    `named` are the schemas that others refer to.
    """
    schema = resolved(schema, named)
    if isinstance(content, dict):
        known = schema.get("properties", {})
        for key, part in known.items():
            if "default" in part:
                content.setdefault(key, copy.deepcopy(part["default"]))
        for key, value in content.items():
            part = known.get(key, schema.get("additionalProperties"))
            if isinstance(part, dict):
                fill(value, part, named)
    elif isinstance(content, list) and "items" in schema:
        for value in content:
            fill(value, schema["items"], named)


def resolved(schema: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """A schema with the one that it refers to, and with what it says itself, such as its description."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return named[name] | schema if name else schema


def unknown(kind: str, name: str, known: list[str], where: str) -> str:
    """The sentence for a name that does not exist, with the nearest one that does."""
    # A key may be a number.
    near = difflib.get_close_matches(str(name), known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}."
    return f"There is no {kind} '{name}' in {where}: {hint}"


def _check_aliases(content: Any, counted: dict[int, int]) -> int:
    """How many values a content has, with each alias (`*name`) written out; `counted` are those of its parts by id.

    Raises ValueError for more than anyone has: every error that shows them would take all memory.
    """
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in counted:
        # What holds itself never ends.
        counted[id(content)] = MOST_VALUES
        parts = content.values() if isinstance(content, dict) else content
        counted[id(content)] = 1 + sum(_check_aliases(part, counted) for part in parts)
    if counted[id(content)] > MOST_VALUES:
        raise ValueError(
            f"its aliases (*name) stand for more than {MOST_VALUES:,} values; write out what is meant"
        )
    return counted[id(content)]


def _is_integer(checker: TypeChecker, value: Any) -> bool:
    """JSON knows no difference between 3 and 3.0; `range` and the names of files do."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(checker: TypeChecker, value: Any) -> bool:
    """Whether programs can compute with it: no boolean, not endless, and no whole number beyond all floats."""
    whole = _is_integer(checker, value) and abs(value) <= sys.float_info.max
    return whole or (isinstance(value, float) and math.isfinite(value))


def _matches(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """As JSON Schema has it, but for `$`, which in Python accepts a line that ends there too."""
    if isinstance(value, str) and not re.search(pattern.replace("$", r"\Z"), value):
        yield ValidationError(f"{value!r} does not match '{pattern}'")


_FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FASTEST):
    """Refuses a key that stands twice, of which YAML would silently take the last."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Takes in what a mapping merges (`<<`), each key once: a few lines could stand for billions of them."""
        merges = any(key.tag == MERGE for key, _ in node.value)
        super().flatten_mapping(node)
        if merges:
            last = {
                key.value if isinstance(key, yaml.ScalarNode) else id(key): (key, value)
                for key, value in node.value
            }
            node.value = list(last.values())

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' stands twice", key.start_mark
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)


_VALIDATOR = validators.extend(
    Draft202012Validator,
    {"pattern": _matches},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)


def _check_variables(framework: str, entry: dict[str, Any]) -> None:
    """Raises ConfigurationError for a variable of a framework that cannot be filled in."""
    for part in (entry, *entry["differing"].values()):
        for variable, value in part.get("variables", {}).items():
            where = f"config/frameworks.yaml, {variable} of {framework}"
            try:
                fields = [
                    field for _, field, _, _ in string.Formatter().parse(value) if field is not None
                ]
            except ValueError as error:
                raise ConfigurationError(
                    f"{where}: {error} in '{value}': write {{{{ or }}}} for a brace."
                ) from error
            for field in fields:
                if field not in FILLED:
                    raise ConfigurationError(
                        f"{where}: '{{{field}}}' is not known: write {', '.join(f'{{{each}}}' for each in FILLED)}."
                    )


def _sentence(error: ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    at = f"at '{place}', " if place else ""
    if error.validator == "additionalProperties" and isinstance(
        error.schema.get("properties"), dict
    ):
        allowed = list(error.schema["properties"])
        extra = [key for key in error.instance if key not in allowed]
        near = difflib.get_close_matches(str(extra[0]), allowed, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"write one of {', '.join(allowed)}."
        return f"{at}there is no key '{extra[0]}': {hint}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{at}the key '{missing[0]}' is missing: write it."
    if error.validator == "dependentRequired":
        key, needed = next(iter(error.validator_value.items()))
        missing = [name for name in needed if name not in error.instance]
        return f"{at}the key '{missing[0]}' is missing: '{key}' needs it."
    if error.validator == "enum":
        return f"{at}'{error.instance}' is not possible: write one of {', '.join(map(str, error.validator_value))}."
    if error.validator == "oneOf" and (possible := _possible(error)):
        return f"{at}'{error.instance}' is not possible: write one of {', '.join(possible)}."
    if error.validator == "type" and isinstance(error.validator_value, list):
        kinds = " or ".join(KINDS.get(str(kind), str(kind)) for kind in error.validator_value)
        return f"{at}{error.instance!r} is not possible: write {kinds}."
    return f"{at}{error.message}."


def _possible(error: ValidationError) -> list[str]:
    """What each of several schemas would take, in words; nothing where one of them was right but for its inside."""
    possible: list[str] = []
    for each in error.context or []:
        if each.validator == "enum":
            possible += map(str, each.validator_value)
        elif each.validator == "const":
            possible.append(str(each.validator_value))
        elif each.validator == "type" and not each.path:
            possible.append(KINDS.get(str(each.validator_value), str(each.validator_value)))
        else:
            return []
    return possible
