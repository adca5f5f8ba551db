"""What the ledger keeps after a proof: what the server does not report, and whose uid and guid is whose."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

from msauto.aspects.rss_identity import shown_as
from msauto.diffing.comparison import plain
from msauto.model.plan import Change, Expectation, Json, Target
from msauto.model.ports import LiveTarget
from msauto.model.result import Difference
from msauto.verification.expectations import (
    final_expectations,
    holds,
    items_expected,
    link_entry,
    mapping,
    marker_expected,
    segment_numbered,
    texts,
)

Item = tuple[str, Json]
ExpectationKey = tuple[str, str]

BETWEEN = "segment-between:"
"""Prefix of the memory of a segment that was deleted to be made anew, until it is."""


def memories(target: Target, live: LiveTarget, doubtful: Container[ExpectationKey] = frozenset()) -> dict[str, Json]:
    """Return the items ``aspect:key`` to keep of what the target's requests have done; ``None`` forgets one.

    Nothing is kept of what is ``doubtful``: what the proof shows otherwise than wanted.
    """
    kept: dict[str, Json] = {}
    for request in target.requests:
        if not any(expectation_key(each) in doubtful for each in request.expect):
            for change in request.changes:
                kept.update(_of_change(target.changes[change]))
    for word in final_expectations(target):
        hidden = word.secret and word.aspect in _VALUES
        rememberer = None if hidden or expectation_key(word) in doubtful else _REMEMBERERS.get(word.aspect)
        kept.update(rememberer(word, live) if rememberer else ())
    return kept | dict(_left(target, live))


def expectation_key(sourced: Expectation | Difference) -> ExpectationKey:
    """Return aspect and key of a thing: what an expectation and a difference from it have in common."""
    return sourced.aspect, sourced.key


def learned(target: Target, live: LiveTarget) -> dict[str, Json]:
    """Return what the server named by itself: the uids of new markers, by ``marker:<key>``."""
    words = (word for word in final_expectations(target) if word.aspect == "marker" and word.desired is not None)
    found = ((word.key, marker_expected(word, live)) for word in words if not word.key.startswith("uid "))
    return {f"marker:{key}": marker.uid for key, marker in found if marker is not None}


def _of_change(change: Change) -> Iterator[Item]:
    """Forget what a deletion, or the move of a marker, makes untrue."""
    before = mapping(change.before)
    if change.aspect == "marker" and before:
        yield f"marker:{before.get('track')}@{before.get('frame')}", None
    if change.aspect == "rss_item" and change.action == "delete":
        yield f"rss_item:{change.key}", None


def _field(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    reported = live.asset is not None and word.key in live.asset.attributes
    if reported or word.visible:
        yield f"reported:{word.key}", True
    yield f"field:{word.key}", None if reported or word.visible else word.desired


def _xmp(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    yield f"xmp:{word.key}", word.desired if live.xmp is None else None


def _segment(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    segment = segment_numbered(live, word.key)
    hidden = segment is not None and segment.keywords is None
    yield f"segment-keywords:{word.key}", mapping(word.desired).get("keywords") if hidden else None
    if segment is not None and word.desired is not None:
        yield f"{BETWEEN}{word.key}", None


def _marker(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    marker = marker_expected(word, live) if word.desired is not None else None
    if marker is not None and not word.key.startswith("uid "):
        yield f"marker:{word.key}", marker.uid


def _link(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep a field of a link that its folder does not list."""
    for name, value in mapping(word.desired).items():
        entry = link_entry(word.key.removesuffix(f"#{name}"), live)
        reported = word.visible or (entry is not None and name in entry.attributes)
        if reported:
            yield f"link-reported:{word.key}", True
        yield f"link-field:{word.key}", None if reported else value


def _rss_item(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    if word.desired is None:
        return
    item = next(iter(items_expected(word, live)), None)
    want = mapping(word.desired)
    content: dict[str, Json] = {name: want[name] for name in ("text", "item") if name in want}
    yield f"rss_item:{word.key}", {"content": content, "seen": item is not None, "file": want.get("file")}
    yield f"rss-guid:{word.key}", item.guid if item is not None and item.guid != word.key else None


def _left(target: Target, live: LiveTarget) -> Iterator[Item]:
    """Learn from what is there too often: how many items a DELETE left, beside the one put, and what that is called."""
    expects = [expect for request in target.requests for expect in request.expect if expect.aspect == "rss_item"]
    put = {plain(guid) for each in expects for guid in texts(mapping(each.desired).get("guids"))}
    for gone in (each.key for each in expects if each.desired is None and live.channel is not None):
        count = len(shown_as(live.channel.items if live.channel else (), [gone]))
        yield f"rss-left:{gone}", count if count > (plain(gone) in put) else None
    for word in (each for each in expects if each.desired is not None):
        found = items_expected(word, live)
        names = [item.guid for item in found if item.guid != word.key] if len(found) > 1 else []
        yield from ((f"rss-guid:{word.key}", name) for name in names[:1])


def _command(word: Expectation, live: LiveTarget) -> Iterator[Item]:
    """A command that ran once, or always, has run; of handlers only the debt is kept."""
    if word.desired in {"once", "always"} and holds(word, live) is not False:
        yield f"command:{word.key}", True


def _xmp_batch(word: Expectation, _: LiveTarget) -> Iterator[Item]:
    yield f"xmp_batch:{word.key}", True


_VALUES = frozenset({"field", "xmp", "segment", "rss_item"})
"""Of these the value is remembered: where it is hidden (a run that died), nothing is known of it any more."""

_REMEMBERERS: Mapping[str, Callable[[Expectation, LiveTarget], Iterator[Item]]] = {
    "field": _field,
    "xmp": _xmp,
    "segment": _segment,
    "marker": _marker,
    "link": _link,
    "rss_item": _rss_item,
    "command": _command,
    "xmp_batch": _xmp_batch,
}
