"""Random live and desired states against an independent model of the server.

After applying, planning again is empty. On small states no shorter way leads to the desired state, by an exhaustive
search over everything that a request could do.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msauto.applying.verification import verify
from msauto.model.plan import Target
from msauto.model.result import RequestResult
from msauto.model.server import Dialect
from tests.examples import examples
from tests.unit.planning.planning_world import Clip, Stage, read_after, stage, why_not
from tests.unit.planning.playbook_forms import asset_intent


def results(target: Target) -> list[RequestResult]:
    return [RequestResult("done", 200)] * len(target.requests)


TITLES = ("", "a", "b")
TRACKS = ("General", "Icon")
FRAMES = 6

Markers = list[dict[str, Any]]
Segments = dict[int, dict[str, Any]]


@st.composite
def live_markers(draw: st.DrawFn, size: int) -> Markers:
    uids = draw(st.lists(st.integers(1, 9), unique=True, max_size=size))
    return [
        {
            "uid": uid,
            "frame": draw(st.integers(0, 2)),
            "track": draw(st.sampled_from(TRACKS)),
            "title": draw(st.sampled_from(TITLES)),
        }
        for uid in uids
    ]


@st.composite
def wanted_markers(draw: st.DrawFn, live: Markers, size: int) -> list[dict[str, Any]]:
    """Desired markers, consistent with each other: one for each place, by uid or by place; some absent."""
    desired: dict[Any, dict[str, Any]] = {}
    for _ in range(draw(st.integers(0, size))):
        item: dict[str, Any] = {
            "at": draw(st.integers(0, 3)),
            "track": draw(st.sampled_from(TRACKS)),
        }
        if draw(st.booleans()):
            item["title"] = draw(st.sampled_from(TITLES))
        place = (item["at"], item["track"])
        if live and draw(st.integers(0, 3)) == 0:
            item["uid"] = draw(st.sampled_from([m["uid"] for m in live]))
        if place not in desired and item.get("uid") not in {
            w.get("uid", 0) for w in desired.values()
        }:
            desired[place] = item
    return list(desired.values())


@st.composite
def segments_of(draw: st.DrawFn, size: int) -> Segments:
    numbers = draw(st.lists(st.integers(1, 4), unique=True, max_size=size))
    return {number: draw(_segment()) for number in numbers}


@st.composite
def _segment(draw: st.DrawFn) -> dict[str, Any]:
    start = draw(st.integers(0, 3))
    return {
        "start": start,
        "duration": draw(st.integers(1, FRAMES - start)),
        "title": draw(st.sampled_from(TITLES)),
    }


@st.composite
def wanted_segments(draw: st.DrawFn, size: int) -> list[dict[str, Any]]:
    numbered = draw(st.booleans())
    found: dict[Any, dict[str, Any]] = {}
    for number, segment in draw(segments_of(size)).items():
        item = dict(segment)
        if draw(st.booleans()):
            item.pop("title", None)
        key: Any = item["start"], item["duration"]
        if numbered:
            item["number"] = key = number
        found.setdefault(key, item)
    return list(found.values())


# Planning again is empty --------------------------------------------------------------------------------------


@settings(max_examples=examples(300))
@given(st.data())
def test_planning_again_gives_nothing(data: st.DataObject) -> None:
    live, args, dialect = _any_case(data, markers=5, segments=4)
    context = stage(live, dialect=dialect, folders={"Playout"})
    intent = asset_intent({"title": "Film", **args})
    first = context.plan(intent)
    context.apply(first)
    again = context.plan(intent)
    assert again.targets == (), context.server.sent


@settings(max_examples=examples(100))
@given(st.data())
def test_the_proof_agrees_with_the_diff(data: st.DataObject) -> None:
    live, args, dialect = _any_case(data, markers=4, segments=3)
    context = stage(live, dialect=dialect, folders={"Playout"})
    intent = asset_intent({"title": "Film", **args})
    found = context.plan(intent)
    for target in found.targets:
        assert verify(target, results(target), read_after(target, context.reader)).differences
        assert why_not(target, context.reader) == ""
    context.apply(found)
    for target in found.targets:
        assert verify(target, results(target), read_after(target, context.reader)).differences == ()


@settings(max_examples=examples(200))
@given(st.data())
def test_a_segmentation_is_reached_and_then_left_alone(data: st.DataObject) -> None:
    live = data.draw(segments_of(4))
    duration = data.draw(st.integers(1, 7))
    exact = data.draw(st.booleans())
    title = data.draw(st.sampled_from(["", "a"]))
    dialect = data.draw(st.sampled_from([Dialect(), Dialect(segment_update="overwrite")]))
    clip = Clip("Film", frames=FRAMES, segments=copy.deepcopy(live))
    context = stage(clip, dialect=dialect)
    pieces: dict[str, Any] = {"duration": duration}
    if title:
        pieces["title"] = title
    exactly = ["segments"] if exact else []
    intent = asset_intent({"title": "Film", "segmentation": pieces, "exactly": exactly})
    context.apply(context.plan(intent))
    grid = {start: min(duration, FRAMES - start) for start in range(0, FRAMES, duration)}
    there: dict[int, set[int]] = {}
    for segment in clip.segments.values():
        if segment.get("title", "").startswith(title):
            there.setdefault(segment["start"], set()).add(segment["duration"])
    for start, length in grid.items():
        assert length in there[start]
    if exact:
        assert len(clip.segments) == len(grid)
    assert len(context.server.sent) <= len(live) + len(grid)
    assert context.plan(intent).targets == ()


@settings(max_examples=examples(100))
@given(st.data())
def test_it_does_not_matter_how_tasks_share_what_they_want(data: st.DataObject) -> None:
    live, args, dialect = _any_case(data, markers=4, segments=3)
    args |= {"title": "Film", "exactly": []}
    one, other = dict(args), dict(args)
    for name in ("markers", "segments"):
        items = args[name]
        cut = data.draw(st.integers(0, len(items)))
        one[name] = items[:cut]
        other[name] = items[cut:]

    def sent(*tasks: dict[str, Any]) -> list[str]:
        context = stage(copy.deepcopy(live), dialect=dialect, folders={"Playout"})
        context.apply(context.plan(*map(asset_intent, tasks)))
        return sorted(context.server.sent)

    assert sent(args) == sent(one, other)


@settings(max_examples=examples(100))
@given(st.data())
def test_what_a_server_hides_is_written_once(data: st.DataObject) -> None:
    live, args, dialect = _any_case(data, markers=3, segments=3)
    args["segments"] = [
        {**segment, "keywords": data.draw(st.sampled_from(["", "k"]))}
        for segment in args["segments"]
    ]
    live.fields, live.xmp = {"first_frame": "1"}, None
    args["markers"] = [{**marker, "at": marker["at"] + 1} for marker in args["markers"]]
    args["segments"] = [{**s, "start": s["start"] + 1, "duration": 1} for s in args["segments"]]
    dialect = replace(dialect, position_origin="in")
    # An answer that shows some of the fields shows that the others are not set.
    hidden: dict[str, Any] = {"reported": frozenset(), "reports_keywords": False}
    context = stage(live, dialect=dialect, folders={"Playout"}, **hidden)
    intent = asset_intent({"title": "Film", **args})
    context.server.clips["Film"].xmp = None
    first = context.plan(intent)
    live.xmp = {}  # it takes what is written ...
    for target in first.targets:
        assert target.error is None or "two tasks" in target.error
        for request in target.requests:
            context.server.apply(request)
        live.xmp = None  # ... and shows nothing of it
        after = read_after(target, context.reader)
        context.memory.remember(target.id, verify(target, results(target), after).remembered)
    again = context.plan(intent)
    assert [t for t in again.targets if t.error is None] == [], context.server.sent


def _any_case(
    data: st.DataObject, *, markers: int, segments: int
) -> tuple[Clip, dict[str, Any], Dialect]:
    there = data.draw(live_markers(markers))
    args: dict[str, Any] = {
        "fields": data.draw(
            st.dictionaries(
                st.sampled_from(["comment", "user_1", "layer"]), st.sampled_from(["", "1"])
            )
        ),
        "xmp": data.draw(
            st.dictionaries(
                st.sampled_from(["dc:a", "dc:b"]), st.lists(st.sampled_from("xy"), max_size=2)
            )
        ),
        "markers": data.draw(wanted_markers(there, markers)),
        "segments": data.draw(wanted_segments(segments)),
        "exactly": data.draw(st.lists(st.sampled_from(["markers", "segments"]), unique=True)),
    }
    args |= {"links": [{"folder": "Playout"}]} if data.draw(st.booleans()) else {}
    reported = data.draw(
        st.dictionaries(st.sampled_from(["comment", "layer"]), st.sampled_from(["", "1", "01"]))
    )
    clip = Clip(
        "Film",
        frames=FRAMES,
        fields=reported,
        xmp=data.draw(
            st.dictionaries(
                st.sampled_from(["dc:a", "dc:b"]), st.lists(st.sampled_from("xy"), max_size=2)
            )
        ),
        markers=there,
        segments=data.draw(segments_of(segments)),
    )
    dialect = Dialect(
        segment_update=data.draw(st.sampled_from(["recreate", "overwrite"])),
        marker_update=data.draw(st.sampled_from(["full", "changed"])),
    )
    return clip, args, dialect


# No shorter way ------------------------------------------------------------------------------------------------


def applied(context: Stage, args: dict[str, Any]) -> int:
    """Plan and apply; return how many requests that took."""
    context.apply(context.plan(asset_intent({"title": "Film", **args})))
    return len(context.server.sent)


def shortest(
    start: Any, goal: Callable[[Any], bool], steps: Callable[[Any], Iterator[Any]], most: int
) -> int:
    """Search breadth first; every request counts one. ``most`` is where the search gives up: nothing is shorter."""
    seen = {start}
    queue = deque([(start, 0)])
    while queue:
        state, cost = queue.popleft()
        if goal(state):
            return cost
        if cost + 1 >= most:
            continue
        for following in steps(state):
            if following not in seen:
                seen.add(following)
                queue.append((following, cost + 1))
    return most


MarkerState = frozenset[tuple[int, int, str, str]]
"""Markers as (uid, frame, track, title); new ones have uids from 100."""


@settings(max_examples=examples(120))
@given(st.data())
def test_no_shorter_way_for_markers(data: st.DataObject) -> None:
    live = data.draw(live_markers(3))
    desired = data.draw(wanted_markers(live, 3))
    exact = data.draw(st.booleans())
    exactly = ["markers"] if exact else []
    clip = Clip("Film", frames=FRAMES, markers=copy.deepcopy(live))
    context = stage(clip, reuses_uids=False)
    planned = applied(context, {"markers": desired, "exactly": exactly})
    start = _markers(live)
    goal = _marker_goal(start, desired, exact)
    assert goal(_markers(clip.markers))
    assert planned == shortest(start, goal, _marker_steps(start, desired), planned)


def _markers(live: Markers) -> MarkerState:
    return frozenset((m["uid"], m["frame"], m["track"], m.get("title", "")) for m in live)


def _marker_goal(
    start: MarkerState, desired: list[dict[str, Any]], exact: bool
) -> Callable[[MarkerState], bool]:
    places = {(w["at"], w["track"]) for w in desired}
    by_uid = {w["uid"] for w in desired if "uid" in w}
    stood = {m[0]: m[1:3] for m in start if m[0] not in by_uid}

    def fits(want: dict[str, Any], marker: tuple[int, int, str, str]) -> bool:
        uid, frame, track, title = marker
        place = (frame, track) == (want["at"], want["track"]) and want.get("uid", uid) == uid
        return place and want.get("title", title) == title

    def goal(state: MarkerState) -> bool:
        if not all(any(fits(w, m) for m in state) for w in desired):
            return False
        # No marker is taken for another one: whose uid no task names stays in its place, or goes.
        if any(m[1:3] != stood.get(m[0], m[1:3]) for m in state):
            return False
        if exact:
            return len(state) == len(desired) and all(
                any(fits(w, m) for w in desired) for m in state
            )
        # Nobody else's markers are touched: those at no wanted place, and not named by uid, are as they were.
        others = {m for m in start if (m[1], m[2]) not in places and m[0] not in by_uid}
        named = {m for m in start if (m[1], m[2]) in places and m[0] not in by_uid}
        kept = {m[0] for m in state}
        return (
            others <= state
            and all(m[0] in kept for m in named)
            and _twins_untouched(named, state, desired)
        )

    return goal


def _twins_untouched(
    named: set[tuple[int, int, str, str]], state: MarkerState, desired: list[dict[str, Any]]
) -> bool:
    """Of several markers at one desired place, at most one was changed, and none left its place."""
    for want in desired:
        here = {m for m in named if (m[1], m[2]) == (want["at"], want["track"])}
        if len(here - state) > 1 or any(
            (m[1], m[2]) != (n[1], n[2]) for m in here for n in state if n[0] == m[0]
        ):
            return False
    return True


def _marker_steps(
    start: MarkerState, desired: list[dict[str, Any]]
) -> Callable[[MarkerState], Iterator[MarkerState]]:
    bodies = {(w["at"], w["track"], w.get("title", title)) for w in desired for title in TITLES}
    kept = {m[0]: m[3] for m in start}

    def steps(state: MarkerState) -> Iterator[MarkerState]:
        made = [marker[0] for marker in state if marker[0] >= 100]
        fresh = 100 + len(state) + sum(made)
        for body in bodies:
            yield state | {(fresh, *body)}
            for marker in state:
                old_title = kept.get(marker[0], "")
                titles = [wanted.get("title", old_title) for wanted in desired]
                if body[2] in titles:
                    yield (state - {marker}) | {(marker[0], *body)}
        for marker in state:
            yield state - {marker}

    return steps


SegmentState = frozenset[tuple[int, int, int, str]]


@settings(max_examples=examples(120))
@given(st.data())
def test_no_shorter_way_for_segments(data: st.DataObject) -> None:
    live = data.draw(segments_of(3))
    desired = data.draw(wanted_segments(3))
    exact = data.draw(st.booleans())
    dialect = data.draw(st.sampled_from([Dialect(), Dialect(segment_update="overwrite")]))
    if not exact and any("number" not in want for want in desired):
        exact = True  # without numbers and without `exactly`, which live segment is meant is a rule and no count
    args: dict[str, Any] = {"segments": desired, "exactly": ["segments"] if exact else []}
    clip = Clip("Film", frames=FRAMES, segments=copy.deepcopy(live))
    context = stage(clip, dialect=dialect)
    planned = applied(context, args)
    start, goal = _segments(live), _segment_goal(_segments(live), desired, exact)
    assert goal(_segments(context.server.clips["Film"].segments))
    assert planned == shortest(
        start,
        goal,
        _segment_steps(desired, overwrite=dialect.segment_update == "overwrite"),
        planned,
    )


def _segments(live: Segments) -> SegmentState:
    return frozenset((n, s["start"], s["duration"], s.get("title", "")) for n, s in live.items())


def _segment_goal(
    start: SegmentState, desired: list[dict[str, Any]], exact: bool
) -> Callable[[SegmentState], bool]:
    def fits(want: dict[str, Any], segment: tuple[int, int, int, str]) -> bool:
        number, begin, duration, title = segment
        same = (begin, duration) == (want["start"], want["duration"]) and want.get(
            "number", number
        ) == number
        return same and want.get("title", title) == title

    numbers = {want.get("number") for want in desired}

    def goal(state: SegmentState) -> bool:
        if not all(any(fits(w, s) for s in state) for w in desired):
            return False
        if exact:
            return len(state) == len(desired)
        return {s for s in start if s[0] not in numbers} <= state

    return goal


def _segment_steps(
    desired: list[dict[str, Any]], *, overwrite: bool
) -> Callable[[SegmentState], Iterator[SegmentState]]:
    def steps(state: SegmentState) -> Iterator[SegmentState]:
        taken = {segment[0] for segment in state}
        for want in desired:
            for number in range(1, 8):
                if (number in taken and not overwrite) or want.get("number", number) != number:
                    continue
                for title in TITLES if "title" not in want else (want["title"],):
                    new = (number, want["start"], want["duration"], title)
                    yield frozenset(s for s in state if s[0] != number) | {new}
        for segment in state:
            yield state - {segment}

    return steps
