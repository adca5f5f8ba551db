"""The reference of plays, tasks and modules: their keys from the JSON Schema of the models, and examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from textwrap import indent
from typing import Any

from msauto.documents import value_types as types
from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES
from msauto.playbook.schema.json_schema import schema_of_model
from msauto.playbook.schema.play import GROUPS, MODULES, Playbook


@dataclass(frozen=True, slots=True)
class ReferenceKey:
    """A key of a module or play: ``path`` such as ``segments[].start``; ``kind`` is the kind of its value."""

    path: str
    kind: str
    words: str
    needed: bool = False
    template: bool = True


@dataclass(frozen=True, slots=True)
class ReferenceTopic:
    """A module, a play or a task: its description, its keys, and examples as YAML that together use every key."""

    name: str
    words: str
    keys: tuple[ReferenceKey, ...]
    examples: tuple[str, ...]


_TOPICS = ("play", "task", "handler", MODULES[0], "select", *(each for each in MODULES[1:] if each not in GROUPS))
_MODELS = {name: f"{name.title().replace('_', '')}Args" for name in _TOPICS}
_OWN_PAGE = frozenset({*_MODELS.values()})


def modules() -> list[ReferenceTopic]:
    """Return plays, tasks and all modules."""
    return [module(name) for name in _MODELS]


def module(name: str) -> ReferenceTopic:
    """Return one of them; raises ``KeyError`` for an unknown name."""
    schema = _schema()["$defs"][_MODELS[name]]
    keys = [key for key in _keys(schema, "") if name != "handler" or key.path == "before"]
    return ReferenceTopic(name, schema.get("description", ""), tuple(keys), _examples(name))


def _examples(name: str) -> tuple[str, ...]:
    """Return the examples of a file, which empty lines separate: plays for ``play``, tasks for all others."""
    text = files(__package__).joinpath("examples", f"{name}.yml").read_text(encoding="utf-8")
    fields = [f"{each.name}: {each.example}" for each in LINK_FIELDS]
    text = re.sub(r"^( *)\$link_fields$", lambda match: indent("\n".join(fields), match[1]), text, flags=re.MULTILINE)
    for mark, attributes in (("$segment_attributes", SEGMENT_ATTRIBUTES), ("$marker_attributes", MARKER_ATTRIBUTES)):
        text = text.replace(mark, ", ".join(f"{each.name}: {each.example}" for each in attributes))
    return tuple(f"{example.rstrip()}\n" for example in text.split("\n\n"))


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return schema_of_model(Playbook, kinds=True)


def _keys(schema: Mapping[str, Any], path: str) -> Iterator[ReferenceKey]:
    needed = set(schema.get("required", ()))
    for name, value in schema.get("properties", {}).items():
        here = f"{path}{name}"
        kind, template = _kind(value)
        yield ReferenceKey(here, kind, value.get("description", ""), name in needed, template)
        for inner, suffix in _inside(value, ""):
            yield from _keys(inner, f"{here}{suffix}.")


def _inside(value: Mapping[str, Any], suffix: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the schemas of mappings inside a value that have no topic of their own."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        if name not in _OWN_PAGE:
            yield _schema()["$defs"][name], suffix
    for choice in value.get("anyOf", ()):
        yield from _inside(choice, suffix)
    if isinstance(value.get("items"), dict):
        yield from _inside(value["items"], f"{suffix}[]")


def _kind(value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the kind of a value, and whether it may be a template."""
    choices = _choices(value)
    kinds = list(dict.fromkeys(_one(each) for each in choices if each != types.TEMPLATE_SCHEMA))
    template = types.TEMPLATE_SCHEMA in choices or (value.get("type") == "string" and "pattern" not in value)
    lists = [kind for kind in kinds if kind.startswith("a list of ")]
    single = " or ".join(kind for kind in kinds if kind not in lists)
    if lists == [f"a list of {single}"]:
        return f"{single}; or a list", template
    return " or ".join(kinds), template


def _choices(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if types.KIND in value or "anyOf" not in value:
        return [value]
    return [inner for each in value["anyOf"] for inner in _choices(each)]


def _one(value: Mapping[str, Any]) -> str:
    if types.KIND in value:
        return str(value[types.KIND])
    if "enum" in value or "const" in value:
        return " or ".join(f"`{each}`" for each in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        items = value.get("items") or {}
        return f"a list of {_kind(items)[0]}" if items else "a list"
    if value.get("type") == "integer":
        return f"a whole number, {value['minimum']} to {value['maximum']}"
    if "$ref" in value or value.get("type") == "object":
        return "a mapping"
    return "text" if value.get("type") == "string" else "any value"
