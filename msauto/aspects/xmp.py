"""XMP fields: all that differ in one SETUSERFIELDS, split only at the cap of the request line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs
from pydantic import TypeAdapter

from msauto.aspects.arguments import ExportedPart, TaskArguments, asset_key, is_valid
from msauto.aspects.aspect import Aspect, Reads, UndoContext
from msauto.aspects.comparison import same_list, texts
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import Phase, PlanContext, left_alone, refuse
from msauto.documents.document import SourceNode
from msauto.documents.value_types import NsName, Texts, UnrenderedTemplate, Value, as_list
from msauto.documents.writer import CommentedValue, FlowStyle
from msauto.errors import Problem
from msauto.model import requests
from msauto.model.desired import Sourced
from msauto.model.live import AssetSnapshot
from msauto.model.plan import Basis, Expectation, Json, Request
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect


class DesiredXmp(Struct, frozen=True, gc=False):
    """The values of an XMP field. Lists of several tasks are merged, while a single text is the whole value."""

    values: tuple[str, ...]
    is_list: bool = False

    def __str__(self) -> str:
        return repr(self.values[0] if len(self.values) == 1 else list(self.values))


Fields = Mapping[str, Sourced[DesiredXmp]]
Changed = tuple[str, Sourced[DesiredXmp], int]


def _declare(task: TaskArguments) -> Fields | None:
    fields: dict[str, Sourced[DesiredXmp]] = {}
    for name, written in (task.args.xmp or {}).items():
        values = tuple(as_list(written))
        # One empty text clears the field, as an empty list does.
        desired = DesiredXmp(() if values == ("",) else values, is_list=isinstance(written, list))
        fields[name] = Sourced(desired, task.source("xmp", name))
    return fields or None


def _check_on_server(args: Any, node: SourceNode, dialect: Dialect) -> Iterator[Problem]:
    """Yield a problem for each value that holds the list separator of the server."""
    separator = dialect.list_separator
    for name, values in args.xmp.items() if isinstance(args.xmp, dict) else ():
        for index, value in enumerate(as_list(values)):
            if separator in value and not isinstance(value, UnrenderedTemplate):
                why = f"the value contains {separator!r}, which separates the values of an XMP field on this server"
                remedy = "remove it, or set dialect: {list_separator: ...} to the separator of the server"
                yield node.child("xmp", name, index).problem(why, remedy)


def _merge(merging: Merging, declared: Sequence[Fields]) -> Fields:
    """Merge XMP fields: lists of one field become one list, in the order of the tasks, each value once.

    A field that one task clears or sets to a single text has only that value: other values are a contradiction.
    """
    merged: dict[str, Sourced[DesiredXmp]] = {}
    whole: set[str] = set()
    for name, sourced in (item for fields in declared for item in fields.items()):
        first, desired = merged.setdefault(name, sourced), sourced.value
        if not desired.is_list or not desired.values:
            whole.add(name)
        if first is sourced or same_list(first.value.values, desired.values):
            continue
        if name in whole:
            merging.differ(f"the XMP field {name}", first, sourced)
            continue
        values = list(first.value.values)
        for value in desired.values:
            if not any(same_list([value], [each]) for each in values):
                values.append(value)
        both = DesiredXmp(tuple(values), is_list=True)
        merged[name] = structs.replace(first, value=both, also=(*first.also, sourced.source))
    return merged


def plan_xmp(context: PlanContext, fields: Fields) -> None:
    """Write the XMP fields that differ."""
    separator = context.server.dialect.list_separator
    changed: list[Changed] = []
    for name, sourced in fields.items():
        desired = sourced.value.values
        for value in desired:
            if separator in value:  # the server would read it as several values
                raise refuse(
                    f"the value {value!r} of {name} holds {separator!r}, which separates values on this server",
                    sourced.source,
                    "leave the sign out, or set `list_separator` in the server's dialect if it separates otherwise",
                )
        before, basis = _known(context, name)
        if context.batch is None:
            context.builder.look(f"xmp:{name}")
        if basis != "none" and same_list(before, desired):
            context.builder.holding.append(Expectation("xmp", name, list(desired)))
            continue
        shown: Json = list(before) if basis != "none" else None
        still = context.still.get(f"xmp:{name}", shown)
        if basis != "none" and isinstance(still, list) and not same_list(before, [str(value) for value in still]):
            context.builder.warnings.append(left_alone(f"{context.title}: {name}", shown, still))
            continue
        after: Json = list(desired)
        number = context.builder.change("change", "xmp", name, shown, after, sourced.source, basis=basis)
        changed.append((name, sourced, number))
    if changed:
        requests.require(context.server, requests.Feature.SET_USER_FIELDS)
    for group in _split(context, changed):
        visible = context.live.xmp is not None or context.batch is not None
        expects = [Expectation("xmp", name, list(sourced.value.values), visible=visible) for name, sourced, _ in group]
        context.builder.send(Phase.XMP, _request(context, group), [number for *_, number in group], *expects)


def _known(context: PlanContext, name: str) -> tuple[Sequence[str], Basis]:
    if context.batch is not None:
        return (), "none"  # what the batch leaves is not known: sent whatever is there now
    if context.live.xmp is not None:
        return context.live.xmp.get(name, ()), "live"  # asked for and not in the answer: empty
    remembered = context.memory.get(f"xmp:{name}")
    return ([str(value) for value in remembered], "ledger") if isinstance(remembered, list) else ((), "none")


def _split(context: PlanContext, changed: Sequence[Changed]) -> Iterator[list[Changed]]:
    group: list[Changed] = []
    for item in changed:
        length = requests.request_line_length(_request(context, [*group, item]))
        if group and length > context.server.request_line:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _request(context: PlanContext, group: Sequence[Changed]) -> Request:
    values = {name: sourced.value.values for name, sourced, _ in group}
    return requests.set_user_fields(context.path, values, context.server.dialect.list_separator)


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    return None if live.xmp is None else same_list(live.xmp.get(expect.key, ()), texts(expect.desired))


def _undo(context: UndoContext) -> Fields:
    separator = context.spec.dialect.list_separator
    changes = [one.change for one in context.of("xmp")]
    fields = {}
    for change in changes:
        values = texts(change.before)
        if any(separator in value for value in values):
            why = f"its former value holds {separator!r}, which separates values"
            context.notes.append(f"{change.key} is left alone: {why}")
        else:
            fields[change.key] = context.sourced(DesiredXmp(values))
    context.still.update({f"xmp:{change.key}": change.after for change in changes})
    return fields


# Export ------------------------------------------------------------------------------------------------------------

_NAME: TypeAdapter[str] = TypeAdapter(NsName)


def _export(snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
    fields, separator = dict[str, Any](), dialect.list_separator
    for name, values in sorted((snapshot.xmp or {}).items()):
        if not any(values) and len(values) < 2:
            continue
        if not is_valid(_NAME, name):
            fields[name] = CommentedValue((f"{name} is shown without its namespace: a task needs ns:name",))
        elif any(separator in value for value in values):
            fields[name] = CommentedValue((f"{name} has a value that holds {separator!r}, which separates values",))
        else:
            fields[name] = values[0] if len(values) == 1 else FlowStyle(values)
    return ExportedPart(fields)


ASPECT = Aspect(
    name="xmp",
    in_xmp=True,
    keys={"xmp": asset_key(dict[NsName, Value[Texts]], "XMP fields by ns:name; text, or a list of texts")},
    check_on_server=_check_on_server,
    declare=_declare,
    export=_export,
    merge=_merge,
    reads=lambda fields, *_: Reads(xmp=frozenset(fields)),
    plan=plan_xmp,
    looks={"xmp": lambda _, live, name: None if live.xmp is None else list(live.xmp.get(name, ()))},
    holds=_holds,
    show=lambda expect, live: list((live.xmp or {}).get(expect.key, ())),
    remember=lambda expect, live: iter([(f"xmp:{expect.key}", expect.desired if live.xmp is None else None)]),
    value_items=lambda name: (f"xmp:{name}",),
    is_value=True,
    subject=lambda change: change.key,
    dialect=("list_separator", "xmp_read"),
    undo=_undo,
)
