"""Any exception in one target is the error of that target, and of one server that of its tasks: all else is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.applying.target_executor import TargetExecutor
from msauto.planning.asset_survey import AssetSurvey
from msauto.planning.target_groups import Grouping
from msauto.playbook.export import task_lines
from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.cli.command_line import Desk
from tests.tables import one_fast_in

ERRORS = (
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    OverflowError("int too large to convert to float"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    ValueError("Exceeds the limit (4300 digits) for integer string conversion"),
    ZeroDivisionError("Fraction(1, 0)"),
    AssertionError(),
)
EACH = pytest.mark.parametrize(
    "error", one_fast_in(2, ERRORS), ids=lambda error: type(error).__name__
)


@pytest.fixture
def sims() -> Iterator[list[Simulator]]:
    """Two servers, each with clips of these titles."""
    with Simulator(state=empty_state()) as one, Simulator(state=empty_state()) as other:
        for sim in (one, other):
            for title in ("Evil", "Good"):
                sim.state.databases["NEWS"].add_clip(title, "Raw", frames=500)
        yield [one, other]


@pytest.fixture
def desk(sims: list[Simulator], tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    blocks = {
        f"studio-{name}": {"server": {"url": sim.url}} for name, sim in zip("ab", sims, strict=True)
    }
    desk.inventory({name: {**block, "database": "NEWS"} for name, block in blocks.items()})
    task = {
        "name": "Describe",
        "asset": {"select": {"folder": "Raw"}, "fields": {"comment": "checked"}},
    }
    desk.write("play.yml", [{"hosts": "all", "tasks": [task]}])
    return desk


def fail(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    error: Exception,
    when: Callable[[Any], bool],
) -> None:
    """Let a method fail for some of the objects that it is called on."""
    method: Any = getattr(owner, name)

    async def failing(self: Any, *given: Any) -> Any:
        if when(self):
            raise error
        return await method(self, *given)

    monkeypatch.setattr(owner, name, failing)


def comments(sims: list[Simulator]) -> dict[str, list[str]]:
    """The comments of all clips, by title."""
    found: dict[str, list[str]] = {}
    for sim in sims:
        for clip in sim.state.databases["NEWS"].clips():
            found.setdefault(clip.title, []).append(clip.home.fields.get("comment", ""))
    return found


@EACH
def test_while_planning(
    desk: Desk, sims: list[Simulator], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fail(monkeypatch, AssetSurvey, "__call__", error, lambda survey: survey._group.name == "Evil")
    stopped = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes")
    assert stopped.code == 1
    stopped.one_error("studio-a", "studio-b", type(error).__name__, "→")
    assert comments(sims) == {"Evil": ["", ""], "Good": ["", ""]}
    applied = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes", "--keep-going")
    assert applied.code == 3
    applied.one_error(type(error).__name__)
    assert comments(sims) == {"Evil": ["", ""], "Good": ["checked", "checked"]}


@EACH
def test_a_server_as_a_whole(
    desk: Desk, sims: list[Simulator], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fail(
        monkeypatch, Grouping, "groups", error, lambda grouping: grouping.server.name == "studio-a"
    )
    stopped = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes")
    assert stopped.code == 1
    stopped.one_error("studio-a", type(error).__name__, "→")
    assert comments(sims) == {"Evil": ["", ""], "Good": ["", ""]}
    applied = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes", "--keep-going")
    assert applied.code == 3
    assert comments(sims) == {"Evil": ["", "checked"], "Good": ["", "checked"]}


@EACH
@pytest.mark.parametrize("method", ["_write_ahead", "run"])
def test_while_applying(
    desk: Desk,
    sims: list[Simulator],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    method: str,
) -> None:
    fail(
        monkeypatch, TargetExecutor, method, error, lambda executor: executor._target.name == "Evil"
    )
    applied = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes")
    assert applied.code == 3
    applied.one_error(type(error).__name__)
    assert comments(sims) == {"Evil": ["", ""], "Good": ["checked", "checked"]}


@pytest.mark.parametrize(
    "asset", [{"fields": {"comment": "checked"}}, {"xmp": {"dc:title": "New"}}]
)
def test_a_part_of_an_answer(desk: Desk, sims: list[Simulator], asset: dict[str, Any]) -> None:
    task = {"name": "Describe", "asset": {"select": {"folder": "Raw"}, **asset}}
    desk.write("play.yml", [{"hosts": "all", "tasks": [task]}])
    sims[0].faults.add("partial@GET .*Evil")
    stopped = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes")
    assert stopped.code == 1
    stopped.one_error("Evil", "206 with a part of the answer", "→")
    assert [sim.writes() for sim in sims] == [[], []]


def test_while_applying_what_stops_a_run_is_no_error_of_a_target(
    desk: Desk, sims: list[Simulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop: Any = KeyboardInterrupt()
    fail(monkeypatch, AssetSurvey, "__call__", stop, lambda survey: survey._group.name == "Evil")
    assert desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes", "--keep-going").code == 130
    assert comments(sims) == {"Evil": ["", ""], "Good": ["", ""]}


@EACH
def test_while_exporting(desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    lines: Any = task_lines

    def failing(snapshot: Any, *given: Any) -> Any:
        if getattr(snapshot, "title", "") == "Evil" and not hasattr(snapshot, "why"):
            raise error
        return lines(snapshot, *given)

    monkeypatch.setattr("msauto.api.export.task_lines", failing)
    exported = desk.run("export", "-i", "inventory.yml", "-l", "studio-a")
    assert exported.code != 0
    exported.one_error("Evil", type(error).__name__)
    assert "title: Good" in exported.out


CONDITIONS = {"asset.frames > 250": "frames", "(asset.comment | int) == 5": "comment"}


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_that_fails_of_one_clip(desk: Desk, sims: list[Simulator], where: str) -> None:
    for sim in sims:
        for clip in sim.state.databases["NEWS"].clips():
            clip.home.fields["comment"] = "5"
    evil = next(clip for clip in sims[0].state.databases["NEWS"].clips() if clip.title == "Evil")
    evil.shown[CONDITIONS[where]] = "9" * 5000
    asset = {"select": {"folder": "Raw", "where": where}, "fields": {"user_1": "checked"}}
    desk.write("play.yml", [{"hosts": "all", "tasks": [{"name": "Describe", "asset": asset}]}])
    stopped = desk.run("plan", "-i", "inventory.yml", "play.yml")
    assert stopped.code == 1
    stopped.one_error("Evil")
    applied = desk.run("apply", "-i", "inventory.yml", "play.yml", "--yes", "--keep-going")
    assert applied.code == 3
    checked = [
        clip
        for sim in sims
        for clip in sim.state.databases["NEWS"].clips()
        if clip.home.fields.get("user_1")
    ]
    assert [clip.title for clip in checked] == ["Good", "Evil", "Good"]
