"""Handlers the whole way: once for each target that changed, after its changes; and none is lost when a run dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.planning.saved_plan import plan_from_json
from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.dialects.keeping_switches import keeps
from tests.dialects.pairwise import Row
from tests.plan_documents import plan_to_json
from tests.stage import Stage, changes

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
    *tasks: dict[str, Any],
    handlers: tuple[dict[str, Any], ...] = (EXPORT, COPY, STILL),
    **more: Any,
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
    tasks = [
        comment(title, notify=["Export", "Stills"], tags=["here"]) for title in ("Film", "News")
    ]
    plan = stage.plan(play(*tasks, handlers=handlers), tags=("here",))
    runs = {
        target.name: [change.aspect for change in target.changes[1:]] for target in plan.targets
    }
    assert runs == {
        "Film": ["command", "thumbnail", "thumbnail"],
        "News": ["thumbnail", "thumbnail"],
    }


# Owed ----------------------------------------------------------------------------------------------------------


def test_a_pending_handler_is_in_the_file_of_a_plan(stage: Stage) -> None:
    stage.sim.faults.add("status:403@EXPORT*1")
    result = stage.apply(play(comment("Film")))
    again = plan_to_json(stage.plan(play(comment("Film"))))
    assert again["targets"][0]["changes"][0]["pending"] == result.run
    assert plan_to_json(plan_from_json(again)) == again


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
