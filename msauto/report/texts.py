"""Texts that all forms share: headings, the closing sentence of a plan, refusals, changes and their values.

Values of changes are JSON. Frames are numbers; their time codes are added here, at the frame rate of the target.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from msauto.errors import RefusedError
from msauto.model.fields import LINK_FIELDS, MARKER_ATTRIBUTES, names
from msauto.model.plan import Action, Body, Change, Outside, Plan, Refusal, Target
from msauto.model.result import COUNT_OF, parse_time
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
    "remove_items": (
        "list item",
        "the plan loses {count} that no task names by key; the limit is {limit}",
    ),
    "requests": ("request", "the plan sends {count}; the limit is {limit}"),
    "empty_list": (
        "",
        "the plan empties a list of {count} items by `exactly`; the limit is {limit} items",
    ),
    "protected": (
        "",
        "{count} is protected by '{limit}': nothing there may be deleted, removed or overwritten",
    ),
    "read_only": ("", "{count} is read-only by '{limit}': nothing may be written there"),
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
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}s"


def count_deletions(assets: int, links: int) -> str:
    """Return how many assets and links are deleted.

    >>> count_deletions(1, 2), count_deletions(0, 1)
    ('1 asset and 2 links', '1 link')
    """
    if not links:
        return plural(assets, "asset")
    if not assets:
        return plural(links, "link")
    return f"{plural(assets, 'asset')} and {plural(links, 'link')}"


def count_outcomes(counts: Mapping[str, int]) -> str:
    """Return how many targets have each outcome, as the ledger counts them.

    >>> count_outcomes({"not_attempted": 1, "changed": 2, "requests": 3})
    '2 changed, 1 not attempted'
    """
    parts = []
    for outcome, name in COUNT_OF.items():
        count = counts.get(name)
        if count:
            parts.append(f"{count} {outcome}")
    return ", ".join(parts)


# Targets -------------------------------------------------------------------------------------------------------


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
    if target.folder:
        return f"in {show(target.folder)}"
    return "in the root folder"


def plan_sentence(plan: Plan, *, keep_going: bool = False) -> str:
    """Return the closing sentence of a plan, in the style of Terraform."""
    rest = []
    if plan.kept:
        rest.append(f"{plan.kept} kept: what others changed stays.")
    if plan.skipped:
        reasons = Counter(target.reason for target in plan.skipped)
        counts = [f"{reasons[reason]} {reason}" for reason in sorted(reasons)]
        rest.append(f"{len(plan.skipped)} skipped ({', '.join(counts)}).")
    changing = [target for target in plan.targets if target.changes and target.error is None]
    if not changing and not plan.errors:
        return " ".join(["No changes.", *_compared(plan), *rest])
    sentences = [_planned(plan, changing)]
    if plan.unchanged:
        sentences.append(f"{plan.unchanged} unchanged.")
    sentences += rest
    if len(plan.batches) > 1 and changing:
        sentences.append(_in_batches(plan))
    outside = plan.summary.outside
    if outside:
        them = "it" if outside == 1 else "them"
        sentences.append(f"{count_outside(outside)}; to keep {them}: `outside: keep`.")
    if plan.errors:
        effect = "left out" if keep_going else "nothing can be applied"
        sentences.append(f"{plural(plan.errors, 'target')} in error: {effect}.")
    return " ".join(sentences)


def _compared(plan: Plan) -> Iterator[str]:
    if plan.unchanged:
        verb = "is" if plan.unchanged == 1 else "are"
        yield f"{plural(plan.unchanged, 'target')} {verb} as desired."
    elif not plan.kept:
        yield "Nothing was compared."


def _planned(plan: Plan, changing: Sequence[Target]) -> str:
    """Return how many changes of each kind there are, on how many targets, by how many requests."""
    what = ", ".join(f"{getattr(plan.summary, action)} to {action}" for action in SIGNS)
    kinds = [target.kind for target in changing]
    parts = [plural(kinds.count(kind), noun) for kind, noun in KINDS.items() if kind in kinds]
    if parts:
        targets = " and ".join(", ".join(parts).rsplit(", ", 1))
        what = f"{what}, on {targets}"
    return f"Plan: {what}; {plural(plan.requests, 'request')}."


def _in_batches(plan: Plan) -> str:
    parts = [visible(" ".join(batch.servers)) for batch in plan.batches[:_BATCHES]]
    others = len(plan.batches) - len(parts)
    if others:
        parts.append(f"{others} more")
    return f"In {len(plan.batches)} batches: {', then '.join(parts)}."


def count_outside(count: int) -> str:
    """Return how many things others have changed since the last run.

    >>> count_outside(1), count_outside(2)
    ('1 thing was changed outside', '2 things were changed outside')
    """
    verb = "was" if count == 1 else "were"
    return f"{plural(count, 'thing')} {verb} changed outside"


def settings_line(plan: Plan) -> str:
    """Return which settings file applies; empty without one."""
    if plan.settings is None:
        return ""
    return f"Settings: {visible(plan.settings.path)}"


# Refusals ------------------------------------------------------------------------------------------------------


def refusal_sentence(refusal: Refusal) -> str:
    """Return what is refused, by which limit, and what allows it; visible, because it may hold titles and globs."""
    sentence = f"Refused: {refusal_reason(refusal)}."
    if refusal.remedy:
        allows = "To allow it" if refusal.remedy.startswith("--") else "No flag allows it"
        sentence = f"{sentence} {allows}: {refusal.remedy}"
    return visible(sentence)


def refusal_error(refusals: Sequence[Refusal]) -> RefusedError:
    """Return the error of a plan that is refused, with the reasons and all remedies; visible."""
    reasons = [refusal_reason(refusal) for refusal in refusals[:SHOWN_REASONS]]
    others = len(refusals) - len(reasons)
    if others:
        reasons.append(f"{others} more, shown with the plan")
    flags = []
    remedies = []
    for refusal in refusals:
        if refusal.remedy.startswith("--"):
            flags.append(refusal.remedy)
        else:
            remedies.append(refusal.remedy)
    first = "; ".join(dict.fromkeys(remedies[:SHOWN_REASONS]))
    # No flag allows what the other remedies are for.
    remedy = "; then ".join(filter(None, (first, " ".join(flags))))
    message = f"{'; '.join(reasons)}: nothing was sent"
    return RefusedError(visible(message), remedy=visible(remedy))


def refusal_reason(refusal: Refusal) -> str:
    """Return what a plan does and the limit that refuses it, without a remedy."""
    count: int | str = refusal.count
    noun, reason = _REASONS.get(refusal.code, _OTHER_REASON)
    if isinstance(count, int) and noun:
        assets = count - refusal.links
        count = count_deletions(assets, refusal.links) if refusal.links else plural(count, noun)
    what = refusal.code.replace("_", " ")
    return reason.format(what=what, count=count, limit=refusal.limit)


SIGNS: Final[dict[Action, str]] = {"add": "+", "change": "~", "delete": "-", "run": "!"}
_IN_FRAMES = frozenset(
    {
        "at",
        "duration",
        "frame",
        "frames",
        "length",
        "pos",
        "start",
        "start_frame",
        *names(LINK_FIELDS, "position"),
    }
)
_PLACE = ("at", "frame", "pos", "start", "start_frame")
"""Attributes that identify an item; shown also if they do not change."""
_ORDER = (*_PLACE, "duration", "track", "title", "further_titles", *names(MARKER_ATTRIBUTES))
_LABELS = {"frame": "at"}
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
        shown = self.before if self.after is None else self.after
        return shown or ""

    def __str__(self) -> str:
        text = self.value
        if self.changes:
            text = f"{self.before} → {self.after}"
        if self.label:
            return f"{self.label} {text}"
        return text


class ValueWidth(Struct, frozen=True):
    """The most columns of a value, alone and within a list item; ``None``: no limit."""

    alone: int | None = 60
    item: int | None = 36


WHOLE = ValueWidth(None, None)


def _aspect_of(change: Change) -> Aspect:
    from msauto.aspects import ASPECTS  # counts and times are also shown where no change is

    return ASPECTS[change.aspect]


def change_parts(
    change: Change, target: Target, short: ValueWidth = WHOLE
) -> tuple[ValuePart, ...]:
    """Return what a change does, attribute by attribute; empty if its key shows everything."""
    aspect = _aspect_of(change)
    details = aspect.details(change, target)
    if details:
        parts = []
        for detail in details:
            shown = _detail(detail, target)
            parts.append(_one_sided(visible(detail.label), shown, change))
        return tuple(parts)
    change = aspect.shown(change).change
    if isinstance(change.before, dict) or isinstance(change.after, dict):
        item_parts = _changed_item if change.action == "change" else _item
        return tuple(item_parts(change, target.rate, short.item))
    return tuple(_plain(change, target.rate, short.alone))


def change_notes(change: Change, rate: Fraction | None = None) -> Iterator[str]:
    """Yield notes on a change, such as where ``before`` comes from and whether it can be undone."""
    from msauto.aspects.downloads import Download  # as above

    if change.basis in _BASIS and change.action != "run":
        yield _BASIS[change.basis]
    if change.outside is not None:
        yield outside_note(change, change.outside, rate)
    if change.losses:
        is_removed = change.action == "delete"
        yield "removed by `exactly`" if is_removed else "loses what no task names"
    if change.handler:
        when = ", before the deletion" if change.before else ""
        yield f"handler {show(change.handler, quoted=True)}{when}"
    if change.pending:
        yield f"pending since run {visible(change.pending)}"
    if change.secret:
        yield "secret"
    if not change.reversible and not isinstance(_aspect_of(change), Download):
        yield "cannot be undone"


def outside_note(change: Change, outside: Outside, rate: Fraction | None) -> str:
    """Return since when others have changed a thing, who it was, and what it was, unless it becomes that again."""
    done = done_outside(change, outside)
    if done == "made":
        return f"made outside, by user {show(outside.user)}" if outside.user else "made outside"
    note = f"{done} outside since {local_time(outside.at)}"
    if outside.user:
        note = f"{note}, by user {show(outside.user)}"
    if change.before is None:
        return note
    if isinstance(outside.left, list):
        return f"{note}: {', '.join(map(visible, map(str, outside.left)))}"
    after = _attributes(change.after, change.key)
    earlier = []
    for name, value in _attributes(outside.left, change.key).items():
        if after.get(name) != value:
            label = "" if name == change.key else f"{visible(name)} "
            earlier.append(f"{label}{show_value(value, name, rate)}")
    if earlier:
        note = f"{note}, was {', '.join(earlier)}"
    return note


def _attributes(value: Json, key: str) -> Mapping[str, Json]:
    """Return the attributes of an item; those of another value are the value itself."""
    if isinstance(value, dict):
        return value
    return {key: value}


def done_outside(change: Change, outside: Outside) -> str:
    """Return what others did to a thing: ``deleted``, ``made``, ``moved`` or ``changed``."""
    if change.before is None:
        return "deleted"
    if outside.left is None:
        return "made"
    is_moved = isinstance(outside.left, dict) and outside.left.keys() <= set(_PLACE)
    if is_moved:
        return "moved"
    return "changed"


def emptied_lists(target: Target) -> tuple[str, ...]:
    """Return a line for each list that ``exactly`` empties."""
    lines = []
    for emptied in target.emptied:
        if emptied.count > 1:
            items = f"all {emptied.count} {emptied.aspect.replace('_', ' ')}s"
            lines.append(f"{items} are removed: the list is empty afterwards")
    return tuple(lines)


def show_key(change: Change) -> str:
    """Return the key of a change, visible; empty if it only repeats the aspect."""
    label = _aspect_of(change).shown(change).label
    if label in {"", change.aspect}:
        return ""
    return show(label)


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
    minutes, rest = divmod(rest, 60)
    parts = []
    for number, unit in ((hours, "h"), (minutes, "min"), (rest, "s")):
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts) or "0 s"


def local_time(text: str) -> str:
    """Return a time of the ledger to the minute, in the time zone of this machine."""
    return f"{parse_time(text).astimezone():%a %Y-%m-%d %H:%M %Z}"


def show_duration(seconds: float) -> str:
    """Return how long something took: ``under 0.1 s``, ``0.4 s``, ``9.8 s``, then as :func:`show_seconds`."""
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return show_seconds(seconds)


def show_value(
    value: Json, name: str = "", rate: Fraction | None = None, *, limit: int | None = None
) -> str:
    """Return one JSON value on one line, visible; ``name`` is its attribute, which may count frames.

    Texts are always in double quotes, numbers, time codes and redacted values never.
    """
    frames = _frames(value, name)
    if frames is not None:
        return show_frames(frames, rate)
    if value is None:
        return _NOTHING
    if value == HIDDEN:
        return HIDDEN
    if isinstance(value, str):
        return show(value, limit=limit, quoted=True)
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


def show_pair_of(
    before: Json, after: Json, name: str, rate: Fraction | None, limit: int | None
) -> tuple[str, str]:
    """Return two values so that they look different if they are."""
    match before, after:
        case str(), str():
            if HIDDEN not in {before, after} and _frames(before, name) is None:
                return show_pair(before, after, limit=limit)
    old = show_value(before, name, rate, limit=limit)
    new = show_value(after, name, rate, limit=limit)
    if old != new or before == after:
        return old, new
    old = show_value(before, name, rate)
    new = show_value(after, name, rate)
    if old != new:
        return old, new
    return visible(json.dumps(before)), visible(json.dumps(after))


def _frames(value: Json, name: str) -> int | None:
    if name not in _IN_FRAMES or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return read_whole(value, least=0)
    return None


def _plain(change: Change, rate: Fraction | None, limit: int | None) -> Iterator[ValuePart]:
    before, after, name = change.before, change.after, change.key
    if change.action == "change":
        old, new = show_pair_of(before, after, name, rate, limit)
        if before is None and change.basis == "none":
            old = _UNKNOWN
        yield ValuePart("", old, new)
        return
    value = before if change.action == "delete" else after
    if value not in (None, name):
        yield _one_sided("", show_value(value, name, rate, limit=limit), change)


def _one_sided(label: str, shown: str, change: Change) -> ValuePart:
    """Return the only value of an attribute that is removed, or new."""
    if change.action == "delete":
        return ValuePart(label, shown, None)
    return ValuePart(label, None, shown)


def _item(change: Change, rate: Fraction | None, limit: int | None) -> Iterator[ValuePart]:
    """Yield the attributes of a list item that is added or removed, but for those that are not set."""
    value = change.before if change.action == "delete" else change.after
    item = value if isinstance(value, dict) else {}
    for name in _names_in_order(item, change.key):
        attribute = item[name]
        is_unset = attribute in (None, "", []) or (name, attribute) == ("rating", 0)
        if not is_unset:
            label = visible(_LABELS.get(name, name))
            shown = show_value(attribute, name, rate, limit=limit)
            yield _one_sided(label, shown, change)


def _changed_item(change: Change, rate: Fraction | None, limit: int | None) -> Iterator[ValuePart]:
    """Yield the attributes of a list item that differ, and its place."""
    before = change.before if isinstance(change.before, dict) else {}
    after = change.after if isinstance(change.after, dict) else {}
    for name in _names_in_order(before | after, change.key):
        old = before.get(name)
        new = after.get(name)
        label = visible(_LABELS.get(name, name))
        was_never_known = name not in before and new is None
        may_differ = old == HIDDEN and name in after  # both are redacted
        if name in after and old != new:
            shown, shown_after = show_pair_of(old, new, name, rate, limit)
            yield ValuePart(label, shown, shown_after)
        elif was_never_known:
            yield ValuePart(label, _UNKNOWN, _NOTHING)
        elif name in _PLACE or may_differ:
            shown = show_value(old, name, rate, limit=limit)
            yield ValuePart(label, shown, shown)


def _names_in_order(item: Mapping[str, Json], key: str) -> list[str]:
    """Return the attributes of an item that the key of its change does not show."""
    names = [name for name in item if not _in_key(key, name, item)]
    return sorted(names, key=_place_in_order)


def _place_in_order(name: str) -> int:
    if name in _ORDER:
        return _ORDER.index(name)
    return len(_ORDER)


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
        texts = map(str, detail.value)
        return "; ".join(show(text, quoted="; " in text) for text in texts)
    if detail.name:
        return show_value(detail.value, detail.name, target.rate)
    return show(str(detail.value))
