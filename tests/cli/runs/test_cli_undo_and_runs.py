"""Windows that close on the way, and runs that died, on the command line."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import msauto
from msauto.cli import plan_and_apply
from msauto.concurrency import SystemClock
from msauto.ledger.ledger import Ledger
from msauto.model.plan import Plan
from msauto.plugins.simulator.embedded import SimMarker, Simulator, empty_state
from tests.cli.command_line import Desk
from tests.cli.runs.test_cli_interrupts import until
from tests.stage import news_with

FLAGS = ("-i", "inventory.yml", "--state-dir", "state")
TITLES = ("A", "B", "C")


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(state=news_with(TITLES)) as simulator:
        yield simulator


def all_three(desk: Desk) -> str:
    return desk.play(
        {"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": list(TITLES)}
    )


def comments(sim: Simulator) -> list[str]:
    return [sim.state.clip(title).home.fields.get("comment", "") for title in TITLES]


def test_undo_after_a_run_with_a_secret_writes_what_was_there(desk: Desk, sim: Simulator) -> None:
    """A secret hides nothing but what contains it: hidden texts are never written back."""
    marker = SimMarker(1, 5, {"title": "Ad break", "track": "Cue Point", "comment": "two minutes"})
    sim.state.clip("A").markers = [marker]
    secret = {"user_0": "{{ 'hunter-2-hunter' | secret }}"}
    name = desk.play(
        {"asset": {"title": "A", "fields": secret, "markers": [], "exactly": ["markers"]}}
    )
    assert desk.run("apply", name, *FLAGS, "--yes").code == 0
    assert sim.state.clip("A").markers == []
    assert desk.run("undo", "last", *FLAGS, "--yes").code == 0
    (again,) = sim.state.clip("A").markers
    assert {**again.fields, **marker.fields} == again.fields


@pytest.mark.parametrize(
    ("changed", "code"), [(TITLES, 3), (TITLES[:1], 0), ((), 0)], ids=["all", "some", "none"]
)
def test_an_undo_that_takes_nothing_back_says_so(
    desk: Desk, sim: Simulator, changed: tuple[str, ...], code: int
) -> None:
    assert desk.run("apply", all_three(desk), *FLAGS, "--yes").code == 0
    for title in changed:
        home = sim.state.clip(title).home
        home.fields["comment"] = "CLEARED"
    undone = desk.run("undo", "last", *FLAGS, "--yes")
    assert undone.code == code, undone
    assert ("nothing was taken back" in undone.err) is (code == 3)
    left = dict.fromkeys(TITLES, "") | dict.fromkeys(changed, "CLEARED")
    assert comments(sim) == [*left.values()]
    if not changed:  # all is as it was before that run
        *_, first = desk.run("history", *FLAGS[2:], "--format", "json").json
        again = desk.run("undo", first["run"], *FLAGS, "--yes")
        assert again.code == 0


# Windows ---------------------------------------------------------------------------------------------------------


def at(monkeypatch: pytest.MonkeyPatch, now: Callable[[], datetime]) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _: now())


NIGHT = datetime(2026, 11, 21, 5, 29, tzinfo=ZoneInfo("Europe/Oslo"))
WINDOW = ("--window", "23:00-05:30")


@pytest.fixture
def zone(desk: Desk) -> None:
    desk.write("msauto.toml", 'tz = "Europe/Oslo"\n')


@pytest.mark.usefixtures("zone")
def test_a_window_that_closes_on_the_way(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, lambda: NIGHT + timedelta(minutes=2 if sim.writes() else 0))
    sourced = desk.run(
        "apply", all_three(desk), *FLAGS, "--yes", "--forks", "1", *WINDOW, "--format", "json"
    )
    results = [target["result"] for target in sourced.json["targets"]]
    assert (sourced.code, [each["outcome"] for each in results]) == (
        3,
        ["changed", "not attempted", "not attempted"],
    )
    assert "outside the window" in results[1]["message"]
    assert comments(sim) == ["Ready", "", ""]
    at(monkeypatch, lambda: NIGHT)
    assert desk.run("apply", "play.yml", *FLAGS, "--yes", *WINDOW).code == 0
    assert comments(sim) == ["Ready"] * 3


FREEZE = '[[freeze]]\nfrom = "05:30"\nto = "23:00"\ntz = "Europe/Oslo"\n'


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("freeze", [False, True])
def test_a_window_that_closes_before_the_first_target(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch, freeze: bool
) -> None:
    """A confirmation may come late: nothing was written, so it is refused."""
    late: list[bool] = []
    at(monkeypatch, lambda: NIGHT + timedelta(minutes=2 if late else 0))
    monkeypatch.setattr(plan_and_apply, "ask", lambda *_, **__: late.append(True))
    flags, why = [*FLAGS, "--yes", *WINDOW], "outside the window"
    if freeze:
        desk.write("msauto.toml", FREEZE)
        flags, why = [*FLAGS, "--yes"], "msauto.toml has a freeze"
    refused = desk.run("apply", all_three(desk), *flags)
    assert refused.code == 4
    assert sim.writes() == []
    refused.one_error(why, "nothing was sent", "→")
    (entry,) = desk.run("history", "--state-dir", "state", "--format", "json").json
    assert entry["status"] == "refused"
    assert why in entry["reason"]


@contextmanager
def begun(desk: Desk, sim: Simulator) -> Iterator[str]:
    """A run that is sending the first request of the first target."""
    assert desk.run("plan", all_three(desk), *FLAGS, "--out", "plan.json").code == 0
    from msauto.api.saved_plans import read_plan_file

    plan: Plan = read_plan_file(str(desk.folder / "plan.json"))
    with Ledger.open(desk.folder / "state") as ledger:
        ledger.journal.notes["url of studio-a"] = sim.url
        run = ledger.journal.start(plan, ["play.yml"])
        ledger.journal.sending(run, plan.targets[0], 0)
        yield run


def die(desk: Desk, sim: Simulator, *, sent: bool) -> str:
    """Leave a run that died while the first request of the first target was under way."""
    with begun(desk, sim) as run:
        pass
    if sent:
        sim.state.clip("A").home.fields["comment"] = "Ready"
    return run


@pytest.mark.parametrize("sent", [True, pytest.param(False, marks=pytest.mark.scale)])
def test_a_run_that_died_is_settled_by_reading(desk: Desk, sim: Simulator, sent: bool) -> None:
    run = die(desk, sim, sent=sent)
    assert (
        desk.run("history", run, "--state-dir", "state", "--format", "json").json["status"]
        == "died"
    )
    sourced = desk.run("apply", all_three(desk), *FLAGS, "--yes")
    assert sourced.code == 0
    assert f"Warning: run {run}" in sourced.err
    assert "died with 1 target in progress; what msauto finds now by reading:" in sourced.err
    assert "nothing was sent" not in sourced.err, "the run that died sent something"
    assert comments(sim) == ["Ready"] * 3
    assert len(sim.writes()) == (2 if sent else 3)
    story = desk.run("history", run, "--state-dir", "state", "--format", "json").json
    assert story["status"] == "interrupted"
    states = [target["requests"][0]["result"]["outcome"] for target in story["targets"]]
    assert states == ["done" if sent else "unverified", "not sent", "not sent"], story
    assert "died" not in desk.run("apply", all_three(desk), *FLAGS, "--yes").err


def test_the_report_and_the_history_of_a_dead_run_show_what_may_have_been_sent(
    desk: Desk, sim: Simulator
) -> None:
    run = die(desk, sim, sent=True)
    for command in ("report", "history"):
        shown = desk.run(command, run, "--state-dir", "state", "--format", "json").json["targets"]
        outcomes = [
            (each["result"]["outcome"], each["requests"][0]["result"]["outcome"]) for each in shown
        ]
        assert outcomes == [
            ("unverified", "unverified"),
            ("not attempted", "not sent"),
            ("not attempted", "not sent"),
        ]
    text = desk.run("history", run, "-v", "--state-dir", "state").out
    assert text.count(": the run ended before this target was done\n") == 3
    assert "A: unverified: the run ended" in text
    assert "B: not attempted: the run ended" in text
    assert [line.split("  ")[1] for line in text.splitlines() if "POST" in line] == [
        "unverified POST /storage/NEWS@A?command=SETFIELD&name=comment&val=Ready",
        "not sent",
        "not sent",
    ]


def test_the_history_of_a_run_in_progress_shows_how_far_it_is(desk: Desk, sim: Simulator) -> None:
    with begun(desk, sim):
        shown = desk.run("history", "last", "--state-dir", "state").out
    assert "A: in progress\n  sending   POST" in shown
    assert "B: planned\n  planned   POST" in shown
    assert "ended before" not in shown


def test_a_dead_run_of_a_server_that_is_not_at_hand_waits(desk: Desk, sim: Simulator) -> None:
    run = die(desk, sim, sent=True)
    with Simulator(state=empty_state()) as other:
        other.state.databases["NEWS"].add_clip("A", "Raw", frames=10)
        desk.inventory(
            {"studio-b": {"server": {"url": other.url}, "database": "NEWS"}}, "other.yml"
        )
        play = desk.comment("x", "A", name="other-play.yml")
        sourced = desk.run("apply", play, "-i", "other.yml", "--state-dir", "state", "--yes")
    assert (sourced.code, "died" in sourced.err) == (0, False)
    assert (
        desk.run("history", run, "--state-dir", "state", "--format", "json").json["status"]
        == "died"
    )


@pytest.mark.scale
def test_a_target_that_is_half_done_is_planned_anew(desk: Desk, sim: Simulator) -> None:
    """Ctrl-C inside of the only target: what is left is planned from live state."""
    task = {
        "asset": {"title": "{{ item }}", "fields": {"comment": "Ready", "user_1": "x"}},
        "loop": ["A"],
    }
    sim.faults.add("delay:1@POST")
    with desk.start("apply", desk.play(task), *FLAGS, "--yes") as process:
        until(lambda: any(sim.faults.hits().values()), 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    sim.faults.clear()
    assert len(sim.writes()) == 1
    sourced = desk.run("apply", "play.yml", *FLAGS, "--yes")
    assert (sourced.code, len(sim.writes())) == (0, 2)


def test_the_library_knows_what_others_changed_of_a_clip(desk: Desk, sim: Simulator) -> None:
    for text in ("Week 47", "Week 48"):
        play = desk.comment(text, title="A")
        assert desk.run("apply", play, *FLAGS, "--yes").code == 0
        sim.state.clip("A").home.fields["comment"] = f"by hand, after {text}"
    state = desk.folder / "state"
    new, old = msauto.history(title="A", state_dir=state, all=True)
    (change_over_theirs,) = new.record.target.changes
    (first_change,) = old.record.target.changes
    assert change_over_theirs.outside is not None
    assert first_change.outside is None
    recent = msauto.history(title="A", since=timedelta(0), state_dir=state, all=True)
    assert recent == ()
