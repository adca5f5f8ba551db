"""Merge what tasks declare for one asset or channel, lists included, before it is compared.

Equal declarations are fine. Different values for one thing are an error that names both places; so is a thing that
one task removes and another declares. Each aspect merges its own part with :class:`Merging`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from msauto.aspects.comparison import same_value
from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
from msauto.model.desired import ABSENT, DesiredList, Position, Sourced, TaskSource
from msauto.model.identity import plain
from msauto.model.live import Asset
from msauto.model.timecode import TimecodeError
from msauto.primitives.decimals import read_whole

T = TypeVar("T")
_STRICTNESS: Final = ("overwrite", "keep", "refuse")
V = TypeVar("V", bound=Struct)


def _show(value: object) -> str:
    return str(value) if isinstance(value, Struct) else repr(value)


def _stricter(first: Sourced[T], other: Sourced[T]) -> Sourced[T]:
    """Return the first of two equal declarations, with the stricter word on what others changed outside."""
    word = first.source.outside or "overwrite"
    other_word = other.source.outside or "overwrite"
    if _STRICTNESS.index(word) >= _STRICTNESS.index(other_word):
        return first
    return structs.replace(first, source=structs.replace(first.source, outside=other_word))


class Merging(Struct):
    """What merging the parts of one target works with. Equal keys mean the same thing, or the same value.

    ``asset`` is ``None`` before the server is asked: then its frame rate is unknown. ``title`` is the asset's after the
    run. ``errors`` collects the contradictions.
    """

    asset: Asset | None
    title: str
    errors: list[PlanningError] = []

    def check(self) -> None:
        """Raise the first contradiction."""
        if self.errors:
            raise self.errors[0]

    def removed(self, what: str, absent: TaskSource | None, desired: TaskSource) -> None:
        """Note that one task removes what another one declares."""
        removing = absent.description if absent else "one task"
        message = f"{what} is removed by {removing} and declared by {desired.description}"
        self.errors.append(
            refuse(message, desired, "remove one of the two tasks, or declare the same in both")
        )

    def differ(
        self, what: str, one: Sourced[T], other: Sourced[T], show: Callable[[T], str] = _show
    ) -> None:
        """Note that two tasks declare different values for one thing."""
        both = f"{show(one.value)} by {one.source.description}, {show(other.value)} by {other.source.description}"
        message = f"{what}: two tasks declare different values: {both}"
        self.errors.append(refuse(message, other.source, "declare the same value in both"))

    def comparable(self, value: object, name: str = "") -> Hashable:
        """Return the key of a value; ``name`` is that of its field."""
        if isinstance(value, str):
            number = read_whole(value)
            if number is not None and same_value(name, value, str(number)):
                return number
            return plain(value)
        if isinstance(value, tuple):
            return tuple(map(self.comparable, value))
        if not isinstance(value, Position):
            return repr(value)
        code = value.timecode
        if self.asset is None:
            origin = None if code.kind == "frames" else value.origin
            return code.kind, code.seconds, code.frames, code.fraction, origin
        # An error of a position is raised where it is used.
        rate = self.asset.rate or (Fraction(1) if code.kind == "frames" else None)
        try:
            return value.to_frames(rate) if rate else str(value)
        except TimecodeError:
            return str(value)

    def same(self, one: object, other: object, name: str = "") -> bool:
        """Return whether two values are the same, or may be at some frame rate."""
        if self.asset is None and isinstance(one, Position) and isinstance(other, Position):
            kinds = {one.timecode.kind, other.timecode.kind}
            if (
                len(kinds) > 1
                or "seconds" in kinds
                or ("frames" not in kinds and one.origin != other.origin)
            ):
                return True
        return self.comparable(one, name) == self.comparable(other, name)

    def one(
        self, what: str, declared: Sequence[Sourced[T]], show: Callable[[T], str] = _show
    ) -> Sourced[T] | None:
        """Return the one value that all tasks declare; ``None`` where none does."""
        for other in declared:
            if not self.same(declared[0].value, other.value):
                self.differ(what, declared[0], other, show)
        return reduce(_stricter, declared) if declared else None

    def mapping(
        self, what: str, declared: Iterable[Mapping[str, Sourced[T]]], of: str = ""
    ) -> dict[str, Sourced[T]]:
        """Merge values by name; a name that two tasks give must have one value."""
        merged: dict[str, Sourced[T]] = {}
        for fields in declared:
            for name, other in fields.items():
                first = merged.setdefault(name, other)
                if not self.same(first.value, other.value, name):
                    self.differ(f"{what} {name}{of}", first, other)
                merged[name] = _stricter(first, other)
        return merged

    def check_complete(
        self,
        lists: Sequence[DesiredList[V]],
        identity: Callable[[V], Hashable],
        called: Callable[[V], str],
        covers: Callable[[Any, V], bool] = lambda *_: True,
    ) -> None:
        """Note what one task declares and another removes by ``exactly``, because its list does not name it.

        ``covers``: whether ``exactly`` of a list concerns an item.
        """
        for complete in lists:
            if complete.exactly is None:
                continue
            named = {identity(sourced.value) for sourced in complete.items}
            for other in lists:
                if other is complete:
                    continue
                for sourced in other.items:
                    value: Any = sourced.value
                    is_removed = (
                        value.present and covers(complete, value) and identity(value) not in named
                    )
                    if is_removed:
                        self._note_removed(
                            called(value), complete.exactly, sourced.source, other.exactly
                        )

    def _note_removed(
        self, what: str, exactly: TaskSource, source: TaskSource, other: TaskSource | None
    ) -> None:
        """Note that ``exactly`` of one list removes what is declared at ``source``; ``other``: that of its own list."""
        if other is not None and other.place == exactly.place:
            remedy = "declare all items in one task, without the loop"
            self.errors.append(refuse(_EACH_ROUND, exactly, remedy))
        else:
            self.removed(what, exactly, source)

    def items(
        self,
        lists: Sequence[DesiredList[V]],
        identity: Callable[[V], Hashable],
        called: Callable[[V], str],
        attributes: Sequence[str] = (),
        covers: Callable[[Any, V], bool] = lambda *_: True,
    ) -> tuple[Sourced[V], ...]:
        """Merge the items of lists. Items of one identity are one; each attribute that both name must be equal.

        Of those that are to be absent each counts: what has all that one of them names goes. What ``exactly`` removes
        depends on positions in frames, so it is looked for once the asset is known.
        """
        if self.asset is not None:
            self.check_complete(lists, identity, called, covers)
        merged: dict[Hashable, list[Sourced[Any]]] = {}
        for part, declared in enumerate(lists):
            for item in declared.items:
                sourced: Sourced[Any] = structs.replace(item, part=part) if part else item
                same = merged.setdefault(identity(item.value), [])
                for index, first in enumerate(same):
                    is_one = (
                        first.value.present or sourced.value.present or first.value == sourced.value
                    )
                    if is_one:
                        both = self._item(first, sourced, called, attributes)
                        same[index] = _stricter(both, sourced)
                        break
                else:
                    same.append(sourced)
        return tuple(chain.from_iterable(merged.values()))

    def disagree(self, what: str, one: Sourced[Any], other: Sourced[Any]) -> bool:
        """Return whether one task removes an item that another one declares, and note it."""
        if one.value.present == other.value.present:
            return False
        if other.value.present:
            self.removed(what, one.source, other.source)
        else:
            self.removed(what, other.source, one.source)
        return True

    def _item(
        self,
        one: Sourced[Any],
        other: Sourced[Any],
        called: Callable[[Any], str],
        attributes: Sequence[str],
    ) -> Sourced[Any]:
        """Merge two declarations of one item."""
        what = called(one.value)
        if self.disagree(what, one, other):
            return one
        named: dict[str, Any] = {}
        for name in attributes:
            value = getattr(one.value, name)
            other_value = getattr(other.value, name)
            named[name] = other_value if value is ABSENT else value
            if value is ABSENT or other_value is ABSENT:
                continue
            if not self.same(value, other_value):
                first = Sourced(value, one.source)
                second = Sourced(other_value, other.source)
                self.differ(f"the {name} of {what}", first, second)
        merged = self.mapping("the", (_fields(one), _fields(other)), f" of {what}")
        named["fields"] = {name: sourced.value for name, sourced in merged.items()}
        item = structs.replace(one.value, **named)
        if item == one.value:
            return one
        return structs.replace(one, value=item, also=(*one.also, other.source))


_OTHERS: Final = "with other items: it would remove what the others add"
_EACH_ROUND: Final = f"each round of the loop declares the whole list (exactly), {_OTHERS}"


def exactly_of(lists: Iterable[DesiredList[Any]]) -> TaskSource | None:
    """Return the first place that makes a list complete."""
    return next((one.exactly for one in lists if one.exactly is not None), None)


def _fields(item: Sourced[Any]) -> dict[str, Sourced[str]]:
    """Return the fields that one declaration of an item names, each with its place."""
    return {name: Sourced(text, item.source) for name, text in item.value.fields.items()}
