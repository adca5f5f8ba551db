"""The JSON Schemas, made from the models.

What no schema can express is listed in ``docs/reference/schemas.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from msauto.errors import InputError, Problem
from msauto.playbook.schema.batch import BatchFileArgs
from msauto.playbook.schema.inventory import InventoryArgs
from msauto.playbook.schema.play import Playbook
from msauto.playbook.schema.settings import SettingsArgs
from msauto.playbook.variables.variables import OWN
from msauto.playbook.yaml.document import nearest

_SIGNS = r"\s!-/:-@\[-^`{-~"
VARIABLE_NAMES: dict[str, Any] = {"pattern": rf"^[^\d_{_SIGNS}][^{_SIGNS}]*$", "not": {"enum": sorted(OWN)}}
"""What the name of a variable may be: letters of any script, digits, ``_``; not msauto's own names."""

VARIABLES = ("vars", "extra_vars")
"""Keys whose mappings hold variables."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema ``playbook``, ``inventory``, ``settings`` or ``batch``.

    In playbooks and inventories, templates are accepted in place of values.

    >>> json_schema("playbook")["title"]
    'msauto playbook'
    """
    models: dict[str, type[BaseModel]] = {
        "playbook": Playbook,
        "inventory": InventoryArgs,
        "settings": SettingsArgs,
        "batch": BatchFileArgs,
    }
    model = models.get(name)
    if model is None:
        raise InputError([Problem(f"schema {name!r} not found", None, nearest(name, models))])
    schema = schema_of_model(model)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"msauto {name}"}
    return {**head, **{key: value for key, value in schema.items() if key != "title"}}


def schema_of_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of one model, with its rules for keys and the names that variables may have."""
    schema = _tidy(model.model_json_schema(by_alias=True))
    named = {name: _named(each) for name, each in schema.get("$defs", {}).items()}
    closed: dict[str, Any] = _closed({**schema, "$defs": named})
    return closed


def _tidy(value: Any, *, names: bool = False) -> Any:
    """Drop what only pydantic needs: titles, and defaults of what may be left out."""
    if isinstance(value, list):
        return [_tidy(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _tidy(each, names=key in {"properties", "$defs"} and not names) for key, each in _kept(value, names)}


def _kept(value: dict[str, Any], names: bool) -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        if key == "oneOf" and not names and not all("required" in choice for choice in each):
            key = "anyOf"  # a value may fit two choices: a number is a text too
        if names or (not (key == "title" and isinstance(each, str)) and not (key == "default" and each is None)):
            yield key, each


def _closed(value: Any) -> Any:
    """Close mappings where a pattern names all keys."""
    if isinstance(value, list):
        return [_closed(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _closed(each) for key, each in value.items()}
    return {**found, "additionalProperties": False} if "patternProperties" in found else found


def _named(model: dict[str, Any]) -> dict[str, Any]:
    properties = {
        key: {**value, "propertyNames": VARIABLE_NAMES} if key in VARIABLES else value
        for key, value in model.get("properties", {}).items()
    }
    return {**model, **({"properties": properties} if properties else {})}
