"""Changes and their values as text, for every form.

Values of changes are JSON. Frames are numbers; their time codes are added here, at the frame rate of the target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from msgspec import Struct

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import Detail
from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, names
from msauto.model.plan import Action, Body, Change, Json, Target
from msauto.model.timecode import DROP_FRAME_RATES, show_timecode
from msauto.report.sanitizing import display_width, show, show_pair, visible
from msauto.report.sentences import plural
from msauto.secrets.redaction import HIDDEN

SIGNS: Final[dict[Action, str]] = {"add": "+", "change": "~", "delete": "-", "run": "!"}
_IN_FRAMES = frozenset(
    {"at", "duration", "frame", "frames", "length", "pos", "start", "start_frame", *names(LINK_FIELDS, "position")}
)
_PLACE = ("at", "frame", "pos", "start", "start_frame")
"""Attributes that identify an item; shown also if they do not change."""
_ORDER = (*_PLACE, "duration", "track", "title", "further_titles", *names(MARKER_ATTRIBUTES))
_NOTHING = "(nothing)"
_UNKNOWN = "(unknown)"
_BASIS = {
    "ledger": "not reported by the server; last value written by msauto",
    "none": "not reported by the server; earlier value unknown",
}


class ValuePart(Struct, frozen=True):
    """One attribute of a change as text: removed with only ``before``, new with only ``after``.

    If both are equal, it does not change and only identifies the item. ``label`` is empty for plain values.
    """

    label: str
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        """Whether before and after differ."""
        return self.before is not None and self.after is not None and self.before != self.after

    @property
    def value(self) -> str:
        """The value of a part that does not change."""
        return (self.after if self.after is not None else self.before) or ""

    def __str__(self) -> str:
        text = f"{self.before} → {self.after}" if self.changes else self.value
        return f"{self.label} {text}" if self.label else text


@dataclass(frozen=True, slots=True)
class ValueWidth:
    """The most columns of a value, alone and within a list item; ``None``: no limit."""

    alone: int | None = 60
    item: int | None = 36


WHOLE = ValueWidth(None, None)


def change_parts(change: Change, target: Target, short: ValueWidth = WHOLE) -> tuple[ValuePart, ...]:
    """Return what a change does, attribute by attribute; empty if its key shows everything."""
    aspect = ASPECTS[change.aspect]
    if details := aspect.details(change, target):
        return tuple(_one_sided(visible(each.label), _detail(each, target), change) for each in details)
    change = aspect.displayed(change)
    if isinstance(change.before, dict) or isinstance(change.after, dict):
        return tuple(_item(change, target.rate, short))
    return tuple(_plain(change, target.rate, short))


def change_notes(change: Change) -> tuple[str, ...]:
    """Return notes on a change, such as where ``before`` comes from and whether it can be undone."""
    notes = [_BASIS[change.basis]] if change.basis in _BASIS and change.action != "run" else []
    if change.losses:
        notes.append("removed by `exactly`" if change.action == "delete" else "loses what no task names")
    if change.handler:
        notes.append(f"handler {show(change.handler, quoted=True)}{', before the deletion' if change.before else ''}")
    if change.pending:
        notes.append(f"pending since run {visible(change.pending)}")
    if change.secret:
        notes.append("secret")
    if not change.reversible and not ASPECTS[change.aspect].is_file:
        notes.append("cannot be undone")
    return tuple(notes)


def emptied_lists(target: Target) -> tuple[str, ...]:
    """Return a line for each list that ``exactly`` empties."""
    return tuple(
        f"all {each.count} {each.aspect.replace('_', ' ')}s are removed: the list is empty afterwards"
        for each in target.emptied
        if each.count > 1
    )


def show_key(change: Change) -> str:
    """Return the key of a change, visible; empty if it only repeats the aspect."""
    return "" if change.key in {"", change.aspect} else show(ASPECTS[change.aspect].label(change))


def show_body(body: Body, limit: int | None = None) -> str:
    """Return size and type of a request's body, then its text, or its SHA-256 if it is binary."""
    if body.content == HIDDEN.encode():
        return f"{HIDDEN} of {visible(body.media_type)}"
    size = f"{plural(len(body.content), 'byte')} of {visible(body.media_type)}"
    try:
        return f"{size}: {show(body.content.decode(), limit=limit, quoted=True)}"
    except UnicodeDecodeError:
        return f"{size}, sha256 {body.sha256}"


def show_frames(frames: int, rate: Fraction | None) -> str:
    """Return a number of frames with its time code, also in drop frame if the rate has it.

    >>> show_frames(18750, Fraction(25)), show_frames(1800, Fraction(30000, 1001)), show_frames(5, None)
    ('00:12:30:00 (18750)', '00:01:00:00 / 00:01:00;02 (1800)', '5 frames')
    """
    if rate is None or rate <= 0 or frames < 0:
        return plural(frames, "frame")
    code = show_timecode(frames, rate)
    if rate in DROP_FRAME_RATES:
        code = f"{code} / {show_timecode(frames, rate, drop=True)}"
    return f"{code} ({frames})"


