"""Validates data with the models. Each problem has a place, and a message of our own instead of pydantic's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from msauto.documents.document import Path, SourceNode
from msauto.documents.key_rules import BrokenRule
from msauto.documents.scalars import BOOLEAN_WORDS, JOINED
from msauto.documents.strict_model import Model, ValidationRecord, fields_of
from msauto.documents.value_types import as_list, kind_of, shown_value
from msauto.documents.writer import FlowStyle, yaml_lines
from msauto.errors import InputError, Problem, ProblemKind, did_you_mean, nearest
from msauto.secrets.sources import holds_secret

M = TypeVar("M", bound=BaseModel)


Finding = tuple[Path, Problem]
"""A problem, after the path to the value that it is about, from the value that is validated."""


def read_as(model: type[M], data: Any, node: SourceNode) -> M:
    """Return the data as a model; raises :class:`InputError` with all that is wrong."""
    valid, findings, _ = validate_data(model, data, node)
    if valid is None:
        raise InputError([problem for _, problem in findings])
    return valid


def validate_data(model: type[M], data: Any, node: SourceNode) -> tuple[M | None, list[Finding], Mapping[int, Model]]:
    """Validate the data at ``node``; return the model, or ``None`` and what is wrong with them, and the models inside.

    Those are of all valid mappings, by the ``id`` of the mapping, even if another part of the data is invalid. Values
    that a flaw of the text makes unknown are left out.
    """
    record = ValidationRecord()
    valid: M | None = None
    findings: list[Finding] = []
    try:
        valid = model.model_validate(data, context=record, by_alias=True, by_name=False)
    except ValidationError as error:
        from msauto.playbook.schema.play import GROUPS

        errors = error.errors(include_url=False)
        groups = {each["loc"][:-1] for each in errors if each["loc"] and each["loc"][-1] in GROUPS}
        shown = (each for each in errors if each["type"] != "missing" or each["loc"][:-1] not in groups)
        findings += [_finding(each, data, node, record.mappings) for each in shown]
        findings = _with_indentation(findings, data, node, record.mappings)
    except SchemaError as error:  # a model is built when it is first used; what comes meanwhile is only in the text
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from error
        raise
    if record.broken:
        findings += _rule_findings(data, node, record.broken, ())
    at = ((node.child(*each[0]), each) for each in findings)
    problems = [each for place, each in at if not place.document.is_broken(place.path)]
    return None if findings else valid, problems, record.models


def _rule_findings(
    data: Any, node: SourceNode, broken: Mapping[int, Sequence[BrokenRule]], path: Path
) -> Iterator[Finding]:
    """Yield the rules that do not hold, of a mapping and of the mappings inside."""
    for each in broken.get(id(data), ()):
        target, message = (*path, *each.path), _about(each.message, path)
        kind: ProblemKind = "missing-key" if each.lacks else "keys-together"
        yield target, node.child(*target).problem(message, each.remedy, key=each.on_key, kind=kind)
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _rule_findings(value, node, broken, (*path, key))


_Mappings = Mapping[int, tuple[Any, type[Model]]]
"""Each mapping and the class of its model, by the mapping's ``id``."""


def _finding(error: Any, data: Any, node: SourceNode, mappings: _Mappings) -> Finding:
    """Return an error of pydantic as a problem of ours."""
    path: Path = ()
    owner, at = None, data
    for part in error["loc"]:  # tags of unions lead nowhere
        if part in at if isinstance(at, dict) else isinstance(at, list) and isinstance(part, int) and part < len(at):
            owner, at, path = at, at[part], (*path, part)
    context, on_key = error.get("ctx", {}), "[key]" in error["loc"]
    kind: ProblemKind
    match error["type"]:
        case "invalid":
            message, remedy, kind = _about(context["invalid"], path), context["remedy"], context["kind"]
            if context["key"] and isinstance(at, dict):
                path, on_key = (*path, context["key"]), True
        case "extra_forbidden":
            message, remedy = _unknown(str(path[-1]), mappings[id(owner)][1])
            on_key, kind = True, "not-supported" if message.endswith("not supported") else "unknown-key"
        case "missing":
            name = str(error["loc"][-1])
            field = _fields_of(at, mappings).get(name)
            remedy = f"add {name}: {field.description}" if field and field.description else "add it"
            message, kind = f"{name} is missing", "missing-key"
        case other:
            field = _fields_of(owner, mappings).get(str(path[-1])) if path else None
            value, inside = error["input"], next(_models_in(field), None) if field else None
            repeated = None if _may_be_secret(node.child(*path), value) else value
            message, remedy = _wrong_value(other, context, value, repeated, _label(path) or _UNNAMED, inside)
            kind = "wrong-type" if other in _EXPECTED else "invalid-value"
            if path[-1:] == ("command",) and isinstance(value, str) and not value.startswith("PARTNER_"):
                from msauto.playbook.schema.play import OUTSIDE_MSAUTO

                message, remedy, kind = "command of Ansible is not supported", OUTSIDE_MSAUTO, "not-supported"
    return path, node.child(*path).problem(message, remedy, key=on_key, kind=kind)


