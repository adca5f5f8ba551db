"""Handlers the whole way: once for each target that changed, after its changes; and none is lost when a run dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.planning.saved_plan import plan_from_json
from msauto.simulator import Simulator, empty_state
from tests.dialects.keeping_switches import keeps
from tests.dialects.pairwise import Row
from tests.plan_documents import plan_to_json
from tests.stage import Stage, changes, outcomes

EXPORT = {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
COPY = {"name": "Copy", "command": {"name": "PARTNER_COPY_PROGRAM_FIELDS"}}
STILL = {"name": "A still", "thumbnail": {"pos": 0, "dest": "out/{{ asset.title }}.png"}}


@pytest.fixture
def stage(row: Row, tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    for title in ("Film", "News", "Promo"):
        state.add_clip(title, "Raw", frames=500)
    state.databases["NEWS"].make_folder("Tonight")
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path).on(row)


def comment(title: str, text: str = "Ready", notify: Any = "Export", **more: Any) -> dict[str, Any]:
    return {
        "name": f"Comment {title}",
        "asset": {"title": title, "fields": {"comment": text}},
        "notify": notify,
        **more,
    }


def play(
    *tasks: dict[str, Any], handlers: tuple[dict[str, Any], ...] = (EXPORT, COPY, STILL), **more: Any
) -> dict[str, Any]:
    return {"name": "A test", "tasks": list(tasks), "handlers": list(handlers), **more}


def sent(stage: Stage) -> list[str]:
    """Which commands were sent to which title."""
    told = []
    for line in stage.writes():
        title, _, query = line.partition("@")[2].partition("?")
        told.append(f"{title} {query.removeprefix('command=').partition('&')[0]}".strip())
    return told


# Which run -----------------------------------------------------------------------------------------------------


def test_once_for_each_target_that_changed(stage: Stage) -> None:
    assert stage.apply(play(comment("News"))).ok
    tasks = [comment(title) for title in ("Film", "News", "Promo")]
    tasks.append({"asset": {"title": "Film", "markers": [{"at": 5, "title": "x"}]}, "notify": ["Export"]})
    stage.sim.clear_log()
    result = stage.apply(play(*tasks))
    assert result.ok, result
    assert sorted(sent(stage)) == [
        "Film CREATEMARKER",
        "Film PARTNER_EXPORT_VERSION",
        "Film SETFIELD",
        "Promo PARTNER_EXPORT_VERSION",
        "Promo SETFIELD",
    ]
    film = [name for name in sent(stage) if name.startswith("Film")]
    assert film[-1] == "Film PARTNER_EXPORT_VERSION", "after the target's changes"
    handlers = {(t.name, c.handler) for t in result.plan.targets for c in t.changes if c.action == "run"}
    assert handlers == {("Film", "Export"), ("Promo", "Export")}
    again = stage.plan(play(*tasks))
    assert (again.requests, again.unchanged, again.warnings) == (0, 3, ())


@keeps(ns_id="yes")
def test_a_handler_follows_a_rename_and_the_address(stage: Stage) -> None:
    stage.sim.state.handles["7"] = stage.sim.state.clip("Promo")
    tasks = [
        {"asset": {"title": "Film 2", "was": ["Film"]}, "notify": "Export"},
        {"asset": {"id": "handle:7", "fields": {"comment": "x"}}, "notify": "Export"},
    ]
    stage.sim.clear_log()
    assert stage.apply(play(*tasks)).ok
    exports = sorted(line for line in stage.writes() if "PARTNER" in line)
    assert exports == [
        "POST /storage/NEWS@Film%202?command=PARTNER_EXPORT_VERSION",
        "POST /storage/NEWS@handle:7?command=PARTNER_EXPORT_VERSION&ns=handle&id=7",
    ]


def test_handlers_have_conditions_loops_facts_and_no_tags(stage: Stage) -> None:
    handlers = (
        {**EXPORT, "when": "asset.title == 'Film'"},
        {
            "name": "Stills",
            "thumbnail": {"pos": "{{ item }}", "dest": "out/{{ asset.title }}-{{ item }}.png"},
            "loop": [1, 2],
        },
    )
    tasks = [comment(title, notify=["Export", "Stills"], tags=["here"]) for title in ("Film", "News")]
    plan = stage.plan(play(*tasks, handlers=handlers), tags=("here",))
    runs = {target.name: [change.aspect for change in target.changes[1:]] for target in plan.targets}
    assert runs == {"Film": ["command", "thumbnail", "thumbnail"], "News": ["thumbnail", "thumbnail"]}


def test_before_a_deletion(stage: Stage) -> None:
    task = {"asset": {"title": "Promo", "state": "absent"}, "notify": "Export"}
    plan = stage.plan(play(task))
    shown = plan_to_json(plan)["targets"][0]["changes"]
    assert [(each["aspect"], each["before"]) for each in shown[1:]] == [("command", True)]
    stage.sim.clear_log()
    assert stage.apply(play(task)).ok
    assert sent(stage) == ["Promo PARTNER_EXPORT_VERSION", "Promo"]
    assert stage.plan(play(task)).requests == 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [("cut_before", "and its answer was lost"), ("status:500", "and the server answered 500")],
)
def test_a_deletion_waits_for_its_handler(stage: Stage, fault: str, words: str) -> None:
    """The handler may have run, and the clip is there: neither is sent again until the user has checked the server."""
    task = {"asset": {"title": "Promo", "state": "absent"}, "notify": "Export"}
    stage.sim.faults.add(f"{fault}@PARTNER*1")
    first = stage.apply(play(task))
    assert outcomes(first) == ["studio Promo: unverified"]
    stage.sim.clear_log()
    again = stage.apply(play(task))
    assert (sent(stage), again.plan.left_out) == ([], 1)
    (warning,) = again.plan.warnings
    assert f"'Export' was sent by run {first.run} {words}" in warning
    assert "'Promo' is not deleted" in warning
    assert "--forget-pending" in warning
    assert stage.apply(play(task), forget_pending=True).ok
    assert sent(stage) == ["Promo PARTNER_EXPORT_VERSION", "Promo"]
    assert stage.plan(play(task)).warnings == ()


def test_a_handler_that_was_refused_before_a_deletion_is_planned_with_it_again(stage: Stage) -> None:
    task = {"asset": {"title": "Promo", "state": "absent"}, "notify": "Export"}
    stage.sim.faults.add("status:403@PARTNER*1")
    assert outcomes(stage.apply(play(task))) == ["studio Promo: failed"]
    again = stage.plan(play(task))
    assert changes(again) == ["delete asset Promo", "run command PARTNER_EXPORT_VERSION"]
    assert again.warnings == ()


def test_a_deletion_calls_a_handler_whose_answer_was_lost_after_another_change(stage: Stage) -> None:
    """The deletion is a reason of its own: the handler was never sent for it."""
    stage.sim.faults.add("cut_before@EXPORT*1")
    stage.apply(play(comment("Promo")))
    stage.sim.clear_log()
    result = stage.apply(play({"asset": {"title": "Promo", "state": "absent"}, "notify": "Export"}))
    assert sent(stage) == ["Promo PARTNER_EXPORT_VERSION", "Promo"]
    assert "a change of this run notifies it again" in result.plan.warnings[0]


@keeps(link_fields="reported")
def test_a_handler_that_was_answered_with_500_is_not_called_lost(stage: Stage) -> None:
    stage.sim.faults.add("status:500@EXPORT*1")
    assert outcomes(stage.apply(play(comment("Film")))) == ["studio Film: unverified"]
    again = stage.plan(play(comment("Film")))
    assert again.requests == 0
    (warning,) = again.warnings
    assert "and the server answered 500: it may have run" in warning
    assert "lost" not in warning


# Owed ----------------------------------------------------------------------------------------------------------


def test_a_handler_that_was_not_reached_is_owed(stage: Stage) -> None:
    task = comment("Film", notify=["Copy", "Export"])
    stage.sim.faults.add("status:403@EXPORT*1")
    result = stage.apply(play(task))
    assert outcomes(result) == ["studio Film: failed"]
    again = stage.plan(play(task))
    pending = [(change.handler, change.pending) for target in again.targets for change in target.changes]
    assert pending == [("Export", result.run), ("Copy", result.run)]
    assert plan_to_json(plan_from_json(plan_to_json(again))) == plan_to_json(again)
    assert plan_to_json(again)["targets"][0]["changes"][0]["pending"] == result.run
    stage.sim.clear_log()
    assert stage.apply(play(task)).ok
    assert sent(stage) == ["Film PARTNER_EXPORT_VERSION", "Film PARTNER_COPY_PROGRAM_FIELDS"]
    last = stage.plan(play(task))
    assert (last.requests, last.unchanged, last.warnings) == (0, 1, ())


def test_what_is_still_owed_keeps_the_run_that_it_comes_from(stage: Stage) -> None:
    task = comment("Film")
    stage.sim.faults.add("status:403@EXPORT*2")
    first = stage.apply(play(task))
    second = stage.apply(play(task))
    assert outcomes(second) == ["studio Film: failed"]
    assert stage.plan(play(task)).targets[0].changes[0].pending == first.run
    assert stage.apply(play(task)).ok
    assert stage.plan(play(task)).requests == 0


def test_forgotten(stage: Stage) -> None:
    task = comment("Film")
    stage.sim.faults.add("status:403@EXPORT*1")
    stage.apply(play(task))
    assert stage.plan(play(task), forget_pending=True).requests == 0
    assert stage.plan(play(task)).requests == 1, "a plan writes nothing"
    result = stage.apply(play(task), forget_pending=True)
    assert plan_from_json(plan_to_json(result.plan)) == structs.replace(result.plan, read_since=None)
    last = stage.plan(play(task))
    assert (last.requests, last.warnings) == (0, ())


@keeps(link_fields="reported")
def test_nothing_is_owed_where_nothing_changed(stage: Stage) -> None:
    task = comment("Film")
    stage.sim.faults.add("status:403@SETFIELD*1")
    assert outcomes(stage.apply(play(task))) == ["studio Film: failed"]
    stage.sim.state.clip("Film").home.fields["comment"] = "Ready"
    assert stage.plan(play(task)).requests == 0


@pytest.mark.scale
@keeps(link_fields="reported")
def test_killed_between_the_change_and_the_handler(stage: Stage) -> None:
    task = comment("Film", notify=["Copy", "Export"])
    stage.sim.faults.add("delay:5@EXPORT")
    stage.killed(play(task), when=lambda: any(stage.sim.faults.hits().values()))
    stage.sim.faults.clear()
    again = stage.plan(play(task))
    assert [change.handler for target in again.targets for change in target.changes] == ["Copy"]
    (warning,) = again.warnings
    assert "'Export' was sent by run" in warning
    assert stage.apply(play(task)).ok
    assert stage.plan(play(task), forget_pending=True).warnings == ()


@keeps(link_fields="reported")
def test_owed_though_when_is_false_by_now(stage: Stage) -> None:
    task = comment("Film", when="asset.comment != 'Ready'")
    stage.sim.state.clip("Film").home.fields["comment"] = "raw"
    stage.sim.faults.add("status:403@EXPORT*1")
    result = stage.apply(play(task))
    assert [change.pending for change in stage.plan(play(task)).targets[0].changes] == [result.run]
    assert stage.apply(play(task)).ok
    last = stage.plan(play(task))
    assert (last.requests, last.skipped) == (0, 1)


def test_a_playbook_that_does_not_know_the_handler(stage: Stage) -> None:
    stage.sim.faults.add("status:403@EXPORT*1")
    result = stage.apply(play(comment("Film")))
    plan = stage.plan(play(comment("Film", notify="Copy")))
    assert plan.requests == 0
    (warning,) = plan.warnings
    assert f"'Export' is pending since run {result.run}" in warning
    assert "--forget-pending" in warning


def test_owed_after_a_rename(stage: Stage) -> None:
    task = {"asset": {"title": "Film 2", "was": ["Film"]}, "notify": "Export"}
    stage.sim.faults.add("status:403@EXPORT*1")
    result = stage.apply(play(task))
    assert outcomes(result) == ["studio Film: failed"]
    assert [change.pending for change in stage.plan(play(task)).targets[0].changes] == [result.run]
    assert stage.apply(play(task)).ok
    assert stage.plan(play(task)).requests == 0


@pytest.mark.scale
@keeps(link_fields="hidden")
def test_killed_where_the_change_is_not_reported(stage: Stage) -> None:
    """It is unknown whether a difference is left, so a request that may have been done is not sent again."""
    stage.sim.dialect = stage.sim.dialect.with_values({"link_fields": "hidden"})
    task = comment("Film", notify=["Copy", "Export"])
    stage.sim.faults.add("delay:5@EXPORT")
    stage.killed(play(task), when=lambda: any(stage.sim.faults.hits().values()))
    stage.sim.faults.clear()
    again = stage.plan(play(task))
    assert changes(again) == ["change field comment", "run command PARTNER_COPY_PROGRAM_FIELDS"]
    (warning,) = again.warnings
    assert "'Export' was sent by run" in warning
    assert "the changed value is not reported and may be set already" in warning
    stage.sim.clear_log()
    assert stage.apply(play(task)).ok
    assert sent(stage) == ["Film SETFIELD", "Film PARTNER_COPY_PROGRAM_FIELDS"]
    assert stage.plan(play(task), forget_pending=True).warnings == ()


@keeps(link_fields="reported")
def test_a_certain_change_calls_again_what_may_have_run(stage: Stage) -> None:
    stage.sim.faults.add("cut_before@EXPORT*1")
    assert outcomes(stage.apply(play(comment("Film")))) == ["studio Film: unverified"]
    stage.sim.clear_log()
    result = stage.apply(play(comment("Film", "Ready again")))
    (warning,) = result.plan.warnings
    assert "a change of this run notifies it again" in warning
    assert sent(stage) == ["Film SETFIELD", "Film PARTNER_EXPORT_VERSION"]
    last = stage.plan(play(comment("Film", "Ready again")))
    assert (last.requests, last.warnings) == (0, ())
