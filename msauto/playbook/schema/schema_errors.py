"""Validates data with the models. Each problem has a place, and a message of our own instead of pydantic's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from msauto.documents.document import Path, SourceNode, UnrenderedTemplate
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


def validate_data(
    model: type[M], data: Any, node: SourceNode
) -> tuple[M | None, list[Finding], Mapping[int, Model]]:
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
        groups = set[Path]()
        for details in errors:
            *around, key = details["loc"] or ("",)
            if key in GROUPS:
                groups.add(tuple(around))
        for details in errors:
            if details["type"] != "missing" or details["loc"][:-1] not in groups:
                findings.append(_finding(details, data, node, record.mappings))
        findings = _with_indentation(findings, data, node, record.mappings)
    except SchemaError as error:
        # A model is built when it is first used; what comes meanwhile is only in the text.
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from error
        raise
    if record.broken:
        findings += _rule_findings(data, node, record.broken, ())
    if findings:
        valid = None
    certain: list[Finding] = []
    for path, problem in findings:
        place = node.child(*path)
        if not place.document.is_broken(place.path):
            certain.append((path, problem))
    return valid, certain, record.models


def _rule_findings(
    data: Any, node: SourceNode, broken: Mapping[int, Sequence[BrokenRule]], path: Path
) -> Iterator[Finding]:
    """Yield the rules that do not hold, of a mapping and of the mappings inside."""
    for rule in broken.get(id(data), ()):
        target = (*path, *rule.path)
        kind: ProblemKind = "missing-key" if rule.lacks else "keys-together"
        message = _about(rule.message, path)
        yield target, node.child(*target).problem(message, rule.remedy, key=rule.on_key, kind=kind)
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(data, dict):
        parts = data.items()
    elif isinstance(data, list):
        parts = enumerate(data)
    for key, value in parts:
        yield from _rule_findings(value, node, broken, (*path, key))


_Mappings = Mapping[int, tuple[Any, type[Model]]]
"""Each mapping and the class of its model, by the mapping's ``id``."""


_Words = tuple[str, str, ProblemKind]
"""Message, remedy and kind of a problem."""


def _finding(error: Any, data: Any, node: SourceNode, mappings: _Mappings) -> Finding:
    """Return an error of pydantic as a problem of ours."""
    path: Path = ()
    owner, value = None, data
    for part in error["loc"]:
        if _leads_on(value, part):
            owner, value = value, value[part]
            path = (*path, part)
    on_key = "[key]" in error["loc"]
    match error["type"]:
        case "invalid":
            context = error["ctx"]
            message, remedy, kind = (
                _about(context["invalid"], path),
                context["remedy"],
                context["kind"],
            )
            if context["key"] and isinstance(value, dict):
                path = (*path, context["key"])
                on_key = True
        case "extra_forbidden":
            message, remedy = _unknown(str(path[-1]), mappings[id(owner)][1])
            kind = "not-supported" if message.endswith("not supported") else "unknown-key"
            on_key = True
        case "missing":
            message, remedy, kind = _missing(str(error["loc"][-1]), _fields_of(value, mappings))
        case _:
            field = _fields_of(owner, mappings).get(str(path[-1])) if path else None
            message, remedy, kind = _refused(error, path, node.child(*path), field)
    place = node.child(*path)
    if remedy.startswith("quote it") and _is_written_as_template(place):
        remedy = 'make it a text in the template: "{{ (…) | string }}"'
    return path, place.problem(message, remedy, key=on_key, kind=kind)


def _is_written_as_template(node: SourceNode) -> bool:
    """Return whether the file has a template where a value was rendered."""
    written = node.document.data
    for part in node.path:
        if not _leads_on(written, part):
            return False
        written = written[part]
    return isinstance(written, UnrenderedTemplate)


def _leads_on(value: Any, part: str | int) -> bool:
    """Return whether a part of pydantic's path leads into a value; the tag of a union leads nowhere."""
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _fields_of(owner: Any, mappings: _Mappings) -> Mapping[str, FieldInfo]:
    """Return the fields of the model of a mapping, by their keys."""
    return fields_of(mappings[id(owner)][1]) if id(owner) in mappings else {}


def _missing(name: str, fields: Mapping[str, FieldInfo]) -> _Words:
    remedy = "add it"
    if name in fields and fields[name].description:
        remedy = f"add {name}: {fields[name].description}"
    return f"{name} is missing", remedy, "missing-key"