def _may_be_secret(node: SourceNode, value: Any) -> bool:
    """Return whether a value is a secret, or may hold one in the wrong form, so that no remedy may repeat it."""
    in_server = "server" in node.path and (node.path[-1] != "server" or "@" in str(value))
    hidden = any((node.place.line, node.place.column) == each[:2] for each in node.document.hidden)
    return in_server or hidden or holds_secret(value)


def _fields_of(owner: Any, mappings: _Mappings) -> Mapping[str, FieldInfo]:
    """Return the fields of the model of a mapping, by their keys."""
    return fields_of(mappings[id(owner)][1]) if id(owner) in mappings else {}


def _wrong_value(
    kind: str, context: Mapping[str, Any], value: Any, repeated: Any, label: str, inside: type[Model] | None
) -> tuple[str, str]:
    """Return message and remedy for a value that a type of pydantic refuses.

    ``repeated`` is the value if the remedy may repeat it, else ``None``; ``inside``: the model that is expected.
    """
    given, shown = kind_of(value), shown_value(value)
    match _EXPECTED.get(kind):
        case "a list":
            return f"{label} must be a list, not {given}", _LIST_FORM.get(given, "write a list")
        case "a mapping":
            if label == _UNNAMED or label.startswith("an item"):
                return f"{label} must be a mapping, not {given}", "write a mapping: key: value"
            written = (_by_name if kind == "dict_type" else _as_mapping)(label, repeated, inside)
            return f"{label} must be a mapping, not {given}", written or f"write its keys: {label}: {{key: value}}"
        case "true or false" if (meant := BOOLEAN_WORDS.get(shown.strip("'").casefold())) is not None:
            return f"{label} must be true or false, not {shown}", f"write {meant}: YAML 1.2 reads {value} as text"
        case "text":
            return f"{label} must be text, not {given}", "quote it"
        case str(expected):
            if written := _as_mapping(label, repeated, inside):
                return f"{label} must be {expected}, or a mapping, not {shown}", written
            digits = kind == "int_type" and isinstance(value, str) and shown.strip("' ").isdecimal()
            remedy = "remove the quotes, or add | int to the template" if digits else f"write {expected}"
            return f"{label} must be {expected}, not {shown}", remedy
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = int(context[name]) if context[name] == int(context[name]) else context[name]
        if bound == 0 and name == "ge":
            return f"{label} must not be negative", "write 0 or more"
        return f"{label} must be {words} {bound}, not {shown}", f"write a number that is {words} {bound}"
    if kind in _EMPTY:
        return f"{label} must not be empty", f"add {_EMPTY[kind]}, or remove the key"
    shown = str(value)[:60] if isinstance(value, str) else given
    choices = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
    return f"{label} cannot be {shown!r}", _hint(shown, choices, "use one of: " + ", ".join(choices))


def _as_mapping(label: str, value: Any, model: type[Model] | None) -> str:
    """Return how to write a text as the mapping that is expected; empty if that is not known.

    It may be ``key=value`` as in Ansible, or the value of the key that the model names for this.
    """
    if not isinstance(value, str) or model is None:
        return ""
    pairs = dict(re.findall(r"(\w+)=(\S+)", value))
    otherwise = {model.shorthand: str(value)} if model.shorthand else {}
    written = pairs if pairs.keys() & fields_of(model).keys() else otherwise
    line = next(yaml_lines({label: FlowStyle(written)}))
    return f"write {line}" if written and line.endswith("}") else ""


