"""Rules for keys that depend on each other, checked before validation and published as JSON Schema.

A template decides nothing before it is rendered. The schemas use ``if`` and ``then``, which editors support.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct, structs

Given = Mapping[str, Any]
"""A mapping before validation: its keys and their values."""
JsonSchema = dict[str, Any]


class BrokenRule(Struct, frozen=True):
    """A rule that does not hold: message, remedy, and the path from the mapping to the value that it is about.

    ``lacks``: a key is missing; an unknown key in the mapping may be a misspelling of it.
    """

    message: str
    remedy: str = ""
    path: tuple[str | int, ...] = ()
    on_key: bool = False
    lacks: bool = False


class KeyRule(Struct, frozen=True):
    """A rule for the keys of one mapping: yields each way in which a mapping breaks it; the same as JSON Schema.

    A rule about a ``key`` holds where that is missing, so it is asked only of mappings that have it.
    """

    broken: Callable[[Given], Iterator[BrokenRule]]
    schema: JsonSchema
    key: str = ""


def broken_rules(rules: Iterable[KeyRule], given: Given) -> Iterator[BrokenRule]:
    """Yield each way in which a mapping breaks one of the rules."""
    for rule in rules:
        if not rule.key or rule.key in given:
            yield from rule.broken(given)


def one_of(
    keys: tuple[str, ...], both: tuple[str, str], none: tuple[str, str] | None = None
) -> KeyRule:
    """Allow at most one of the keys; with ``none`` (message and remedy for a missing key), exactly one.

    ``both`` are the message, with ``{0}`` and ``{1}`` for the two keys, and the remedy.
    """

    def broken(given: Given) -> Iterator[BrokenRule]:
        named = [key for key in keys if key in given]
        if not named and none is not None:
            yield BrokenRule(*none, lacks=True)
        for other in named[1:]:
            yield BrokenRule(both[0].format(named[0], other), both[1], (other,), on_key=True)

    if none is not None:
        return KeyRule(broken, {"oneOf": _required_each(keys)})
    pairs = [{"not": {"required": list(pair)}} for pair in combinations(keys, 2)]
    return KeyRule(broken, {"allOf": pairs})


def needs(key: str, others: tuple[str, ...], message: str, remedy: str = "") -> KeyRule:
    """If ``key`` is present, require one of ``others``."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        if given.keys().isdisjoint(others):
            yield BrokenRule(message, remedy, (key,), on_key=True)

    return KeyRule(broken, {"if": {"required": [key]}, "then": _any_of(others)}, key)


def excludes(key: str, others: tuple[str, ...], message: str, remedy: str = "") -> KeyRule:
    """If ``key`` is present, allow none of ``others``. The message may hold ``{key}`` and ``{other}``."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        for other in others:
            if other in given:
                yield BrokenRule(
                    message.format(key=key, other=other), remedy, (other,), on_key=True
                )

    return KeyRule(broken, {"if": {"required": [key]}, "then": {"not": _any_of(others)}}, key)


def all_of(keys: tuple[str, ...], message: str) -> KeyRule:
    """Require all the keys. The missing keys are appended to the message: ``the segment has no``."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        missing = [key for key in keys if key not in given]
        if missing:
            yield BrokenRule(f"{message} {' and no '.join(missing)}", "add it", lacks=True)

    return KeyRule(broken, {"required": list(keys)})


def any_of(sets: tuple[tuple[str, ...], ...], message: str, remedy: str = "") -> KeyRule:
    """Require at least one of these sets of keys, complete."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        for keys in sets:
            if given.keys() >= set(keys):
                return
        yield BrokenRule(message, remedy, lacks=True)

    required = [{"required": list(keys)} for keys in sets]
    return KeyRule(broken, {"anyOf": required})


def when_value(key: str, value: Any, *rules: KeyRule, default: bool = False) -> KeyRule:
    """Apply the rules if ``key`` has this value; with ``default``, also if the key is missing."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        is_it = _same(given[key], value) if key in given else default
        if is_it:
            yield from broken_rules(rules, given)

    condition: JsonSchema = {} if default else {"required": [key]}
    condition["properties"] = {key: {"const": value}}
    schemas = [rule.schema for rule in rules]
    then = schemas[0] if len(schemas) == 1 else {"allOf": schemas}
    return KeyRule(broken, {"if": condition, "then": then}, "" if default else key)


