"""The JSON Schemas, made from the models.

What no schema can express is listed in ``docs/reference/schemas.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from msauto.errors import InputError, Problem
from msauto.playbook.schema.inventory import InventoryArgs
from msauto.playbook.schema.play import Playbook
from msauto.playbook.schema.settings import SettingsArgs
from msauto.playbook.schema.strict_model import VARIABLES
from msauto.playbook.variables.variables import OWN
from msauto.playbook.yaml.document import nearest

_SIGNS = r"\s!-/:-@\[-^`{-~"
_VARIABLE_NAMES: dict[str, Any] = {"pattern": rf"^[^\d_{_SIGNS}][^{_SIGNS}]*$", "not": {"enum": sorted(OWN)}}
"""What the name of a variable may be: letters of any script, digits, ``_``; not msauto's own names."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema ``playbook``, ``inventory`` or ``settings``; templates are accepted in place of values.

    >>> json_schema("playbook")["title"]
    'msauto playbook'
    """
    models: dict[str, type[BaseModel]] = {"playbook": Playbook, "inventory": InventoryArgs, "settings": SettingsArgs}
    model = models.get(name)
    if model is None:
        raise InputError([Problem(f"schema {name!r} not found", None, nearest(name, models))])
    schema = schema_of_model(model)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"msauto {name}"}
    return {**head, **{key: value for key, value in schema.items() if key != "title"}}


def schema_of_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of one model, with its rules for keys and the names that variables may have."""
    schema: dict[str, Any] = _tidy({"$defs": {}, **model.model_json_schema(by_alias=True)})
    return schema


def _tidy(value: Any, *, names: bool = False) -> Any:
    """Drop what only pydantic needs: titles, and defaults of what may be left out.

    Mappings are closed where a pattern names all keys.
    """
    if isinstance(value, list):
        return [_tidy(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = _kept(value, names)
    found = {key: _tidy(each, names=key in {"properties", "$defs"} and not names) for key, each in kept}
    named = {"propertyNames": _VARIABLE_NAMES} if found.keys() >= VARIABLES.keys() else {}
    closed = {"additionalProperties": False} if "patternProperties" in found else {}
    return {key: each for key, each in found.items() if key not in VARIABLES} | named | closed


def _kept(value: dict[str, Any], names: bool) -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        if key == "oneOf" and not names and not all("required" in choice for choice in each):
            key = "anyOf"  # a value may fit two choices: a number is a text too
        if names or (not (key == "title" and isinstance(each, str)) and not (key == "default" and each is None)):
            yield key, each
