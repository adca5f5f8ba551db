"""What the JSON Schemas say beside the models: names of variables, and mappings whose keys a pattern closes.

Keys that depend on each other: :mod:`msauto.playbook.schema.key_rules`. What no schema can say is listed in
``docs/reference/schemas.md``.
"""

from __future__ import annotations

from typing import Any

from msauto.playbook.variables.variables import OWN

Rule = dict[str, Any]


_SIGNS = r"\s!-/:-@\[-^`{-~"
VARIABLE_NAMES: Rule = {"pattern": rf"^[^\d_{_SIGNS}][^{_SIGNS}]*$", "not": {"enum": sorted(OWN)}}
"""What the name of a variable may be: letters of any script, digits, ``_``; not msauto's own names."""

VARIABLES = ("vars",)
"""Keys whose mappings hold variables."""


def with_rules(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the names that variables may have, and mappings closed where a pattern names all keys."""
    models = schema.get("$defs", {})
    named = {**schema, "$defs": {name: _named(model) for name, model in models.items()}}
    closed: dict[str, Any] = _closed(named)
    return closed


def _closed(value: Any) -> Any:
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
