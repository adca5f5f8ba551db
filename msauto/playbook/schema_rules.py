"""What JSON Schema can say of keys that depend on each other, by the name of the model; the models say the same.

Written with ``if`` and ``then`` (draft 7), which editors understand. A test holds both to each other on a corpus;
what no schema can say is listed in ``docs/reference/schemas.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msauto.playbook.variables import OWN

Rule = dict[str, Any]


def _needs(key: str, *others: str) -> Rule:
    """Where ``key`` is, one of the others must be."""
    return {"if": {"required": [key]}, "then": _any(*others)}


def _any(*keys: str) -> Rule:
    return {"required": list(keys)} if len(keys) == 1 else {"anyOf": [{"required": [key]} for key in keys]}


def _excludes(key: str, *others: str) -> Rule:
    return {"if": {"required": [key]}, "then": {"not": {"anyOf": [{"required": [other]} for other in others]}}}


def _where(key: str, value: Any, then: Rule) -> Rule:
    return {"if": {"required": [key], "properties": {key: {"const": value}}}, "then": then}


def _unless_absent(then: Rule) -> Rule:
    """Where the state is present, said or not; a template may yet say absent."""
    return {
        "if": {"not": {"required": ["state"], "properties": {"state": {"not": {"const": "present"}}}}},
        "then": then,
    }


def _none_of(*keys: str) -> Rule:
    return {"not": _any(*keys)}


def _exactly(name: str, *lists: str) -> Rule:
    """``exactly`` names a list: then the list must be there."""
    in_list = {"type": "array", "contains": {"const": name}}
    on = {"anyOf": [{"const": True}, {"type": "object"}]}
    in_map = {"type": "object", "required": [name], "properties": {name: on}}
    named = {"required": ["exactly"], "properties": {"exactly": {"anyOf": [in_list, in_map]}}}
    return {"if": named, "then": _any(*lists)}


def _all_or_none_numbered() -> Rule:
    numbered = {"if": {"type": "object"}, "then": {"required": ["number"]}}
    bare = {"if": {"type": "object"}, "then": {"not": {"required": ["number"]}}}
    segments = {"if": {"type": "array"}, "then": {"anyOf": [{"items": numbered}, {"items": bare}]}}
    return {"properties": {"segments": segments}}


_CONTENT = ("fields", "xmp", "segments", "segmentation", "markers", "links", "exactly", "restore", "was")
_SEGMENT_NAMED = {"anyOf": [{"required": ["number"]}, {"required": ["title"]}, {"required": ["start", "duration"]}]}
_NO_IMPORT = (
    "hosts",
    "database",
    "vars_files",
    "serial",
    "max_fail_percentage",
    "any_errors_fatal",
    "tasks",
    "handlers",
)
_ASSET_ID = {"properties": {"params": {"if": {"type": "object"}, "then": {"required": ["asset_id"]}}}}
_MOVES = _where("name", "PARTNER_MOVE_TO_ASSET", {"required": ["params"], **_ASSET_ID})
_GIVEN_PARAMETERS = {
    "properties": {"params": {"if": {"type": "object"}, "then": _none_of("ns", "id", "command")}},
}

RULES: Mapping[str, Sequence[Rule]] = {
    "AssetArgs": [
        _where("state", "absent", _none_of(*_CONTENT)),
        _needs("was", "title"),
        _excludes("segmentation", "segments"),
        _exactly("segments", "segments", "segmentation"),
        _exactly("markers", "markers"),
        _exactly("links", "links"),
        _all_or_none_numbered(),
    ],
    "SegmentArgs": [
        _unless_absent({"required": ["start", "duration"]}),
        _where("state", "absent", _SEGMENT_NAMED),
    ],
    "MarkerArgs": [_any("at", "uid")],
    "RssItemArgs": [
        _unless_absent({"anyOf": [{"required": ["text"]}, {"required": ["item"]}]}),
        _unless_absent(_excludes("item", "text")),
        _where("state", "absent", _none_of("text", "item", "file")),
    ],
    "RssArgs": [_where("exactly", True, {"required": ["items"]})],
    "CommandArgs": [_MOVES, _GIVEN_PARAMETERS],
    "CommandOnly": [_MOVES, _GIVEN_PARAMETERS],
    "AssertArgs": [_excludes("title", "id", "select"), _excludes("id", "select")],
    "TaskArgs": [
        _needs("loop_control", "loop"),
        _excludes("block", "loop"),
        _excludes("import_tasks", "loop"),
        *(_excludes(module, "notify") for module in ("rss", "xmp_batch", "assert")),
    ],
    "HandlerArgs": [_needs("loop_control", "loop"), {"properties": {"before": {"not": {"const": False}}}}],
    "PlayArgs": [_excludes("import_playbook", *_NO_IMPORT), _needs("when", "import_playbook")],
    "AuthArgs": [_excludes("basic", "bearer", "bearer_file"), _excludes("bearer", "bearer_file")],
    "BasicArgs": [_any("password", "password_file"), _excludes("password", "password_file")],
    "ProxyArgs": [_excludes("password", "password_file"), _needs("password", "username")],
}
"""Conditions that hold for a model's mapping, beside those of its keys."""

_SIGNS = r"\s!-/:-@\[-^`{-~"
VARIABLE_NAMES: Rule = {"pattern": rf"^[^\d_{_SIGNS}][^{_SIGNS}]*$", "not": {"enum": sorted(OWN)}}
"""What the name of a variable may be: letters of any script, digits, ``_``; not msauto's own names."""

VARIABLES = ("vars",)
"""Keys whose mappings hold variables."""


def with_rules(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the rules of its models, and with mappings closed where the pattern of a key says all."""
    models = schema.get("$defs", {})
    ruled = {**schema, "$defs": {name: _ruled(name, model) for name, model in models.items()}}
    closed: dict[str, Any] = _closed(ruled)
    return closed


def _closed(value: Any) -> Any:
    if isinstance(value, list):
        return [_closed(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _closed(each) for key, each in value.items()}
    return {**found, "additionalProperties": False} if "patternProperties" in found else found


def _ruled(name: str, model: dict[str, Any]) -> dict[str, Any]:
    properties = {
        key: {**value, "propertyNames": VARIABLE_NAMES} if key in VARIABLES else value
        for key, value in model.get("properties", {}).items()
    }
    rules = [rule for rule in RULES.get(name, ()) if _applies(rule, properties)]
    return {**model, **({"properties": properties} if properties else {}), **({"allOf": rules} if rules else {})}


def _applies(rule: Rule, properties: Mapping[str, Any]) -> bool:
    """Tell whether a rule is about keys that the model has: two models of one name are told apart so."""
    condition = rule.get("if", rule)
    return {*condition.get("required", ()), *rule.get("properties", ())} <= properties.keys()
