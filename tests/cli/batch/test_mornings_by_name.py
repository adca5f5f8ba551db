"""The summary of a night names what was skipped, refused, gone or removed, in each form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from msauto.plugins.simulator.embedded import Simulator
from msauto.plugins.simulator.embedded.state import SimMarker
from tests.cli.batch.test_cli_batch import HEAD, STATE, batch, run
from tests.cli.command_line import Desk

JOBS = {"tonight": {"playbooks": "play.yml"}}
EXACTLY: dict[str, Any] = {
    "asset": {
        "title": "EP001",
        "markers": [{"at": 5, "track": "Cue Point", "title": "Ours"}],
        "exactly": ["markers"],
    }
}


@pytest.fixture
def night(desk: Desk) -> Desk:
    batch(desk, JOBS, pages="pages")
    return desk


def page(desk: Desk) -> str:
    newest = max((desk.folder / "pages").glob("nightly-*.html"))
    return newest.read_text(encoding="utf-8")


def test_a_refused_job_names_what_it_would_delete(night: Desk) -> None:
    night.play(*({"asset": {"title": f"EP00{n}", "state": "absent"}} for n in (1, 2)))
    said = run(night)
    assert said.code == 4
    line = "would delete studio-a · NEWS · EP001 in Raw"
    assert line in said.out
    assert "would delete studio-a · NEWS · EP002 in Raw" in said.out
    assert line in page(night)
    assert line in night.run("history", "last", *STATE).out
    runs = night.run("history", "--format", "json", *STATE).json
    of_batch = next(each["run"] for each in runs if not each["job"])
    assert line in night.run("report", of_batch, *STATE).out


def test_many_deletions_that_were_refused_are_counted(night: Desk, sim: Simulator) -> None:
    titles = [f"Old {number}" for number in range(25)]
    for title in titles:
        sim.state.databases["NEWS"].add_clip(title, "Raw")
    night.play({"asset": {"title": "{{ item }}", "state": "absent"}, "loop": titles})
    out = run(night).out
    assert len(re.findall(r"\bOld \d+", out)) == 20
    assert "and 5 more" in out


@pytest.fixture
def three(night: Desk, sim: Simulator, other_sim: Simulator) -> Iterator[dict[str, Simulator]]:
    """Three servers, at a terminal of 80 columns."""
    with Simulator() as third:
        servers = {"oslo": sim, "bergen": other_sim, "tromso": third}
        hosts = {}
        for name, server in servers.items():
            hosts[name] = {"server": {"url": server.url}, "database": "NEWS"}
        night.inventory(hosts)
        night.environment["COLUMNS"] = "80"
        yield servers


@pytest.mark.scale
def test_60_deletions_on_3_servers_are_read_in_one_look_in_each_form(
    night: Desk, three: dict[str, Simulator]
) -> None:
    titles = [f"A promo of some length {7 * number}" for number in range(20)]
    for server in three.values():
        for number, title in enumerate(titles):
            folder = ("Raw", "Jingles", "Promos/2025")[number % 3]
            server.state.databases["NEWS"].add_clip(title, folder)
    night.play({"asset": {"title": "{{ item }}", "state": "absent"}, "loop": titles})

    def is_read_in_one_look(out: str) -> None:
        assert out.count("\n") < 40, out
        for title in titles:
            assert title in out

    is_read_in_one_look(run(night).out)  # refused
    is_read_in_one_look(night.run("history", "last", *STATE).out)
    plan = ("plan", "play.yml", *STATE)
    is_read_in_one_look(night.run(*plan).out)
    is_read_in_one_look(night.run(*plan, "--format", "markdown").out)
    allowed = {"tonight": {"playbooks": "play.yml", "allow": {"delete": 60}}}
    batch(night, allowed, pages="pages")
    is_read_in_one_look(run(night).out)  # deleted
    for form in ("text", "markdown"):
        is_read_in_one_look(night.run("report", "last", "--format", form, *STATE).out)
    is_read_in_one_look(night.run("history", "last", *STATE).out)


def test_what_was_removed_from_lists_is_named(night: Desk, three: dict[str, Simulator]) -> None:
    for server in three.values():
        clip = server.state.clip("EP001")
        clip.markers.append(SimMarker(clip.new_uid(), 70, {"track": "Cue Point", "title": "Old"}))
    night.play(EXACTLY)
    removed = "removed 1 item of oslo, bergen, tromso · NEWS · EP001 in Raw"
    assert removed in run(night).out
    assert removed in night.run("history", "last", *STATE).out


def test_what_differs_alike_on_several_servers_is_one_line(
    night: Desk, three: dict[str, Simulator]
) -> None:
    night.comment("x")
    batch(night, {"drift": {"playbooks": "play.yml", "do": "plan"}})
    assert "drift: oslo, bergen, tromso/NEWS: EP001 differs (new): field comment" in run(night).out


def test_a_clip_that_is_gone_is_told_each_night(night: Desk, sim: Simulator) -> None:
    night.play({"asset": {"title": "EP001", "fields": {"comment": "x"}, "missing": "skip"}})
    assert run(night).code == 0
    sim.state.databases["NEWS"].remove_clip(sim.state.clip("EP001"))
    for _ in range(2):
        said = run(night)
        assert said.code == 0
        assert "skipped: 1 gone since run " in said.out
        assert "studio-a · NEWS: EP001" in said.out
    assert "1 gone since run" in page(night)
    shown = night.run("history", "last", *STATE).out
    assert "1 gone since run" in shown


def test_what_is_skipped_as_in_the_last_run_is_only_counted(night: Desk) -> None:
    task = {"asset": {"title": "EP001", "fields": {"comment": "x"}}, "when": "asset.frames > 10**9"}
    night.play(task)
    flags = ("play.yml", "-i", "inventory.yml", *STATE)
    first = night.run("apply", *flags, "--yes").out
    assert "1 when: studio-a · NEWS: EP001" in first
    assert "1 when, as in the last run" in night.run("plan", *flags).out
    assert "1 when: studio-a · NEWS: EP001" in night.run("plan", *flags, "-v").out
    (skipped,) = night.run("plan", *flags, "--format", "json").json["skipped"]
    assert skipped["name"] == "EP001"
    assert skipped["reason"] == "when"
    assert skipped["repeated"] is True


def test_what_exactly_removed_of_others_is_named(night: Desk, sim: Simulator) -> None:
    night.play(EXACTLY)
    assert run(night).code == 0
    clip = sim.state.clip("EP001")
    theirs = {"track": "Cue Point", "title": "Theirs", "user": "anna"}
    clip.markers.append(SimMarker(clip.new_uid(), 70, theirs))
    said = run(night)
    assert said.code == 0
    assert "changed outside by anna: marker uid" in said.out
    assert '"Theirs" removed' in " ".join(said.out.split())


# A night belongs to its batch file


def test_two_stations_of_one_ledger_do_not_share_nights(
    sim: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    state = ("--state-dir", str(tmp_path_factory.mktemp("ledger")))
    codes = []
    for title in ("EP001", "Nobody"):
        desk = Desk(tmp_path_factory.mktemp("station"), sim.url)
        jobs = {"tonight": {"playbooks": "play.yml", "inventory": "inventory.yml"}}
        desk.write("batch.yml", {**HEAD, "jobs": jobs})  # no settings: it is known by its file
        desk.comment("x", title)
        codes.append(desk.run("batch", "run", "batch.yml", *state).code)
        status = desk.run("batch", "status", "batch.yml", "--format", "json", *state).json
        assert [job["code"] for job in status] == codes[-1:]
    assert codes == [0, 1]
    both = desk.run("batch", "status", "--format", "json", *state).json
    assert [job["code"] for job in both] == [1, 0]


def test_a_missed_window_shows_in_the_status(night: Desk) -> None:
    night.comment("x")
    half_a_day_away = datetime.now(UTC) + timedelta(hours=12)
    window = {"from": f"{half_a_day_away:%H}:00", "to": f"{half_a_day_away:%H}:59"}
    batch(night, JOBS, schedule={"at": window["from"], "tz": "UTC"}, window=window)
    assert run(night).code == 4
    assert "  missed: " in night.run("batch", "status", "batch.yml", *STATE).out


def test_a_file_that_does_not_exist_is_no_run(night: Desk) -> None:
    night.comment("x")
    assert night.run("apply", "play.yml", "-i", "inventory.yml", "--yes", *STATE).code == 0
    before = night.run("history", "--format", "json", *STATE).json
    for arguments in (
        ("apply", "nosuch.yml", "-i", "inventory.yml", "--yes"),
        ("apply", "nosuch.json", "--yes"),
        ("batch", "run", "nosuch.yml"),
    ):
        assert night.run(*arguments, *STATE).code == 1
    assert night.run("history", "--format", "json", *STATE).json == before


# One cause is one entry


@pytest.mark.scale
def test_one_recording_clip_on_three_servers_in_two_jobs(
    night: Desk, sim: Simulator, other_sim: Simulator
) -> None:
    with Simulator() as third:
        servers = {"oslo": sim, "bergen": other_sim, "tromso": third}
        hosts = {}
        for name, server in servers.items():
            server.state.clip("EP001").finalized = False
            hosts[name] = {"server": {"url": server.url}, "database": "NEWS"}
        night.inventory(hosts)
        night.comment("x")
        night.environment["COLUMNS"] = "80"
        job = JOBS["tonight"]
        batch(night, {"first": job, "second": job})
        said = run(night)
        told = [line for line in said.out.splitlines() if line.startswith("  ")]
        assert len(told) <= 6, said.out
        assert "oslo, bergen, tromso: 1 not attempted: 'EP001' is still being recorded" in said.out
        assert max(map(len, said.out.splitlines())) <= 80
        for server in servers.values():
            server.state.clip("EP001").finalized = True
        assert run(night, "--failed", "--now").code == 0
        status = night.run("batch", "status", "batch.yml", "--format", "json", *STATE).json
        assert [job["outcome"] for job in status] == ["ok", "ok"]


def test_the_width_holds_for_batches(night: Desk) -> None:
    night.comment("x", "Nobody is called like this one")
    run(night)  # the week of both has a night
    rows = []
    for columns in (60, 200):
        night.environment["COLUMNS"] = str(columns)
        lines = run(night).out.splitlines()  # commands are copied whole
        widest = max(len(line) for line in lines if not line.startswith("→"))
        assert widest <= columns
        rows.append(len(lines))
    assert rows[0] > rows[1]


def test_what_a_target_in_error_keeps_from_being_written_is_counted(night: Desk) -> None:
    titles = ["EP001", "EP002", "Nobody"]
    night.play(
        {"asset": {"title": "{{ item }}", "fields": {"comment": "x"}}, "loop": titles},
    )
    said = run(night)
    assert said.code == 1
    assert (
        "2 targets not attempted: one in error stops a job without `keep_going: true`" in said.out
    )


# The week


def week_in(text: str) -> str:
    """What a summary reports of the seven days before, on one line."""
    _, _, week = text.partition("The 7 days before:")
    return " ".join(week.split())


def test_the_week_names_what_was_done_and_what_was_not(night: Desk, sim: Simulator) -> None:
    night.play({"asset": {"title": "EP001", "fields": {"comment": "x"}, "missing": "skip"}})
    first = run(night)
    assert "The 7 days before:" not in first.out
    night.play({"asset": {"title": "EP002", "state": "absent"}})
    assert run(night).code == 4
    allowed = {"tonight": {"playbooks": "play.yml", "allow": {"delete": 1}}}
    batch(night, allowed, pages="pages")
    assert run(night).code == 0
    sim.state.databases["NEWS"].remove_clip(sim.state.clip("EP001"))
    night.play({"asset": {"title": "EP001", "fields": {"comment": "y"}, "missing": "skip"}})
    run(night)
    batch(night, allowed, pages="pages", reports={"dir": "reports", "formats": ["markdown"]})
    said = run(night)
    told = (
        "tonight refused: would delete studio-a · NEWS · EP002 in Raw",
        "tonight gone: studio-a · NEWS: EP001",
        "tonight removed: deleted studio-a · NEWS · EP002 in Raw",
        "tonight changed: studio-a · NEWS: EP002, EP001",
    )
    assert all(line in week_in(said.out) for line in told)
    runs = night.run("history", "--format", "json", *STATE).json
    newest_run = next(each["run"] for each in runs if not each["job"])
    assert all(line in week_in(night.run("history", newest_run, *STATE).out) for line in told)
    (report,) = (night.folder / "reports").glob("*.md")
    for form in (page(night), (night.folder / "pages" / "index.html").read_text(encoding="utf-8")):
        _, _, week = form.partition('id="week"')
        assert all(line.partition(": ")[2] in week for line in told)
    removed = "`tonight: removed: deleted studio-a · NEWS · EP002 in Raw`"
    assert removed in report.read_text(encoding="utf-8")


def test_the_week_is_that_of_its_batch_and_ends_with_its_night(night: Desk) -> None:
    night.comment("x")
    assert run(night).code == 0
    runs = night.run("history", "--format", "json", *STATE).json
    *_, first = [attempt["run"] for attempt in runs if not attempt["job"]]
    night.comment("y")
    assert "EP001" in week_in(run(night).out)
    assert week_in(night.run("history", first, *STATE).out) == ""
    other = {**HEAD, "name": "other", "jobs": JOBS}
    night.write("other.yml", other)
    of_other = night.run("batch", "run", "other.yml", *STATE)
    assert week_in(of_other.out) == ""


@pytest.mark.scale
def test_the_names_of_a_week_are_bounded(night: Desk, sim: Simulator) -> None:
    titles = [f"Clip {7 * number}" for number in range(30)]
    for title in titles:
        sim.state.databases["NEWS"].add_clip(title, "Raw")
    night.play({"asset": {"title": "{{ item }}", "fields": {"comment": "x"}}, "loop": titles})
    assert run(night).code == 0
    week = week_in(run(night).out)
    assert week.count("Clip") == 20
    assert "and 10 more" in week


@pytest.mark.scale
def test_what_is_refused_night_after_night_counts_once_in_the_week(
    night: Desk, sim: Simulator
) -> None:
    titles = [f"Old {7 * number}" for number in range(30)]
    for title in titles:
        sim.state.databases["NEWS"].add_clip(title, "Raw")
    for first in (3, 2, 1, 0):
        asset = {"title": "{{ item }}", "state": "absent"}
        night.play({"asset": asset, "loop": titles[first:]})
        said = run(night)
        assert said.code == 4
    week = week_in(said.out)
    assert len(re.findall(r"\bOld \d+", week)) == 20
    assert "and 9 more" in week


def test_a_refused_job_without_deletions_has_its_reason_in_the_week(night: Desk) -> None:
    night.comment("x")
    night.write("msauto.toml", 'inventory = "inventory.yml"\n[limits]\nrequests = 0\n')
    assert run(night).code == 4
    reason = "tonight refused: the plan sends 1 request"
    assert reason in week_in(run(night).out)
    assert week_in(run(night).out).count(reason) == 1


@pytest.mark.scale
def test_causes_of_one_night_are_added_in_the_week_and_those_of_two_are_not(
    night: Desk, sim: Simulator
) -> None:
    titles = [f"Clip {7 * number}" for number in range(24)]
    for title in titles:
        sim.state.databases["NEWS"].add_clip(title, "Raw")
    for number, title in enumerate(titles):
        status = 400 + 9 * (number % 2)
        sim.faults.add(f"status:{status}@POST .*{quote(title)}[?]")
    night.play({"asset": {"title": "{{ item }}", "fields": {"comment": "x"}}, "loop": titles})
    for _ in range(3):
        week = week_in(run(night).out)
    assert week.count("Clip") == 10
    assert "and 14 more" in week


def test_what_stays_because_others_changed_it_is_named(night: Desk, sim: Simulator) -> None:
    titles = ["EP001", "EP002"]
    for comment in "xy":
        fields = {"comment": comment}
        asset = {"title": "{{ item }}", "fields": fields}
        night.play({"asset": asset, "loop": titles, "outside": "keep"})
        said = run(night)
        for title in titles:
            sim.state.clip(title).home.fields["comment"] = "theirs"
    assert said.code == 0
    for title in titles:
        assert f"studio-a: {title}: field comment was changed outside" in said.out, said.out
        assert f"studio-a: {title}: field comment was changed outside" in page(night)
