"""The keys of modules, tasks and plays, read out of the JSON Schema that the models make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from msauto.playbook.reference.entries import ReferenceKey, ReferenceTopic
from msauto.playbook.reference.examples import EXAMPLES
from msauto.playbook.schema.json_schema import json_schema
from msauto.playbook.schema.values import (
    TEMPLATE_SCHEMA,
    ClearablePos,
    Count,
    Expressions,
    Flag,
    FolderText,
    KeyId,
    Name,
    Number,
    Pos,
    Quoted,
    Rating,
    Span,
    Text,
    When,
)

_WORDS: tuple[tuple[Any, str], ...] = (
    (Pos, "a time code or frames"),
    (ClearablePos, "a time code or frames, or empty"),
    (Span, "a duration such as 90s, 30m, 2h, 3d"),
    (When, "a date, or a date and time"),
    (KeyId, "NS:ID"),
    (Count, "a whole number, 0 or more"),
    (Rating, "a whole number"),
    (Number, "a number, 0 or more"),
    (Flag, "true or false"),
    (Text, "text"),
    (Name, "text"),
    (Quoted, "text, quoted"),
    (FolderText, "a folder"),
    (Expressions, "an expression, or a list of them"),
)
_MODELS = {
    "play": "PlayArgs",
    "task": "TaskArgs",
    "handler": "HandlerArgs",
    "asset": "AssetArgs",
    "select": "SelectArgs",
    "rss": "RssArgs",
    "thumbnail": "ThumbnailArgs",
    "proxy": "ProxyArgs",
    "xmp_batch": "XmpBatchArgs",
    "command": "CommandArgs",
    "assert": "AssertArgs",
}
_OWN_PAGE = frozenset({*_MODELS.values()})


def modules() -> list[ReferenceTopic]:
    """Return plays, tasks and all modules, each with its keys and its examples."""
    return [module(name) for name in _MODELS]


def module(name: str) -> ReferenceTopic:
    """Return one of them; raises ``KeyError`` for a name that is none."""
    schema = _schema()["$defs"][_MODELS[name]]
    keys = [key for key in _keys(schema, "") if name != "handler" or key.path == "before"]
    return ReferenceTopic(name, schema.get("description", ""), tuple(keys), EXAMPLES[name])


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    return json_schema("playbook")


@lru_cache(maxsize=1)
def _kinds() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for kind, words in reversed(_WORDS):
        found[_plain(TypeAdapter(kind).json_schema())] = words
    return found


def _plain(schema: Mapping[str, Any]) -> str:
    return json.dumps(
        {name: value for name, value in schema.items() if name not in {"title", "description"}}, sort_keys=True
    )


def _keys(schema: Mapping[str, Any], path: str) -> Iterator[ReferenceKey]:
    needed = set(schema.get("required", ()))
    for name, value in schema.get("properties", {}).items():
        here = f"{path}{name}"
        kind, template = _kind(value)
        yield ReferenceKey(here, kind, value.get("description", ""), name in needed, template)
        for inner, suffix in _inside(value, ""):
            yield from _keys(inner, f"{here}{suffix}.")


def _inside(value: Mapping[str, Any], suffix: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the mappings inside a value that have no page of their own."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        if name not in _OWN_PAGE:
            yield _schema()["$defs"][name], suffix
    for choice in value.get("anyOf", ()):
        yield from _inside(choice, suffix)
    if isinstance(value.get("items"), dict):
        yield from _inside(value["items"], f"{suffix}[]")


def _kind(value: Mapping[str, Any]) -> tuple[str, bool]:
    """Say what a value may be, and whether a template may stand for it."""
    choices = _choices(value)
    kinds = list(dict.fromkeys(_one(each) for each in choices if each != TEMPLATE_SCHEMA))
    template = len(choices) > sum(each != TEMPLATE_SCHEMA for each in choices) or _is_text(value)
    lists = [kind for kind in kinds if kind.startswith("a list of ")]
    single = " or ".join(kind for kind in kinds if kind not in lists)
    if lists == [f"a list of {single}"]:
        return f"{single}; or a list", template
    return " or ".join(kinds), template


def _choices(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if _plain(value) in _kinds() or "anyOf" not in value:
        return [value]
    return [inner for each in value["anyOf"] for inner in _choices(each)]


def _is_text(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "string" and "pattern" not in value


def _one(value: Mapping[str, Any]) -> str:
    known = _kinds().get(_plain(value))
    if known:
        return known
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
