"""What aspects share to declare what a playbook may write: models of attributes, places of values, duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType
from pydantic import TypeAdapter, ValidationError, create_model

from msauto.documents.document import SourceNode, UnrenderedTemplate
from msauto.documents.strict_model import Model, key
from msauto.documents.value_types import (
    TEMPLATED,
    ClearablePos,
    Pos,
    Rating,
    Text,
)
from msauto.documents.writer import CommentedValue
from msauto.errors import Problem
from msauto.model import fields as registry
from msauto.model.desired import ABSENT, Absent, OutsidePolicy, Position, Sourced, TaskSource
from msauto.model.timecode import Timecode, TimecodeError, show_timecode

State = Literal["present", "absent"]
M = TypeVar("M", bound=Model)
T = TypeVar("T")
_LINK_FIELDS: Final = sorted(registry.names(registry.LINK_FIELDS))
_TYPES: Mapping[registry.Kind, Any] = {
    "text": Text,
    "number": Text,
    "integer": Rating,
    "position": Pos,
}


def with_keys(model: type[M], keys: Mapping[str, tuple[Any, Any]]) -> type[M]:
    """Return a model with further keys (types and fields) after its own."""
    made: type[M] = create_model(  # type: ignore[call-overload]
        model.__name__,
        __base__=model,
        __doc__=model.__doc__,
        __module__=model.__module__,
        **keys,
    )
    return made


def with_attributes(attributes: Iterable[registry.Attribute]) -> Callable[[type[M]], type[M]]:
    """Return a decorator that adds attributes of the registry to the keys of a model, after its own."""
    fields = {}
    for attribute in attributes:
        kind = ClearablePos if attribute.clearable else _TYPES[attribute.kind]
        fields[attribute.name] = asset_key(kind, attribute.description)
    return lambda model: with_keys(model, fields)


def asset_key(kind: Any, description: str) -> tuple[Any, Any]:
    """Return a key of the ``asset`` module: the type of its value, which may be a template, and its field."""
    return Annotated[kind | None, TEMPLATED], key(description)


_FOLLOWS = ("a handler runs on the asset that changed", "remove it")
OF_HANDLERS: Final = {"title": _FOLLOWS, "id": _FOLLOWS, "select": _FOLLOWS}
"""The hints of the modules of handlers."""


class TaskFiles(Protocol):
    """The files that a task may read and write; both raise :class:`InputError` at the place of the name."""

    def load(self, name: str, node: SourceNode) -> bytes:
        """Return the content of a file."""

    def dest(self, name: str, node: SourceNode) -> str:
        """Return the path of a file to write."""


class TaskArguments(Struct, frozen=True):
    """The arguments of one task, validated and rendered whole, and the places of their values."""

    args: Any
    node: SourceNode
    task: str
    files: TaskFiles
    outside: OutsidePolicy | UnsetType = UNSET

    def source(self, *path: str | int) -> TaskSource:
        """Return the place of a value: its key in a mapping, or the item of a list (json, «A change»)."""
        place = (
            self.node.document.key_place
            if path and isinstance(path[-1], str)
            else self.node.document.place
        )
        return TaskSource.at(place(self.node.path + path), self.task, self.outside)

    def each(self, name: str, convert: Callable[[Any], T]) -> tuple[Sourced[T], ...]:
        """Return the items of a list as desired values."""
        items = enumerate(getattr(self.args, name) or ())
        return tuple([Sourced(convert(item), self.source(name, index)) for index, item in items])

    def complete(self, name: str) -> TaskSource | None:
        """Return where ``exactly`` names a list as complete."""
        exactly = self.args.exactly
        if isinstance(exactly, list) and name in exactly:
            return self.source("exactly", exactly.index(name))
        return self.source("exactly", name) if getattr(exactly, name, None) else None

    def dest(self) -> str:
        """Return the path of the file that the task writes."""
        return self.files.dest(self.args.dest, self.node.child("dest"))

    def position(self, timecode: Timecode | None) -> Position | Absent:
        """Return a position, which counts from the task's ``origin``."""
        return ABSENT if timecode is None else Position(timecode, self.args.origin)

    def link_fields(self, keys: Any) -> dict[str, str | Position]:
        """Return the link fields that a mapping names."""
        named: dict[str, str | Position] = {}
        for name in _LINK_FIELDS:
            value = getattr(keys, name)
            if isinstance(value, Timecode):
                value = Position(value, self.args.origin)
            if value is not None:
                named[name] = value
        return named


def named_texts(item: object, attributes: Iterable[registry.Attribute]) -> dict[str, str]:
    """Return the attributes that an item names, as texts; one that is secret stays a ``MarkedText``."""
    named: dict[str, str] = {}
    for attribute in attributes:
        value = getattr(item, attribute.name)
        if isinstance(value, int):
            value = str(value)
        if value is not None:
            named[attribute.name] = value
    return named


def or_absent(value: Any) -> Any:
    """Return a value; a key that is left out is not named."""
    return ABSENT if value is None else value


def known_items(items: Any, kind: type[T]) -> list[tuple[int, T]]:
    """Return the items of a list with their indices, without templates that are not rendered yet."""
    if not isinstance(items, list):
        return []
    return [(index, item) for index, item in enumerate(items) if isinstance(item, kind)]


def duplicates(
    items: Sequence[tuple[int, T]],
    node: SourceNode,
    identity: Callable[[T], Hashable],
    key: str,
    what: str,
) -> Iterator[Problem]:
    """Yield a problem for each item with the identity of an earlier one; ``None`` and templates have no identity."""
    seen: dict[Hashable, int] = {}
    for index, item in items:
        name = identity(item)
        parts = name if isinstance(name, tuple) else (name,)
        is_known = name is not None
        for part in parts:
            is_known = is_known and not isinstance(part, UnrenderedTemplate)
        if not is_known:
            continue
        first = seen.setdefault(name, index)
        if first != index:
            shown = "" if isinstance(name, tuple) else f" {name!r}"
            why = f"duplicate {what}{shown} (first on line {node.child(first).place.line})"
            yield node.child(index, key).problem(why, "remove one of them")


# Export: live state as a task writes it ------------------------------------------------------------------------------


class ExportedPart(Struct):
    """The value of a key: what a task can express, comments on the rest; whether a list is complete."""

    items: Any = []
    complete: bool = True

    def add(self, item: Any, notes: Sequence[str] = ()) -> None:
        """Add an item of a list, with comments on it."""
        self.items.append(CommentedValue(tuple(notes), item) if notes else item)

    def leave_out(self, why: str) -> None:
        """Add a comment on what a task cannot express."""
        self.add(CommentedValue((why,)))
        self.complete = False


def exported_position(frames: int, rate: Fraction | None) -> str | int:
    """Return a time code for exactly these frames, else the frames."""
    if rate is None:
        return frames
    text = show_timecode(frames, rate)
    try:
        same = Timecode.parse(text).to_frames(rate) == frames
    except TimecodeError:
        return frames
    return text if same else frames


def is_valid(kind: TypeAdapter[str], text: str) -> bool:
    """Return whether a text may be written where a playbook needs this kind."""
    try:
        kind.validate_python(text)
    except ValidationError:
        return False
    return True


def repeated(identities: Iterable[Any]) -> list[Any]:
    """Return what occurs more than once."""
    return [identity for identity, count in Counter(identities).items() if count > 1]
