"""Why targets of a job are not done: what is one cause, its names, and what another attempt may help."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from msauto.model.plan import CauseKind, Request, Target
from msauto.model.result import Outcome, RequestResult, TargetResult
from msauto.plugins.batch.causes import (
    RECIPES,
    Cause,
    causes_of,
    may_get_better,
    results_so_far,
)

POST = Request("POST", "/storage/NEWS@X?command=SETFIELD&name=comment&val=x")


def unplanned(name: str, error: str, cause: CauseKind, server: str = "bergen") -> TargetResult:
    target = Target(server, "NEWS", "asset", name, error=error, cause=cause)
    return TargetResult(target, "not attempted", error)


def applied(
    name: str, outcome: Outcome, message: str, status: int | None, server: str = "hamar"
) -> TargetResult:
    target = Target(server, "NEWS", "asset", name, requests=(POST,))
    return TargetResult(target, outcome, message, (RequestResult("failed", status, message, 3),))


def missing(name: str, server: str = "tromso") -> TargetResult:
    place = f"play.yml:3:4: server {server}, database NEWS: "
    return unplanned(
        name, f"{place}asset {name!r} not found\n  → correct the title", "not found", server
    )


def shown(causes: Sequence[Cause]) -> list[str]:
    return [f"{each.server}: {each.text} [{each.named}] → {each.remedy}" for each in causes]


FIVE = "PROMO 001…PROMO 005 (5)"
GONE = "server bergen at http://h:7901: no connection: refused\n  → check that it runs"


def test_ten_equal_failures_are_one_entry_with_ten_names() -> None:
    (cause,) = causes_of([missing(f"Spot {letter}") for letter in "ABCDEFGHIJ"], ())
    assert cause.names == tuple(f"Spot {letter}" for letter in "ABCDEFGHIJ")
    assert (cause.text, cause.remedy) == (
        "10 not attempted: asset '<title>' not found",
        "correct the title",
    )


def test_one_cause_on_three_servers_has_one_text_wherever_its_playbook_is() -> None:
    results = []
    for server in ("oslo", "bergen", "tromso"):
        place = f"Night jobs/my play.yml:3:4: server {server}, database NEWS: "
        message = f"{place}asset 'Spot A' not found"
        results.append(unplanned("Spot A", message, "not found", server))
    assert {cause.message for cause in causes_of(results, ())} == {"asset 'Spot A' not found"}


def test_no_cause_hides_another_and_the_worst_is_first() -> None:
    busy = applied("PROMO 003", "failed", "the server answered 503: busy", 503)
    lost = [unplanned(f"PROMO {number:03}", GONE, "no connection") for number in range(1, 40)]
    assert shown(causes_of([*lost, missing("PROMO 007"), busy], ())) == [
        f"hamar: 1 busy: the server answered 503: busy [PROMO 003] → {RECIPES['busy']}",
        f"bergen: 39 no connection: refused [{FIVE} and 34 more] → {RECIPES['no connection']}",
        "tromso: 1 not attempted: asset 'PROMO 007' not found [] → correct the title",
    ]


def test_very_many_reasons_are_one_entry() -> None:
    results = [
        applied(f"A{number}", "failed", f"value {number} is wrong", 400)
        for number in range(99, 120)
    ]
    (cause,) = causes_of(results, ())
    assert (cause.count, cause.message) == (21, "value 99 is wrong (and 20 other reasons)")


BUSY, LOST = (
    applied("A", "failed", "503", 503),
    applied("B", "failed", "no connection", None, "bergen"),
)


BUSY_B = applied("B", "failed", "503", 503)


@pytest.mark.parametrize(
    ("results", "some", "every"),
    [
        ([BUSY], True, True),
        ([applied("A", "failed", "429", 429)], True, True),
        ([LOST], True, True),
        ([unplanned("A", GONE, "no connection")], True, True),
        ([unplanned("A", "read timed out", "no answer")], True, True),
        ([unplanned("A", "503", "busy")], True, True),
        ([missing("A")], False, False),
        ([missing("A"), BUSY], True, False),
        ([applied("A", "failed", "400", 400)], False, False),
        ([applied("A", "unverified", "503", 503)], False, False),
        ([applied("A", "unverified", "503", 503), LOST], True, False),
        ([unplanned("A", "401", "account rejected"), BUSY], False, False),
        ([applied("A", "failed", "401", 401), BUSY], False, False),
    ],
)
def test_what_may_get_better(results: list[TargetResult], some: bool, every: bool) -> None:
    causes = causes_of(results, {"bergen"})
    assert (may_get_better(causes, every=False), may_get_better(causes, every=True)) == (
        some,
        every,
    )


def test_what_waits_behind_a_busy_server_may_get_better() -> None:
    target = Target("hamar", "NEWS", "asset", "C", requests=(POST,))
    waiting = TargetResult(
        target, "not attempted", "the server rejected SETFIELD", (RequestResult("not sent"),)
    )
    assert {each.kind for each in causes_of([BUSY, waiting], ())} == {"busy"}


def test_what_an_attempt_changed_stays_changed_where_the_next_cannot_read_it() -> None:
    changed = applied("A", "changed", "", 200)
    unread = unplanned("A", GONE, "no connection", "hamar")
    assert results_so_far((changed, BUSY_B), [unread, BUSY_B]) == (changed, BUSY_B)
    assert results_so_far((BUSY_B,), [unread]) == (unread,)
