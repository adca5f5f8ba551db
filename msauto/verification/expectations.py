"""What a request must show when its target is read again, by the same equality as the diff (``compare``).

Wants are as the server counts and spells: frames on the wire, texts, lists of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msauto.aspects.rss_identity import shown_as
from msauto.diffing.comparison import (
    Want,
    entry_called,
    item_field,
    item_matches,
    marker_matches,
    piece_matches,
    same_list,
    same_text,
    same_value,
    segment_matches,
    track_of,
)
from msauto.model.live import Entry, Folder, Marker, RssItem, Segment, parse_folder
from msauto.model.plan import Expectation, Json, Target
from msauto.model.ports import LiveTarget
from msauto.model.result import Difference


def holds(expect: Expectation, live: LiveTarget) -> bool | None:
    """Tell whether a thing is as expected; ``None`` where reading cannot show it."""
    looker = _LOOKERS.get(expect.aspect)
    if looker is None or expect.secret:
        return None
    if live.asset is None and expect.aspect not in {"rss_item", "link"}:
        return expect.desired is None
    return looker(expect, live)


def is_partly_hidden(expect: Expectation, live: LiveTarget) -> bool:
    """Tell whether a thing does not show, or not the whole of it: keywords of segments are seldom reported."""
    if holds(expect, live) is None:
        return True
    segment = segment_numbered(live, expect.key) if expect.aspect == "segment" else None
    return segment is not None and segment.keywords is None and bool(mapping(expect.desired).get("keywords"))


def can_show(expect: Expectation) -> bool:
    """Tell whether reading the target can show a thing at all: what is run rather than compared is never seen."""
    return expect.aspect in _LOOKERS and not expect.secret


def difference(expect: Expectation, live: LiveTarget) -> Difference | None:
    """Return what is not as expected; ``None`` where it is, or where reading cannot show it."""
    if holds(expect, live) is not False:
        return None
    return Difference(expect.aspect, expect.key, desired=_wanted(expect, live), live=_found(expect, live))


def final_expectations(target: Target) -> tuple[Expectation, ...]:
    """Return what all requests together must show: of each thing the last word, in the order first spoken of.

    What a later request overrules is left out: all of a deleted asset, the numbers that a segmentation takes over,
    the guid under which an item is put again.
    """
    words: dict[tuple[str, str], Expectation] = {}
    for expect in (expect for request in target.requests for expect in request.expect):
        words[expect.aspect, expect.key] = expect
    if any(word.aspect == "asset" and word.desired is None for word in words.values()):
        return tuple(word for word in words.values() if word.aspect in {"asset", "command", "link"})
    return tuple(word for word in words.values() if not _overruled(word, words.values()))


def _overruled(word: Expectation, words: Iterable[Expectation]) -> bool:
    if word.desired is not None:
        return False
    if word.aspect == "segment":
        return any(other.aspect == "segmentation" for other in words)
    return word.aspect == "rss_item" and any(word.key in _guids(other.desired) for other in words)


# One looker for each aspect; the asset is there ---------------------------------------------------------------


def _asset(expect: Expectation, live: LiveTarget) -> bool | None:
    return (live.asset is None) == (expect.desired is None)


def _title(expect: Expectation, live: LiveTarget) -> bool | None:
    title = live.asset.title if live.asset else None
    return title is None or same_text(title, str(expect.desired))


def _field(expect: Expectation, live: LiveTarget) -> bool | None:
    shown = live.asset.attributes.get(expect.key) if live.asset else None
    if shown is None and not expect.visible:
        return None
    return same_value(expect.key, shown, str(expect.desired))


def _xmp(expect: Expectation, live: LiveTarget) -> bool | None:
    if live.xmp is None:
        return None
    return same_list(live.xmp.get(expect.key, ()), texts(expect.desired))


def _segment(expect: Expectation, live: LiveTarget) -> bool | None:
    segment = segment_numbered(live, expect.key)
    if expect.desired is None or segment is None:
        return (expect.desired is None) == (segment is None)
    want = mapping(expect.desired)
    return segment_matches(want, segment, _text(want.get("keywords")))


def _segmentation(expect: Expectation, live: LiveTarget) -> bool | None:
    want = mapping(expect.desired)
    pieces = want.get("pieces")
    segments = live.asset.segments if live.asset else ()
    return isinstance(pieces, list) and all(
        any(piece_matches({**mapping(piece), "title": want.get("title")}, segment) for segment in segments)
        for piece in pieces
    )


def _marker(expect: Expectation, live: LiveTarget) -> bool | None:
    marker = marker_expected(expect, live)
    if expect.desired is None or marker is None:
        return (expect.desired is None) == (marker is None)
    return marker_matches(mapping(expect.desired), marker) and not _lost(expect, marker)


def _link(expect: Expectation, live: LiveTarget) -> bool | None:
    if mapping(expect.desired):
        return _link_field(expect, live)
    *folder, title = parse_folder(expect.key) or ("",)
    where = tuple(folder)
    if where not in live.folders:
        return None if live.asset is not None else expect.desired is None
    entries = live.folders[where]
    return (entry_called(entries or (), where, title) is None) == (expect.desired is None)


def _link_field(expect: Expectation, live: LiveTarget) -> bool | None:
    ((name, value),) = mapping(expect.desired).items()
    entry = link_entry(expect.key.removesuffix(f"#{name}"), live)
    if entry is None:
        return False
    shown = entry.attributes.get(name)
    return None if shown is None and not expect.visible else same_value(name, shown, str(value))


def link_entry(key: str, live: LiveTarget) -> Entry | None:
    """Return the entry that a link's folder lists."""
    *folder, title = parse_folder(key) or ("",)
    return entry_called(live.folders.get(tuple(folder)) or (), tuple(folder), title)


