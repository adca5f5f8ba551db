"""Validates data with the models. Each problem has a place, and a message of our own instead of pydantic's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from msauto.documents.document import Path, SourceNode, nearest
from msauto.documents.key_rules import BrokenRule
from msauto.documents.strict_model import Model, ValidationRecord, keys_of
from msauto.documents.value_types import kind_of, shown_value
from msauto.errors import InputError, Problem, ProblemKind
from msauto.playbook.schema.play import GROUPS, HANDLER_MODULES, MODULES, HandlerArgs, TaskArgs

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
        shown = (each for each in errors if each["type"] != "missing" or each["loc"][:-1] not in groups)
        found += [_finding(each, data, node, record.mappings) for each in shown]
        found = _with_indentation(found, data, node, record.mappings)
    if record.broken:
        found += _rule_findings(data, node, record.broken, ())
    problems = tuple(each for each in found if not node.document.is_broken(each.path))
    return Validation(None if found else valid, problems, record.models)


def _rule_findings(
    data: Any, node: SourceNode, broken: Mapping[int, Sequence[BrokenRule]], path: Path
) -> Iterator[SchemaProblem]:
    """Yield the rules that do not hold, of a mapping and of the mappings inside."""
    for each in broken.get(id(data), ()):
        target = node.child(*path, *each.path)
        yield SchemaProblem(
            target.path,
            target.problem(
                _about(each.message, path),
                each.remedy,
                key=each.on_key,
                kind="missing-key" if each.lacks else "keys-together",
            ),
        )
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _rule_findings(value, node, broken, (*path, key))


_Mappings = Mapping[int, tuple[Any, type[Model]]]
"""Each mapping and the class of its model, by the mapping's ``id``."""


def _finding(error: Any, data: Any, node: SourceNode, mappings: _Mappings) -> SchemaProblem:
    path: Path = ()
    at = data
    for part in error["loc"]:  # tags of unions lead nowhere
        if part in at if isinstance(at, dict) else isinstance(at, list) and isinstance(part, int) and part < len(at):
            at, path = at[part], (*path, part)
    message, remedy, on_key = _message(error, path, data, mappings)
    key = error.get("ctx", {}).get("key")
    if key and isinstance(at, dict):
        path, on_key = (*path, key), True
    target = node.child(*path)
    return SchemaProblem(target.path, target.problem(message, remedy, key=on_key, kind=_kind(error, message)))


def _kind(error: Any, message: str) -> ProblemKind:
    """Return the kind of a problem that pydantic found."""
    match error["type"]:
        case "extra_forbidden":
            return "not-supported" if message.endswith("not supported") else "unknown-key"
        case "missing":
            return "missing-key"
        case "invalid":
            kind: ProblemKind = error["ctx"]["kind"]
            return kind
        case other:
            return "wrong-type" if other in _EXPECTED or other in _NUMBERS else "invalid-value"


def _with_indentation(
    found: list[SchemaProblem], data: Any, node: SourceNode, mappings: _Mappings
) -> list[SchemaProblem]:
    """Put one problem in the place of those of a key without a value whose keys are written beside it."""
    shown: list[SchemaProblem] = []
    explained: set[Path] = set()
    for each in found:
        way = each.path[len(node.path) : -1]
        owner = data
        for part in way:
            owner = owner[part]
        name, *keys = _outdented(owner, mappings) or ("",)
        if not keys or each.path[-1] not in (name, *keys):
            shown.append(each)
        elif way not in explained:
            explained.add(way)
            first = node.child(*way, keys[0])
            message = f"wrong indentation: {name} has no value; its keys on the same level: {', '.join(keys)}"
            problem = first.problem(message, f"indent {', '.join(keys)} below {name}", key=True, kind="yaml")
            shown.append(SchemaProblem(first.path, problem))
    return shown


