"""``asset.xmp`` in templates, for each way in which a server may report XMP fields: never empty by mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.simulator import SimDialect, Simulator
from msauto.simulator.seed import empty_state
from tests.stage import Stage

BY_NAME = ["xmp_without_field=empty", "xmp_without_field=error"]
ALL_AT_ONCE = ["xmp_shape=attr", "xmp_shape=element", "xmp_shape=nested", "xmp_shape=lines"]
SHAPES = ("attr", "element", "nested", "lines")


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture
def sim(running: Simulator) -> Simulator:
    running.state = empty_state()
    news = running.state.databases["NEWS"]
    film = news.add_clip("Film", "Raw", frames=400)
    film.xmp["dc:title"] = ["Kept"]
    news.add_clip("Bare", "Raw", frames=400)
    running.dialect = SimDialect()
    running.clear_log()
    return running


def task(title: str = "Film", **more: Any) -> dict[str, Any]:
    return {"name": "Asks", "asset": {"title": title, "fields": {"comment": "seen"}}, **more}


def stage(sim: Simulator, folder: Path, *switches: str, **dialect: str) -> Stage:
    sim.dialect = SimDialect.parse(switches)
    return Stage(sim, folder, dialect=dialect)


def sourced(sim: Simulator, folder: Path, when: str, *switches: str, title: str = "Film") -> bool:
    """Plan one task with a condition; return whether it held. There must be neither error nor warning."""
    plan = stage(sim, folder, *switches).plan(task(title, when=when))
    assert [target.error for target in plan.targets if target.error] == []
    assert plan.warnings == ()
    return bool(plan.targets)


@pytest.mark.parametrize("switch", [*ALL_AT_ONCE, *BY_NAME])
def test_a_field_is_found_by_its_name_in_every_way(sim: Simulator, tmp_path: Path, switch: str) -> None:
    assert sourced(sim, tmp_path, "'dc:title' in asset.xmp", switch)
    assert sourced(sim, tmp_path, "asset.xmp['dc:title'] == ['Kept']", switch)
    assert sourced(sim, tmp_path, "asset.xmp.get('dc:title', []) | first == 'Kept'", switch)
    assert sourced(sim, tmp_path, "asset.xmp['dc:title'] is defined", switch)
    for absent in ("'dc:nothing' in asset.xmp", "asset.xmp['dc:nothing'] is defined", "asset.xmp.get('dc:nothing')"):
        assert not sourced(sim, tmp_path, absent, switch)
    assert not sourced(sim, tmp_path, "'dc:title' in asset.xmp", switch, title="Bare")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("switch", BY_NAME)
def test_by_name_in_every_shape(sim: Simulator, tmp_path: Path, shape: str, switch: str) -> None:
    assert sourced(sim, tmp_path, "asset.xmp['dc:title'] | join == 'Kept'", switch, f"xmp_shape={shape}")
    assert not sourced(sim, tmp_path, "'dc:nothing' in asset.xmp", switch, f"xmp_shape={shape}")


@pytest.mark.parametrize("switch", ["xmp_shape=attr", *BY_NAME])
def test_a_where_leaves_no_clip_out(sim: Simulator, tmp_path: Path, switch: str) -> None:
    selected = {"select": {"folder": "Raw", "where": "'dc:title' in asset.xmp"}, "fields": {"comment": "seen"}}
    result = stage(sim, tmp_path, switch).apply({"name": "Asks", "asset": selected})
    assert [each.name for each in result.plan.targets] == ["Film"]
    assert sim.state.clip("Film").home.fields["comment"] == "seen"


@pytest.mark.parametrize("switch", ["xmp_shape=attr", *BY_NAME])
def test_what_is_asked_and_wanted_is_compared_as_it_is(sim: Simulator, tmp_path: Path, switch: str) -> None:
    both = {"name": "Asks", "asset": {"title": "Film", "xmp": {"dc:title": ["Kept"], "dc:x": ["new"]}}}
    both["when"] = "'dc:title' in asset.xmp and 'dc:x' not in asset.xmp or asset.xmp['dc:x'] == ['new']"
    here = stage(sim, tmp_path, switch)
    plan = here.plan(both)
    assert [(each.key, each.basis) for each in plan.targets[0].changes] == [("dc:x", "live")]
    here.apply(both)
    assert sim.state.clip("Film").xmp == {"dc:title": ["Kept"], "dc:x": ["new"]}
    assert here.plan(both).targets == ()


@pytest.mark.parametrize("switch", ["xmp_shape=attr", *BY_NAME])
def test_the_fingerprint_covers_the_field_that_was_looked_at(sim: Simulator, tmp_path: Path, switch: str) -> None:
    here = stage(sim, tmp_path, switch)
    asked = task(when="'dc:title' in asset.xmp")

    def fingerprint() -> str:
        return here.plan(asked).targets[0].fingerprint

    first = fingerprint()
    assert fingerprint() == first
    sim.state.clip("Film").xmp["dc:title"] = ["Changed"]
    assert fingerprint() != first


@pytest.mark.parametrize(
    ("switches", "dialect"),
    [(("xmp_shape=unreadable",), {}), (("xmp_shape=unreadable", "xmp_without_field=error"), {}),
     ((), {"xmp_read": "never"})],
)  # fmt: skip
@pytest.mark.parametrize(
    "when", ["'dc:title' in asset.xmp", "asset.xmp['dc:title'] is defined", "asset.xmp.get('a:b')"]
)
def test_where_none_can_be_read_the_task_is_an_error(
    sim: Simulator, tmp_path: Path, switches: tuple[str, ...], dialect: dict[str, str], when: str
) -> None:
    (target,) = stage(sim, tmp_path, *switches, **dialect).plan(task(when=when)).targets
    assert target.error is not None
    assert "the task 'Asks' reads asset.xmp, and this server does not report XMP fields" in target.error
    assert "playbook.yml:" in target.error


# All of it at once -----------------------------------------------------------------------------------------------

WHOLE = [
    "asset.xmp",
    "asset.xmp != {}",
    "not (asset.xmp == {})",
    "asset.xmp | length > 0",
    "asset.xmp.keys() | list",
    "asset.xmp.items() | list",
    "asset.xmp | dict2items",
    "'Kept' in asset.xmp.values() | flatten | list",
]


@pytest.mark.parametrize("when", WHOLE)
def test_all_at_once_where_the_server_tells_that(sim: Simulator, tmp_path: Path, when: str) -> None:
    assert sourced(sim, tmp_path, when)


@pytest.mark.parametrize("when", WHOLE)
def test_all_at_once_where_the_server_answers_nothing_is_a_warning(sim: Simulator, tmp_path: Path, when: str) -> None:
    plan = stage(sim, tmp_path, "xmp_without_field=empty").plan(task(when=when), task("Bare", when=when))
    assert plan.targets == ()
    (warning,) = set(plan.warnings)
    assert warning.startswith("studio: the task 'Asks' reads asset.xmp as a whole")
    assert 'asset.xmp["ns:name"]' in warning


@pytest.mark.parametrize("when", WHOLE)
def test_all_at_once_where_the_server_refuses_is_an_error(sim: Simulator, tmp_path: Path, when: str) -> None:
    (target,) = stage(sim, tmp_path, "xmp_without_field=error").plan(task(when=when)).targets
    assert target.error is not None
    assert "the task 'Asks' reads asset.xmp as a whole" in target.error


def test_an_empty_answer_is_believed_of_a_server_that_tells_all(sim: Simulator, tmp_path: Path) -> None:
    plan = stage(sim, tmp_path).plan(task("Bare", when="asset.xmp != {}"), task("Film", when="asset.xmp != {}"))
    assert plan.warnings == ()
    assert [target.name for target in plan.targets] == ["Film"]


def test_all_at_once_is_an_error_where_names_have_shown_that_there_are_some(sim: Simulator, tmp_path: Path) -> None:
    here = stage(sim, tmp_path, "xmp_without_field=empty")
    (target,) = here.plan(task(when="'dc:title' in asset.xmp and asset.xmp != {}")).targets
    assert target.error is not None
    assert "as a whole" in target.error


def test_a_secret_beside_it_asks_for_nothing_more(sim: Simulator, tmp_path: Path) -> None:
    when = "'dc:title' in asset.xmp and ('hunter2-long' | secret) != asset.title"
    assert sourced(sim, tmp_path, when, "xmp_without_field=error")