def _refused(error: Any, path: Path, node: SourceNode, field: FieldInfo | None) -> _Words:
    """Return the words for a value that a type of pydantic refuses."""
    kind = error["type"]
    value = error["input"]
    if path[-1:] == ("command",) and isinstance(value, str) and not value.startswith("PARTNER_"):
        from msauto.playbook.schema.play import OUTSIDE_MSAUTO

        return "command of Ansible is not supported", OUTSIDE_MSAUTO, "not-supported"
    label = _label(path) or _UNNAMED
    if kind in _EXPECTED:
        inside = next(_models_in(field), None) if field else None
        repeated = None if _may_be_secret(node, value) else value
        return *_wrong_type(kind, value, repeated, label, inside), "wrong-type"
    if kind in _BOUNDS:
        return *_out_of_bounds(*_BOUNDS[kind], error, label), "invalid-value"
    if kind in _EMPTY:
        return (
            f"{label} must not be empty",
            f"add {_EMPTY[kind]}, or remove the key",
            "invalid-value",
        )
    shown = str(value)[:60] if isinstance(value, str) else kind_of(value)
    choices = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
    remedy = did_you_mean(shown, choices) or "use one of: " + ", ".join(choices)
    return f"{label} cannot be {shown!r}", remedy, "invalid-value"


def _may_be_secret(node: SourceNode, value: Any) -> bool:
    """Return whether a value is a secret, or may hold one in the wrong form, so that no remedy may repeat it."""
    in_server = "server" in node.path and (node.path[-1] != "server" or "@" in str(value))
    start = (node.place.line, node.place.column)
    is_hidden = any(hidden[:2] == start for hidden in node.document.hidden)
    return in_server or is_hidden or holds_secret(value)


def _wrong_type(
    kind: str, value: Any, repeated: Any, label: str, inside: type[Model] | None
) -> tuple[str, str]:
    """Return message and remedy for a value of another type than expected.

    ``repeated`` is the value if the remedy may repeat it, else ``None``; ``inside``: the model that is expected.
    """
    expected = _EXPECTED[kind]
    given = kind_of(value)
    shown = shown_value(value)
    if expected == "a list":
        return f"{label} must be a list, not {given}", _LIST_FORM.get(given, "write a list")
    if expected == "a mapping":
        return f"{label} must be a mapping, not {given}", _mapping_form(
            kind, repeated, label, inside
        )
    if expected == "text":
        return f"{label} must be text, not {given}", "quote it"
    meant = BOOLEAN_WORDS.get(shown.strip("'").casefold())
    if expected == "true or false" and meant is not None:
        return (
            f"{label} must be true or false, not {shown}",
            f"write {meant}: YAML 1.2 reads {value} as text",
        )
    written = _as_mapping(label, repeated, inside)
    if written:
        return f"{label} must be {expected}, or a mapping, not {shown}", written
    remedy = f"write {expected}"
    if kind == "int_type" and isinstance(value, str) and shown.strip("' ").isdecimal():
        remedy = 'remove the quotes, or convert it in the template: "{{ (…) | int }}"'
    return f"{label} must be {expected}, not {shown}", remedy


def _out_of_bounds(name: str, words: str, error: Any, label: str) -> tuple[str, str]:
    bound = error["ctx"][name]
    if bound == int(bound):
        bound = int(bound)
    if bound == 0 and name == "ge":
        return f"{label} must not be negative", "write 0 or more"
    shown = shown_value(error["input"])
    return (
        f"{label} must be {words} {bound}, not {shown}",
        f"write a number that is {words} {bound}",
    )


def _mapping_form(kind: str, value: Any, label: str, inside: type[Model] | None) -> str:
    """Return how to write the mapping that is expected."""
    if label == _UNNAMED or label.startswith("an item"):
        return "write a mapping: key: value"
    write = _by_name if kind == "dict_type" else _as_mapping
    return write(label, value, inside) or f"write its keys: {label}: {{key: value}}"


def _as_mapping(label: str, value: Any, model: type[Model] | None) -> str:
    """Return how to write a text as the mapping that is expected; empty if that is not known.

    It may be ``key=value`` as in Ansible, or the value of the key that the model names for this.
    """
    if not isinstance(value, str) or model is None:
        return ""
    written = dict(re.findall(r"(\w+)=(\S+)", value))
    if written.keys().isdisjoint(fields_of(model)):
        if not model.shorthand:
            return ""
        written = {model.shorthand: str(value)}
    line = next(yaml_lines({label: FlowStyle(written)}))
    return f"write {line}" if line.endswith("}") else ""


