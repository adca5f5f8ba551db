"""The JSON Schemas, made from the models.

What no schema can express is listed in ``docs/reference/json.md``.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from pydantic import BaseModel

from msauto import sockets
from msauto.documents.strict_model import VARIABLES
from msauto.documents.value_types import KIND
from msauto.errors import InputError, Problem, nearest
from msauto.playbook.variables import OWN

_SIGNS = r"\s!-/:-@\[-^`{-~"
_VARIABLE_NAMES: dict[str, Any] = {
    "pattern": rf"^[^\d_{_SIGNS}][^{_SIGNS}]*$",
    "not": {"enum": sorted(OWN)},
}
"""What the name of a variable may be: letters of any script, digits, ``_``; not msauto's own names."""


MODELS: Final = {
    "playbook": "msauto.playbook.schema.play:Playbook",
    "tasks": "msauto.playbook.schema.play:TaskFile",
    "handlers": "msauto.playbook.schema.play:HandlerFile",
    "inventory": "msauto.playbook.schema.inventory:InventoryArgs",
    "settings": "msauto.playbook.schema.settings:SettingsArgs",
}
"""The places of the models of the kernel's files; plugins bring those of their own files."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of files: a name of ``MODELS``.

    In playbooks and inventories, templates are accepted in place of values.

    >>> json_schema("playbook")["title"]
    'msauto playbook'
    """
    schema = schema_of_model(file_model(name))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"msauto {name}"}
    return {**head, **{key: value for key, value in schema.items() if key != "title"}}


def file_model(name: str) -> type[BaseModel]:
    """Return the model of a kind of files, of the kernel or of a plugin."""
    place = MODELS.get(name) or sockets.place_of("file_models", name)
    if place is None:
        known = [*MODELS, *sockets.names_of("file_models")]
        raise InputError([Problem(f"schema {name!r} not found", None, nearest(name, known))])
    model: type[BaseModel] = sockets.load_place(place)
    return model


def schema_of_model(model: type[BaseModel], *, kinds: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of one model, with its rules for keys and the names that variables may have.

    ``kinds`` keeps the words for kinds of values, which the reference shows.
    """
    dropped = set(VARIABLES)
    if not kinds:
        dropped.add(KIND)
    schema: dict[str, Any] = _tidy({"$defs": {}, **model.model_json_schema(by_alias=True)}, dropped)
    return schema


def _tidy(value: Any, dropped: Set[str], *, names: bool = False) -> Any:
    """Drop what only pydantic and we need: titles, defaults of what may be left out, and our own marks.

    Mappings are closed where a pattern names all keys.
    """
    if isinstance(value, list):
        return [_tidy(item, dropped) for item in value]
    if not isinstance(value, dict):
        return value
    if names:
        return {name: _tidy(schema, dropped) for name, schema in value.items()}
    tidied: dict[str, Any] = {}
    for key, part in value.items():
        if key == "oneOf" and not all("required" in choice for choice in part):
            key = "anyOf"  # a value may fit two choices: a number is a text too
        is_title = key == "title" and isinstance(part, str)
        is_no_default = key == "default" and part is None
        if key not in dropped and not is_title and not is_no_default:
            tidied[key] = _tidy(part, dropped, names=key in {"properties", "$defs"})
    if value.keys() >= VARIABLES.keys():
        tidied["propertyNames"] = _VARIABLE_NAMES
    if "patternProperties" in tidied:
        tidied["additionalProperties"] = False
    return tidied