def _restore(_: Expectation, live: LiveTarget) -> bool | None:
    return bool(live.asset and live.asset.hires)


def _rss_item(expect: Expectation, live: LiveTarget) -> bool | None:
    items = live.channel.items if live.channel else ()
    if expect.desired is None:
        return not shown_as(items, [expect.key])
    want = mapping(expect.desired)
    found = items_expected(expect, live)
    if not found:
        # Something new shows under a name that we cannot recognise, or under none: it may be ours.
        new = any(_is_new(other, want) or (not other.guid and item_matches(want, other, want)) for other in items)
        return None if new else False
    return len(found) == 1 and item_matches(want, found[0], want)


_LOOKERS: Mapping[str, Callable[[Expectation, LiveTarget], bool | None]] = {
    "asset": _asset,
    "title": _title,
    "field": _field,
    "xmp": _xmp,
    "segment": _segment,
    "segmentation": _segmentation,
    "marker": _marker,
    "link": _link,
    "restore": _restore,
    "rss_item": _rss_item,
}


# Finding the thing that is expected ----------------------------------------------------------------------------


def segment_numbered(live: LiveTarget, key: str) -> Segment | None:
    """Return the segment of that number."""
    segments = live.asset.segments if live.asset else ()
    return next((segment for segment in segments if str(segment.number) == key), None)


def marker_expected(expect: Expectation, live: LiveTarget) -> Marker | None:
    """Return the marker that is meant: by its uid, or the new one that shows what is wanted."""
    markers = live.asset.markers if live.asset else ()
    want = mapping(expect.desired)
    uid = f"uid {want['uid']}" if "uid" in want else expect.key
    if uid.startswith("uid "):
        return next((marker for marker in markers if f"uid {marker.uid}" == uid), None)
    new = [marker for marker in markers if marker.uid not in expect.not_uids]
    at_place = [m for m in new if marker_matches({name: want[name] for name in ("frame", "track")}, m)]
    return next((m for m in at_place if marker_matches(want, m)), at_place[0] if at_place else None)


def _lost(expect: Expectation, marker: Marker) -> dict[str, Json]:
    """Return what a marker had, no task names, and the server cleared all the same."""
    return {name: text for name, text in expect.preserved.items() if marker_matches({name: ""}, marker)}


def items_expected(expect: Expectation, live: LiveTarget) -> tuple[RssItem, ...]:
    """Return all items that are the one meant: by a guid that it may show under, else the one new item that says it.

    More than one is a duplicate, which the server keeps beside what we put.
    """
    items, want = live.channel.items if live.channel else (), mapping(expect.desired)
    found = shown_as(items, _guids(expect.desired))
    if found or want.get("learn") is not True:
        return found
    new = tuple(item for item in items if _is_new(item, want) and item_matches(want, item, want))
    return new if len(new) == 1 else ()


def _is_new(item: RssItem, want: Want) -> bool:
    return bool(item.guid) and item.guid not in texts(want.get("others"))


