"""Texts that all forms share: headings, the closing sentence of a plan, refusals, changes and their values.

Values of changes are JSON. Frames are numbers; their time codes are added here, at the frame rate of the target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from msauto.errors import RefusedError
from msauto.model.fields import LINK_FIELDS, MARKER_ATTRIBUTES, names
from msauto.model.plan import Action, Body, Change, Outside, Plan, Refusal, Target
from msauto.model.result import OUTCOMES, key_of, parse_time
from msauto.model.snapshot import Json
from msauto.model.timecode import DROP_FRAME_RATES, show_timecode
from msauto.primitives.decimals import read_whole
from msauto.report.sanitizing import display_width, show, show_pair, visible
from msauto.secrets.redaction import HIDDEN

if TYPE_CHECKING:
    from msauto.aspects.aspect import Aspect, Detail

KINDS: Final = {"asset": "asset", "rss_channel": "channel", "database": "database"}
"""The nouns of the kinds of targets."""
_REASONS: Final = {
    "delete_assets": ("asset", "the plan deletes {count}; the limit is {limit}"),
    "remove_items": ("list item", "the plan loses {count} that no task names by key; the limit is {limit}"),
    "requests": ("request", "the plan sends {count}; the limit is {limit}"),
    "empty_list": ("", "the plan empties a list of {count} items by `exactly`; the limit is {limit} items"),
    "protected": ("", "{count} is protected by '{limit}': nothing there may be deleted, removed or overwritten"),
    "freeze": ("", "msauto.toml has a freeze from {limit}"),
    "window": ("", "it is {count}, outside the window {limit}"),
    "max_time": ("", "the time of the job is over: max_time ended at {limit}"),
    "state": ("", "the ledger in {count} is empty, and {limit} requires one"),
}
"""What a limit counts (empty: its reason names it), and the reason of its refusal."""
_OTHER_REASON: Final = ("", "{what}: {count}; the limit is {limit}")
_BATCHES: Final = 5
SHOWN_REASONS: Final = 3


def plural(count: int, noun: str) -> str:
    """Return ``1 asset``, ``2 assets``.

    >>> plural(1, "request"), plural(0, "request")
    ('1 request', '0 requests')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count_deletions(assets: int, links: int) -> str:
    """Return how many assets and links are deleted.

    >>> count_deletions(1, 2), count_deletions(0, 1)
    ('1 asset and 2 links', '1 link')
    """
    counts = ((assets, "asset"), (links, "link"))
    return " and ".join(plural(count, noun) for count, noun in counts if count) or plural(0, "asset")


def count_outcomes(counts: Mapping[str, int]) -> str:
    """Return how many targets have each outcome, as the ledger counts them.

    >>> count_outcomes({"not_attempted": 1, "changed": 2, "requests": 3})
    '2 changed, 1 not attempted'
    """
    return ", ".join(f"{counts[key_of(each)]} {each}" for each in OUTCOMES if counts.get(key_of(each)))


# Targets -------------------------------------------------------------------------------------------------------


TargetKey = tuple[str, str, str, str]


def target_key(target: Target) -> TargetKey:
    """Return server, database, kind and name: what distinguishes the targets of a run."""
    return target.server, target.database, target.kind, target.name


def target_heading(target: Target) -> str:
    """Return server, database and name of a target, visible: the text that a user searches for."""
    if target.kind == "asset":
        return f"{server_of(target)} · {show(target.name)}"
    return f"{show(target.server)} · {KINDS[target.kind]} {show(target.name)}"


def server_of(target: Target) -> str:
    """Return server and database of a target, visible."""
    return " · ".join(map(show, filter(None, (target.server, target.database))))


def folder_note(target: Target) -> str:
    """Return the folder of an asset; empty if it is not known."""
    if target.folder is None:
        return ""
    return f"in {show(target.folder)}" if target.folder else "in the root folder"