def _by_name(label: str, value: Any, model: type[Model] | None) -> str:
    """Return how to write a list of names, or of mappings with names, as a mapping of such models."""
    named: list[str] = []
    for each in as_list(value)[:3]:
        if isinstance(each, str):
            named.append(f"{each}: {'…' if model is None else '{}'}")
        elif isinstance(each, dict) and each:
            named.append(f"{each.get('name', next(iter(each)))}: …")
    return f"write {label}: {{{', '.join(named)}}}" if named else ""


def _with_indentation(findings: list[Finding], data: Any, node: SourceNode, mappings: _Mappings) -> list[Finding]:
    """Put one problem in the place of those of a key without a value whose keys are written beside it."""
    shown: list[Finding] = []
    explained: set[Path] = set()
    for path, problem in findings:
        way = path[:-1]
        owner = data
        for part in way:
            owner = owner[part]
        name, *keys = _outdented(owner, mappings) or ("",)
        if not keys or path[-1] not in (name, *keys):
            shown.append((path, problem))
        elif way not in explained:
            explained.add(way)
            message = f"wrong indentation: {name} has no value; its keys on the same level: {', '.join(keys)}"
            remedy = f"indent {', '.join(keys)} below {name}"
            first = (*way, keys[0])
            shown.append((first, node.child(*first).problem(message, remedy, key=True, kind="yaml")))
    return shown


def _outdented(owner: Any, mappings: _Mappings) -> tuple[str, ...]:
    """Return a key without a value, and the unknown keys beside it that belong below it."""
    fields = _fields_of(owner, mappings)
    for key, field in fields.items():
        if key in owner and owner[key] is None:
            inside = set[str]().union(*map(fields_of, _models_in(field)))
            keys = [each for each in owner if each in inside and each not in fields]
            if keys:
                return (key, *keys)
    return ()


def _models_in(field: FieldInfo) -> Iterator[type[Model]]:
    """Yield the models of the mappings that a field may hold."""
    ahead = [field.annotation]
    while ahead:
        each = ahead.pop()
        ahead += reversed(get_args(each))
        if isinstance(each, type) and issubclass(each, Model):
            yield each


_LIST_FORM = {
    "a mapping": "put a dash before its first key: - key: value",
    "text": "write the text as an item: [text], or on a line of its own with a dash",
    "a number": "write the number as an item: [1]",
    "true or false": "write the names that it concerns: [name]",
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


_UNNAMED = "this"
_EXPECTED = {
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_type": "text",
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
_EMPTY = {"too_short": "an item", "string_too_short": "a text"}
_STARTS = ("must ", "has ", "is ", "does not ", "names ", "holds ", "contains ")


def _hint(name: str, known: Iterable[str], otherwise: str) -> str:
    hint = nearest(name, known)
    return hint if hint.startswith("did") else otherwise


def _unknown(name: str, model: type[Model]) -> tuple[str, str]:
    if joined := JOINED.match(name):
        return f"no colon and space follow {joined[1]!r}", f"write {joined[1]}: {joined[2]}…"
    plain = name.rpartition(".")[2]  # Ansible names a module with its collection: ansible.builtin.debug
    if hint := model.hints.get(name) or model.hints.get(plain):
        return hint
    if plain != name and plain in fields_of(model):
        return f"unknown module or key {name!r}", f"write {plain}: modules have no collection here"
    from msauto.playbook.schema.play import HANDLER_MODULES, KEEP_IN_ANSIBLE, MODULES, HandlerArgs, RoleArgs, TaskArgs

    if plain != name and issubclass(model, HandlerArgs | TaskArgs):
        return f"{name} is not supported", KEEP_IN_ANSIBLE
    keys = fields_of(model)
    below = [key for key, field in keys.items() if any(name in fields_of(inner) for inner in _models_in(field))]
    if below:
        return f"unknown key {name!r}", f"write it below {' or '.join(below)}"
    for kind, modules, what in ((HandlerArgs, HANDLER_MODULES, "handler modules"), (TaskArgs, MODULES, "modules")):
        if issubclass(model, kind):
            return f"unknown module or key {name!r}", _hint(name, keys, f"available {what}: {', '.join(modules)}")
    of_role = f"a variable of the role goes into vars: vars: {{{name}: …}}" if issubclass(model, RoleArgs) else ""
    return f"unknown key {name!r}", did_you_mean(name, keys, of_role) or nearest(name, keys)