def mapping(value: Json) -> Want:
    """Return a JSON object as a mapping; anything else has no attributes."""
    return value if isinstance(value, dict) else {}


def texts(value: Json) -> tuple[str, ...]:
    """Return a JSON list as texts."""
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _guids(want: Json) -> tuple[str, ...]:
    return texts(mapping(want).get("guids"))


def _text(value: Json) -> str | None:
    return None if value is None else str(value)


# What to show of it where it differs ---------------------------------------------------------------------------


def _wanted(expect: Expectation, live: LiveTarget) -> Json:
    """Return what a person reads as wanted: of an RSS item its content, without how it is recognised."""
    if expect.aspect == "marker" and expect.preserved:
        marker = marker_expected(expect, live)
        return {**mapping(expect.desired), **(_lost(expect, marker) if marker else {})}
    if expect.aspect != "rss_item" or expect.desired is None:
        return expect.desired
    want = mapping(expect.desired)
    return want.get("text", want.get("item"))


def _found(expect: Expectation, live: LiveTarget) -> Json:
    asset = live.asset
    if asset is None and expect.aspect not in {"rss_item", "link"}:
        return None
    shower = _SHOWERS.get(expect.aspect)
    return shower(expect, live) if shower else None


def _show_field(expect: Expectation, live: LiveTarget) -> Json:
    return live.asset.attributes.get(expect.key) if live.asset else None


def _show_xmp(expect: Expectation, live: LiveTarget) -> Json:
    return list((live.xmp or {}).get(expect.key, ()))


def _show_segment(expect: Expectation, live: LiveTarget) -> Json:
    segment = segment_numbered(live, expect.key)
    return show_segment(segment) if segment else None


def _show_marker(expect: Expectation, live: LiveTarget) -> Json:
    marker = marker_expected(expect, live)
    return show_marker(marker) if marker else None


def _show_link(expect: Expectation, live: LiveTarget) -> Json:
    for name in mapping(expect.desired):
        entry = link_entry(expect.key.removesuffix(f"#{name}"), live)
        return {name: entry.attributes.get(name)} if entry is not None else None
    return None if expect.desired is not None else expect.key


def _show_item(expect: Expectation, live: LiveTarget) -> Json:
    items = live.channel.items if live.channel else ()
    found = items_expected(expect, live) if expect.desired is not None else shown_as(items, [expect.key])
    shown: list[Json] = list(map(show_item, found))
    return shown if len(shown) > 1 else next(iter(shown), None)


_SHOWERS: Mapping[str, Callable[[Expectation, LiveTarget], Json]] = {
    "asset": lambda _, live: live.asset.title if live.asset else None,
    "title": lambda _, live: live.asset.title if live.asset else None,
    "field": _show_field,
    "xmp": _show_xmp,
    "segment": _show_segment,
    "segmentation": lambda _, live: [show_segment(segment) for segment in live.asset.segments] if live.asset else None,
    "marker": _show_marker,
    "link": _show_link,
    "restore": lambda _, live: live.asset.hires if live.asset else None,
    "rss_item": _show_item,
}


def show_segment(segment: Segment) -> dict[str, Json]:
    """Return a live segment as plans show it: frames as numbers, only what the server tells."""
    shown: dict[str, Json] = {
        "number": segment.number,
        "start": segment.start,
        "duration": segment.duration,
        "title": segment.title,
    }
    told: dict[str, Json] = {"keywords": segment.keywords, "track": segment.track, "rating": segment.rating}
    told["further_titles"] = list(segment.titles[1:])
    return shown | {name: value for name, value in told.items() if value}


def show_item(item: RssItem) -> dict[str, Json]:
    """Return a live item of a channel as plans show it."""
    return {name: text for name in ("title", "description", "link", "pubDate") if (text := item_field(item, name))}


def show_marker(marker: Marker, frame: int | None = None) -> dict[str, Json]:
    """Return a live marker as plans show it; ``frame`` replaces the server's count."""
    shown: dict[str, Json] = {"uid": marker.uid, "frame": marker.frame if frame is None else frame}
    shown["track"] = track_of(marker)
    return shown | {name: value for name, value in marker.fields.items() if value and name != "track"}


def folder_of(key: str) -> Folder:
    """Return the folder that the key of a link begins with."""
    return parse_folder(key)[:-1]
