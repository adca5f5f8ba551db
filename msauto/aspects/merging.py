"""Merge what tasks declare for one asset or channel, lists included, before it is compared.

Equal declarations are fine. Different values for one thing are an error that names both places; so is a thing that
one task removes and another declares. Each aspect merges its own part with :class:`Merging`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, Final, TypeVar

from msgspec import Struct, field, structs

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
    words = [each.source.outside or "overwrite" for each in (first, other)]
    if _STRICTNESS.index(words[0]) >= _STRICTNESS.index(words[1]):
        return first
    return structs.replace(first, source=structs.replace(first.source, outside=other.source.outside))


class Merging(Struct):
    """What merging the parts of one target works with. Equal keys mean the same thing, or the same value.

    ``asset`` is ``None`` before the server is asked: then its frame rate is unknown. ``title`` is the asset's after the
    run. ``errors`` collects the contradictions.
    """

    asset: Asset | None
    title: str
    errors: list[PlanningError] = field(default_factory=list)

    def check(self) -> None:
        """Raise the first contradiction."""
        if self.errors:
            raise self.errors[0]

    def removed(self, what: str, absent: TaskSource | None, desired: TaskSource) -> None:
        """Note that one task removes what another one declares."""
        removing = absent.description if absent else "one task"
        message = f"{what} is removed by {removing} and declared by {desired.description}"
        self.errors.append(refuse(message, desired, "remove one of the two tasks, or declare the same in both"))

    def differ(self, what: str, one: Sourced[T], other: Sourced[T], show: Callable[[T], str] = _show) -> None:
        """Note that two tasks declare different values for one thing."""
        both = f"{show(one.value)} by {one.source.description}, {show(other.value)} by {other.source.description}"
        message = f"{what}: two tasks declare different values: {both}"
        self.errors.append(refuse(message, other.source, "declare the same value in both"))

    def comparable(self, value: object, name: str = "") -> Hashable:
        """Return the key of a value; ``name`` is that of its field."""
        if isinstance(value, str):
            number = read_whole(value)
            return number if number is not None and same_value(name, value, str(number)) else plain(value)
        if isinstance(value, tuple):
            return tuple(map(self.comparable, value))
        if not isinstance(value, Position):
            return repr(value)
        code, origin = value.timecode, None if value.timecode.kind == "frames" else value.origin
        if self.asset is None:
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
            if len(kinds) > 1 or "seconds" in kinds or ("frames" not in kinds and one.origin != other.origin):
                return True
        return self.comparable(one, name) == self.comparable(other, name)

    def one(self, what: str, declared: Sequence[Sourced[T]], show: Callable[[T], str] = _show) -> Sourced[T] | None:
        """Return the one value that all tasks declare; ``None`` where none does."""
        for other in declared:
            if not self.same(declared[0].value, other.value):
                self.differ(what, declared[0], other, show)
        return reduce(_stricter, declared) if declared else None

    def mapping(self, what: str, declared: Iterable[Mapping[str, Sourced[T]]], of: str = "") -> dict[str, Sourced[T]]:
        """Merge values by name; a name that two tasks give must have one value."""
        merged: dict[str, Sourced[T]] = {}
        for name, other in (item for fields in declared for item in fields.items()):
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
        for one, exactly in ((one, one.exactly) for one in lists if one.exactly is not None):
            named = {identity(sourced.value) for sourced in one.items}
            others = (each for each in lists if each is not one)
            for other, sourced in ((each, item) for each in others for item in each.items):
                value: Any = sourced.value
                if not value.present or not covers(one, value) or identity(value) in named:
                    continue
                if other.exactly is not None and other.exactly.place == exactly.place:
                    self.errors.append(refuse(_EACH_ROUND, exactly, "declare all items in one task, without the loop"))
                else:
                    self.removed(called(value), exactly, sourced.source)

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
        declared: list[Sourced[Any]] = []
        for part, one in enumerate(lists):
            for item in one.items:
                declared.append(structs.replace(item, part=part) if part else item)
        for sourced in declared:
            value: Any = sourced.value
            there = merged.setdefault(identity(value), [])
            for index, each in enumerate(there):
                if each.value.present or value.present or each.value == value:
                    there[index] = _stricter(self._item(each, sourced, called, attributes), sourced)
                    break
            else:
                there.append(sourced)
        return tuple([each for same in merged.values() for each in same])

    def disagree(self, what: str, one: Sourced[Any], other: Sourced[Any]) -> bool:
        """Return whether one task removes an item that another one declares, and note it."""
        if one.value.present == other.value.present:
            return False
        absent, present = (one, other) if other.value.present else (other, one)
        self.removed(what, absent.source, present.source)
        return True

    def _item(
        self, one: Sourced[Any], other: Sourced[Any], called: Callable[[Any], str], attributes: Sequence[str]
    ) -> Sourced[Any]:
        """Merge two declarations of one item."""
        what = called(one.value)
        if self.disagree(what, one, other):
            return one
        named: dict[str, Any] = {}
        for name in attributes:
            values = [Sourced(getattr(sourced.value, name), sourced.source) for sourced in (one, other)]
            given = [sourced for sourced in values if sourced.value is not ABSENT]
            named |= {name: given[0].value} if given else {}
            if len(given) > 1 and not self.same(given[0].value, given[1].value):
                self.differ(f"the {name} of {what}", given[0], given[1])
        fields = (
            {name: Sourced(text, sourced.source) for name, text in sourced.value.fields.items()}
            for sourced in (one, other)
        )
        merged = self.mapping("the", fields, f" of {what}")
        named["fields"] = {name: sourced.value for name, sourced in merged.items()}
        value = structs.replace(one.value, **named)
        more: tuple[TaskSource, ...] = () if value == one.value else (other.source,)
        return structs.replace(one, value=value, also=(*one.also, *more))


_EACH_ROUND: Final = (
    "each round of the loop declares the whole list (exactly), with other items: it would remove what the others add"
)


def exactly_of(lists: Iterable[DesiredList[Any]]) -> TaskSource | None:
    """Return the first place that makes a list complete."""
    return next((one.exactly for one in lists if one.exactly is not None), None)
