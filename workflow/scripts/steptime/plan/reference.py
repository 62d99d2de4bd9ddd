"""Writes docs/reference/configuration.md: every key of the configuration, as the schemas know it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from steptime import project
from steptime.plan.schemas import load, resolved

# In the order in which a user meets them.
FILES = ("config", "grid", "networks", "frameworks", "platforms", "datasets")
HEAD = """# Every key of the configuration

`make reference` writes this page from `config/schemas/`, by which each file is checked when a run
begins. *Needed* keys have no default. NAME stands for a name that the file chooses.
"""


def main() -> None:
    print(page(project.path("config/schemas")), end="")


def page(schemas: Path) -> str:
    """Returns the page of all schemas in a folder, as Markdown."""
    parts = [HEAD]
    for name in FILES:
        schema = load(schemas / f"{name}.yaml")
        parts.append(f"## `{schema['title']}`\n\n{schema['description']}\n")
        lines = [f"| {' | '.join(cells)} |" for cells in rows(schema, schema.get("$defs", {}))]
        head = ["| key | value | where it is left out | meaning |", "| --- | --- | --- | --- |"]
        parts.append("\n".join([*head, *lines]) + "\n")
    return "\n".join(parts)


def rows(
    schema: dict[str, Any], named: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Yields key, value, default and meaning of every key below a schema; `named` are schemas that others refer to."""
    schema = resolved(schema, named)
    needed = {*schema.get("required", []), *schema.get("else", {}).get("required", [])}
    for key, part in schema.get("properties", {}).items():
        if part.get("deprecated"):
            continue
        part = resolved(part, named)
        absent = "*needed*" if key in needed else ""
        if "default" in part:
            absent = f"`{text(part['default'])}`"
        meaning = part["description"].replace("|", "\\|")
        yield f"`{prefix}{key}`", value(part, named), absent, meaning
        yield from rows(part, named, f"{prefix}{key}.")
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        yield from rows(others, named, f"{prefix}NAME.")
    if schema.get("type") == "array" and "layers" not in prefix:
        yield from rows(schema["items"], named, prefix)


def value(schema: dict[str, Any], named: dict[str, Any]) -> str:
    """Says what a key may hold, in words."""
    schema = resolved(schema, named)
    if "enum" in schema:
        return " or ".join(f"`{choice}`" for choice in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "oneOf" in schema and "type" not in schema:
        return " or ".join(value(choice, named) for choice in schema["oneOf"])
    if schema.get("type") == "array":
        return f"list of {value(schema['items'], named)}"
    if schema.get("type") == "object":
        others = schema.get("additionalProperties")
        return f"{value(others, named)} by name" if isinstance(others, dict) else "keys"
    kind = schema.get("type", "")
    words = kind if isinstance(kind, list) else [kind]
    return " or ".join("keys" if word == "object" else word for word in words)


def text(default: Any) -> str:
    return yaml.safe_dump(default, default_flow_style=True).removesuffix("\n...\n").strip()


if __name__ == "__main__":
    main()
