"""Valid data to models, without pydantic's machinery: large playbooks are nearly always valid.

The way is derived from the models: the same types, functions, and rules for keys. What it does not take, pydantic
validates and explains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, Discriminator, Tag

from msauto.playbook.schema.key_rules import KeyRule
from msauto.playbook.schema.strict_model import Model
from msauto.playbook.schema.value_types import TEMPLATED, MarkedTemplate, Read, UnrenderedTemplate

M = TypeVar("M", bound=BaseModel)


class Parts(dict[int, Model]):
    """The models of mappings, by the ``id`` of the mapping.

    ``later`` is a model whose mappings are only looked over where they are inside others: the caller validates them,
    one by one, so that not all models exist at once.
    """

    def __init__(self, later: type[Model] | None = None) -> None:
        super().__init__()
        self.later = later


_Reader = Callable[[Any, Parts], Any]
_TEMPLATES = frozenset({UnrenderedTemplate, MarkedTemplate})
_KNOWN_METADATA = (Read, Discriminator, Tag, type(TEMPLATED))
"""What is followed here. A value with any other constraint is left to pydantic."""


class NotTakenError(ValueError):
    """The data is invalid, or only pydantic can validate it."""


def model_of(model: type[M], data: Any, parts: Parts) -> M:
    """Return valid data as a model, and add the models of its mappings to ``parts``.

    Raises ``ValueError`` for data that is invalid, or that only pydantic can validate.
    """
    made: Any = _read_model(model, data, parts) if issubclass(model, Model) else _read_root(model, data, parts)
    return cast("M", made)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a mapping of certain keys in a certain order becomes a model.

    ``fields`` have the name of the field, the reader of its value, and whether it may be a template. ``rules`` are
    those that depend on values: the others hold for these keys.
    """

    fields: tuple[tuple[str, _Reader, bool], ...]
    names: frozenset[str]
    defaults: Mapping[str, Any]
    rules: tuple[KeyRule, ...]
    after: tuple[Callable[[Any], Any], ...]


@cache
def _fields(model: type[Model]) -> Mapping[str, tuple[str, _Reader, bool]]:
    return {
        info.alias or name: (name, _reader(info.annotation, info.metadata), TEMPLATED in info.metadata)
        for name, info in model.model_fields.items()
    }


@lru_cache(maxsize=10_000)
def _shape(model: type[Model], *keys: str) -> _Shape:
    known, rules, given = _fields(model), [], dict.fromkeys(keys)
    required = {info.alias or name for name, info in model.model_fields.items() if info.is_required()}
    validators = [each for name, each in model.__pydantic_decorators__.model_validators.items() if name != "_record"]
    if not required <= given.keys() <= known.keys() or model.model_config.get("extra") != "forbid":
        raise NotTakenError(keys)
    if model.__pydantic_decorators__.field_validators or any(each.info.mode != "after" for each in validators):
        raise NotTakenError(model)
    for rule in model.rules:
        if not rule.looks_at.isdisjoint(keys):
            rules.append(rule)
        elif any(True for _ in rule.broken(given)):
            raise NotTakenError(keys)
    fields = tuple(known[name] for name in keys)
    names = frozenset(name for name, *_ in fields)
    defaults = {name: info.default for name, info in model.model_fields.items() if name not in names}
    return _Shape(fields, names, defaults, tuple(rules), tuple(each.func for each in validators))


def _read_model(model: type[Model], data: Any, parts: Parts) -> Model:
    if type(data) is not dict:
        raise NotTakenError(type(data))
    shape = _shape(model, *data)
    values = dict(shape.defaults)
    for (name, read, templated), value in zip(shape.fields, data.values(), strict=True):
        values[name] = value if templated and type(value) in _TEMPLATES else read(value, parts)
    for rule in shape.rules:
        for broken in rule.broken(data):
            raise NotTakenError(broken)
    made = _made(model, values, set(shape.names))
    for check in shape.after:
        check(made)
    parts[id(data)] = made
    return made