def _outdented(owner: Any, mappings: _Mappings) -> tuple[str, ...]:
    """Return a key without a value, and the unknown keys beside it that belong below it."""
    _, model = mappings.get(id(owner), (None, None))
    for name, field in (model.model_fields if model else {}).items():
        key = field.alias or name
        if model and isinstance(owner, dict) and key in owner and owner[key] is None:
            inside = set[str]().union(*map(keys_of, _models_in(field.annotation)))
            keys = [each for each in owner if each in inside and each not in keys_of(model)]
            if keys:
                return (key, *keys)
    return ()


def _models_in(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for each in get_args(annotation):
        yield from _models_in(each)


def _message(error: Any, path: Path, data: Any, mappings: _Mappings) -> tuple[str, str, bool]:
    """Return message and remedy, and whether the problem is about the key of the value."""
    kind, context, loc = error["type"], error.get("ctx", {}), error["loc"]
    label, on_key = _label(path), "[key]" in loc
    if kind == "invalid":
        return _about(str(context["invalid"]), path), str(context["remedy"]), on_key
    if kind == "extra_forbidden":
        for part in path[:-1]:
            data = data[part]
        _, model = mappings.get(id(data), (None, None))
        return (*_unknown(str(loc[-1]), model), True)
    if kind == "missing":
        return f"{loc[-1]} is missing", "add it", on_key
    given = kind_of(error["input"])
    if kind in _NUMBERS:
        shown = shown_value(error["input"])
        digits = kind == "int_type" and isinstance(error["input"], str) and shown.strip("' ").isdecimal()
        remedy = "remove the quotes, or add | int to the template" if digits else f"write {_NUMBERS[kind]}"
        return f"{label or 'this'} must be {_NUMBERS[kind]}, not {shown}", remedy, on_key
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        if kind == "greater_than_equal" and not bound:
            return f"{label} must not be negative", "write 0 or more", on_key
        bound = int(bound) if bound == int(bound) else bound
        shown = shown_value(error["input"])
        return f"{label} must be {words} {bound}, not {shown}", f"write a number that is {words} {bound}", on_key
    if kind in {"too_short", "string_too_short"}:
        what = "an item" if kind == "too_short" else "a text"
        return f"{label} must not be empty", f"add {what}, or remove the key", on_key
    if kind == "literal_error":
        shown = str(error["input"]) if isinstance(error["input"], str) else given
        choices = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        remedy = _hint(shown, choices, "use one of: " + ", ".join(choices))
        return f"{label} cannot be {shown[:60]!r}", remedy, on_key
    expected = _EXPECTED.get(kind, "something else")
    remedy = "quote it" if kind == "string_type" else f"write {expected}"
    if kind == "list_type":
        remedy = _LIST_FORM.get(given, remedy)
    elif expected == "a mapping":
        remedy = f"write its keys: {label}: {{key: value}}" if label and not label.startswith("an item") else _MAPPING
    return f"{label or 'this'} must be {expected}, not {given}", remedy, on_key


_MAPPING = "write a mapping: key: value"
_LIST_FORM = {
    "a mapping": "put a dash before its first key: - key: value",
    "text": "write the text as an item: [text], or on a line of its own with a dash",
    "a number": "write the number as an item: [1]",
}
"""How to write a value of each kind as a list."""


def _about(text: str, path: Path) -> str:
    """Prefix a message with the name of the value, unless it is a full sentence."""
    label = _label(path)
    return text if not text.startswith(_STARTS) or not label else f"{label} {text}"


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
}
_NUMBERS = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}
_STARTS = ("must ", "has ", "is ", "does not ", "names ", "holds ", "contains ")


def _hint(name: str, known: Iterable[str], otherwise: str) -> str:
    hint = nearest(name, known)
    return hint if hint.startswith("did") else otherwise


def _unknown(name: str, model: type[Model] | None) -> tuple[str, str]:
    if model is None:
        return f"unknown key {name!r}", ""
    if name in model.hints:
        return model.hints[name]
    keys = keys_of(model)
    for kind, modules, what in ((HandlerArgs, HANDLER_MODULES, "handler modules"), (TaskArgs, MODULES, "modules")):
        if issubclass(model, kind):
            return f"unknown module or key {name!r}", _hint(name, keys, f"available {what}: {', '.join(modules)}")
    return f"unknown key {name!r}", nearest(name, keys)
