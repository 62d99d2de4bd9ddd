"""Reads YAML files, checks them by their schemas, and says in one sentence what is wrong."""

import copy
import difflib
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, TypeChecker, validators
from jsonschema.exceptions import ValidationError, best_match

from shared.precisions import PRECISIONS
from steptime import tasks
from steptime.networks.records import WISHES
from steptime.reading import InputError

# What a schema calls a type, in words.
KINDS = {"integer": "a whole number", "array": "a list", "string": "a text"}
KINDS |= {"object": "`key: value` lines", "number": "a number", "boolean": "true or false"}
# What to write where a value is beyond a bound of a schema.
BOUNDS = {
    "minimum": "{} or more",
    "maximum": "{} or less",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minItems": "a list of {} or more",
    "maxItems": "a list of {} or fewer",
    "minLength": "a text of {} letters or more",
    "maxLength": "a text of {} letters or fewer",
    "minProperties": "{} or more keys",
    "maxProperties": "{} or fewer keys",
}
# What people call a framework.
ALIASES = {
    "pytorch": "torch",
    "tf": "tensorflow",
    "paddlepaddle": "paddle",
    "apache-mxnet": "mxnet",
}
MOST_LETTERS, MOST_NAMES = 60, 30

# What YAML 1.1 takes for a number to the base of 8, or of 60.
MISREAD = re.compile(r"[-+]?0[0-9_]|.*:")
# A number with an exponent, and one that has no point.
WRITTEN = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
SHORT = re.compile(r"[-+]?[0-9]+[eE]")


class ConfigurationError(InputError):
    """A mistake in the configuration."""


def read(path: Path, schema: Path) -> Any:
    """Returns the content of a YAML file that its schema accepts."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}, {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is no text in UTF-8 ({error}): save it as such."
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        lines = path.read_text("utf-8").split("\n")
        if tabs := [at for at, line in enumerate(lines, 1) if "\t" in line.partition("#")[0]]:
            raise ConfigurationError(f"{path}, line {tabs[0]}: a tab: write spaces.") from error
        said = " ".join(str(error).split()).replace('in "<unicode string>", ', "in ")
        raise ConfigurationError(f"{path} is not valid YAML: {said}.") from error
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{path} holds {'nothing' if content is None else 'no keys'}: write `key: value` lines, as the files of "
            "config/ have them."
        )
    check(content, schema, str(path))
    return content


def load(schema: Path) -> dict[str, Any]:
    """Reads a schema, and fills in the names of records of tasks and precisions to which it refers."""
    accepted: dict[str, Any] = yaml.load(schema.read_text(encoding="utf-8"), Loader=_Loader)
    of_records = tasks.schemas() | {"precision": {"enum": list(PRECISIONS)}}
    return accepted | {"$defs": of_records | accepted.get("$defs", {})}


def parse(text: str) -> Any:
    return yaml.load(text, Loader=_Loader)


def check(content: Any, schema: Path, where: str) -> None:
    """Checks content, and fills in, in place, the defaults of what it does not say. Raises ConfigurationError."""
    accepted = load(schema)
    error = best_match(_VALIDATOR(accepted).iter_errors(content))
    if error is not None:
        raise ConfigurationError(f"{where}: {_sentence(error)}")
    fill(content, accepted, accepted.get("$defs", {}))


def fill(content: Any, schema: dict[str, Any], named: dict[str, Any]) -> None:
    """Adds to accepted content, in place, the `default` of each key that is left out; `named` are other schemas."""
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
    """Returns a schema merged with the one to which it refers; its own keys, such as its description, win."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return named[name] | schema if name else schema


def unknown(kind: str, name: str, known: list[str], where: str) -> str:
    """Returns the sentence for a name that does not exist, with the nearest one that does."""
    return f"There is no {kind} '{name}' in {where}: {meant(name, known, 'known are')}"


def require(
    kind: str, names: Iterable[str], known: Iterable[str], where: str, place: str = ""
) -> None:
    """Raises ConfigurationError for the first name that is not known; `place` begins the sentence, with the file."""
    known = list(known)
    for name in names:
        if name not in known:
            raise ConfigurationError(place + unknown(kind, name, known, where))


def meant(name: Any, known: Sequence[str], otherwise: str = "write one of") -> str:
    """Suggests the nearest of the known names, as shi2016_fig1a for fig1a; where none is near, lists them."""
    # A key may be a number.
    name = str(name)
    begun, dash, version = name.lower().partition("-")
    alias = ALIASES.get(begun, begun) + dash + version
    near = [alias] if alias in known else difflib.get_close_matches(alias, known, 1)
    near += [each for each in known if each.endswith(f"_{alias}")]
    names = ", ".join(known[:MOST_NAMES])
    if len(known) > MOST_NAMES:
        names += " and more"
    return f"did you mean '{near[0]}'?" if near else f"{otherwise} {names}."


