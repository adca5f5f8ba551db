"""The one comparison: a prediction held against what was read, on a small list of items and a few plain values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from msauto.model.snapshot import (
    TWINS,
    Comparison,
    Effect,
    Json,
    Seen,
    Snapshot,
    after,
    compare,
    digest,
    part_digest,
    predict,
    predict_one,
)
from tests.tables import table


class Items:
    """A list whose items are at a place ``at``; ``tags`` may not be reported."""

    missing: Json | UnsetType = None
    kept: frozenset[str] = frozenset()

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        if (
            not isinstance(named, dict)
            or not isinstance(shown, dict)
            or (TWINS in shown) != (TWINS in named)
        ):
            return ["all"]
        hidden = self.hidden(named, shown)
        return [
            n
            for n, value in named.items()
            if n not in hidden and (shown.get(n) or "") != (value or "")
        ]

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        both = (
            isinstance(named, dict)
            and isinstance(shown, dict)
            and bool(named.get("tags"))
            and "tags" not in shown
        )
        return ["tags"] if both else []

    def place(self, value: Json) -> Hashable:
        return value.get("at") if isinstance(value, dict) else None  # type: ignore[return-value]


class Texts(Items):
    """Plain values; one that is not shown is not known."""

    missing = UNSET

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        return [] if named == shown else [""]

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        return []

    def place(self, value: Json) -> Hashable:
        return None


RULES = {"marker": Items(), "field": Texts()}
LIVE: Snapshot = {
    "marker": {"1": {"at": 5, "title": "a"}, "2": {"at": 9, "title": "b", "user": "eva"}},
    "field": {"comment": "raw", "user_0": "x"},
}


def others(snapshot: Snapshot, *effects: Effect) -> Seen:
    named = {effect.thing for effect in effects}
    return Seen.of(
        {
            f"{aspect} {key}": digest(value, RULES[aspect].place(value))
            for aspect, part in snapshot.items()
            for key, value in part.items()
            if (aspect, key) not in named
        }
    )


def found(effects: Sequence[Effect], read: Snapshot, done: int = 99) -> Comparison:
    requests = [[effect] for effect in effects]
    return compare(predict(requests, done), others(LIVE, *effects).items(), read, RULES)


def with_marker(key: str, value: Json) -> Snapshot:
    markers = {name: each for name, each in LIVE["marker"].items() if name != key}
    return {**LIVE, "marker": markers if value is None else {**markers, key: value}}


CHANGE = Effect("marker", "2", {"at": 9, "title": "b", "user": "eva"}, {"title": "new"})
DELETE = Effect("marker", "2", {"at": 9, "title": "b", "user": "eva"}, None)
CREATE = Effect("marker", "new 1", None, {"at": 7, "title": "c"})


@table("model/verdicts", "sent", "now", "verdict")
def test_a_request_is_done_or_not_or_nobody_knows(
    sent: str, now: dict[str, Json], verdict: str
) -> None:
    effect = {"change": CHANGE, "delete": DELETE, "create": CREATE}[sent]
    markers = {key: value for key, value in {**LIVE["marker"], **now}.items() if value is not None}
    assert found([effect], {**LIVE, "marker": markers}).verdicts[effect.thing] == verdict


def test_before_it_is_sent_a_thing_must_be_as_it_was() -> None:
    equal = with_marker("3", {"at": 7, "title": "c"})
    assert found([CREATE], LIVE, done=0).verdicts[CREATE.thing] == "before"
    assert found([CREATE], equal, done=0).verdicts[CREATE.thing] == "else"  # another user made it
    assert found(
        [CHANGE], with_marker("2", {"at": 9, "title": "new", "user": "eva"}), done=0
    ).verdicts[CHANGE.thing] == ("else")


def test_a_new_item_may_get_the_key_of_one_that_was_deleted() -> None:
    both = found([DELETE, CREATE], with_marker("2", {"at": 7, "title": "c"}))
    assert set(both.verdicts.values()) == {"predicted"}
    assert both.keys == {CREATE.thing: "2"}
    assert both.new == []


def test_two_equal_new_items_are_two_live_ones() -> None:
    two = [CREATE, Effect("marker", "new 2", None, CREATE.after)]
    same: Json = {"at": 7, "title": "c"}
    read = {**LIVE, "marker": {**LIVE["marker"], "3": same, "4": same}}
    assert found(two, read).keys == {("marker", "new 1"): "3", ("marker", "new 2"): "4"}
    once = found(two, with_marker("3", same)).verdicts
    assert list(once.values()) == ["else", "else"]


def test_what_no_request_names_is_lost_moved_changed_or_new() -> None:
    read: Snapshot = {
        **LIVE,
        "marker": {
            "2": {"at": 9, "title": "new", "user": "eva"},
            "7": {"at": 1, "title": "theirs"},
        },
    }
    gone = found([CHANGE], read)
    assert (gone.lost, gone.new, gone.moved, gone.changed) == (
        [("marker", "1")],
        [("marker", "7")],
        [],
        [],
    )
    others: list[tuple[Json, str]] = [
        ({"at": 6, "title": "a"}, "moved"),
        ({"at": 5, "title": "A"}, "changed"),
    ]
    for value, at in others:
        one = found([CHANGE], {**read, "marker": {**read["marker"], "1": value}})
        assert getattr(one, at) == [("marker", "1")], at
        assert one.lost == []


def test_an_aspect_that_no_request_touches_has_one_digest() -> None:
    seen = Seen.of({"field": part_digest(LIVE["field"])})
    assert compare(predict([[CHANGE]], 1), seen.items(), LIVE, RULES).changed == []
    theirs = compare(
        predict([[CHANGE]], 1),
        seen.items(),
        {**LIVE, "field": {"comment": "a", "user_0": "b"}},
        RULES,
    )
    assert (theirs.changed, theirs.lost) == ([("field", "")], [])
    cleared = compare(
        predict([[CHANGE]], 1),
        seen.items(),
        {**LIVE, "field": {"comment": "", "user_0": "x"}},
        RULES,
    )
    assert (cleared.changed, cleared.lost) == ([], [("field", "")])


@pytest.mark.parametrize("count", [3, 9_999, 10_000, 100_000])
def test_a_loss_among_many_is_a_loss(count: int) -> None:
    part: dict[str, Json] = {str(key): {"frame": key} for key in range(count)}
    part["1"] = {"twins": [{"frame": 1}, {"frame": 1}]}
    seen = Seen.of({"marker": part_digest(part)})
    one_twin: dict[str, Json] = {**part, "1": {"frame": 1}}
    for less in (one_twin, {key: part[key] for key in part if key != "2"}):
        assert compare({}, seen.items(), {"marker": less}, RULES).lost == [("marker", "")]


def test_a_loss_of_one_of_many_twins_is_a_loss() -> None:
    def markers(count: int) -> dict[str, Json]:
        return {"1": {TWINS: [{"frame": 1}] * count}}

    seen = Seen.of({"marker": part_digest(markers(1_500))})
    fewer: Snapshot = {"marker": markers(1_499)}
    assert compare({}, seen.items(), fewer, RULES).lost == [("marker", "")]


def test_a_value_that_reading_does_not_show_is_hidden() -> None:
    shown, never = (
        Effect("field", "user_3", "a", "b", visible=visible) for visible in (True, False)
    )
    assert found([never], LIVE).verdicts[never.thing] == "hidden"
    assert (
        found([shown], LIVE).verdicts[shown.thing] == "else"
    )  # it was shown before: now it is empty
    tagged = Effect("marker", "new 1", None, {"at": 7, "tags": "x"})
    hidden = found([tagged], with_marker("3", {"at": 7}))
    assert (hidden.verdicts[tagged.thing], hidden.unseen) == ("predicted", [tagged.thing])


def test_what_a_target_must_be_after_a_request_of_several_on_one_thing() -> None:
    again = [[DELETE], [Effect("marker", "2", None, {"at": 9, "title": "new"})]]
    without: Snapshot = with_marker("2", None)
    assert compare(predict_one(again, 1), (), without, RULES).verdicts == {DELETE.thing: "before"}
    made = with_marker("2", {"at": 9, "title": "new"})
    assert compare(predict_one(again, 1), (), made, RULES).verdicts == {DELETE.thing: "predicted"}
    assert compare(predict(again, 2), (), made, RULES).verdicts == {DELETE.thing: "predicted"}
    assert compare(predict_one(again, 1), (), LIVE, RULES).verdicts == {DELETE.thing: "else"}


def test_twins_are_no_item() -> None:
    twins: Json = {TWINS: [{"at": 9, "title": "new"}, {"at": 9, "title": "new"}]}
    assert found([CHANGE], with_marker("2", twins)).verdicts[CHANGE.thing] == "else"


def test_what_a_decision_looked_at_must_be_as_it_was() -> None:
    snapshot = {**LIVE, "fact": {"frames": 250}}
    depends_on = Seen.of(
        {
            "fact frames": digest(250),
            "field": digest(LIVE["field"]),
            "marker 1": digest({"at": 5, "title": "a"}),
        }
    )
    assert compare({}, (), snapshot, {}, depends_on.items()).changed_dependencies == []
    assert compare(
        {}, (), {**snapshot, "fact": {"frames": 251}}, {}, depends_on.items()
    ).changed_dependencies == ["fact frames"]
    assert compare(
        {}, (), {**snapshot, "field": {}, "marker": {}}, {}, depends_on.items()
    ).changed_dependencies == [
        "field",
        "marker 1",
    ]


def test_digests_of_secrets_are_not_shown() -> None:
    seen = Seen.of(
        {"field comment": digest("pw"), "field user_0": digest("x")}, private=["field comment"]
    )
    assert list(dict(seen.items())) == ["field comment", "field user_0"]
    shown = seen.without_private()
    assert list(dict(shown.items())) == ["field user_0"]
    assert digest("pw") not in shown.digests
    assert shown.names == seen.names


KEYS = st.sampled_from(["1", "2", "3", "4"])
VALUES: st.SearchStrategy[dict[str, Json]] = st.fixed_dictionaries(
    {"at": st.integers(0, 9), "title": st.sampled_from("abc")}
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Snapshot, list[list[Effect]]]:
    """A list of items, and requests that each create, change or delete one of them."""
    live: dict[str, dict[str, Json]] = draw(st.dictionaries(KEYS, VALUES, max_size=4))
    requests: list[list[Effect]] = []
    for key in draw(st.lists(st.sampled_from(sorted({*live, "7", "8"})), unique=True, max_size=3)):
        before = dict(live[key]) if key in live else None
        kinds = st.none() | VALUES if before else VALUES
        requests.append([Effect("marker", key, before, draw(kinds))])
    return {"marker": dict(live)}, requests


@given(runs(), st.integers(0, 3))
def test_a_prediction_comes_true_and_nothing_else_changes(
    run: tuple[Snapshot, list[list[Effect]]], done: int
) -> None:
    live, requests = run
    done = min(done, len(requests))
    effects = [effect for each in requests for effect in each]
    named = {effect.thing for effect in effects}
    rest = {
        f"marker {k}": digest(v, RULES["marker"].place(v))
        for k, v in live["marker"].items()
        if ("marker", k) not in named
    }
    read = after(live, [effect for each in requests[:done] for effect in each])
    outcome = compare(predict(requests, done), Seen.of(rest).items(), read, RULES)
    for number, each in enumerate(requests):
        verdict = outcome.verdicts[each[0].thing]
        same = each[0].before == read["marker"].get(each[0].key)
        assert verdict == ("predicted" if number < done else "before") or (
            same and verdict in ("before", "predicted")
        )
    assert (outcome.lost, outcome.moved, outcome.changed, outcome.new) == ([], [], [], [])