def absent_has_none(keys: tuple[str, ...]) -> KeyRule:
    """Allow none of the keys with ``state: absent``."""
    together = excludes(
        "state", keys, "{other} cannot be used with {key}: absent", "remove one of the two"
    )
    return when_value("state", "absent", KeyRule(together.broken, {"not": _any_of(keys)}))


def never(key: str, value: Any, message: str, remedy: str = "") -> KeyRule:
    """Refuse a value of a key, although its type allows it."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        if _same(given[key], value):
            yield BrokenRule(message, remedy, (key,), on_key=True)

    return KeyRule(broken, {"properties": {key: {"not": {"const": value}}}}, key)


def complete(name: str, lists: tuple[str, ...]) -> KeyRule:
    """If ``exactly`` names a list, require one of ``lists``."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        exactly = given["exactly"]
        value = None
        if isinstance(exactly, dict):
            value = exactly.get(name)
        elif isinstance(exactly, list):
            value = name in exactly
        is_named = value is True or isinstance(value, dict)
        if is_named and given.keys().isdisjoint(lists):
            message = f"exactly names {name}, but the list {name} is missing"
            yield BrokenRule(message, f"add {name}: [] to empty it", ("exactly",), lacks=True)

    in_list = {"type": "array", "contains": {"const": name}}
    on = {"anyOf": [{"const": True}, {"type": "object"}]}
    in_map = {"type": "object", "required": [name], "properties": {name: on}}
    named = {"required": ["exactly"], "properties": {"exactly": {"anyOf": [in_list, in_map]}}}
    return KeyRule(broken, {"if": named, "then": _any_of(lists)}, "exactly")


def all_or_none(items: str, key: str, message: str, remedy: str) -> KeyRule:
    """Require the key in all mappings of a list, or in none."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        listed = given[items]
        if not isinstance(listed, list):
            return
        has = {}
        for index, item in enumerate(listed):
            if isinstance(item, dict):
                has[index] = key in item
        if set(has.values()) == {True, False}:
            first = next(index for index in has if not has[index])
            yield BrokenRule(message, remedy, (items, first))

    all_have = {"items": _if_object({"required": [key]})}
    none_has = {"items": _if_object({"not": _any_of((key,))})}
    choices = {"if": {"type": "array"}, "then": {"anyOf": [all_have, none_has]}}
    return KeyRule(broken, {"properties": {items: choices}}, items)


def inside(key: str, *rules: KeyRule) -> KeyRule:
    """Apply the rules to the mapping under ``key``."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        inner = given[key]
        if isinstance(inner, dict):
            for broken_rule in broken_rules(rules, inner):
                yield structs.replace(broken_rule, path=(key, *broken_rule.path))

    return KeyRule(broken, _mapping_under(key, [rule.schema for rule in rules]), key)


def only_keys(
    key: str, known: tuple[str, ...], unknown: Callable[[str], tuple[str, str]]
) -> KeyRule:
    """Allow no keys but ``known`` in the mapping under ``key``; ``unknown`` returns message and remedy for others."""

    def broken(given: Given) -> Iterator[BrokenRule]:
        inner = given[key]
        if not isinstance(inner, dict):
            return
        for name in inner:
            if name not in known:
                yield BrokenRule(*unknown(name), (key, name), on_key=True)

    return KeyRule(broken, _mapping_under(key, [{"propertyNames": {"enum": list(known)}}]), key)


def _mapping_under(key: str, schemas: list[JsonSchema]) -> JsonSchema:
    return {"properties": {key: _if_object({"allOf": schemas})}}


def _if_object(schema: JsonSchema) -> JsonSchema:
    return {"if": {"type": "object"}, "then": schema}


def _same(one: Any, other: Any) -> bool:
    """Return whether two literals are equal; 1 is not true."""
    both_or_neither_bool = isinstance(one, bool) == isinstance(other, bool)
    return both_or_neither_bool and isinstance(one, type(other)) and bool(one == other)


def _any_of(keys: Sequence[str]) -> JsonSchema:
    if len(keys) == 1:
        return {"required": list(keys)}
    return {"anyOf": _required_each(keys)}


def _required_each(keys: Sequence[str]) -> list[JsonSchema]:
    return [{"required": [key]} for key in keys]