def _is_integer(checker: TypeChecker, value: Any) -> bool:
    """Refuses 3.0, which JSON does not tell from 3: `range` and the names of files do."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(checker: TypeChecker, value: Any) -> bool:
    """Tells whether programs can compute with a value: not a boolean, not infinite, no integer beyond all floats."""
    whole = _is_integer(checker, value) and abs(value) <= sys.float_info.max
    return whole or (isinstance(value, float) and math.isfinite(value))


def _matches(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Checks a pattern as JSON Schema does, where `$` is the end of the text and no line's, as it may be in Python."""
    if isinstance(value, str) and not re.search(pattern.replace("$", r"\Z"), value):
        yield ValidationError(f"{value!r} does not match '{pattern}'")


_FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FASTEST):
    """Refuses what YAML would silently misread: a key that is there twice, and some numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' stands twice", key.start_mark
                )
            if key.tag.endswith((":bool", ":null")):
                raise ConfigurationError(
                    f"line {key.start_mark.line + 1}: the key '{key.value}' is no text to YAML: write it in quotes."
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        whole = node.tag.endswith(":int")
        value = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
        if SHORT.match(node.value) and value.is_integer():
            # Without a point, as people write a whole number with many zeros.
            value = int(value)
        if MISREAD.match(node.value):
            raise ConfigurationError(
                f"line {node.start_mark.line + 1}: '{node.value}' is {value} to YAML: write a number without a leading "
                "0 and without a colon."
            )
        return value


# YAML 1.1 wants a point and the sign of an exponent; everybody else writes 1e-5.
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", WRITTEN, list("-+0123456789."))
for tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{tag}", _Loader.construct_number)
# Nobody means a day.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_str)


_VALIDATOR = validators.extend(
    Draft202012Validator,
    {"pattern": _matches},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)


def _sentence(error: ValidationError) -> str:
    if error.validator == "oneOf" and not _possible(error):
        # One of them was right but for its inside.
        inside = [each for each in error.context or [] if each.validator not in ("type", "const")]
        error = inside[0] if inside else error
    place = ".".join(str(part) for part in error.absolute_path)
    at = f"at '{place}', " if place else ""
    wanted = error.validator_value
    if error.validator == "additionalProperties" and isinstance(
        error.schema.get("properties"), dict
    ):
        allowed = list(error.schema["properties"])
        extra = [key for key in error.instance if key not in allowed]
        if extra[0] in WISHES:
            return f"{at}there is no key '{extra[0]}': {WISHES[extra[0]]}."
        return f"{at}there is no key '{extra[0]}': {meant(extra[0], allowed)}"
    if error.validator == "required":
        missing = [key for key in wanted if key not in error.instance]
        return f"{at}the key '{missing[0]}' is missing: write it."
    if error.validator == "dependentRequired":
        key, needed = next(iter(wanted.items()))
        missing = [name for name in needed if name not in error.instance]
        return f"{at}the key '{missing[0]}' is missing: '{key}' needs it."
    if error.validator == "uniqueItems":
        twice = next(each for each in error.instance if error.instance.count(each) > 1)
        return f"{at}{_short(twice)} stands twice: leave one of them out."
    if error.validator == "type" and (number := _number_meant(error)):
        return f"{at}'{error.instance}' is a text to YAML: write {number}."
    advice = _advice(error)
    if error.validator == "type" and (error.instance is None or isinstance(error.instance, bool)):
        return f"{at}YAML reads {_short(error.instance)}: {advice.replace('a text', 'a text in quotes')}"
    return f"{at}{_short(error.instance)} is not possible: {advice}"


def _short(value: Any) -> str:
    text = {"None": "nothing", "True": "true", "False": "false"}.get(text := repr(value), text)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 4]} ..."


def _advice(error: ValidationError) -> str:
    """Says what to write instead of a value."""
    wanted = error.validator_value
    if error.validator in ("enum", "const"):
        return meant(
            error.instance, list(map(str, wanted if error.validator == "enum" else [wanted]))
        )
    if error.validator == "oneOf" and (possible := _possible(error)):
        return meant(error.instance, [_alike(each, error.instance) for each in possible])
    if error.validator in ("pattern", "maxProperties") and "write" in error.schema:
        return f"write {error.schema['write']}."
    if error.validator in BOUNDS:
        return f"write {BOUNDS[error.validator].format(wanted)}."
    if error.validator == "type":
        kinds = wanted if isinstance(wanted, list) else [wanted]
        words = (KINDS.get(str(kind), str(kind)) for kind in kinds)
        return f"write {' or '.join(_alike(each, error.instance) for each in words)}."
    return f"{error.message}."


def _alike(kind: str, value: Any) -> str:
    """Names a kind of value; where it should be a list, shows the value in one."""
    alone = kind == KINDS["array"] and isinstance(value, str | int | float)
    return f"{kind}, [{value}]" if alone else kind


def _number_meant(error: ValidationError) -> str:
    """Writes a number that YAML took for a text, such as '1e3', as YAML wants it; '' where it is none."""
    try:
        value = float(error.instance) if isinstance(error.instance, str) else math.nan
    except ValueError:
        return ""
    if "number" in error.validator_value and math.isfinite(value):
        mantissa, e, exponent = repr(value).partition("e")
        return mantissa + ("" if "." in mantissa else ".0") + e + exponent
    if "integer" in error.validator_value and value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    return ""


def _possible(error: ValidationError) -> list[str]:
    """Says in words what each of several schemas would accept; [] where one of them was right except for its inside."""
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
