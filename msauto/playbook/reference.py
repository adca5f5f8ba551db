"""The reference of plays, tasks and modules, made from the JSON Schemas of their models.

What templates can use is in :mod:`.templates.reference`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from textwrap import indent
from typing import Any

from msgspec import Struct

from msauto.documents.strict_model import Model
from msauto.documents.value_types import KIND, TEMPLATE_SCHEMA
from msauto.model.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES
from msauto.playbook.schema import play
from msauto.playbook.schema.json_schema import schema_of_model


class ReferenceKey(Struct, frozen=True):
    """A key of a module or play: ``path`` such as ``segments[].start``; ``kind`` is the kind of its value."""

    path: str
    kind: str
    words: str
    needed: bool = False
    template: bool = True


class ReferenceTopic(Struct, frozen=True):
    """A module, a play or a task: its description, its keys, and examples as YAML that together use every key."""

    name: str
    words: str
    keys: tuple[ReferenceKey, ...]
    examples: tuple[str, ...]


_NAMES = (
    "play",
    "task",
    "handler",
    "asset",
    "select",
    "rss",
    "thumbnail",
    "proxy",
    "xmp_batch",
    "command",
    "assert",
)
_MODELS: Mapping[str, type[Model]] = {
    name: getattr(play, f"{name.title().replace('_', '')}Args") for name in _NAMES
}
TOPICS: Mapping[str, str] = {name: inspect.getdoc(model) or "" for name, model in _MODELS.items()}
"""Plays, tasks and all modules, each with its description."""
_OWN_PAGE = frozenset(model.__name__ for model in _MODELS.values())


def module(name: str) -> ReferenceTopic:
    """Return one of the topics; raises ``KeyError`` for an unknown name."""
    model = _MODELS[name]
    schema = schema_of_model(model, kinds=True)
    defined = schema["$defs"]
    keys = list(_keys(defined.get(model.__name__, schema), defined, ""))
    if name == "handler":  # its other keys are those of a task
        keys = [key for key in keys if key.path == "before"]
    return ReferenceTopic(name, TOPICS[name], tuple(keys), _examples(name))


def _examples(name: str) -> tuple[str, ...]:
    """Return the examples of a file, which empty lines separate: plays for ``play``, tasks for all others."""
    text = (
        files(__package__)
        .joinpath("reference_texts", "examples", f"{name}.yml")
        .read_text(encoding="utf-8")
    )
    fields = [f"{field.name}: {field.example}" for field in LINK_FIELDS]
    text = re.sub(
        r"^( *)\$link_fields$",
        lambda match: indent("\n".join(fields), match[1]),
        text,
        flags=re.MULTILINE,
    )
    for mark, attributes in (
        ("$segment_attributes", SEGMENT_ATTRIBUTES),
        ("$marker_attributes", MARKER_ATTRIBUTES),
    ):
        pairs = [f"{attribute.name}: {attribute.example}" for attribute in attributes]
        text = text.replace(mark, ", ".join(pairs))
    return tuple(f"{example.rstrip()}\n" for example in text.split("\n\n"))


def _keys(
    schema: Mapping[str, Any], defined: Mapping[str, Any], path: str
) -> Iterator[ReferenceKey]:
    needed = set(schema.get("required", ()))
    for name, value in schema.get("properties", {}).items():
        here = f"{path}{name}"
        kind, template = _kind(value)
        yield ReferenceKey(here, kind, value.get("description", ""), name in needed, template)
        for inner, suffix in _inside(value, defined, ""):
            yield from _keys(inner, defined, f"{here}{suffix}.")


def _inside(
    value: Mapping[str, Any], defined: Mapping[str, Any], suffix: str
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the schemas of mappings inside a value that have no topic of their own."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        if name not in _OWN_PAGE:
            yield defined[name], suffix
    for choice in value.get("anyOf", ()):
        yield from _inside(choice, defined, suffix)
    if isinstance(value.get("items"), dict):
        yield from _inside(value["items"], defined, f"{suffix}[]")


def _kind(value: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the kind of a value, and whether it may be a template."""
    may_be_template = value.get("type") == "string" and "pattern" not in value
    kinds: list[str] = []
    for choice in _choices(value):
        if choice == TEMPLATE_SCHEMA:
            may_be_template = True
        elif (kind := _one(choice)) not in kinds:
            kinds.append(kind)
    singles = [kind for kind in kinds if not kind.startswith("a list of ")]
    single = " or ".join(singles)
    if {*kinds} - {*singles} == {f"a list of {single}"}:
        return f"{single}; or a list", may_be_template
    return " or ".join(kinds), may_be_template


def _choices(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if KIND in value or "anyOf" not in value:
        yield value
        return
    for choice in value["anyOf"]:
        yield from _choices(choice)


def _one(value: Mapping[str, Any]) -> str:
    if KIND in value:
        return str(value[KIND])
    if "enum" in value or "const" in value:
        return ", ".join(f"`{choice}`" for choice in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        items = value.get("items")
        return f"a list of {_kind(items)[0]}" if items else "a list"
    if value.get("type") == "boolean":
        return "true or false"
    if value.get("type") == "integer":
        return f"a whole number, {value['minimum']} to {value['maximum']}"
    if "$ref" in value or value.get("type") == "object":
        return "a mapping"
    return "text" if value.get("type") == "string" else "any value"