def _read_inner(model: type[Model], data: Any, parts: Parts) -> Model | None:
    if model is not parts.later:
        return _read_model(model, data, parts)
    if type(data) is not dict:
        raise NotTakenError(type(data))
    return None


def _made(model: type[M], values: dict[str, Any], given: set[str]) -> M:
    """Return a model with these values, as ``model_construct`` does, but without looking at each field."""
    made = model.__new__(model)
    object.__setattr__(made, "__dict__", values)
    object.__setattr__(made, "__pydantic_fields_set__", given)
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


def _read_root(model: type[BaseModel], data: Any, parts: Parts) -> BaseModel:
    return _made(model, {"root": _root_reader(model)(data, parts)}, {"root"})


@cache
def _root_reader(model: type[BaseModel]) -> _Reader:
    info = model.model_fields["root"]
    return _reader(info.annotation, info.metadata)


def _reader(kind: Any, metadata: Any = ()) -> _Reader:
    """Return the reader of a type with its metadata."""
    if not all(isinstance(each, _KNOWN_METADATA) for each in metadata):
        return _refuse
    for each in metadata:
        if isinstance(each, Read):
            return partial(_read_value, each.read)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _reader(args[0], kind.__metadata__)
    if origin in {Union, UnionType}:
        return _union_reader(args, metadata)
    if origin is list:
        return partial(_read_list, _reader(args[0]), _is_templated(args[0]))
    if origin is dict:
        key = partial(_read_choice, None) if args[0] is str else _reader(args[0])
        return partial(_read_dict, key, _reader(args[1]), _is_templated(args[1]))
    if origin is Literal:
        return partial(_read_choice, frozenset(args))
    if kind is Any:
        return _read_any
    return partial(_read_inner, kind) if isinstance(kind, type) and issubclass(kind, Model) else _refuse


def _union_reader(args: tuple[Any, ...], metadata: Any) -> _Reader:
    kinds = [each for each in args if each is not NoneType]  # an explicit null is refused
    if len(kinds) == 1:
        return _reader(kinds[0])
    choose = next((each.discriminator for each in metadata if isinstance(each, Discriminator)), None)
    tagged = {tag.tag: _reader(each) for each in kinds for tag in _metadata(each) if isinstance(tag, Tag)}
    return partial(_read_tagged, choose, tagged) if callable(choose) and len(tagged) == len(kinds) else _refuse


def _metadata(kind: Any) -> tuple[Any, ...]:
    return tuple(getattr(kind, "__metadata__", ()))


def _is_templated(kind: Any) -> bool:
    return TEMPLATED in _metadata(kind)


def _read_value(read: Callable[[Any], Any], value: Any, _: Parts) -> Any:
    return read(value)


def _read_any(value: Any, _: Parts) -> Any:
    return value


def _refuse(value: Any, _: Parts) -> Any:
    raise NotTakenError(type(value))


def _read_choice(choices: frozenset[str] | None, value: Any, _: Parts) -> Any:
    if type(value) is str and (choices is None or value in choices):
        return value
    raise NotTakenError(type(value))


def _read_tagged(choose: Callable[[Any], Hashable], tagged: Mapping[Any, _Reader], value: Any, parts: Parts) -> Any:
    return tagged[choose(value)](value, parts)


def _read_list(read: _Reader, templated: bool, value: Any, parts: Parts) -> Any:
    if type(value) is not list:
        raise NotTakenError(type(value))
    return [each if templated and type(each) in _TEMPLATES else read(each, parts) for each in value]


def _read_dict(key: _Reader, read: _Reader, templated: bool, value: Any, parts: Parts) -> Any:
    if type(value) is not dict:
        raise NotTakenError(type(value))
    return {
        key(name, parts): each if templated and type(each) in _TEMPLATES else read(each, parts)
        for name, each in value.items()
    }
