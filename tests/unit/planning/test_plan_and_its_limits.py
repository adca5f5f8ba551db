"""The whole plan: its limits, its JSON both ways, and what must still be so."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from msauto.aspects.comparison import mapping
from msauto.errors import InputError
from msauto.model.desired import InputFile, Intent, ResolvedPlaybooks
from msauto.model.plan import Address, Limits, Plan, Request, Target
from msauto.model.server import Dialect
from msauto.model.snapshot import compare
from msauto.planning.limits import Protection
from msauto.planning.saved_plan import plan_from_json, plan_schema
from msauto.planning.survey import assemble
from msauto.planning.target_reading import snapshot_with_facts, with_digests
from msauto.secrets.redaction import Secrets
from tests.plan_documents import plan_to_json
from tests.tables import table
from tests.unit.planning.planning_world import Clip, Stage, read_after, stage, why_not
from tests.unit.planning.playbook_forms import asset_intent, rss_intent

CREATED = "2026-11-20T10:15:00+01:00"


def plan_of(context: Stage, *intents: Intent, limits: Limits | None = None) -> Plan:
    found = context.plan(*intents, protection=Protection(["Master/*"]))
    resolved = ResolvedPlaybooks(
        (), inputs=(InputFile("news.yml", "00ff"),), warnings=("a warning",)
    )
    return assemble(resolved, [found], created=CREATED, version="0.1.0", limits=limits or Limits())


def gone(title: str) -> Intent:
    return asset_intent({"title": title, "state": "absent", "with_links": True})


# Limits --------------------------------------------------------------------------------------------------------


@table("planning/losses", "args", "lost")
@pytest.mark.parametrize("update", ["recreate", "overwrite"])
def test_what_is_written_over_without_its_key_is_a_loss(
    update: Any, args: dict[str, Any], lost: int
) -> None:
    segments = {n: {"start": n, "duration": 1, "title": f"s{n}"} for n in range(60)}
    context = stage(
        Clip("Film", folder="Master", segments=segments), dialect=Dialect(segment_update=update)
    )
    context.memory.always.update(
        {f"segment:{n}": {"keywords": None} for n in segments}
    )  # a run has sent none
    intent = asset_intent({"title": "Film", **args})
    (refusal,) = plan_of(context, intent).refusals or (None,)
    assert (refusal and refusal.remedy) == (f"--allow-remove {lost}" if lost else None)
    protected = plan_of(context, intent, limits=Limits(allow_remove=100, protected=("Master/*",)))
    assert [refusal.code for refusal in protected.refusals] == (["protected"] if lost else [])


def test_keywords_that_are_not_known_are_shown_and_count_as_no_loss() -> None:
    context = stage(
        Clip("Film", segments={n: {"start": n, "duration": 1} for n in range(2)}),
        reports_keywords=False,
    )
    context.memory.always["segment:1"] = {"keywords": "k"}
    desired = [{"number": n, "start": n, "duration": 2} for n in range(2)]
    plan = plan_of(
        context, asset_intent({"title": "Film", "segments": desired}), limits=Limits(allow_remove=0)
    )
    assert not plan.refusals
    (target,) = plan.targets
    assert [mapping(each.after).get("keywords", "") for each in target.changes] == [None, "k"]
    assert [each.reversible for each in target.changes] == [False, True]


@table("planning/protected", "glob", "refused")
def test_protected(glob: str, refused: bool) -> None:
    context = stage(Clip("Film", folder="Master/2026", links=["Playout/Tonight/Film"]))
    plan = plan_of(context, gone("Film"), limits=Limits(delete_assets=1, protected=(glob,)))
    assert [refusal.code for refusal in plan.refusals] == (["protected"] if refused else [])


def test_what_two_large_servers_match_at_once_is_matched() -> None:
    protection = Protection(["Master/*", "Trailer/*"])
    many = [("News", f"n{number}") for number in range(600)]

    async def look_at_both() -> None:
        await asyncio.gather(
            protection.look_at([*many, ("Master", "Film")], "one"),
            protection.look_at([*many, ("Trailer", "Film")], "two"),
        )

    asyncio.run(look_at_both())
    assert protection.warnings == ()


# The plan as JSON ----------------------------------------------------------------------------------------------


def rich_plan() -> Plan:
    clip = Clip(
        "Film",
        folder="Raw/2026",
        fields={"comment": "raw"},
        segments={1: {"start": 0, "duration": 10}},
        markers=[{"uid": 4, "frame": 3, "track": "Icon", "title": "é"}],
    )
    context = stage(clip, folders={"Playout"}, channels={"c": []})
    args: dict[str, Any] = {
        "title": "Film",
        "fields": {"comment": "Ready", "user_3": "x"},
        "xmp": {"dc:a": ["1", "2"]},
        "segments": [{"number": 1, "start": 0, "duration": 20}],
        "markers": [{"at": 9, "title": "new"}],
        "links": [{"folder": "Playout"}],
    }
    items = [{"guid": "n", "text": "Новости"}]
    return plan_of(
        context,
        asset_intent(args),
        gone("No"),
        rss_intent({"channel": "c", "items": items}),
        gone("Film"),
    )


def json_of(plan: Plan) -> Any:
    """Return the plan as a reader of its file gets it."""
    return json.loads(json.dumps(plan_to_json(plan)))


def test_a_plan_survives_its_file() -> None:
    plan = rich_plan()
    data = json_of(plan)
    assert plan_from_json(data) == plan
    jsonschema.validate(data, plan_schema())


def test_a_plan_of_an_older_version_has_no_context() -> None:
    data = json_of(rich_plan())
    for target in data["targets"]:
        del target["context"]
    assert {target.context for target in plan_from_json(data).targets} == {None}


def test_the_contract_to_the_letter() -> None:
    context = stage(Clip("Evening News", folder="Raw/2026", fields={"comment": "raw"}))
    plan = plan_of(
        context,
        asset_intent({"title": "Evening News", "fields": {"comment": "Ready"}}, file="news.yml"),
    )
    data = json_of(plan)
    assert list(data)[:7] == [
        "format",
        "version",
        "created",
        "msauto",
        "inputs",
        "summary",
        "refusals",
    ]
    assert data["summary"] == {
        "assets": 1, "add": 0, "change": 1, "delete": 0, "run": 0, "unchanged": 0, "skipped": 0, "errors": 0,
        "requests": 1, "reads": 1,
    }  # fmt: skip
    (target,) = data["targets"]
    (change,), (request,) = target["changes"], target["requests"]
    assert change == {
        "action": "change", "aspect": "field", "key": "comment", "before": "raw", "after": "Ready", "basis": "live",
        "reversible": True, "source": {"file": "news.yml", "line": 4, "column": 3, "task": "news.yml"},
    }  # fmt: skip
    assert request["path"] == "/storage/NEWS@Evening%20News?command=SETFIELD&name=comment&val=Ready"
    assert (request["method"], request["changes"], target["error"]) == ("POST", [0], None)
    assert (target["folder"], target["kind"], target["fingerprint"][:7]) == (
        "Raw/2026",
        "asset",
        "sha256:",
    )


def spoil(data: Any, path: list[Any], more: dict[str, Any] | None, less: str | None) -> None:
    for step in path:
        data = data[step]
    data.update(more or {})
    if less is not None:
        del data[less]


@table("planning/spoilt_plans", "path", "more", "less", "words")
def test_a_spoilt_plan_file_is_refused(
    path: list[Any], more: dict[str, Any] | None, less: str | None, words: str
) -> None:
    context = stage(Clip("Film", fields={"comment": "raw"}), channels={"c": []})
    items = [{"guid": "n", "text": "A"}]
    tasks = (
        asset_intent({"title": "Film", "fields": {"comment": "x"}}),
        rss_intent({"channel": "c", "items": items}),
    )
    data = json_of(plan_of(context, *tasks))
    spoil(data, path, more, less)
    with pytest.raises(InputError) as raised:
        plan_from_json(data, path="tonight.plan")
    assert words in str(raised.value)
    assert "tonight.plan" in str(raised.value)


@table("planning/spoilt_values", "path", "more", "less", "words")
def test_every_value_of_a_plan_file_is_checked_strictly(
    path: list[Any], more: dict[str, Any] | None, less: str | None, words: str
) -> None:
    data = json_of(rich_plan())
    spoil(data, path, more, less)
    with pytest.raises(InputError, match=words):
        plan_from_json(data)


@pytest.mark.parametrize("key", ["result", "problems"])
def test_what_came_of_a_run_is_no_plan(key: str) -> None:
    data = plan_to_json(rich_plan()) | {key: []}
    with pytest.raises(InputError, match=f"not a plan: it has `{key}`"):
        plan_from_json(data)


# What must still be so ------------------------------------------------------------------------------------------


@table("planning/drift_of_what_was_compared", "drift", "still")
def test_only_what_the_plan_looks_at_and_touches_is_drift(
    drift: dict[str, Any], still: bool
) -> None:
    clip = Clip("Film", folder="Raw", fields={"comment": "raw"})
    context = stage(clip, folders={"Playout"})
    args = {
        "fields": {"comment": "x"},
        "xmp": {"dc:a": "2"},
        "markers": [{"at": 3}],
        "links": [{"folder": "Playout"}],
    }
    (target,) = context.plan(asset_intent({"title": "Film", **args})).targets
    context.server.clips["Film"] = replace(clip, **drift)
    assert (why_not(target, context.reader) == "") is still


@table("planning/facts_looked_at_again", "fact", "drift")
def test_facts_of_every_type_are_looked_at_again(fact: str, drift: dict[str, Any]) -> None:
    context = stage(Clip("Film"))
    target = Target(
        "studio-a",
        "NEWS",
        "asset",
        "Film",
        address=Address("Film"),
        requests=(Request("POST", "/x"),),
    )
    live = read_after(target, context.reader)
    depends_on = with_digests(target, live, [f"fact {fact}"], Secrets()).depends_on
    assert (
        compare(
            {}, (), snapshot_with_facts(live, depends_on.names, ()), {}, depends_on.items()
        ).changed_dependencies
        == []
    )
    context.server.clips["Film"] = replace(context.server.clips["Film"], **drift)
    changed = read_after(target, context.reader)
    assert compare(
        {}, (), snapshot_with_facts(changed, depends_on.names, ()), {}, depends_on.items()
    ).changed_dependencies == [f"fact {fact}"]


def test_long_requests_are_split_or_refused() -> None:
    context = stage(Clip("Film"))
    context.spec = replace(context.spec, request_line=200)
    xmp = {f"dc:field{n}": "x" * 40 for n in range(4)}
    (target,) = context.plan(asset_intent({"title": "Film", "xmp": xmp})).targets
    assert len(target.requests) == 2
    assert sorted(number for request in target.requests for number in request.changes) == [
        0,
        1,
        2,
        3,
    ]
    (target,) = context.plan(asset_intent({"title": "Film", "xmp": {"dc:a": "x" * 300}})).targets
    assert "the cap is 200" in str(target.error)


# Input files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "shown"),
    [(b"title: Film", "00ff"), (b"password: open sesame", "***"), (None, "***")],
)
def test_a_hash_from_which_a_secret_could_be_guessed_is_hidden(
    content: bytes | None, shown: str
) -> None:
    """``None``: the file is too large to be searched."""
    resolved = ResolvedPlaybooks(
        (), inputs=(InputFile("news.yml", "00ff", content),), secrets=Secrets(["open sesame"])
    )
    made = assemble(resolved, [], created=CREATED, version="0.1.0", limits=Limits())
    assert made.inputs[0].sha256 == shown
