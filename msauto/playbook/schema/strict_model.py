"""The root of the models of input files: strict, and with rules for keys that depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any, ClassVar, Protocol, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """What validation finds out about each mapping, by the ``id`` of the mapping.

    ``mappings`` holds each mapping and the class of its model, so that no identity is used twice. ``broken`` holds
    the rules for keys that do not hold; ``models`` the models of mappings whose values are all valid.
    """

    mappings: dict[int, tuple[Any, type[Model]]] = field(default_factory=dict)
    broken: dict[int, list[BrokenRule]] = field(default_factory=dict)
    models: dict[int, Model] = field(default_factory=dict)


class Model(BaseModel):
    """The root of all models: strict, without unknown keys, and with rules for keys that depend on each other.

    Validate with a :class:`ValidationRecord` as the context: it takes the rules that do not hold.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)
    hints: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Message and remedy for unknown keys that users of Ansible may expect."""
    rules: ClassVar[tuple[KeyRule, ...]] = ()
    """Which keys need, exclude or replace each other."""

    @model_validator(mode="wrap")
    @classmethod
    def _record(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        record = info.context
        if not isinstance(record, ValidationRecord) or not isinstance(data, dict):
            return handler(data)
        record.mappings[id(data)] = (data, cls)
        if broken := list(cls._broken_rules(data)):
            record.broken[id(data)] = broken
        model = record.models[id(data)] = handler(data)
        return model

    @classmethod
    def _broken_rules(cls, data: dict[str, Any]) -> Iterator[BrokenRule]:
        """Yield the rules that do not hold. A missing key is not reported beside an unknown one."""
        for rule in cls.rules:
            for each in rule.broken(data):
                if not (each.lacks and cls.model_config.get("extra") == "forbid" and not data.keys() <= keys_of(cls)):
                    yield each

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON Schema with the rules for keys."""
        found = handler(schema)
        if cls.rules:
            handler.resolve_ref_schema(found)["allOf"] = [rule.schema() for rule in cls.rules]
        return found