def plan_sentence(plan: Plan, *, keep_going: bool = False) -> str:
    """Return the closing sentence of a plan, in the style of Terraform."""
    kept = [f"What others changed of {plural(plan.kept, 'target')} is kept."] if plan.kept else []
    left_out = [f"{plan.skipped} skipped."] if plan.skipped else []
    if plan.left_out:
        left_out.append(f"{plural(plan.left_out, 'target')} left out of this run; the warnings give the reason.")
    if not any(target.changes for target in plan.targets) and not plan.errors:
        as_desired = plan.unchanged - plan.kept
        count, verb = plural(as_desired, "target"), "is" if as_desired == 1 else "are"
        compared = [f"{count} {verb} as desired."] if as_desired else [] if kept else ["Nothing was compared."]
        return " ".join(["No changes.", *compared, *kept, *left_out])
    summary = plan.summary
    counts = ", ".join(f"{getattr(summary, action)} to {action}" for action in ("add", "change", "delete", "run"))
    kinds = [target.kind for target in plan.targets if target.changes and target.error is None]
    parts = [plural(kinds.count(kind), noun) for kind, noun in KINDS.items() if kind in kinds]
    on = " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
    sentences = [f"Plan: {counts}{on and f', on {on}'}; {plural(plan.requests, 'request')}."]
    if plan.unchanged:
        sentences.append(f"{plan.unchanged} unchanged.")
    sentences += [*kept, *left_out]
    if len(plan.batches) > 1 and on:
        named = [visible(" ".join(batch.servers)) for batch in plan.batches[:_BATCHES]]
        more = f", then {len(plan.batches) - _BATCHES} more" if len(plan.batches) > _BATCHES else ""
        sentences.append(f"In {len(plan.batches)} batches: {', then '.join(named)}{more}.")
    if summary.outside:
        it = "it" if summary.outside == 1 else "them"
        sentences.append(f"{count_outside(summary.outside)}; to keep {it}: `outside: keep`.")
    if plan.errors:
        effect = "left out" if keep_going else "nothing can be applied"
        sentences.append(f"{plural(plan.errors, 'target')} in error: {effect}.")
    return " ".join(sentences)


def count_outside(count: int) -> str:
    """Return how many things others have changed since the last run.

    >>> count_outside(1), count_outside(2)
    ('1 thing was changed outside', '2 things were changed outside')
    """
    return f"{plural(count, 'thing')} {'was' if count == 1 else 'were'} changed outside"


def settings_line(plan: Plan) -> str:
    """Return which settings file applies; empty without one."""
    return "" if plan.settings is None else f"Settings: {visible(plan.settings.path)}"


# Refusals ------------------------------------------------------------------------------------------------------


def refusal_sentence(refusal: Refusal) -> str:
    """Return what is refused, by which limit, and what allows it; visible, because it may hold titles and globs."""
    allows = "To allow it" if refusal.remedy.startswith("--") else "No flag allows it"
    return visible(f"Refused: {refusal_reason(refusal)}." + (f" {allows}: {refusal.remedy}" if refusal.remedy else ""))


def refusal_error(refusals: Sequence[Refusal]) -> RefusedError:
    """Return the error of a plan that is refused, with the reasons and all remedies; visible."""
    reasons = [refusal_reason(refusal) for refusal in refusals[:SHOWN_REASONS]]
    more = len(refusals) - len(reasons)
    shown = "; ".join([*reasons, *([f"{more} more, shown with the plan"] if more else [])])
    flags = " ".join(refusal.remedy for refusal in refusals if refusal.remedy.startswith("--"))
    others = [refusal.remedy for refusal in refusals if not refusal.remedy.startswith("--")]
    remedy = "; ".join(filter(None, dict.fromkeys([flags, *others[:SHOWN_REASONS]])))
    return RefusedError(visible(f"{shown}: nothing was sent"), remedy=visible(remedy))


def refusal_reason(refusal: Refusal) -> str:
    """Return what a plan does and the limit that refuses it, without a remedy."""
    count: int | str = refusal.count
    noun, reason = _REASONS.get(refusal.code, _OTHER_REASON)
    if isinstance(count, int) and noun:
        count = count_deletions(count - refusal.links, refusal.links) if refusal.links else plural(count, noun)
    return reason.format(what=refusal.code.replace("_", " "), count=count, limit=refusal.limit)


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


class ValueWidth(Struct, frozen=True):
    """The most columns of a value, alone and within a list item; ``None``: no limit."""

    alone: int | None = 60
    item: int | None = 36


WHOLE = ValueWidth(None, None)


def _aspect_of(change: Change) -> Aspect:
    from msauto.aspects import ASPECTS  # counts and times are also shown where no change is

    return ASPECTS[change.aspect]


def change_parts(change: Change, target: Target, short: ValueWidth = WHOLE) -> tuple[ValuePart, ...]:
    """Return what a change does, attribute by attribute; empty if its key shows everything."""
    aspect = _aspect_of(change)
    if details := aspect.details(change, target):
        return tuple(_one_sided(visible(each.label), _detail(each, target), change) for each in details)
    change = aspect.shown(change).change
    if isinstance(change.before, dict) or isinstance(change.after, dict):
        return tuple(_item(change, target.rate, short.item))
    return tuple(_plain(change, target.rate, short.alone))


