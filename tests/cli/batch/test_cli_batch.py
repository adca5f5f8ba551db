"""msauto batch and msauto schedule: printed units that run, the summary, and what is reported to other systems."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import msauto
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk, Said, check_golden
from tests.unit.batch.recorder import Recorder, recording

BATCH = """
name: nightly
schedule: {at: "03:10", tz: Europe/Oslo}
window: {from: "23:00", to: "05:30"}
jobs: {all: {playbooks: play.yml, inventory: inventory.yml}}
"""


@pytest.fixture
def night(away: Desk) -> Desk:
    away.comment("ready")
    away.write("batch.yml", BATCH)
    return away


@pytest.mark.parametrize("scheduler", ["systemd", "cron", "kubernetes", "windows"])
def test_print_and_write(night: Desk, scheduler: str) -> None:
    shown = night.run("schedule", "print", "batch.yml", "--for", scheduler)
    assert shown.code == 0
    assert "nightly" in shown.out
    assert "To install:" in shown.err
    written = night.run("schedule", "print", "batch.yml", "--for", scheduler, "--out", "units")
    assert written.code == 0
    paths = written.out.splitlines()
    assert len(paths) == (3 if scheduler == "systemd" else 1)
    assert all(
        (night.folder / path).read_text(encoding="utf-8") in shown.out + "\n" for path in paths
    )


@pytest.mark.scale
def test_the_printed_program_runs_in_the_environment_of_cron(night: Desk) -> None:
    line = night.run("schedule", "print", "batch.yml", "--for", "cron").out.splitlines()[-1]
    assert " -P -m msauto batch run " in line  # no file of the folder of the batch is imported
    command = line.split(" ", 5)[5].replace("\\%", "%").replace("batch run", "batch check")
    bare = ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/", "/bin/sh", "-c", command]
    done = subprocess.run(bare, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "No errors found." in done.stderr


def test_the_batch_of_a_new_repository(away: Desk) -> None:
    assert away.run("init", "repo").code == 0
    assert away.run("batch", "check", "repo/batch.yml").out == ""
    text = (away.folder / "repo" / "batch.yml").read_text(encoding="utf-8")
    shutil.copytree(away.folder / "repo", away.folder / "all")
    uncommented = [
        line.replace("# ", "", 1) if _is_example(line) else line for line in text.splitlines()
    ]
    Path(away.folder / "all" / "batch.yml").write_text("\n".join(uncommented), encoding="utf-8")
    done = away.run("batch", "check", "all/batch.yml")
    errors = [
        line for line in done.out.splitlines() if "all/batch.yml:" in line and "warning" not in line
    ]
    assert [line for line in errors if "node-exporter" not in line] == []


def _is_example(line: str) -> bool:
    """Return whether a line is a key that is commented out."""
    return (
        line.lstrip().startswith("# ")
        and line.lstrip()[2:].split(":")[0].strip(" -{").isidentifier()
    )


# ``msauto batch run``: each job isolated, its exit codes, the window, what is run again, and the history


STATE = ("--state-dir", "state")
HEAD = {"name": "nightly", "schedule": {"at": "03:10", "tz": "UTC"}}


def batch(desk: Desk, jobs: dict[str, Any], **more: Any) -> None:
    desk.write("msauto.toml", 'inventory = "inventory.yml"\n')
    desk.write("batch.yml", {**HEAD, **more, "jobs": jobs})


def run(desk: Desk, *arguments: str) -> Said:
    said = desk.run("batch", "run", "batch.yml", *arguments, *STATE)
    assert "Traceback" not in said.err, said.err
    assert "msauto itself failed" not in said.err, said.err
    return said


def outcomes(said: Said) -> dict[str, tuple[str, int | None]]:
    assert said.json["format"] == "msauto-batch"
    return {job["job"]: (job["outcome"], job["code"]) for job in said.json["jobs"]}


def history(desk: Desk) -> Any:
    return desk.run("history", *STATE, "--format", "json").json


def five_jobs(desk: Desk) -> None:
    """One job that changes something, and the ways in which the others end."""
    desk.comment("new", name="good.yml")
    desk.comment("new", "Nobody", name="unknown.yml")
    desk.write("broken.yml", "- hosts: [")
    desk.play({"asset": {"title": "EP002", "state": "absent"}}, name="delete.yml")
    batch(
        desk,
        {
            "good": {"playbooks": "good.yml"},
            "unknown": {"playbooks": "unknown.yml"},
            "broken": {"playbooks": "broken.yml"},
            "delete": {"playbooks": "delete.yml"},
            "after": {"playbooks": "good.yml", "needs": "broken"},
            "anyway": {"playbooks": "good.yml", "needs": {"broken": "any"}},
            "reviewed": {"plan": "nothere.json", "optional": True},
        },
    )


def test_the_summary_and_its_document(desk: Desk) -> None:
    five_jobs(desk)
    check_golden("batch-run.txt", re.sub(r"\d+ s ", "0 s ", run(desk).out))
    schema = json.loads(desk.run("schema", "batch-result").out)
    jsonschema.validate(run(desk, "--format", "json").json, schema)


# Retries: each target by itself -----------------------------------------------------------------------------------

RETRY = {"times": 1, "wait": "1s"}
NAMES = ("EP001", "EP002", "EP003")


def comments(desk: Desk, *titles: str, name: str = "play.yml") -> None:
    desk.play(
        {"asset": {"title": "{{ item }}", "fields": {"comment": "new"}}, "loop": list(titles)},
        name=name,
    )


def test_a_busy_server_is_asked_again_also_beside_a_target_that_cannot_get_better(
    desk: Desk, sim: Simulator
) -> None:
    sim.faults.add("status:503@POST .*EP002*3")
    comments(desk, *NAMES, "Nobody")
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY, "keep_going": True}})
    said = run(desk, "--format", "json")
    (job,) = said.json["jobs"]
    assert (said.code, job["attempts"], len(job["runs"])) == (3, 2, 2)
    counts = {
        name: job["summary"][name] for name in ("changed", "unchanged", "failed", "not_attempted")
    }
    assert counts == {"changed": 3, "unchanged": 0, "failed": 0, "not_attempted": 1}, (
        "no target counts twice"
    )
    assert job["changed"] == {"studio-a": 3}
    assert [(each["kind"], each["names"]) for each in job["causes"]] == [("not found", ["Nobody"])]
    assert "3 of 4 targets written" in desk.run("history", said.json["run"], *STATE).out
    assert msauto.history(said.json["run"], state_dir=desk.state).batch["jobs"] == said.json["jobs"]
    page = desk.run("report", said.json["run"], "--format", "html", *STATE).out
    assert page.count('"name":"EP002"') == 1
    assert page.count('"name":"Nobody"') == 1


def test_the_jobs_of_a_night_follow_it_in_their_order(desk: Desk) -> None:
    comments(desk, "EP001", "Nobody")
    job = {"playbooks": "play.yml", "keep_going": True}
    batch(desk, {"first": job, "second": {**job, "needs": {"first": "any"}}})
    for _ in range(2):
        run(desk)
    lines = desk.run("history", *STATE).out.splitlines()
    what = [re.sub(r".* (error|failed) +\S+@\S+ +", "", line) for line in lines[1:]]
    assert [each.partition(":")[0] for each in what] == ["nightly", "first", "second"] * 2
    assert what[0] == "nightly: 2 of 2 jobs not ok; 0 of 2 targets written"
    assert what[1].endswith(
        "not attempted; 0 requests; studio-a: 1 not attempted: asset 'Nobody' not found"
    )
    assert [
        line.find(f"{name}:")
        for line, name in zip(lines[1:], ("nightly", "first", "second"), strict=False)
    ] == [lines[0].index("outcome") + indent for indent in (0, 2, 2)]


def test_the_history_of_a_run_names_what_was_changed_outside(desk: Desk, sim: Simulator) -> None:
    titles = [f"EP{number:03}" for number in range(1, 13)]
    comments(desk, *titles)
    for text in ("", "by hand"):
        for title in titles:
            sim.state.clip(title).home.fields["comment"] = text
        assert desk.run("apply", "play.yml", "-i", "inventory.yml", "--yes", *STATE).code == 0
    shown = desk.run("history", "last", *STATE).out
    assert "\nstudio-a · NEWS · EP001: field comment: changed outside since " in shown
    assert shown.count("field comment: changed outside since ") == 10
    assert "\n… and 2 more\n" in shown


def test_a_past_run_has_the_counts_of_its_servers(desk: Desk) -> None:
    for titles in (("EP001",), ("EP001", "EP002")):
        comments(desk, *titles)
        applied = desk.run("apply", "play.yml", "-i", "inventory.yml", "--yes", *STATE).out
    for shown in (
        applied,
        desk.run("history", "last", *STATE).out,
        desk.run("report", "last", *STATE).out,
    ):
        assert "studio-a : changed=1 unchanged=1 requests=1 in " in shown
    assert "unchanged on" not in shown


# What a batch reports: monitoring of ``batch run``, ``batch status``, ``history``, and ``report``


SECRET = "s3cretT0ken"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with recording() as made:
        yield made


def subscribed(recorder: Recorder, *events: str) -> dict[str, Any]:
    address = recorder.url(f"notice/{SECRET}", "json")
    return {
        "heartbeat": recorder.url(f"ping/{SECRET}"),
        "notify": [{"to": address, "on": [*events]}],
    }


# Monitoring -------------------------------------------------------------------------------------------------------


def test_a_night_is_reported(desk: Desk, recorder: Recorder) -> None:
    desk.comment("new")
    more = {
        "metrics": {"file": "out.prom"},
        "reports": {"dir": "reports", "formats": ["html", "json"]},
    }
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "changed"), **more)
    said = run(desk, "--format", "json")
    assert said.code == 0
    assert [each["error"] for each in said.json["deliveries"]] == [""] * 6
    assert recorder.paths[0] == f"/ping/{SECRET}/start"
    assert sorted(recorder.paths[1:]) == [f"/notice/{SECRET}", f"/ping/{SECRET}/0"]
    (document,) = (desk.folder / "reports").glob("nightly-*.json")
    assert [job["outcome"] for job in json.loads(document.read_text(encoding="utf-8"))["jobs"]] == [
        "ok"
    ]
    assert len(list((desk.folder / "reports").glob("nightly-*.html"))) == 1
    shown = desk.run("history", said.json["run"], *STATE).out
    assert "notice json://…: delivered" in shown
    assert SECRET not in f"{said}{shown}"
    assert SECRET.encode() not in (desk.state / "ledger.sqlite").read_bytes()


@pytest.mark.scale
@pytest.mark.parametrize("status", [500, 404])
def test_monitoring_never_changes_the_outcome(desk: Desk, recorder: Recorder, status: int) -> None:
    recorder.status = status
    desk.comment("new")
    more = {
        "metrics": {"file": "nowhere/out.prom"},
        "reports": {"dir": "play.yml", "formats": ["text", "json"]},
    }
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "ok"), **more)
    said = run(desk, "--format", "json")
    assert (said.code, outcomes(said)) == (0, {"a": ("ok", 0)})
    assert all(each["error"] for each in said.json["deliveries"])
    assert len(said.json["deliveries"]) == 6
    assert said.err.count("Warning: ") == 6
    assert SECRET not in f"{said}{desk.run('history', said.json['run'], *STATE)}"


@pytest.mark.scale
def test_a_broken_playbook_and_a_missed_start_are_reported(desk: Desk, recorder: Recorder) -> None:
    desk.write("play.yml", "- hosts: [")
    batch(desk, {"a": {"playbooks": "play.yml"}}, **subscribed(recorder, "failed", "recovered"))
    assert run(desk).code == 1
    desk.comment("new")
    assert run(desk, "--failed").code == 0
    assert [
        json.loads(body)["title"] for path, body in recorder.requests if path.startswith("/notice")
    ] == [
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
    batch(
        desk,
        {"a": {"playbooks": "play.yml"}, "b": {"playbooks": "play.yml"}},
        **subscribed(recorder, "failed"),
    )
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


@pytest.mark.scale
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


@pytest.mark.scale
def test_programs_run_after_a_job_without_a_shell(desk: Desk) -> None:
    desk.comment("new", "Nobody")
    desk.write(
        "note.py",
        "import os, sys\nprint(sys.argv[1:], {n: v for n, v in os.environ.items() if n[:7] == 'MSAUTO_'})",
    )
    programs = [
        [sys.executable, "note.py", "$HOME; x"],
        ["./nothing"],
        [sys.executable, "-c", "raise SystemExit(3)"],
    ]
    batch(
        desk,
        {"a": {"playbooks": "play.yml", "on_end": programs}, "b": {"plan": "x", "optional": True}},
    )
    said = desk.spawn("batch", "run", "batch.yml", *STATE, "--format", "json")
    assert said.code == 1
    assert [(each["kind"], each["error"]) for each in json.loads(said.out)["deliveries"]] == [
        ("program", ""),
        ("program", "it cannot be started: No such file or directory"),
        ("program", "it ended with 3"),
    ]
    (line,) = [each for each in said.err.splitlines() if each.startswith("['$HOME; x'] ")]
    for word in (
        "'MSAUTO_BATCH': 'nightly'",
        "'MSAUTO_JOB': 'a'",
        "'MSAUTO_OUTCOME': 'failed'",
        "'MSAUTO_CODE': '1'",
    ):
        assert word in line
    assert "Nobody" in line


@pytest.mark.scale
def test_secrets_of_playbooks_are_in_no_report(
    desk: Desk, sim: Simulator, recorder: Recorder
) -> None:
    secret = "{{ env.CHAT_PASSWORD | secret }}"
    desk.environment["CHAT_PASSWORD"] = SECRET
    marker = {"at": 0, "track": "General", "title": secret}
    desk.play({"asset": {"title": "EP001", "fields": {"comment": secret}, "markers": [marker]}})
    desk.play(
        {"assert": {"title": "EP002", "that": ["false"], "msg": f"no {secret}"}}, name="failed.yml"
    )
    jobs = {"drift": {"playbooks": "play.yml", "do": "plan"}, "a": {"playbooks": "play.yml"}}
    forms = ["text", "json", "markdown", "html"]
    reports = {"dir": "reports", "formats": forms}
    address = {"to": recorder.url("notice", "json"), "on": ["failed", "drift"]}
    batch(
        desk,
        {**jobs, "b": {"playbooks": "failed.yml"}},
        reports=reports,
        pages="pages",
        notify=[address],
    )
    said = run(desk, "--format", "json")
    assert outcomes(said) == {"drift": ("ok", 0), "a": ("ok", 0), "b": ("failed", 1)}
    assert {entry.method for entry in sim.writes()} == {"POST"}
    folders = (desk.folder / "reports", desk.folder / "pages", desk.state)
    assert (desk.folder / "pages" / "index.html").is_file()
    files = [
        path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()
    ]
    assert len(files) > len(forms)
    assert SECRET not in f"{said}{recorder.requests}{desk.run('history', said.json['run'], *STATE)}"
    assert not [each for each in files if SECRET.encode() in each]


# History ----------------------------------------------------------------------------------------------------------


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
        results = [
            [each["result"]["outcome"] for each in said.json["targets"]] for said in (first, again)
        ]
        assert results[0] == results[1] == ["changed", "changed"]
        assert first.json["summary"] == again.json["summary"]
    if form == "text":
        applied, shown = (said.out.splitlines()[-1].partition(" in ")[0] for said in (first, again))
        assert applied == shown == "Done: 2 changed; 2 requests"


def test_the_status_tells_that_a_given_ledger_does_not_exist(desk: Desk) -> None:
    batch(desk, {"news": {"playbooks": "play.yml"}})
    said = desk.run("batch", "status", "batch.yml", "--state-dir", "nothere")
    assert said.code == 3
    assert "Note: --state-dir nothere has no ledger: nothing is known of earlier runs" in said.err
    assert "never ok" in said.out
