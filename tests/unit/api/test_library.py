"""msauto as a library: the same checks, limits, ledger and locks as the command line, over real HTTP."""

from __future__ import annotations

import asyncio
import inspect
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import httpx2
import pytest
import yaml

import msauto
from msauto.api.options import OPTIONS
from msauto.api.run import RunOptions
from msauto.cli.commands import apply as apply_command
from msauto.cli.commands import export as export_command
from msauto.cli.commands import history as history_command
from msauto.cli.commands import plan as plan_command
from msauto.cli.main import main
from msauto.ledger.locks import this_user
from msauto.model.events import Event, RequestSending, RunStarted
from msauto.model.plan import PlanOptions
from msauto.model.result import RunDetails
from msauto.plugins.simulator import rehearse as rehearse_command
from msauto.plugins.simulator.embedded import Simulator
from tests.stage import news_with

COMMENT = {"name": "Describe", "asset": {"title": "Film", "fields": {"comment": "Ready"}}}
DELETED = {"asset": {"title": "Film", "state": "absent"}}
MANY = {
    "asset": {"title": "{{ item }}", "fields": {"comment": "new"}},
    "loop": ["Film", "Logo", "Promo"],
}


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(state=news_with(("Film", "Logo", "Promo"))) as simulator:
        yield simulator


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def inventory(sim: Simulator) -> dict[str, Any]:
    return {"all": {"hosts": {"studio-a": {"server": {"url": sim.url}, "database": "NEWS"}}}}


def plays(*tasks: Mapping[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "A test", "hosts": "all", "tasks": [*tasks], **more}]


def written(path: Path, data: Any) -> Path:
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


# The network ---------------------------------------------------------------------------------------------------------