def change_notes(change: Change, rate: Fraction | None = None) -> tuple[str, ...]:
    """Return notes on a change, such as where ``before`` comes from and whether it can be undone."""
    from msauto.aspects.downloads import Download  # as above

    notes = [_BASIS[change.basis]] if change.basis in _BASIS and change.action != "run" else []
    notes += [outside_note(change, change.outside, rate)] if change.outside is not None else []
    if change.losses:
        notes.append("removed by `exactly`" if change.action == "delete" else "loses what no task names")
    if change.handler:
        notes.append(f"handler {show(change.handler, quoted=True)}{', before the deletion' if change.before else ''}")
    if change.pending:
        notes.append(f"pending since run {visible(change.pending)}")
    if change.secret:
        notes.append("secret")
    if not change.reversible and not isinstance(_aspect_of(change), Download):
        notes.append("cannot be undone")
    return tuple(notes)


def outside_note(change: Change, outside: Outside, rate: Fraction | None) -> str:
    """Return since when others have changed a thing, who it was, and what it was, unless it becomes that again."""
    left, after = outside.left, change.after
    items = left.items() if isinstance(left, dict) else [(change.key, left)]
    now = after if isinstance(after, dict) else {change.key: after}
    was = [
        f"{'' if name == change.key else f'{visible(name)} '}{show_value(value, name, rate)}"
        for name, value in items
        if change.before is not None and now.get(name) != value
    ]
    by = f", by user {show(outside.user)}" if outside.user else ""
    told = f", was {', '.join(was)}" if was else ""
    return f"{done_outside(change, outside)} outside since {local_time(outside.at)}{by}{told}"


def done_outside(change: Change, outside: Outside) -> str:
    """Return what others did to a thing: ``deleted``, ``moved`` or ``changed``."""
    moved = isinstance(outside.left, dict) and outside.left.keys() <= set(_PLACE)
    return "deleted" if change.before is None else "moved" if moved else "changed"


def emptied_lists(target: Target) -> tuple[str, ...]:
    """Return a line for each list that ``exactly`` empties."""
    return tuple(
        f"all {each.count} {each.aspect.replace('_', ' ')}s are removed: the list is empty afterwards"
        for each in target.emptied
        if each.count > 1
    )


def show_key(change: Change) -> str:
    """Return the key of a change, visible; empty if it only repeats the aspect."""
    label = _aspect_of(change).shown(change).label
    return "" if label in {"", change.aspect} else show(label)


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


def local_time(text: str) -> str:
    """Return a time of the ledger to the minute, in the time zone of this machine."""
    return f"{parse_time(text).astimezone():%a %Y-%m-%d %H:%M %Z}"


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
    match before, after:
        case str(), str() if HIDDEN not in {before, after} and _frames(before, name) is None:
            return show_pair(before, after, limit=limit, quoted=True)
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
    return read_whole(value, least=0) if isinstance(value, str) else None


def _plain(change: Change, rate: Fraction | None, limit: int | None) -> Iterator[ValuePart]:
    before, after, name = change.before, change.after, change.key
    if change.action == "change":
        old, new = show_pair_of(before, after, name, rate, limit)
        yield ValuePart("", _UNKNOWN if before is None and change.basis == "none" else old, new)
    elif (value := before if change.action == "delete" else after) not in (None, change.key):
        yield _one_sided("", show_value(value, name, rate, limit=limit), change)


def _one_sided(label: str, shown: str, change: Change) -> ValuePart:
    """Return the only value of an attribute that is removed, or new."""
    return ValuePart(label, shown, None) if change.action == "delete" else ValuePart(label, None, shown)


def _item(change: Change, rate: Fraction | None, limit: int | None) -> Iterator[ValuePart]:
    """Yield the attributes of a list item that differ, and its place; of one that is added or removed, all of them."""
    before = change.before if isinstance(change.before, dict) else {}
    after = change.after if isinstance(change.after, dict) else {}
    for name in sorted(before | after, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER)):
        old, new = before.get(name), after.get(name)
        label = "at" if name == "frame" else visible(name)
        if _in_key(change.key, name, before | after):
            continue
        if change.action != "change":
            value = old if change.action == "delete" else new
            if value not in (None, "", []) and (name, value) != ("rating", 0):
                yield _one_sided(label, show_value(value, name, rate, limit=limit), change)
        elif name in after and new is None and name not in before:
            yield ValuePart(label, _UNKNOWN, _NOTHING)  # lost, and never known
        elif name in after and old != new:
            yield ValuePart(label, *show_pair_of(old, new, name, rate, limit))
        elif name in _PLACE or (old == HIDDEN and name in after):  # redacted values may differ
            shown = show_value(old, name, rate, limit=limit)
            yield ValuePart(label, shown, shown)


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