@cache
def keys_of(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys of a model as they are written."""
    return frozenset(info.alias or name for name, info in model.model_fields.items())


def key(description: str, **more: Any) -> Any:
    """Return an optional field."""
    return Field(default=None, description=description, **more)


def need(description: str, **more: Any) -> Any:
    """Return a required field."""
    return Field(description=description, **more)


# Rules for keys --------------------------------------------------------------------------------------------------

Given = Mapping[str, Any]
"""A mapping before validation: its keys and their values."""
JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that does not hold: message, remedy, and the path from the mapping to the value that it is about.

    ``lacks``: a key is missing; an unknown key in the mapping may be a misspelling of it.
    """

    message: str
    remedy: str = ""
    path: tuple[str | int, ...] = ()
    on_key: bool = False
    lacks: bool = False


class KeyRule(Protocol):
    """A rule for the keys of one mapping, checked before validation and published as JSON Schema.

    A template decides nothing before it is rendered. The schemas use ``if`` and ``then``, which editors support.
    """

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """At most one of the keys; with ``none`` (message and remedy for a missing key), exactly one."""

    keys: tuple[str, ...]
    both: tuple[str, str]
    """Message, with ``{0}`` and ``{1}`` for the two keys, and remedy."""
    none: tuple[str, str] | None = None

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        named = [key for key in self.keys if key in given]
        if not named and self.none is not None:
            yield BrokenRule(*self.none, lacks=True)
        for other in named[1:]:
            yield BrokenRule(self.both[0].format(named[0], other), self.both[1], (other,), on_key=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        if self.none is not None:
            return {"oneOf": [{"required": [key]} for key in self.keys]}
        return {"allOf": [{"not": {"required": list(pair)}} for pair in combinations(self.keys, 2)]}


@dataclass(frozen=True, slots=True)
class Needs:
    """If ``key`` is present, one of ``others`` is."""

    key: str
    others: tuple[str, ...]
    message: str
    remedy: str = ""

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        if self.key in given and not _there(self.others, given):
            yield BrokenRule(self.message, self.remedy, (self.key,), on_key=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        return {"if": {"required": [self.key]}, "then": _any_of(self.others)}


@dataclass(frozen=True, slots=True)
class Excludes:
    """If ``key`` is present, none of ``others`` is. The message may hold ``{key}`` and ``{other}``."""

    key: str
    others: tuple[str, ...]
    message: str
    remedy: str = ""

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        for other in _there(self.others, given) if self.key in given else ():
            yield BrokenRule(self.message.format(key=self.key, other=other), self.remedy, (other,), on_key=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        return {"if": {"required": [self.key]}, "then": _none_of(self.others)}


@dataclass(frozen=True, slots=True)
class AllOf:
    """All the keys are present. The missing keys are appended to the message: ``the segment has no``."""

    keys: tuple[str, ...]
    message: str
    remedy: str = "add it"

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        missing = [key for key in self.keys if key not in given]
        if missing:
            yield BrokenRule(f"{self.message} {' and no '.join(missing)}", self.remedy, lacks=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        return {"required": list(self.keys)}


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these sets of keys is complete."""

    sets: tuple[tuple[str, ...], ...]
    message: str
    remedy: str = ""

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        if not any(given.keys() >= set(keys) for keys in self.sets):
            yield BrokenRule(self.message, self.remedy, lacks=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        return {"anyOf": [{"required": list(keys)} for keys in self.sets]}


@dataclass(frozen=True, slots=True)
class NoneOf:
    """None of the keys is present. The message has ``{}`` for the key."""

    keys: tuple[str, ...]
    message: str
    remedy: str = ""

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        for key in _there(self.keys, given):
            yield BrokenRule(self.message.format(key), self.remedy, (key,), on_key=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        return _none_of(self.keys)


@dataclass(frozen=True, slots=True)
class WhenValue:
    """The rules hold if ``key`` has this value; with ``default``, also if the key is missing."""

    key: str
    value: Any
    rules: tuple[KeyRule, ...]
    default: bool = False

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        if _same(given[self.key], self.value) if self.key in given else self.default:
            for rule in self.rules:
                yield from rule.broken(given)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        is_it: JsonSchema = {"properties": {self.key: {"const": self.value}}}
        condition = is_it if self.default else {"required": [self.key], **is_it}
        schemas = [rule.schema() for rule in self.rules]
        return {"if": condition, "then": schemas[0] if len(schemas) == 1 else {"allOf": schemas}}


@dataclass(frozen=True, slots=True)
class Never:
    """A key does not have this value, although its type allows it."""

    key: str
    value: Any
    message: str
    remedy: str = ""

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        if self.key in given and _same(given[self.key], self.value):
            yield BrokenRule(self.message, self.remedy, (self.key,), on_key=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        return {"properties": {self.key: {"not": {"const": self.value}}}}


@dataclass(frozen=True, slots=True)
class Complete:
    """If ``exactly`` names a list, one of ``lists`` is present."""

    name: str
    lists: tuple[str, ...]

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        exactly = given.get("exactly")
        value = (
            exactly.get(self.name) if isinstance(exactly, dict) else isinstance(exactly, list) and self.name in exactly
        )
        if (value is True or isinstance(value, dict)) and not _there(self.lists, given):
            message = f"exactly names {self.name}, but the list {self.name} is missing"
            yield BrokenRule(message, f"add {self.name}: [] to empty it", ("exactly",), lacks=True)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        in_list = {"type": "array", "contains": {"const": self.name}}
        on = {"anyOf": [{"const": True}, {"type": "object"}]}
        in_map = {"type": "object", "required": [self.name], "properties": {self.name: on}}
        named = {"required": ["exactly"], "properties": {"exactly": {"anyOf": [in_list, in_map]}}}
        return {"if": named, "then": _any_of(self.lists)}


@dataclass(frozen=True, slots=True)
class AllOrNone:
    """All mappings of a list have the key, or none has."""

    items: str
    key: str
    message: str
    remedy: str

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        items = given.get(self.items)
        pairs = enumerate(items if isinstance(items, list) else [])
        has = {index: self.key in item for index, item in pairs if isinstance(item, dict)}
        if any(has.values()) and not all(has.values()):
            first = next(index for index, there in has.items() if not there)
            yield BrokenRule(self.message, self.remedy, (self.items, first))

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        has = {"if": {"type": "object"}, "then": {"required": [self.key]}}
        has_not = {"if": {"type": "object"}, "then": _none_of((self.key,))}
        return {
            "properties": {
                self.items: {"if": {"type": "array"}, "then": {"anyOf": [{"items": has}, {"items": has_not}]}}
            }
        }


@dataclass(frozen=True, slots=True)
class Inside:
    """The rules hold for the mapping under ``key``, which has no keys but ``known``, if given.

    ``unknown`` returns message and remedy for any other key.
    """

    key: str
    rules: tuple[KeyRule, ...] = ()
    known: tuple[str, ...] | None = None
    unknown: Callable[[str], tuple[str, str]] | None = None

    def broken(self, given: Given) -> Iterator[BrokenRule]:
        """Yield each way in which a mapping breaks the rule."""
        inner = given.get(self.key)
        if not isinstance(inner, dict):
            return
        for name in inner:
            if self.known is not None and self.unknown is not None and name not in self.known:
                yield BrokenRule(*self.unknown(name), (self.key, name), on_key=True)
        for rule in self.rules:
            for each in rule.broken(inner):
                yield BrokenRule(each.message, each.remedy, (self.key, *each.path), each.on_key, each.lacks)

    def schema(self) -> JsonSchema:
        """Return the same rule as JSON Schema."""
        schemas = [rule.schema() for rule in self.rules]
        names = [{"propertyNames": {"enum": list(self.known)}}] if self.known is not None else []
        return {"properties": {self.key: {"if": {"type": "object"}, "then": {"allOf": [*names, *schemas]}}}}


def _there(keys: Sequence[str], given: Given) -> list[str]:
    return [key for key in keys if key in given]


def _same(one: Any, other: Any) -> bool:
    """Return whether two literals are equal; 1 is not true."""
    return isinstance(one, type(other)) and bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _any_of(keys: Sequence[str]) -> JsonSchema:
    return {"required": list(keys)} if len(keys) == 1 else {"anyOf": [{"required": [key]} for key in keys]}


def _none_of(keys: Sequence[str]) -> JsonSchema:
    return {"not": _any_of(keys)}