def _by_name(label: str, value: Any, model: type[Model] | None) -> str:
    """Return how to write a list of names, or of mappings with names, as a mapping of such models."""
    content = "{}" if model else "…"
    named: list[str] = []
    for entry in as_list(value)[:3]:
        if isinstance(entry, str):
            named.append(f"{entry}: {content}")
        elif isinstance(entry, dict) and entry:
            named.append(f"{entry.get('name', next(iter(entry)))}: …")
    if not named:
        return ""
    return f"write {label}: {{{', '.join(named)}}}"


def _with_indentation(
    findings: list[Finding], data: Any, node: SourceNode, mappings: _Mappings
) -> list[Finding]:
    """Put one problem in the place of those of a key without a value whose keys are written beside it."""
    shown: list[Finding] = []
    explained: set[Path] = set()
    for path, problem in findings:
        around = path[:-1]
        owner = data
        for part in around:
            owner = owner[part]
        outdented = _outdented(owner, mappings)
        if not outdented or path[-1] not in outdented:
            shown.append((path, problem))
        elif around not in explained:
            explained.add(around)
            name, *keys = outdented
            names = ", ".join(keys)
            message = f"wrong indentation: {name} has no value; its keys on the same level: {names}"
            remedy = f"indent {names} below {name}"
            first = (*around, keys[0])
            shown.append(
                (first, node.child(*first).problem(message, remedy, key=True, kind="yaml"))
            )
    return shown


def _outdented(owner: Any, mappings: _Mappings) -> tuple[str, ...]:
    """Return a key without a value, and the unknown keys beside it that belong below it."""
    fields = _fields_of(owner, mappings)
    for name, field in fields.items():
        if name in owner and owner[name] is None:
            inside = set[str]().union(*map(fields_of, _models_in(field))) - fields.keys()
            keys = [key for key in owner if key in inside]
            if keys:
                return (name, *keys)
    return ()


def _models_in(field: FieldInfo) -> Iterator[type[Model]]:
    """Yield the models of the mappings that a field may hold."""
    ahead = [field.annotation]
    while ahead:
        annotation = ahead.pop()
        ahead += reversed(get_args(annotation))
        if isinstance(annotation, type) and issubclass(annotation, Model):
            yield annotation


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
    if label and text.startswith(_STARTS):
        return f"{label} {text}"
    return text


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


def _unknown(name: str, model: type[Model]) -> tuple[str, str]:
    """Return message and remedy for a key that a model does not have."""
    from msauto.playbook.schema.play import (
        HANDLER_MODULES,
        KEEP_IN_ANSIBLE,
        MODULES,
        HandlerArgs,
        RoleArgs,
        TaskArgs,
    )

    if joined := JOINED.match(name):
        return f"no colon and space follow {joined[1]!r}", f"write {joined[1]}: {joined[2]}…"
    keys = fields_of(model)
    key, _, value = name.partition(":")
    if value and key in keys:
        return f"no space follows '{key}:'", f"write {key}: {value}"
    # Ansible names a module with its collection: ansible.builtin.debug.
    plain = name.rpartition(".")[2]
    if hint := model.hints.get(name, model.hints.get(plain)):
        return hint
    if plain != name:
        if plain in keys:
            remedy = f"write {plain}: modules have no collection here"
            return f"unknown module or key {name!r}", remedy
        if issubclass(model, HandlerArgs | TaskArgs):
            return f"{name} is not supported", KEEP_IN_ANSIBLE
    below: list[str] = []
    for key, field in keys.items():
        if any(name in fields_of(inner) for inner in _models_in(field)):
            below.append(key)
    if below:
        return f"unknown key {name!r}", f"write it below {' or '.join(below)}"
    of_tasks = fields_of(TaskArgs)
    is_module = any(model in _models_in(of_tasks[module]) for module in MODULES)
    if is_module and name in of_tasks.keys() - MODULES:
        return f"{name} is a key of the task", f"write {name} beside its module, not below it"
    if issubclass(model, HandlerArgs | TaskArgs):
        available = f"available modules: {', '.join(MODULES)}"
        if issubclass(model, HandlerArgs):
            available = f"available handler modules: {', '.join(HANDLER_MODULES)}"
        return f"unknown module or key {name!r}", did_you_mean(name, keys) or available
    otherwise = ""
    if issubclass(model, RoleArgs):
        otherwise = f"a variable of the role goes into vars: vars: {{{name}: …}}"
    return f"unknown key {name!r}", did_you_mean(name, keys, otherwise) or nearest(name, keys)
