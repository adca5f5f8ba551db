"""Batches of XMP metadata: before the assets of their database, once for each content, and what that makes unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msauto.planning.saved_plan import plan_from_json
from msauto.simulator import Simulator, empty_state
from tests.dialects.keeping_switches import keeps
from tests.dialects.pairwise import Row
from tests.plan_documents import plan_to_json
from tests.stage import Stage, changes, errors, outcomes
from tests.tables import table

BATCH = '<batch><clip title="Film"><field name="dc:title">From traffic</field></clip></batch>'
PUT = "PUT /storage/NEWS?connector=TRAFFIC"


@pytest.fixture
def stage(row: Row, tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    for title in ("Film", "News"):
        state.add_clip(title, "Raw", frames=500)
    state.databases["NEWS"].connectors["TRAFFIC"] = []
    (tmp_path / "batch.xml").write_text(BATCH)
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path).on(row)


def load(**args: Any) -> dict[str, Any]:
    return {"name": "Load", "xmp_batch": {"connector": "TRAFFIC", "src": "batch.xml", **args}}


def titled(title: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": f"Title of {title}", "asset": {"title": title, "xmp": {"dc:title": text}}, **more}


def play(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "A test", "tasks": list(tasks), **more}


def test_once_for_each_content(stage: Stage) -> None:
    stage.sim.clear_log()
    result = stage.apply(play(load()))
    assert result.ok
    assert stage.writes() == [PUT]
    assert stage.sim.writes()[0].body.decode() == BATCH
    assert stage.sim.state.clip("Film").xmp == {"dc:title": ["From traffic"]}
    stage.sim.clear_log()
    again = stage.plan(play(load()))
    assert (again.requests, again.unchanged, len(stage.sim.log)) == (0, 1, 0)
    (stage.folder / "same.xml").write_text(BATCH)
    assert stage.plan(play(load(src="same.xml"))).requests == 0, "by its content, whatever it is called"
    (stage.folder / "batch.xml").write_text(BATCH.replace("traffic", "the desk"))
    assert stage.plan(play(load())).requests == 1


def test_what_a_batch_may_have_overwritten_is_written_again(stage: Stage) -> None:
    hidden = replace(stage, dialect={"xmp_read": "never"})
    ours = play(titled("Film", "Ours"), titled("News", "Ours"))
    assert hidden.apply(ours).ok
    assert hidden.plan(ours).requests == 0, "as we last wrote it"
    assert hidden.apply(play(load())).ok
    assert stage.sim.state.clip("Film").xmp == {"dc:title": ["From traffic"]}
    assert len(hidden.plan(ours).targets) == 2, "nobody knows which clips a batch names"
    assert hidden.apply(ours).ok
    assert stage.sim.state.clip("Film").xmp == {"dc:title": ["Ours"]}
    assert hidden.plan(play(load()), ours).requests == 0, "the same batch is loaded once"


def test_a_batch_that_was_never_sent_makes_nothing_unknown(stage: Stage) -> None:
    hidden = replace(stage, dialect={"xmp_read": "never"})
    ours = play(titled("Film", "Ours"))
    assert hidden.apply(ours).ok
    assert hidden.plan(play(load())).requests == 1
    assert hidden.plan(ours).requests == 0


def test_the_plan_holds_it_whole(stage: Stage) -> None:
    plan = stage.plan(play(load()))
    assert changes(plan) == ["run xmp_batch batch.xml"]
    assert plan_to_json(plan_from_json(plan_to_json(plan))) == plan_to_json(plan)
    target = plan.targets[0]
    assert (target.kind, target.database, target.name) == ("database", "NEWS", "NEWS")
    assert not target.changes[0].reversible


def test_it_goes_before_the_assets_of_its_database(stage: Stage) -> None:
    tasks = [titled("Film", "Ours"), titled("News", "Ours"), load()]
    stage.sim.clear_log()
    result = stage.apply(play(*tasks))
    assert result.ok, result
    assert stage.writes()[0] == PUT
    assert stage.sim.state.clip("Film").xmp == {"dc:title": ["Ours"]}
    again = stage.plan(play(*tasks))
    assert (again.requests, again.unchanged) == (0, 3)


def test_wanted_fields_are_sent_whatever_is_there(stage: Stage) -> None:
    stage.sim.state.clip("Film").xmp["dc:title"] = ["Ours"]
    stage.sim.clear_log()
    plan = stage.plan(play(load(), titled("Film", "Ours")))
    assert changes(plan) == ["run xmp_batch batch.xml", "change xmp dc:title"]
    assert plan.targets[1].changes[0].basis == "none"
    assert not any("GETUSERFIELDS" in target for target in stage.reads()), "what it is now tells nothing"
    assert stage.apply(play(load(), titled("Film", "Ours"))).ok
    assert stage.sim.state.clip("Film").xmp == {"dc:title": ["Ours"]}


@table("playbook/xmp_batch_and_templates", "task")
@keeps(xmp_shape="attr", xmp_without_field="all", our_xmp_read="auto")
def test_a_template_that_reads_xmp_is_an_error_naming_both(stage: Stage, task: dict[str, Any]) -> None:
    found = errors(stage.plan(play(load(), task)))
    assert found
    for error in found:
        assert "the task 'Asks' reads asset.xmp" in error
        assert error.count("playbook.yml:") == 2
        assert "playbook.yml:6:" in error, "the place of the batch"
    stage.apply(play(load()))
    assert errors(stage.plan(play(load(), task))) == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("cut_after", "its answer was lost"),
        ("cut_before", "its answer was lost"),
        ("status:500", "the server answered 500"),
    ],
)
def test_a_lost_batch_is_told_and_not_sent_again(stage: Stage, fault: str, words: str) -> None:
    stage.sim.faults.add(f"{fault}@PUT*1")
    result = stage.apply(play(load(), titled("News", "Ours")))
    assert outcomes(result) == ["studio NEWS: unverified", "studio News: changed"], "the others go on"
    again = stage.plan(play(load(), titled("News", "Ours")))
    assert again.requests == 0
    (warning,) = again.warnings
    assert words in warning
    assert "--forget-pending" in warning
    assert stage.apply(play(load()), forget_pending=True).ok
    assert stage.plan(play(load())).warnings == ()


@keeps(errors="status")
def test_a_refused_batch_is_tried_by_the_next_run(stage: Stage) -> None:
    result = stage.apply(play(load(connector="NOBODY")))
    assert outcomes(result) == ["studio NEWS: unverified"], "500, and nobody can see what came of it"
    stage.sim.faults.add("status:403@TRAFFIC*1")
    assert outcomes(stage.apply(play(load()))) == ["studio NEWS: failed"]
    assert stage.apply(play(load())).ok


@pytest.mark.scale
def test_killed_while_a_batch_is_under_way(stage: Stage) -> None:
    stage.sim.faults.add("delay:5@PUT")
    stage.killed(play(load()), when=lambda: any(stage.sim.faults.hits().values()))
    stage.sim.faults.clear()
    again = stage.plan(play(load()))
    assert (again.requests, len(again.warnings)) == (0, 1)


def test_a_database_that_is_not_there_and_a_version_that_lacks_it(stage: Stage) -> None:
    assert "database 'SPORT' not found" in errors(stage.plan(play(load(), database="SPORT")))[0]
    stage.version = "2.0.59"
    assert "2.0.60" in errors(stage.plan(play(load())))[0]


def test_two_batches_go_in_their_order_and_the_same_twice_once(stage: Stage) -> None:
    (stage.folder / "b.xml").write_text(BATCH.replace("traffic", "the desk"))
    stage.sim.clear_log()
    assert stage.apply(play(load(src="b.xml"), load(), load())).ok
    assert [entry.body.decode() for entry in stage.sim.writes()] == [BATCH.replace("traffic", "the desk"), BATCH]
    assert stage.sim.state.clip("Film").xmp == {"dc:title": ["From traffic"]}