async def one_clip(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI app that has one clip, and forgets what it is sent."""
    del receive
    found = scope["path"] == "/storage/NEWS@Film: 50%"
    text = '<Clip link_id="1"><Attr name="title">Film: 50%</Attr><Attr name="comment">Ready</Attr></Clip>'
    await send({"type": "http.response.start", "status": 200 if found else 404, "headers": []})
    await send(
        {"type": "http.response.body", "body": text.encode() if found else b"Object not found"}
    )


def test_a_playbook_is_tried_without_a_server() -> None:
    task = {"asset": {"title": "Film: 50%", "fields": {"comment": "Ready", "user_1": "Kanal 5"}}}
    transport = httpx2.ASGITransport(app=one_clip)
    play = msauto.load(plays(task, database="NEWS"), server="studio-a", transport=transport)
    plan = msauto.plan(play)
    assert [(change.key, change.after) for change in plan.changes] == [("user_1", "Kanal 5")]
    result = msauto.apply(plan)
    assert [target.outcome for target in result.targets] == ["failed"]
    assert (
        "Film: 50%"
        in msauto.export(
            title="Film: 50%", server="studio-a", database="NEWS", transport=transport
        ).text
    )
    with pytest.raises(msauto.MsautoError, match="on and transport cannot be given together"):
        msauto.load(plays(task), server="studio-a", transport=transport, on="dask://studio-a:8786")


# The way -------------------------------------------------------------------------------------------------------------


def test_files_are_planned_applied_listed_and_undone(
    sim: Simulator, inventory: dict[str, Any], folder: Path
) -> None:
    playbook, hosts = (
        written(folder / "news.yml", plays(COMMENT)),
        written(folder / "inventory.yml", inventory),
    )
    plan = msauto.plan(msauto.load(playbook, inventory=str(hosts), limit="studio-a"))
    assert plan.summary.requests == 1
    assert [(change.key, str(change.place)) for change in plan.changes] == [
        ("comment", f"{playbook}:8:9")
    ]
    assert sim.writes() == []
    result = msauto.apply(plan)
    assert result.ok
    assert [target.outcome for target in result.targets] == ["changed"]
    (past,) = msauto.history()
    assert (past.run, past.status, past.playbooks) == (result.run, "ok", (str(playbook),))
    assert [each.target.name for each in msauto.history(result.run).targets] == ["Film"]
    assert msauto.undo(result.run, inventory=hosts).ok
    assert sim.state.clip("Film").home.fields.get("comment", "") == ""


def test_several_playbooks_and_inventories_are_given_as_files_and_data(
    sim: Simulator, inventory: dict[str, Any], folder: Path
) -> None:
    first = written(folder / "first.yml", plays(COMMENT))
    second = written(
        folder / "second.yml",
        plays({"asset": {"title": "{{ which }}", "fields": {"comment": "x"}}}),
    )
    more = {"all": {"vars": {"which": "Logo"}}}
    play = msauto.load(
        [first, str(second)], inventory=[written(folder / "inventory.yml", inventory), more]
    )
    assert [target.name for target in msauto.plan(play).targets] == ["Film", "Logo"]


def test_data_is_planned_and_applied_and_its_places_are_paths(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    plan = msauto.plan(msauto.load(plays(COMMENT), inventory=inventory))
    assert [str(change.place) for change in plan.changes] == [
        "plays[0].tasks[0].asset.fields.comment"
    ]
    result = msauto.apply(plan)
    assert result.ok
    assert msauto.history()[0].playbooks == ("plays",)
    assert msauto.plan(plan.loaded).summary.requests == 0


def test_what_was_loaded_is_applied_without_a_plan_as_with_yes(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    result = msauto.apply(msauto.load(plays(MANY), inventory=inventory))
    assert result.counts["changed"] == 3


def test_extra_vars_are_a_mapping_with_types_or_texts(inventory: dict[str, Any]) -> None:
    task = {
        "asset": {
            "title": "Film",
            "fields": {"comment": "{{ season + 1 }} {{ names | join('+') }}"},
        }
    }
    play = msauto.load(
        plays(task), inventory=inventory, extra_vars={"season": 3, "names": ["a: b", "ø"]}
    )
    assert msauto.plan(play).changes[0].after == "4 a: b+ø"
    play = msauto.load(
        plays(task), inventory=inventory, extra_vars=["season=3", '{"season": 4, "names": []}']
    )
    assert msauto.plan(play).changes[0].after == "5 "


def test_tags_targets_and_one_server_by_its_url(sim: Simulator) -> None:
    tasks = [{**COMMENT, "tags": ["prep"]}, {**MANY, "tags": ["all-of-them"]}]
    play = msauto.load(
        plays(*tasks, database="NEWS"), server=sim.url, tags="prep, all-of-them", skip_tags=["prep"]
    )
    assert len(msauto.plan(play).targets) == 3
    play = msauto.load(
        plays(*tasks, database="NEWS"), server=sim.url, tags="all-of-them", target="P*"
    )
    assert [target.name for target in msauto.plan(play).targets] == ["Promo"]


def test_live_state_is_exported_as_text_and_as_files(
    inventory: dict[str, Any], folder: Path
) -> None:
    exported = msauto.export(title="Film", inventory=inventory)
    assert (exported.ok, exported.assets) == (True, 1)
    again = written(folder / "again.yml", yaml.safe_load(exported.text))
    assert msauto.plan(msauto.load(again, inventory=inventory)).changes == ()
    files = msauto.export(inventory=inventory, out=folder / "out").files
    assert [path.relative_to(folder) for path in files] == [Path("out/NEWS/Raw.yml")]


# Errors --------------------------------------------------------------------------------------------------------------


def test_all_problems_of_data_are_raised_at_once_each_with_its_place(
    inventory: dict[str, Any],
) -> None:
    wrong = plays({"asset": {"titel": "A"}}, {"asset": {"title": "A", "xmp": {"dc:title": {1, 2}}}})
    with pytest.raises(msauto.InputError, match="set") as failure:
        msauto.load(wrong, inventory=inventory)
    assert str(failure.value.place) == "plays[0].tasks[1].asset.xmp['dc:title']"
    assert failure.value.remedy
    with pytest.raises(msauto.InputError) as failure:
        msauto.load(
            plays(*wrong[0]["tasks"][:1], hosts="unknown"), inventory={"all": {"hostz": {}}}
        )
    assert [str(each.place) for each in failure.value.problems] == [
        "inventory.all.hostz",
        "plays[0].tasks[0].asset.titel",
    ]
    assert (failure.value.message, failure.value.remedy) == (
        str(failure.value),
        "did you mean 'hosts'?",
    )


def test_data_as_inventory_has_no_group_vars(inventory: dict[str, Any]) -> None:
    with pytest.raises(
        msauto.InputError, match=r"undefined variable 'episode'(.|\n)*has no group_vars beside it"
    ):
        msauto.load(plays({"asset": {"title": "{{ episode }}"}}), inventory=inventory)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([{1: "x"}], "plays[0]"),
        ([{"hosts": float("nan")}], "plays[0].hosts"),
        ([{"hosts": "\udcff"}], "plays[0].hosts"),
        ([{"hosts": object()}], "plays[0].hosts"),
        ([{"vars": {"short": msauto.Secret("abc")}}], "plays[0].vars.short"),
    ],
)
def test_what_no_yaml_could_give_is_an_error_with_its_place(data: Any, place: str) -> None:
    with pytest.raises(msauto.InputError) as failure:
        msauto.load(data, inventory={})
    assert str(failure.value.place) == place
    assert failure.value.remedy


def test_data_that_contains_itself_is_an_error() -> None:
    play: dict[str, Any] = {"hosts": "all"}
    play["vars"] = play
    with pytest.raises(msauto.InputError, match="nested deeper"):
        msauto.load([play], inventory={})


def test_a_target_in_error_has_message_place_and_remedy(
    sim: Simulator, inventory: dict[str, Any], folder: Path
) -> None:
    tasks = plays({"asset": {"title": "Unknown"}}, COMMENT)
    playbook = written(folder / "news.yml", tasks)
    plan = msauto.plan(msauto.load(playbook, inventory=inventory))
    (error,) = plan.errors
    assert (error.target.name, str(error.place)) == ("Unknown", f"{playbook}:5:14")
    assert error.message == "server studio-a, database NEWS: asset 'Unknown' not found"
    assert error.remedy.startswith("correct the title")
    (of_data,) = msauto.plan(msauto.load(tasks, inventory=inventory)).errors
    assert (str(of_data.place), of_data.message) == ("plays[0].tasks[0].asset.title", error.message)
    with pytest.raises(msauto.PlanningError, match="cannot plan 1 target: Unknown"):
        msauto.apply(plan)
    assert sim.writes() == []
    result = msauto.apply(plan, keep_going=True)
    assert [target.outcome for target in result.targets] == ["not attempted", "changed"]


def test_nothing_to_load_and_wrong_keywords_are_errors(inventory: dict[str, Any]) -> None:
    with pytest.raises(msauto.MsautoError, match="no playbook is given"):
        msauto.load(inventory=inventory)
    play = msauto.load(plays(COMMENT), inventory=inventory)
    for wrong in ({"window": "late"}, {"override_freeze": " "}):
        with pytest.raises(msauto.MsautoError) as failure:
            msauto.apply(play, **wrong)  # type: ignore[arg-type]
        assert failure.value.remedy
    with pytest.raises(msauto.MsautoError, match="not a form"):
        msauto.export(inventory=inventory, format="yaml")


@pytest.mark.parametrize(
    ("function", "given"),
    [
        ("load", {"inventory": 3}), ("load", {"inventory": [None]}), ("load", {"inventory": iter(())}),
        ("load", {"playbooks": None}), ("load", {"playbooks": [3]}), ("load", {"playbooks": b"news.yml"}),
        ("load", {"playbooks": b""}), ("load", {"server": 3}), ("load", {"extra_vars": [3]}),
        ("load", {"limit": ["studio-a"]}),
        ("load", {"tags": None}), ("load", {"skip_tags": [3]}), ("load", {"target": 3}), ("load", {"target": []}),
        ("load", {"tags": ()}), ("load", {"keep_going": "no"}), ("load", {"forget_pending": 1}), ("load", {"forks": 0}),
        ("load", {"forks": "3"}), ("load", {"config": 3}), ("load", {"state_dir": ""}), ("load", {"on": ""}),
        ("load", {"transport": "x"}), ("load", {"undo": ""}), ("plan", {"play": "news.yml"}), ("plan", {"observer": 3}),
        ("apply", {"plan": "news.yml"}), ("apply", {"allow_delete": "2"}), ("apply", {"allow_delete": True}),
        ("apply", {"allow_remove": -1}), ("apply", {"allow_requests": 2.5}), ("apply", {"keep_going": "False"}),
        ("apply", {"override_freeze": True}), ("apply", {"window": 3}), ("apply", {"lock_timeout": float("nan")}),
        ("apply", {"lock_timeout": None}), ("undo", {"run": ""}), ("undo", {"run": None}), ("undo", {"target": []}),
        ("export", {"title": []}), ("export", {"force": "no"}), ("export", {"out": 3}), ("export", {"database": 3}),
        ("history", {"run": 3}), ("history", {"since": "3d"}), ("history", {"all": "x"}),
    ],
)  # fmt: skip
def test_a_value_of_a_wrong_type_is_refused_by_the_name_of_its_keyword(
    sim: Simulator, inventory: dict[str, Any], function: str, given: dict[str, Any]
) -> None:
    needed: dict[str, dict[str, Any]] = {
        "load": {"playbooks": plays(COMMENT), "inventory": inventory},
        "plan": {"play": None},
        "apply": {"plan": None},
        "undo": {"inventory": inventory},
        "export": {"inventory": inventory},
    }
    if function in {"plan", "apply"}:
        needed[function] = dict.fromkeys(
            needed[function], msauto.load(plays(COMMENT), inventory=inventory)
        )
    (name,) = given
    with pytest.raises(msauto.MsautoError, match=f"^{name} ") as failure:
        getattr(msauto, function)(**{**needed.get(function, {}), **given})
    assert failure.value.remedy
    assert sim.writes() == []


# Consent, limits, freezes, locks -------------------------------------------------------------------------------------


def test_a_deletion_is_refused_without_a_keyword_and_the_refusal_is_in_the_history(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    plan = msauto.plan(msauto.load(plays(DELETED), inventory=inventory))
    assert [refusal.remedy for refusal in plan.refusals] == ["--allow-delete 1"]
    with pytest.raises(msauto.RefusedError, match="nothing was sent"):
        msauto.apply(plan)
    assert sim.writes() == []
    assert [each.status for each in msauto.history()] == ["refused"]
    assert isinstance(msauto.history("last"), RunDetails)
    assert msauto.apply(plan, allow_delete=1).ok


def test_settings_hold_their_limits_freezes_and_protected_names(
    sim: Simulator, inventory: dict[str, Any], folder: Path
) -> None:
    settings = folder / "msauto.toml"
    settings.write_text('[[freeze]]\nstart = 2020-01-01\nend = 2999-01-01\nreason = "Elections"\n')
    play = msauto.load(plays(COMMENT), inventory=inventory)
    with pytest.raises(msauto.RefusedError, match="Elections"):
        msauto.apply(play)
    assert msauto.apply(play, override_freeze="The desk agreed").ok
    assert msauto.history("last").notes["override_freeze"] == "The desk agreed"
    settings.write_text('protected = ["Raw/*"]\n')
    with pytest.raises(msauto.RefusedError, match="protected"):
        msauto.apply(msauto.load(plays(DELETED), inventory=inventory), allow_delete=1)
    settings.write_text("[state]\nrequire = true\n")
    with pytest.raises(msauto.RefusedError, match="require"):
        msauto.apply(
            msauto.load(plays(COMMENT), inventory=inventory, state_dir=folder / "unmounted")
        )
    assert not (folder / "unmounted").exists()


def test_what_changed_since_the_plan_is_not_applied(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    plan = msauto.plan(msauto.load(plays(MANY), inventory=inventory))
    sim.state.clip("Logo").home.fields["comment"] = "another user's"
    with pytest.raises(
        msauto.RefusedError, match=r"the plan is stale: 1 target .*: Logo: .*another user's"
    ):
        msauto.apply(plan)
    assert sim.writes() == []
    result = msauto.apply(plan, keep_going=True)
    assert [(each.target.name, each.outcome) for each in result.targets] == [
        ("Film", "changed"), ("Logo", "not attempted"), ("Promo", "changed"),
    ]  # fmt: skip


def test_a_second_run_is_locked_out(inventory: dict[str, Any]) -> None:
    play, found = msauto.load(plays(COMMENT), inventory=inventory), []

    def second(event: Event) -> None:
        if isinstance(event, RunStarted):
            with pytest.raises(msauto.LockedError) as failure:
                msauto.apply(play)
            found.append(failure.value.remedy)

    assert msauto.apply(play, observer=second).ok
    assert len(found) == 1
    assert found[0]


# Where it is called --------------------------------------------------------------------------------------------------


def test_an_observer_gets_the_events_and_its_errors_change_nothing(
    inventory: dict[str, Any],
) -> None:
    seen: list[str] = []

    def observe(event: Event) -> None:
        seen.append(type(event).__name__)
        raise ValueError("an observer that fails")

    play = msauto.load(plays(COMMENT), inventory=inventory)
    assert msauto.apply(msauto.plan(play, observer=observe), observer=observe).ok
    assert seen[:4] == ["PlanningStarted", "TargetsFound", "TargetPlanned", "PlanningEnded"]
    assert seen[-2:] == ["TargetFinished", "RunEnded"]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_it_works_in_threads_after_a_fork_and_inside_an_event_loop(
    inventory: dict[str, Any],
) -> None:
    play = msauto.load(plays(MANY), inventory=inventory)
    with ThreadPoolExecutor(3) as threads:
        counts = list(threads.map(lambda _: msauto.plan(play).summary.requests, range(3)))
    assert counts == [3, 3, 3]
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=lambda: os._exit(msauto.plan(play).summary.requests))
    child.start()
    child.join()
    assert child.exitcode == 3

    async def notebook() -> tuple[int, int]:
        return msauto.plan(play).summary.requests, (await msauto.aio.plan(play)).summary.requests

    assert asyncio.run(notebook()) == (3, 3)


def test_everything_is_awaitable(sim: Simulator, inventory: dict[str, Any]) -> None:
    async def work() -> None:
        play = await msauto.aio.load(plays(COMMENT), inventory=inventory)
        result = await msauto.aio.apply(await msauto.aio.plan(play))
        assert (await msauto.aio.history())[0].run == result.run
        assert (await msauto.aio.undo(inventory=inventory)).ok
        assert (await msauto.aio.export(title="Logo", inventory=inventory)).assets == 1

    asyncio.run(work())


def test_as_many_targets_at_a_time_as_the_server_has_connections() -> None:
    count, comments = 20, dict[str, str]()
    waiting = {method: asyncio.Barrier(count) for method in ("GET", "POST")}
    asked: set[tuple[str, str]] = set()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        key = request.method, request.url.path
        if key not in asked:  # planning and the first write wait for those of all targets
            asked.add(key)
            await asyncio.wait_for(waiting[request.method].wait(), 60)
        if request.method == "POST":
            comments[request.url.path] = request.url.params["val"]
        comment = comments.get(request.url.path, "")
        return httpx2.Response(
            200, text=f'<Clip link_id="1"><Attr name="comment">{comment}</Attr></Clip>'
        )

    server = {"url": "http://studio-a", "connections": count}
    inventory = {"all": {"hosts": {"studio-a": {"server": server, "database": "NEWS"}}}}
    titles = [f"Film {number}" for number in range(count)]
    desired = {"asset": {"title": "{{ item }}", "fields": {"comment": "new"}}, "loop": titles}
    play = msauto.load(plays(desired), inventory=inventory, transport=httpx2.MockTransport(answer))
    assert msauto.apply(play).ok
    assert len(comments) == count


def test_a_cancelled_run_finishes_what_is_in_flight_and_is_recorded(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    async def work() -> None:
        play = await msauto.aio.load(plays(MANY), inventory=inventory, forks=1)

        def stop(event: Event) -> None:
            if isinstance(event, RequestSending):
                task.cancel()

        task = asyncio.ensure_future(msauto.aio.apply(play, observer=stop))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert len(sim.writes()) == 1
    details = msauto.history("last")
    assert details.summary.status == "interrupted"
    assert [each.outcome for each in details.targets] == [
        "changed",
        "not attempted",
        "not attempted",
    ]


def test_a_run_that_is_cancelled_while_it_plans_sends_nothing(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    async def work() -> None:
        play = await msauto.aio.load(plays(MANY), inventory=inventory)
        task = asyncio.ensure_future(msauto.aio.apply(play, observer=lambda _: task.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert sim.writes() == []
    assert [(each.status, each.code) for each in msauto.history()] == [("interrupted", 130)]


def test_ctrl_c_stops_a_blocking_call_as_it_stops_the_command(
    sim: Simulator, inventory: dict[str, Any]
) -> None:
    assert threading.current_thread() is threading.main_thread()

    def interrupt(event: Event) -> None:
        if isinstance(event, RequestSending):
            os.kill(os.getpid(), signal.SIGINT)
            told.wait(10)

    told = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def handler(*_: object) -> None:
        told.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            msauto.apply(msauto.load(plays(MANY), inventory=inventory, forks=1), observer=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 1 <= len(sim.writes()) < 3
    assert msauto.history("last").summary.status == "interrupted"


def test_ctrl_c_before_a_blocking_call_has_started_does_not_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, interrupted = threading.Thread.start, list[threading.Thread]()

    def interrupt(thread: threading.Thread) -> None:
        if not interrupted:
            interrupted.append(thread)
            raise KeyboardInterrupt
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        msauto.history()


# Values --------------------------------------------------------------------------------------------------------------


def test_the_forms_are_those_of_the_command(
    inventory: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder / "news.yml", plays(MANY))
    written(folder / "inventory.yml", inventory)
    plan = msauto.plan(msauto.load("news.yml", inventory="inventory.yml"))
    capsys.readouterr()
    for form in ("text", "markdown", "html", "json"):
        main(["plan", "news.yml", "-i", "inventory.yml", "--format", form])
        ours, theirs = getattr(plan, f"to_{form}")(), capsys.readouterr().out
        if form == "json":
            ours, theirs = (json.loads(text) for text in (ours, theirs))
            for document in (ours, theirs):
                del document["created"], document["options"]["now"]
        if form in {"text", "json"}:
            assert ours == theirs
        else:
            assert ours.splitlines()[0] == theirs.splitlines()[0]
            assert (this_user() in ours) == (this_user() in theirs) == (form == "html")
    result = msauto.apply(plan)
    assert json.loads(result.to_json())["result"]["ok"] is True
    assert "<testsuites" in result.to_junit()
    assert result.to_html().startswith("<!DOCTYPE html>")
    assert this_user() in result.to_html()
    assert "3 changed" in result.to_text()
    assert result.to_markdown()


def test_a_plan_as_json_is_a_saved_plan(
    sim: Simulator, inventory: dict[str, Any], folder: Path
) -> None:
    written(folder / "news.yml", plays(COMMENT))
    written(folder / "inventory.yml", inventory)
    plan = msauto.plan(msauto.load("news.yml", inventory="inventory.yml", extra_vars={"season": 3}))
    (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    assert msauto.apply(msauto.load("plan.json")).ok
    written_once = sim.writes()
    assert msauto.apply(msauto.load("plan.json")).ok
    assert sim.writes() == written_once
    of_data = msauto.plan(msauto.load(plays(MANY), inventory=inventory))
    (folder / "data.json").write_text(of_data.to_json(), encoding="utf-8")
    with pytest.raises(msauto.InputError, match="made from data"):
        msauto.load("data.json")


def test_representations_are_short_and_a_notebook_shows_html(inventory: dict[str, Any]) -> None:
    play = msauto.load(plays(DELETED, {"asset": {"title": "Unknown"}}), inventory=inventory)
    plan = msauto.plan(play)
    assert repr(play) == "<Loaded plays: studio-a>"
    assert repr(plan) == "<Plan: 1 change, 1 request, 0 unchanged, 1 error, refused: delete_assets>"
    result = msauto.apply(plan, allow_delete=1, keep_going=True)
    assert repr(result) == f"<Result {result.run}: not ok, 1 changed, 1 not_attempted>"
    assert repr(plan.targets[0]) == "<Target studio-a: asset 'Film': 1 changes, 1 requests>"
    assert repr(result.targets[0]) == "<TargetResult studio-a: asset 'Film': changed>"
    for value in (plan, result):
        shown = value._repr_html_()
        assert shown.startswith("<iframe srcdoc=")
        assert "<script" not in shown


SECRET = "5ecret-of-the-studio"


def test_secrets_never_show(sim: Simulator, inventory: dict[str, Any], folder: Path) -> None:
    task = {
        "asset": {"title": "Film", "fields": {"comment": "{{ token }}", "user_1": "{{ extra }}"}}
    }
    inventory["all"]["hosts"]["studio-a"]["server"]["auth"] = {"bearer": msauto.Secret(SECRET)}
    extra = {"extra": msauto.Secret(f"more-{SECRET}")}
    play = msauto.load(
        plays(task, vars={"token": msauto.Secret(SECRET)}), inventory=inventory, extra_vars=extra
    )
    plan = msauto.plan(play)
    events: list[Event] = []
    result = msauto.apply(plan, observer=events.append)
    assert result.ok
    assert sim.state.clip("Film").home.fields["comment"] == SECRET
    shown = [
        repr(each)
        for each in (
            play,
            plan,
            plan.targets,
            plan.changes,
            plan.errors,
            result,
            result.targets,
            events,
        )
    ]
    shown += [
        plan.to_text(verbose=2),
        plan.to_json(),
        plan.to_markdown(),
        plan.to_html(),
        plan._repr_html_(),
    ]
    shown += [result.to_text(verbose=2), result.to_json(), result.to_html(), result.to_junit()]
    assert [text for text in shown if SECRET in text] == []
    for value in (play, plan, result):
        assert not hasattr(value, "__rich_repr__"), (
            "rich shows each part of a Struct, and some hold the secrets"
        )
    kept = b"".join(path.read_bytes() for path in (folder / "state").rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
    with pytest.raises(msauto.MsautoError) as failure:
        msauto.load(
            plays(
                {"asset": {"title": "{{ token }}", "x": 1}}, vars={"token": msauto.Secret(SECRET)}
            )
        )
    assert SECRET not in repr(failure.value)


# Names ---------------------------------------------------------------------------------------------------------------

SHOWN = {
    "form",
    "verbose",
    "no_color",
    "summary",
    "events",
    "progress",
    "out",
    "detailed_exitcode",
    "yes",
    "check",
}
"""Flags that decide how something is shown, or asked."""
PLURAL = {"titles": "title", "folders": "folder", "channels": "channel", "faults": "fault"}


FUNCTIONS = (
    msauto.load,
    msauto.plan,
    msauto.apply,
    msauto.rehearse,
    msauto.undo,
    msauto.export,
    msauto.history,
)


def flags_of(command: click.Command, *more: str) -> set[str]:
    return {PLURAL.get(str(each.name), str(each.name)) for each in command.params} - SHOWN - {*more}


def keywords_of(*functions: Any) -> set[str]:
    return {name for function in functions for name in inspect.signature(function).parameters}


def test_keywords_have_the_names_of_the_flags() -> None:
    ours = keywords_of(msauto.load, msauto.apply) - {"plan", "undo", "observer", "transport"}
    assert flags_of(apply_command.command) == ours
    ours = keywords_of(msauto.load, msauto.rehearse) - {"play", "undo", "observer", "transport"}
    assert flags_of(rehearse_command.command) == ours
    ours = keywords_of(msauto.export) - {"out", "format", "transport"}
    assert flags_of(export_command.command, "state_dir", "tags", "skip_tags") == ours
    assert {"batch", "since", "run", "title", "limit", "config", "state_dir"} == keywords_of(
        msauto.history
    ) - {"all"}
    assert keywords_of(msauto.history) - {"all"} <= flags_of(history_command.command)
    assert keywords_of(msauto.undo) <= keywords_of(msauto.load, msauto.apply) | {"run"}


def test_the_signatures_plans_and_consent_are_those_of_the_table() -> None:
    assert keywords_of(*FUNCTIONS) == {*OPTIONS}
    kept: dict[str, str] = {}
    consent: set[str] = set()
    for name, option in OPTIONS.items():
        if option.field:
            kept[option.field] = name
        if option.consent:
            consent.add(name)
    assert {*kept, "playbooks", "now"} == {*PlanOptions.__struct_fields__}
    assert consent == {*RunOptions.__struct_fields__} - {"until"}
    given = {"playbooks", "forks", "state_dir", "secret_commands", "on", "transport"}
    assert keywords_of(msauto.load) == {*kept.values(), *given, "keep_going"}
    assert keywords_of(msauto.apply) == {*consent, "plan", "observer"}
    unused = {"playbooks", "tags", "skip_tags", "forget_pending", "undo", "plan"}
    assert keywords_of(msauto.undo) == (keywords_of(msauto.load, msauto.apply) | {"run"}) - unused


@pytest.mark.parametrize(
    "command", [apply_command.command, plan_command.command, export_command.command]
)
def test_the_flags_of_a_command_are_those_of_the_table(command: click.Command) -> None:
    shared = {
        str(each.name): each
        for each in command.params
        if OPTIONS.get(str(each.name), OPTIONS["run"]).usage
    }
    assert len(shared) >= 10
    for name, each in shared.items():
        assert each.opts == OPTIONS[name].names
        assert isinstance(each, click.Option)
        assert (each.metavar, each.help) == (OPTIONS[name].metavar, OPTIONS[name].help)


@pytest.mark.parametrize("name", ["load", "plan", "apply", "undo", "export", "history"])
def test_the_blocking_function_has_the_signature_and_the_documentation_of_the_other(
    name: str,
) -> None:
    blocking, other = getattr(msauto, name), getattr(msauto.aio, name)
    assert inspect.signature(blocking) == inspect.signature(other)
    assert blocking.__doc__ == other.__doc__
    assert ">>> " in str(blocking.__doc__)
    assert inspect.iscoroutinefunction(other)
    assert not inspect.iscoroutinefunction(blocking)