def show_seconds(seconds: float) -> str:
    """Return a duration such as ``30 min``, ``1 h 15 min``, ``45 s``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min"), (left, "s")) if number]
    return " ".join(parts) or "0 s"


def show_duration(seconds: float) -> str:
    """Return how long something took: ``under 0.1 s``, ``0.4 s``, ``9.8 s``, then as :func:`show_seconds`."""
    if seconds < 0.1:
        return "under 0.1 s"
    return f"{seconds:.1f} s" if seconds < 9.95 else show_seconds(seconds)


def show_value(value: Json, name: str = "", rate: Fraction | None = None, *, limit: int | None = None) -> str:
    """Return one JSON value on one line, visible; ``name`` is its attribute, which may count frames.

    Texts are always in double quotes, numbers, time codes and redacted values never.
    """
    frames = _frames(value, name)
    if frames is not None:
        return show_frames(frames, rate)
    if value is None:
        return _NOTHING
    if isinstance(value, str):
        return HIDDEN if value == HIDDEN else show(value, limit=limit, quoted=True)
    if isinstance(value, list):
        return show_list(value, limit=limit)
    if isinstance(value, dict):
        return show(json.dumps(value, ensure_ascii=False), limit=limit)
    return json.dumps(value)


def show_list(values: list[Json], *, limit: int | None = None) -> str:
    """Return a list in brackets. ``limit`` (columns) cuts its end."""
    shown: list[str] = []
    space = limit
    for value in values:
        element = show_value(value, limit=limit)
        if space is not None:
            space -= display_width(element) + 2
            if space < 0 and shown:
                shown.append(f"[…{len(values) - len(shown)}…]")
                break
        shown.append(element)
    return "[" + ", ".join(shown) + "]"


def show_pair_of(before: Json, after: Json, name: str, rate: Fraction | None, limit: int | None) -> tuple[str, str]:
    """Return two values so that they look different if they are."""
    if (
        isinstance(before, str)
        and isinstance(after, str)
        and HIDDEN not in {before, after}
        and _frames(before, name) is None
    ):
        return show_pair(str(before), str(after), limit=limit, quoted=True)
    old = show_value(before, name, rate, limit=limit)
    new = show_value(after, name, rate, limit=limit)
    if old != new or before == after:
        return old, new
    whole = show_value(before, name, rate), show_value(after, name, rate)
    return whole if whole[0] != whole[1] else (visible(json.dumps(before)), visible(json.dumps(after)))


def _frames(value: Json, name: str) -> int | None:
    if name not in _IN_FRAMES or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else None


def _plain(change: Change, rate: Fraction | None, short: ValueWidth) -> Iterator[ValuePart]:
    before, after, limit = change.before, change.after, short.alone
    if change.action == "change":
        old, new = show_pair_of(before, after, change.key, rate, limit)
        yield ValuePart("", _UNKNOWN if before is None and change.basis == "none" else old, new)
    elif (value := before if change.action == "delete" else after) not in (None, change.key):
        yield _one_sided("", show_value(value, change.key, rate, limit=limit), change)


def _one_sided(label: str, shown: str, change: Change) -> ValuePart:
    """Return the only value of an attribute that is removed, or new."""
    return ValuePart(label, shown, None) if change.action == "delete" else ValuePart(label, None, shown)


def _item(change: Change, rate: Fraction | None, short: ValueWidth) -> Iterator[ValuePart]:
    before = change.before if isinstance(change.before, dict) else {}
    after = change.after if isinstance(change.after, dict) else {}
    for name in _names(before, after):
        part = _attribute(change, name, (before, after), rate, short.item)
        if part is not None and not _in_key(change.key, name, before | after):
            yield part


def _attribute(
    change: Change,
    name: str,
    sides: tuple[Mapping[str, Json], Mapping[str, Json]],
    rate: Fraction | None,
    limit: int | None,
) -> ValuePart | None:
    old, new = sides[0].get(name), sides[1].get(name)
    label = "at" if name == "frame" else visible(name)
    if change.action != "change":
        value = old if change.action == "delete" else new
        nothing = value is None or value in ("", []) or (name == "rating" and value == 0)
        return None if nothing else _one_sided(label, show_value(value, name, rate, limit=limit), change)
    if name not in sides[1] or old == new:
        shown = show_value(old, name, rate, limit=limit)
        return ValuePart(label, shown, shown) if name in _PLACE else None
    return ValuePart(label, *show_pair_of(old, new, name, rate, limit))


def _names(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[str]:
    found = [*before, *(name for name in after if name not in before)]
    return sorted(found, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def _in_key(key: str, name: str, item: Mapping[str, Json]) -> bool:
    """Return whether the key of the change contains this attribute."""
    value = item.get(name)
    if name in {"number", "guid", "uid"}:
        return key in {str(value), f"{name} {value}"}
    return name in {"folder", "title"} and key == f"{item.get('folder')}/{item.get('title')}"


def _detail(detail: Detail, target: Target) -> str:
    if detail.name == "wait":
        return show_seconds(target.wait)
    if isinstance(detail.value, list):
        return "; ".join(show(str(each), quoted="; " in str(each)) for each in detail.value)
    return show_value(detail.value, detail.name, target.rate) if detail.name else show(str(detail.value))
