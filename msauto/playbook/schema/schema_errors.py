"""Validates data with the models. Each problem has a place, and a message of our own instead of pydantic's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from msauto.errors import InputError, Problem
from msauto.playbook.schema.key_rules import BrokenRule
from msauto.playbook.schema.play import GROUPS, HANDLER_MODULES, MODULES, HandlerArgs, TaskArgs
from msauto.playbook.schema.strict_model import Model, ValidationRecord, keys_of
from msauto.playbook.schema.value_types import kind_of
from msauto.playbook.yaml.document import Path, SourceNode, nearest

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """A problem, and the path of the value that it is about."""

    path: Path
    problem: Problem


@dataclass(frozen=True, slots=True)
class Validation(Generic[M]):
    """The outcome of a validation: the model, or what is wrong.

    ``parts`` are the models of the mappings inside, by the ``id`` of the mapping; those of valid mappings are there
    even if another part of the data is invalid.
    """

    model: M | None
    problems: tuple[SchemaProblem, ...]
    parts: Mapping[int, Model]

    def check(self) -> M:
        """Return the model; raises :class:`InputError` with all that is wrong."""
        if self.model is None:
            raise InputError([each.problem for each in self.problems])
        return self.model


def read_as(model: type[M], data: Any, node: SourceNode) -> M:
    """Return the data as a model; raises :class:`InputError` with all that is wrong."""
    return validate_data(model, data, node).check()


def validate_data(model: type[M], data: Any, node: SourceNode) -> Validation[M]:
    """Validate the data at ``node``. Values that a flaw of the text makes unknown are left out."""
    record = ValidationRecord()
    valid: M | None = None
    found: list[SchemaProblem] = []
    try:
        valid = model.model_validate(data, context=record, by_alias=True, by_name=False)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        groups = {each["loc"][:-1] for each in errors if each["loc"] and each["loc"][-1] in GROUPS}
        found += [_finding(each, data, node, record.mappings) for each in errors if not _is_of_group(each, groups)]
    if record.broken:
        found += _rule_findings(data, node, record.broken, ())
    problems = tuple(each for each in found if not node.document.is_broken(each.path))
    return Validation(None if found else valid, problems, record.models)


def _rule_findings(
    data: Any, node: SourceNode, broken: Mapping[int, Sequence[BrokenRule]], path: Path
) -> Iterator[SchemaProblem]:
    """Yield the rules that do not hold, of a mapping and of the mappings inside."""
    for each in broken.get(id(data), ()):
        about = _about(each.message, path)
        target = node.child(*path, *each.path)
        yield SchemaProblem(target.path, target.problem(about, each.remedy, key=each.on_key))
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield from _rule_findings(value, node, broken, (*path, key))


def _is_of_group(error: Any, groups: set[tuple[str | int, ...]]) -> bool:
    """Return whether an error misses a key of a block or import that is refused anyway."""
    return error["type"] == "missing" and error["loc"][:-1] in groups


_Mappings = Mapping[int, tuple[Any, type[Model]]]
"""Each mapping and the class of its model, by the mapping's ``id``."""


def _finding(error: Any, data: Any, node: SourceNode, mappings: _Mappings) -> SchemaProblem:
    path, on_key = _walk(error["loc"], data)
    context = error.get("ctx", {})
    message, remedy, on_key = _message(error, path, on_key, data, mappings)
    if context.get("key") and isinstance(_at(data, path), dict):
        path, on_key = (*path, context["key"]), True
    target = node.child(*path)
    return SchemaProblem(target.path, target.problem(message, remedy, key=on_key))


def _walk(loc: tuple[str | int, ...], data: Any) -> tuple[Path, bool]:
    """Return the path of pydantic's location in the data. Tags of unions are left out."""
    path: list[str | int] = []
    on_key = False
    for part in loc:
        if _leads_on(data, part):
            data = data[part]
            path.append(part)
        elif part == "[key]":
            on_key = True
    return tuple(path), on_key


def _leads_on(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _message(error: Any, path: Path, on_key: bool, data: Any, mappings: _Mappings) -> tuple[str, str, bool]:
    kind, context, loc = error["type"], error.get("ctx", {}), error["loc"]
    label = _label(path)
    if kind == "invalid":
        return _about(str(context["invalid"]), path), str(context["remedy"]), on_key
    if kind == "extra_forbidden":
        _, model = mappings.get(id(_at(data, path[:-1])), (None, None))
        return (*_unknown(str(loc[-1]), model), True)
    if kind == "missing":
        return f"{loc[-1]} is missing", "add it", on_key
    if kind == "literal_error":
        shown = error["input"] if isinstance(error["input"], str) else kind_of(error["input"])
        choices = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return f"{label} cannot be {str(shown)[:60]!r}", _choice(str(shown), choices), on_key
    return (
        f"{label or 'this'} must be {_EXPECTED.get(kind, 'something else')}, not {kind_of(error['input'])}",
        "",
        on_key,
    )


def _about(text: str, path: Path) -> str:
    """Prefix a message with the name of the value, unless it is a full sentence."""
    label = _label(path)
    return text if _is_sentence(text) or not label else f"{label} {text}"


def _label(path: Path) -> str:
    """Return the name of a value: its key, or for an item the key of the list."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    if path and isinstance(path[-1], int):
        return f"an item of {name}" if name else "an item"
    return name


_EXPECTED = {
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
}
_STARTS = ("must ", "has ", "is ", "does not ", "names ", "holds ", "contains ")


def _is_sentence(text: str) -> bool:
    return not text.startswith(_STARTS)


def _choice(shown: str, choices: list[str]) -> str:
    hint = nearest(shown, choices)
    return hint if hint.startswith("did") else "use one of: " + ", ".join(choices)


def _unknown(name: str, model: type[BaseModel] | None) -> tuple[str, str]:
    known = getattr(model, "hints", {})
    if name in known:
        return str(known[name][0]), str(known[name][1])
    keys = keys_of(model) if model else ()
    if model is not None and issubclass(model, HandlerArgs):
        hint = nearest(name, keys)
        remedy = hint if hint.startswith("did") else "available handler modules: " + ", ".join(HANDLER_MODULES)
        return f"unknown module or key {name!r}", remedy
    if model is not None and issubclass(model, TaskArgs):
        hint = nearest(name, keys)
        remedy = hint if hint.startswith("did") else "available modules: " + ", ".join(MODULES)
        return f"unknown module or key {name!r}", remedy
    return f"unknown key {name!r}", nearest(name, keys)
