"""What the files of ``tests/cases/stories`` cannot hold: a killed process, two deletions at once, long delays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec import structs

import msauto
from msauto import MediaServer
from msauto.errors import UnreadableError
from msauto.ledger.ledger import Ledger
from msauto.planning.saved_plan import plan_from_json
from msauto.plugins.simulator.embedded import (
    Fault,
    ServerState,
    SimClip,
    SimDialect,
    SimMarker,
    Simulator,
    empty_state,
)
from msauto.plugins.simulator.embedded.rss import put_item
from msauto.retry_policy import RetryPolicy
from msauto.secrets.redacted_plans import Redactor
from msauto.secrets.redaction import HIDDEN
from tests.cli.command_line import Desk
from tests.plan_documents import plan_to_json
from tests.stage import Stage
from tests.tables import one_fast_in

WRITES = "^(POST|PUT|DELETE)"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.make_folder("Master")
    news.add_clip("Film", "Raw", frames=500)
    news.add_clip("Other", "Raw", frames=300, create_time="2026-11-14T10:00:00")
    state.add_channel("ticker")
    with Simulator(state) as running:
        yield Stage(running, tmp_path)


def command(stage: Stage, name: str, *arguments: str) -> int:
    """The exit code of a command, in the folder of the stage."""
    desk = Desk(stage.folder / "desk")
    desk.folder = stage.folder  # whose inventory stays
    return desk.run(name, *arguments, "-i", "inventory.yml", "--state-dir", "state", "--yes").code


@pytest.mark.parametrize("kind", one_fast_in(2, ["marker", "item"]))
def test_what_somebody_made_after_a_kill_stays_theirs(stage: Stage, kind: str) -> None:
    state = stage.sim.state
    stage.sim.faults.add(f"status:503:60@{WRITES}")  # rejected: nothing is done
    marker = {"asset": {"title": "Film", "markers": [{"at": 20, "title": "Ad"}]}}
    item = {
        "rss": {"channel": "ticker", "items": [{"guid": "n-1", "file": "n-1.txt", "text": "Flash"}]}
    }
    stage.killed(marker if kind == "marker" else item, when=lambda: bool(stage.sent()))
    stage.sim.faults.clear()
    if kind == "marker":
        clip = state.clip("Film")
        clip.markers.append(SimMarker(clip.new_uid(), 20, {"track": "General", "title": "Ad"}))
    else:
        put_item(state.channels["ticker"], "n-1.txt", b"Flash", stage.sim.dialect)
    stage.sim.clear_log()
    assert command(stage, "apply", "playbook.yml") == 0
    command(stage, "undo", stage.runs()[-1])
    assert (
        stage.sent(),
        len(state.clip("Film").markers) + len(state.channels["ticker"].items),
    ) == ([], 1)


def test_a_deletion_is_checked_after_it_has_a_connection(stage: Stage) -> None:
    """The second deletion waits for the first; meanwhile its title is given to another clip."""
    stage.block = {"connections": 1}
    news = stage.sim.state.databases["NEWS"]
    news.add_clip("Keep", "Master", frames=77, create_time="2026-11-16T10:00:00")
    tasks = [{"asset": {"title": title, "state": "absent"}} for title in ("Film", "Other")]

    def swap(_: ServerState) -> None:
        deleted = stage.sim.log[-1].target.partition("@")[2]
        left, kept = (
            news.clip({"Film": "Other", "Other": "Film"}[deleted]).home,
            news.clip("Keep").home,
        )
        title = left.title
        news.change_entry(left, title="Moved away")
        news.change_entry(kept, title=title)

    plan = stage.plan(*tasks)
    stage.sim.faults.add(Fault("^DELETE", "after", times=1, change=swap))
    result = stage.applied(plan, stage.resolved(*tasks))
    assert sorted(each.home.folder for each in news.clips()) == [("Master",), ("Raw",)]
    assert sorted(each.outcome for each in result.targets) == ["changed", "not attempted"]


@pytest.mark.parametrize("shown", ["reported", "hidden"])
def test_a_rename_that_is_done_long_after_its_answer(stage: Stage, shown: str) -> None:
    stage.policy = RetryPolicy(backoff=(0.01,), read_pauses=(0.01,) * 6)
    stage.sim.dialect = stage.sim.dialect.with_values({"link_fields": shown})
    stage.sim.faults.add("deferred:4@clip_name*1")
    renamed: dict[str, Any] = {"title": "Feature", "was": ["Film"], "fields": {"comment": "Ready"}}
    stage.apply({"name": "A task", "asset": renamed})
    assert 404 not in [entry.status for entry in stage.sent()]


@pytest.mark.parametrize("status", [429, 503])
def test_without_anything_that_tells_clips_apart_a_deletion_is_not_sent_again(
    stage: Stage, status: int
) -> None:
    """All entries have one ``link_id``, and nothing else is reported."""
    bare = ("create_time", "frames", "orig_name", "frame_time")
    for clip in stage.sim.state.databases["NEWS"].clips():
        clip.omitted, clip.online = bare, False

    def twin(state: ServerState) -> None:
        state.databases["NEWS"].add_entry(
            SimClip(omitted=bare, online=False), "Other", "Film", link_id=1
        )

    task = {"asset": {"title": "Film", "folder": "Raw", "state": "absent", "with_links": True}}
    stage.sim.faults.add(
        Fault("DELETE", "after", times=1, change=twin), f"done_status:{status}@DELETE*1"
    )
    (target,) = stage.apply(task).targets
    assert (len(stage.sent()), target.outcome) == (1, "unverified")


def test_what_a_plan_holds_is_in_no_file(sim: Simulator, tmp_path: Path) -> None:
    sim.state.add_clip("Film", "Raw", frames=100).xmp["dc:title"] = ["Film"]
    asset = {"title": "Film", "fields": {"comment": "Ready"}, "xmp": {"dc:title": "Film"}}
    plan = Stage(sim, tmp_path).plan({"name": "A task", "asset": asset})
    assert {each.aspect for each in plan.targets[0].holding or ()} == {"xmp"}
    assert "holding" not in json.dumps(plan_to_json(plan))


def test_the_client_raises_where_an_answer_has_two_clips() -> None:
    with Simulator(dialect=["title_twins=both"]) as sim, MediaServer(sim.url) as server:
        sim.state.add_clip("EP001", "Old")
        with pytest.raises(UnreadableError, match="2 clips"):
            server.asset("NEWS", "EP001")


@pytest.fixture
def load(stage: Stage) -> dict[str, Any]:
    """A task that loads a batch of XMP metadata."""
    stage.sim.state.databases["NEWS"].connectors["TRAFFIC"] = []
    (stage.folder / "batch.xml").write_text("<batch/>")
    return {"name": "Load", "xmp_batch": {"connector": "TRAFFIC", "src": "batch.xml"}}


def test_a_plan_of_a_batch_is_kept_whole(stage: Stage, load: dict[str, Any]) -> None:
    plan = stage.plan(load)
    assert plan_to_json(plan_from_json(plan_to_json(plan))) == plan_to_json(plan)
    (target,) = plan.targets
    assert (target.kind, target.database, target.name) == ("database", "NEWS", "NEWS")
    assert not target.changes[0].reversible


@pytest.mark.scale
def test_killed_while_a_batch_is_under_way(stage: Stage, load: dict[str, Any]) -> None:
    stage.sim.faults.add("delay:5@PUT")
    stage.killed(load, when=lambda: any(stage.sim.faults.hits().values()))
    stage.sim.faults.clear()
    again = stage.plan(load)
    assert (again.requests, len(again.warnings)) == (0, 1)


@pytest.mark.parametrize(
    "switch", ["xmp_shape=attr", "xmp_without_field=empty", "xmp_without_field=error"]
)
def test_the_fingerprint_covers_an_xmp_field_that_was_looked_at(stage: Stage, switch: str) -> None:
    stage.sim.dialect = SimDialect.parse([switch])
    xmp = stage.sim.state.clip("Film").xmp
    xmp["dc:title"] = ["Kept"]
    asked = {
        "asset": {"title": "Film", "fields": {"comment": "seen"}},
        "when": "'dc:title' in asset.xmp",
    }
    first, second = (stage.plan(asked).targets[0].fingerprint for _ in range(2))
    xmp["dc:title"] = ["Changed"]
    assert first == second != stage.plan(asked).targets[0].fingerprint


@pytest.mark.scale
def test_a_killed_run_does_not_forget_how_msauto_left_a_field(stage: Stage) -> None:
    """It dies while the server holds its request, which is never done."""
    came, goes_on = Event(), Event()

    def hold(_: ServerState) -> None:
        came.set()
        goes_on.wait(30)

    def commented(text: str) -> dict[str, Any]:
        return {"asset": {"title": "Film", "fields": {"comment": text}}}

    stage.apply(commented("one"))
    stage.sim.state.clip("Film").home.fields["comment"] = "CALL THE DESK"
    stage.sim.faults.add(Fault("POST", "before", times=1, change=hold), "swallow@POST")
    stage.killed(commented("two"), when=came.is_set)
    goes_on.set()
    stage.sim.faults.clear()
    stage.write(commented("three"))
    files = (str(stage.folder / name) for name in ("playbook.yml", "inventory.yml"))
    result = msauto.apply(msauto.load(next(files), inventory=next(files), state_dir=stage.place))
    (change,) = json.loads(result.to_json())["targets"][0]["changes"]
    assert change["outside"]["left"] == "one"


def test_an_item_of_which_the_ledger_has_only_asterisks_is_left_alone(
    stage: Stage, monkeypatch: Any
) -> None:
    hide = monkeypatch.setattr
    hide(
        Redactor,
        "_effect",
        lambda _, effect, **__: structs.replace(effect, before={"title": HIDDEN}),
    )
    secret = {"asset": {"title": "Film", "fields": {"user_1": "{{ 'tok-5521' | secret }}"}}}
    item = {"rss": {"channel": "ticker", "items": [{"guid": "n-1", "text": "Storm"}]}}
    assert stage.apply(secret, item).ok
    plan = stage.undo(dry=True)
    assert any(
        "item n-1 is left alone: what was there before is hidden" in warning
        for warning in plan.warnings
    )
    assert plan.requests == 0


def test_the_earlier_secret_of_a_thing_that_is_made_anew_is_not_in_the_ledger(stage: Stage) -> None:
    for secret in ("tok-5521", "tok-9999"):
        segment = {
            "number": 1,
            "start": 0,
            "duration": 5,
            "title": f"{{{{ '{secret}' | secret }}}}",
        }
        assert stage.apply({"asset": {"title": "Film", "segments": [segment], "lossy": True}}).ok
    with Ledger.open(stage.place, readonly=True) as ledger:
        requests = [record.target.requests for record in ledger.run_details("last").targets]
    assert "tok-" not in repr(requests)
