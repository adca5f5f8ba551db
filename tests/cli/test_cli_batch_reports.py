"""What a batch reports: monitoring of ``batch run``, ``batch status``, ``history``, and ``report``."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk
from tests.cli.test_cli_batch_run import STATE, batch, five_jobs, history, outcomes, run
from tests.unit.batch.recorder import Recorder, recording

SECRET = "s3cretT0ken"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as made:
        yield made


def subscribed(recorder: Recorder, *events: str) -> dict[str, Any]:
    address = recorder.url(f"notice/{SECRET}", "json")
    return {"heartbeat": recorder.url(f"ping/{SECRET}"), "notify": [{"to": address, "on": [*events]}]}


# Monitoring -------------------------------------------------------------------------------------------------------


def test_a_night_is_reported(desk: Desk, recorder: Recorder) -> None:
    desk.comment("new")
    more = {"metrics": {"file": "out.prom"}, "reports": {"dir": "reports", "formats": ["html", "junit"]}}
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "changed"), **more)
    said = run(desk, "--format", "json")
    assert said.code == 0
    assert [each["error"] for each in said.json["deliveries"]] == [""] * 6
    assert recorder.paths[0] == f"/ping/{SECRET}/start"
    assert sorted(recorder.paths[1:]) == [f"/notice/{SECRET}", f"/ping/{SECRET}/0"]
    (junit,) = (desk.folder / "reports").glob("nightly-*.xml")
    (suite,) = ET.fromstring(junit.read_text(encoding="utf-8")).iter("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert len(list((desk.folder / "reports").glob("nightly-*.html"))) == 1
    shown = desk.run("history", said.json["run"], *STATE).out
    assert "notice json://…: delivered" in shown
    assert SECRET not in f"{said}{shown}"
    assert SECRET.encode() not in (desk.state / "ledger.sqlite").read_bytes()


@pytest.mark.parametrize("status", [500, 404])
def test_monitoring_never_changes_the_outcome(desk: Desk, recorder: Recorder, status: int) -> None:
    recorder.status = status
    desk.comment("new")
    more = {"metrics": {"file": "nowhere/out.prom"}, "reports": {"dir": "play.yml", "formats": ["text", "junit"]}}
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "ok"), **more)
    said = run(desk, "--format", "json")
    assert (said.code, outcomes(said)) == (0, {"a": ("ok", 0)})
    assert all(each["error"] for each in said.json["deliveries"])
    assert len(said.json["deliveries"]) == 6
    assert said.err.count("Warning: ") == 6
    assert SECRET not in f"{said}{desk.run('history', said.json['run'], *STATE)}"


def test_a_broken_playbook_and_a_missed_start_are_reported(desk: Desk, recorder: Recorder) -> None:
    desk.write("play.yml", "- hosts: [")
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "failed", "recovered"))
    assert run(desk).code == 1
    desk.comment("new")
    assert run(desk, "--failed").code == 0
    assert [json.loads(body)["title"] for path, body in recorder.requests if path.startswith("/notice")] == [
        "msauto nightly: failed: 1 of 1 job not ok",
        "msauto nightly: ok: 1 job ok, 1 target changed",
    ]
    assert [path.rpartition("/")[2] for path in recorder.paths if path.startswith("/ping")] == [
        "start",
        "1",
        "start",
        "0",
    ]


def test_a_run_of_some_jobs_sends_no_heartbeat(desk: Desk, recorder: Recorder) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml"}, "b": {"playbooks": "play.yml"}}, **subscribed(recorder, "failed"))
    assert run(desk, "a").code == 0
    assert run(desk, "--check").code == 0
    assert recorder.paths == []


def test_a_misspelled_job_is_no_failed_night(desk: Desk, recorder: Recorder) -> None:
    desk.comment("new")
    batch(desk, {"news": {"playbooks": "play.yml"}}, **subscribed(recorder, "failed"))
    said = run(desk, "nwes")
    assert (said.code, said.out, said.err.count("nwes")) == (1, "", 1)
    said.one_error("job 'nwes' not found in batch.yml", "did you mean 'news'?")
    assert (recorder.paths, history(desk)) == ([], [])


def test_check_notify(desk: Desk, recorder: Recorder) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "failed"))
    assert desk.run("batch", "check", "batch.yml", "--notify").code == 0
    assert sorted(recorder.paths) == [f"/notice/{SECRET}", f"/ping/{SECRET}/log"]
    recorder.status = 500
    said = desk.run("batch", "check", "batch.yml", "--notify")
    assert said.code == 1
    assert "the test to json://… was not delivered" in said.out
    assert SECRET not in said.out


def test_programs_run_after_a_job_without_a_shell(desk: Desk) -> None:
    desk.comment("new", "Nobody")
    desk.write(
        "note.py", "import os, sys\nprint(sys.argv[1:], {n: v for n, v in os.environ.items() if n[:7] == 'MSAUTO_'})"
    )
    programs = [[sys.executable, "note.py", "$HOME; x"], ["./nothing"], [sys.executable, "-c", "raise SystemExit(3)"]]
    batch(desk, {"a": {"playbooks": "play.yml", "on_end": programs}, "b": {"plan": "x", "optional": True}})
    said = desk.spawn("batch", "run", "batch.yml", *STATE, "--format", "json")
    assert said.code == 1
    assert [(each["kind"], each["error"]) for each in json.loads(said.out)["deliveries"]] == [
        ("program", ""),
        ("program", "it cannot be started: No such file or directory"),
        ("program", "it ended with 3"),
    ]
    (line,) = [each for each in said.err.splitlines() if each.startswith("['$HOME; x'] ")]
    for word in ("'MSAUTO_BATCH': 'nightly'", "'MSAUTO_JOB': 'a'", "'MSAUTO_OUTCOME': 'failed'", "'MSAUTO_CODE': '1'"):
        assert word in line
    assert "Nobody" in line


def test_a_trace_of_what_started_it(desk: Desk) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml"}})
    desk.environment["TRACEPARENT"] = parent
    said = run(desk, "--format", "json")
    assert said.json["traceparent"] == parent
    (name,) = said.json["jobs"][0]["runs"]
    assert desk.run("history", name, *STATE, "--format", "json").json["notes"]["traceparent"] == parent


def test_secrets_of_playbooks_are_in_no_report(desk: Desk, sim: Simulator, recorder: Recorder) -> None:
    secret = "{{ env.CHAT_PASSWORD | secret }}"
    desk.environment["CHAT_PASSWORD"] = SECRET
    marker = {"at": 0, "track": "General", "title": secret}
    desk.play({"asset": {"title": "EP001", "fields": {"comment": secret}, "markers": [marker]}})
    desk.play({"assert": {"title": "EP002", "that": ["false"], "msg": f"no {secret}"}}, name="failed.yml")
    jobs = {"drift": {"playbooks": "play.yml", "do": "plan"}, "a": {"playbooks": "play.yml"}}
    forms = ["text", "json", "markdown", "html", "junit"]
    reports = {"dir": "reports", "formats": forms}
    address = {"to": recorder.url("notice", "json"), "on": ["failed", "drift"]}
    batch(desk, {**jobs, "b": {"playbooks": "failed.yml"}}, reports=reports, notify=[address])
    said = run(desk, "--format", "json")
    assert outcomes(said) == {"drift": ("ok", 0), "a": ("ok", 0), "b": ("failed", 1)}
    assert {entry.method for entry in sim.writes()} == {"POST"}
    folders = (desk.folder / "reports", desk.state)
    files = [path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert len(files) > len(forms)
    assert SECRET not in f"{said}{recorder.requests}{desk.run('history', said.json['run'], *STATE)}"
    assert not [each for each in files if SECRET.encode() in each]


def test_drift_names_who_added_a_marker(desk: Desk) -> None:
    marker = {"at": 0, "track": "General", "title": "Checked", "user": "anna"}
    desk.play({"asset": {"title": "EP001", "markers": [marker]}})
    desk.run("apply", "play.yml", "-i", "inventory.yml", "--yes", *STATE)
    desk.play({"asset": {"title": "EP001", "markers": [], "exactly": ["markers"]}})
    batch(desk, {"a": {"playbooks": "play.yml", "do": "plan"}})
    (found,) = run(desk, "--format", "json").json["jobs"][0]["drift"]
    assert (found["name"], found["by"]) == ("EP001", ["anna"])
    assert "a: studio-a/NEWS: EP001 differs (for 2 nights, by anna): marker uid " in run(desk).out


# History ----------------------------------------------------------------------------------------------------------


def test_history_is_filtered(desk: Desk) -> None:
    five_jobs(desk)
    run(desk)
    desk.run("apply", desk.comment("other"), "--yes", *STATE)
    assert len(history(desk)) == 7
    assert len(history(desk, "--batch", "nightly")) == 6
    assert len(history(desk, "--since", "1h")) == 7
    assert history(desk, "--since", "0s") == []
    said = desk.run("history", "--since", "soon", *STATE)
    assert (said.code, "is not a length of time" in said.err) == (1, True)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_a_past_run_is_shown_in_any_form(desk: Desk, form: str) -> None:
    desk.play(
        {"asset": {"title": "EP001", "fields": {"comment": "new"}}},
        {"asset": {"title": "EP002", "fields": {"comment": "{{ env.HIDDEN_PASSWORD | secret }}"}}},
    )
    desk.environment["HIDDEN_PASSWORD"] = SECRET
    first = desk.run("apply", "play.yml", "-i", "inventory.yml", "--yes", "--format", form, *STATE)
    again = desk.run("report", "last", "--format", form, *STATE)
    assert (first.code, again.code) == (0, 0), again
    assert SECRET not in again.out
    assert "***{" not in again.out
    assert "EP001" in again.out
    assert "changed" in again.out
    if form == "json":
        results = [[each["result"]["outcome"] for each in said.json["targets"]] for said in (first, again)]
        assert results[0] == results[1] == ["changed", "changed"]
        assert first.json["summary"] == again.json["summary"]
    if form == "text":
        applied, shown = (said.out.splitlines()[-1].partition(" in ")[0] for said in (first, again))
        assert applied == shown == "Done: 2 changed; 2 requests"


def test_a_run_that_wrote_nothing_has_no_report(desk: Desk) -> None:
    desk.run("apply", desk.comment("new", "Nobody"), "-i", "inventory.yml", "--yes", *STATE)
    desk.run("report", "last", *STATE).one_error("wrote nothing")


# Status -----------------------------------------------------------------------------------------------------------


def status(desk: Desk, *arguments: str) -> tuple[int, dict[str, Any]]:
    said = desk.run("batch", "status", *arguments, *STATE, "--format", "json")
    return said.code, {each["job"]: each for each in said.json}


def test_status(desk: Desk) -> None:
    five_jobs(desk)
    code, rows = status(desk, "batch.yml")
    assert code == 3
    assert {(each["outcome"], each["last_success"], each["late"]) for each in rows.values()} == {
        ("not attempted", None, True)
    }
    ended = {each["job"]: each["ended"] for each in run(desk, "--format", "json").json["jobs"]}
    code, rows = status(desk, "batch.yml")
    assert code == 3
    assert (rows["good"]["outcome"], rows["good"]["last_success"], rows["good"]["late"]) == ("ok", ended["good"], False)
    assert (rows["delete"]["outcome"], rows["delete"]["code"], rows["delete"]["late"]) == ("refused", 4, True)
    assert rows["good"]["next_start"].endswith("T03:10:00.000Z")
    assert rows["good"]["frozen"] is None
    assert status(desk)[1].keys() == rows.keys()


def test_status_is_3_without_a_recent_success(desk: Desk) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml"}})
    run(desk)
    assert status(desk, "batch.yml")[0] == status(desk)[0] == 0
    assert status(desk, "batch.yml", "--max-age", "0s")[0] == 3
    desk.write("play.yml", "- hosts: [")
    run(desk)
    code, rows = status(desk, "batch.yml")
    assert (code, rows["a"]["outcome"]) == (0, "failed"), "the success of today is recent enough"


def test_status_of_a_ledger_without_batches(desk: Desk) -> None:
    said = desk.run("batch", "status", "--state-dir", "elsewhere")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("No batches in elsewhere")
    assert status(desk) == (3, {})


def test_status_knows_freezes(desk: Desk) -> None:
    desk.comment("new")
    batch(desk, {"a": {"playbooks": "play.yml"}})
    text = '[[freeze]]\nfrom = "03:00"\nto = "04:00"\ntz = "UTC"\n'
    desk.write("msauto.toml", f'inventory = "inventory.yml"\n{text}')
    assert status(desk, "batch.yml")[1]["a"]["frozen"].endswith("04:00 UTC")
    said = desk.run("batch", "status", "batch.yml", *STATE)
    assert "never" in said.out
    assert "03:00 to" in said.out
