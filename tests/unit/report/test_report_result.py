"""What came of a run, as text and as JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from msgspec import structs

from msauto.codec import LazyItems
from msauto.model.plan import Plan
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.report.json import dump, dump_document, result_json
from msauto.report.layout import Layout
from msauto.report.result_view import recap_of, result_sentence
from msauto.report.text import render_result
from tests.unit.report.made_plans import check_golden, episode, film, lost, mixed_result, plan_of


@pytest.mark.parametrize("verbosity", [0, 1])
def test_result_reads_as_agreed(verbosity: int) -> None:
    check_golden(f"result-v{verbosity}.txt", text_of_result(mixed_result(), verbosity=verbosity))


def test_coloured_result_reads_as_agreed() -> None:
    check_golden("result-colour.txt", text_of_result(mixed_result(), colour=True))


def text_of_result(result: Result, **layout: Any) -> str:
    return "".join(render_result(result, Layout(**layout)))


def good(**more: object) -> Result:
    requests = tuple(RequestResult("done", 200, tries=1) for _ in episode().requests)
    changed = TargetResult(episode(), "changed", requests=requests, seen=3)
    return structs.replace(Result("r1", plan_of(episode(), unchanged=12), (changed,)), **more)


def test_recap_line_is_in_the_manner_of_ansible() -> None:
    line = "studio-a : changed=1 unchanged=12 requests=3"
    assert (
        text_of_result(good(), width=120, colour=True).splitlines()[0] == line
    )  # nothing to look at: no colour


def test_good_run_says_so() -> None:
    sentence = "Done: 1 changed, 12 unchanged; 3 requests. All changes are verified."
    assert result_sentence(good()) == sentence


def test_run_without_changes() -> None:
    assert result_sentence(good(targets=())) == "Nothing was changed: 12 unchanged; 0 requests."


def test_interrupted_run_names_its_record() -> None:
    assert result_sentence(good(interrupted=True)).startswith(
        "Interrupted: 1 changed, 12 unchanged; 3 requests."
    )


def test_recap_counts_each_server_by_itself() -> None:
    recaps = recap_of(mixed_result())
    assert list(recaps) == ["studio-a", "studio-b", "studio-c"]
    assert list(recaps["studio-a"]) == [*mixed_result().counts, "requests"]
    assert [recaps["studio-a"][name] for name in ("failed", "not_attempted", "unchanged")] == [
        1,
        1,
        10,
    ]
    assert [recaps["studio-b"][name] for name in ("unverified", "unchanged")] == [1, 2]
    assert recaps["studio-a"]["requests"] == 2  # one was sent twice


def plan_json() -> dict[str, object]:
    def target(name: str, server: str, requests: int) -> dict[str, object]:
        paths = [{"method": "POST", "path": f"/{number}"} for number in range(requests)]
        return {
            "server": server,
            "database": "NEWS",
            "kind": "asset",
            "name": name,
            "requests": paths,
        }

    return {
        "format": "msauto-plan",
        "targets": LazyItems(
            [target("Evening News", "studio-a", 3), target("Gone", "studio-a", 1)]
        ),
    }


def test_json_of_a_result_is_the_plan_with_results() -> None:
    plan = plan_json()
    joined = result_json(plan, mixed_result())
    assert "result" not in plan
    episode_json, unknown = joined["targets"]
    assert episode_json["result"]["outcome"] == "failed"
    assert episode_json["result"]["differences"][0] == {
        "aspect": "field", "key": "first_frame", "desired": 250, "live": 0,
    }  # fmt: skip
    outcomes = [request["result"]["outcome"] for request in episode_json["requests"]]
    assert outcomes == ["done", "failed", "not sent"]
    assert episode_json["requests"][1]["result"] == {
        "outcome": "failed", "status": 500, "message": "Error: no\x1b[2J", "tries": 2,
    }  # fmt: skip
    assert unknown["result"]["outcome"] == "not attempted"
    assert unknown["requests"][0]["result"]["outcome"] == "not sent"
    assert joined["result"] == {
        "run": "2026-11-20-1", "ok": False, "interrupted": False,
        "changed": 1, "unchanged": 12, "failed": 1, "unverified": 1, "kept": 0, "skipped": 1, "not_attempted": 1,
    }  # fmt: skip
    assert (
        joined["result"]["interrupted"] is False
    )  # whether the run was; not how many targets were


def test_two_targets_of_one_name_keep_their_own_results() -> None:
    plan = plan_of(film(), film())
    results = (TargetResult(film(), "changed"), TargetResult(film(), "failed"))
    twin = {
        "server": "studio-b",
        "database": "ARCHIVE",
        "kind": "asset",
        "name": "Promo 1",
        "requests": [],
    }
    joined = result_json({"targets": LazyItems([twin, twin])}, Result("r", plan, results))
    assert [target["result"]["outcome"] for target in joined["targets"]] == ["changed", "failed"]


def test_dump_is_stable_and_safe_on_a_terminal() -> None:
    value = {"b": "Новости \x9b31m\u202e\U000e0001\ud800", "a": [1, Fraction(30000, 1001)]}
    text = dump(value)
    assert text == (
        '{\n  "b": "Новости \\u009b31m\\u202e\\udb40\\udc01\\ud800",\n  "a": [\n    1,\n    "30000/1001"\n  ]\n}\n'
    )
    assert json.loads(text)["b"] == value["b"]
    text.encode()


def test_a_document_is_written_in_pieces_as_it_is_whole() -> None:
    hostile = {
        "b": "Новости \x9b31m\u202e\U000e0001",
        "a": [],
        "c": {},
        "d": [{"e": 1.5, "f": None}],
    }
    not_utf8 = {"file": "b\udce9.yml"}
    for items in ([hostile, not_utf8, {}], []):
        pieces = list(dump_document({"first": hostile, "targets": LazyItems(items), "last": 1}))
        assert "".join(pieces) == dump({"first": hostile, "targets": items, "last": 1})
        assert len(pieces) > len(items)


def test_dump_refuses_what_has_no_json_form() -> None:
    with pytest.raises(TypeError, match="bytes"):
        dump({"a": b""})
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump(float("nan"))


def test_errors_left_out_are_not_attempted() -> None:
    wrong = lost()
    target = {
        "server": wrong.server,
        "database": "NEWS",
        "kind": "asset",
        "name": wrong.name,
        "requests": [],
    }
    joined = result_json({"targets": LazyItems([target])}, Result("r", plan_of(wrong), ()))
    (left_out,) = joined["targets"]
    assert left_out["result"]["outcome"] == "not attempted"


def test_what_went_wrong_is_said_once() -> None:
    why = "the server answered 409: Error: segment 1 exists"
    failed = TargetResult(
        film(), "failed", f"request 1 of 1: {why}", (RequestResult("failed", 409, why, 1),)
    )
    text = text_of_result(Result("r", plan_of(film()), (failed,)))
    assert text.count(why) == 1
    assert "failed 409" in text


@pytest.mark.scale
def test_thousands_that_were_left_for_one_reason_are_counted() -> None:
    why = "the server studio-a can no longer be reached"
    left = tuple(
        TargetResult(
            structs.replace(film(), name=f"Film {number}"),
            "not attempted",
            why,
            (RequestResult("not sent"),),
        )
        for number in range(5000)
    )
    failed = tuple(
        TargetResult(film(), "failed", why, (RequestResult("failed", None, why, 1),))
        for _ in range(9)
    )
    result = Result(
        "run-1",
        Plan("", "", targets=tuple(each.target for each in (*left, *failed))),
        (*left, *failed),
    )
    told = text_of_result(result)
    assert f"\n\nstudio-b · ARCHIVE · 5000 assets: not attempted\n  {why}\n" in told
    assert "\n    Film 0…Film 4999 (5000)\n" in told
    assert told.count(" 9 assets: failed\n") == 1
    assert "not_attempted=5000" in told
    assert text_of_result(result, verbosity=1).count(": not attempted") == 5000
    assert text_of_result(structs.replace(result, targets=left[:2])).count(": not attempted") == 2
