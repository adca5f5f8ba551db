"""XMP fields: all that differ in one SETUSERFIELDS, split only at the cap of the request line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, structs
from pydantic import TypeAdapter

from msauto.aspects.arguments import ExportedPart, TaskArguments, asset_key, is_valid
from msauto.aspects.aspect import Reads, UndoContext, Value
from msauto.aspects.comparison import same_list, texts
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import Phase, PlanContext
from msauto.documents import value_types
from msauto.documents.document import SourceNode, UnrenderedTemplate
from msauto.documents.value_types import NsName, Texts, as_list
from msauto.documents.writer import CommentedValue, FlowStyle
from msauto.errors import Problem
from msauto.model import requests
from msauto.model.desired import Sourced
from msauto.model.live import Asset, AssetSnapshot
from msauto.model.plan import Basis, Change, Request
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect
from msauto.model.snapshot import Effect, Json, Part

_NAME: TypeAdapter[str] = TypeAdapter(NsName)


class DesiredXmp(Struct, frozen=True, gc=False):
    """The values of an XMP field. Lists of several tasks are merged, while a single text is the whole value."""

    values: tuple[str, ...]
    is_list: bool = False

    def __str__(self) -> str:
        return repr(self.values[0] if len(self.values) == 1 else list(self.values))


Fields = Mapping[str, Sourced[DesiredXmp]]


class _Changed(Struct, frozen=True):
    """A field that is to be written: what it is to hold, the number of its change, and its effect."""

    values: tuple[str, ...]
    number: int
    effect: Effect


class XmpFields(Value):
    """The XMP fields of a clip, by ``ns:name``."""

    name = "xmp"
    keys: ClassVar = {
        "xmp": asset_key(
            dict[NsName, value_types.Value[Texts]],
            "XMP fields by ns:name; text, or a list of texts",
        )
    }
    dialect = ("list_separator", "xmp_read")
    missing: ClassVar[Json] = []

    # Playbooks -------------------------------------------------------------------------------------------------------

    def check_for(self, args: Any, node: SourceNode, dialect: Dialect) -> Iterator[Problem]:
        """Yield a problem for each value that holds the list separator of the server."""
        if not isinstance(args.xmp, dict):
            return
        separator = dialect.list_separator
        for name, values in args.xmp.items():
            for index, value in enumerate(as_list(values)):
                if separator in value and not isinstance(value, UnrenderedTemplate):
                    why = f"the value contains {separator!r}, which separates the values of an XMP field on this server"
                    remedy = "remove it, or set dialect: {list_separator: ...} to the separator of the server"
                    yield node.child("xmp", name, index).problem(why, remedy)

    def declare(self, task: TaskArguments) -> Fields | None:
        """Return the fields that a task names."""
        fields: dict[str, Sourced[DesiredXmp]] = {}
        for name, written in (task.args.xmp or {}).items():
            values = tuple(as_list(written))
            if values == ("",):  # clears the field, as an empty list does
                values = ()
            desired = DesiredXmp(values, is_list=isinstance(written, list))
            fields[name] = Sourced(desired, task.source("xmp", name))
        return fields or None

    def merge(self, merging: Merging, parts: Sequence[Fields]) -> Fields:
        """Merge XMP fields: lists of one field become one list, in the order of the tasks, each value once.

        A field that one task clears or sets to a single text has only that value: other values are a contradiction.
        """
        merged: dict[str, Sourced[DesiredXmp]] = {}
        whole: set[str] = set()
        for fields in parts:
            for name, sourced in fields.items():
                first = merged.setdefault(name, sourced)
                desired = sourced.value
                if not desired.is_list or not desired.values:
                    whole.add(name)
                if first is sourced or same_list(first.value.values, desired.values):
                    continue
                if name in whole:
                    merging.differ(f"the XMP field {name}", first, sourced)
                else:
                    both = DesiredXmp(_united(first.value.values, desired.values), is_list=True)
                    merged[name] = structs.replace(
                        first, value=both, also=(*first.also, sourced.source)
                    )
        return merged

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
        """Return the fields that have a value; one value as a text."""
        fields: dict[str, Any] = {}
        separator = dialect.list_separator
        for name, values in sorted((snapshot.xmp or {}).items()):
            if not any(values) and len(values) < 2:
                continue
            if not is_valid(_NAME, name):
                fields[name] = CommentedValue(
                    (f"{name} is shown without its namespace: a task needs ns:name",)
                )
            elif any(separator in value for value in values):
                fields[name] = CommentedValue(
                    (f"{name} has a value that holds {separator!r}, which separates values",)
                )
            elif len(values) == 1:
                fields[name] = values[0]
            else:
                fields[name] = FlowStyle(values)
        return ExportedPart(fields)

    # Planning --------------------------------------------------------------------------------------------------------

    def reads(self, part: Fields, asset: Asset, title: str) -> Reads:
        """Return the names of the fields."""
        return Reads(xmp=frozenset(part))

    def needs(self, keys: Collection[str]) -> Reads:
        """Return the names of the fields."""
        return Reads(xmp=frozenset(keys))

    def plan(self, context: PlanContext, part: Fields) -> None:
        """Write the fields that differ."""
        changed = []
        for name, sourced in part.items():
            field = self._compare(context, name, sourced)
            if field is not None:
                changed.append(field)
        if changed:
            requests.require(context.server, requests.Feature.SET_USER_FIELDS)
        for group in _split(context, changed):
            numbers = [field.number for field in group]
            effects = [field.effect for field in group]
            context.builder.send(Phase.XMP, _request(context, group), numbers, *effects)

    def _compare(
        self, context: PlanContext, name: str, sourced: Sourced[DesiredXmp]
    ) -> _Changed | None:
        """Return a field that is to be written, with its change; ``None`` where it is as desired."""
        source = sourced.source
        desired: list[Json] = [*sourced.value.values]
        before, basis = _known(context, name)
        is_visible = context.live.xmp is not None or context.batch is not None
        effect = Effect(self.name, name, before, desired, visible=is_visible)
        if not self.is_due(context, effect, before, basis, name, source):
            return None
        number = context.builder.change(
            "change", self.name, name, before, desired, source, basis=basis
        )
        return _Changed(sourced.value.values, number, effect)

    # The snapshot, undo ----------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return the values of the fields that have any."""
        if live.xmp is None:
            return None
        return {
            name: list(values)
            for name, values in live.xmp.items()
            if any(values) or len(values) > 1
        }

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare two lists of values."""
        return () if same_list(texts(named), texts(shown)) else ("",)

    def former(self, change: Change, context: UndoContext) -> DesiredXmp | None:
        """Return the values before, unless the server would read one as several."""
        values = texts(change.before)
        separator = context.spec.dialect.list_separator
        if any(separator in value for value in values):
            why = f"its former value holds {separator!r}, which separates values"
            context.notes.append(f"{change.key} is left alone: {why}")
            return None
        return DesiredXmp(values)


def _united(values: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return two lists as one: of equal values, the first."""
    united = list(values)
    for other in others:
        if not any(same_list([other], [value]) for value in united):
            united.append(other)
    return tuple(united)


def _known(context: PlanContext, name: str) -> tuple[Json, Basis]:
    """Return the values that a field has, and how we know."""
    if context.batch is not None:
        return None, "none"  # what the batch leaves is not known: sent whatever is there now
    if context.live.xmp is not None:
        return [*context.live.xmp.get(name, ())], "live"  # asked for and not in the answer: empty
    remembered = context.memory.get(f"xmp:{name}")
    if isinstance(remembered, list):
        return [*texts(remembered)], "ledger"
    return None, "none"


def _split(context: PlanContext, changed: Sequence[_Changed]) -> Iterator[list[_Changed]]:
    group: list[_Changed] = []
    for item in changed:
        length = requests.request_line_length(_request(context, [*group, item]))
        if group and length > context.server.request_line:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _request(context: PlanContext, group: Sequence[_Changed]) -> Request:
    values = {field.effect.key: field.values for field in group}
    return requests.set_user_fields(context.path, values, context.server.dialect.list_separator)
