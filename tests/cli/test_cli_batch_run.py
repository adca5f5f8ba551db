"""``msauto batch run``: each job isolated, its exit codes, the window, what is run again, and the history."""

from __future__ import annotations

import json
import re
from typing import Any

from msauto.simulator import Simulator
from tests.cli.command_line import Desk, Said, check_golden

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


def history(desk: Desk, *filters: str) -> Any:
    return desk.run("history", *STATE, "--format", "json", *filters).json


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


def test_no_job_stops_the_others(desk: Desk, sim: Simulator) -> None:
    five_jobs(desk)
    said = run(desk, "--format", "json")
    assert said.code == 3
    assert outcomes(said) == {
        "good": ("ok", 0),
        "unknown": ("failed", 1),
        "broken": ("failed", 1),
        "delete": ("refused", 4),
        "after": ("skipped", None),
        "anyway": ("ok", 0),
        "reviewed": ("skipped", 0),
    }
    assert sim.state.clip("EP001").home.fields["comment"] == "new"


def test_the_summary(desk: Desk) -> None:
    five_jobs(desk)
    check_golden("batch-run.txt", re.sub(r"\d+ s ", "0 s ", run(desk).out))


def test_history(desk: Desk) -> None:
    five_jobs(desk)
    run(desk)
    entries = history(desk)
    assert [(each["job"], each["status"], each["attempt"]) for each in reversed(entries) if each["job"]] == [
        ("good", "ok", 1),
        ("unknown", "error", 1),
        ("broken", "error", 1),
        ("delete", "refused", 1),
        ("anyway", "ok", 1),
    ]
    assert {each["batch"] for each in entries} == {"nightly"}
    (of_batch,) = [each for each in entries if not each["job"]]
    assert (of_batch["status"], of_batch["code"], of_batch["playbooks"]) == ("failed", 3, ["batch.yml"])


def test_failed_runs_again_what_is_not_done(desk: Desk) -> None:
    five_jobs(desk)
    run(desk)
    desk.comment("new", name="broken.yml")
    said = run(desk, "--failed", "--format", "json")
    assert outcomes(said) == {
        "unknown": ("failed", 1),
        "broken": ("ok", 0),
        "delete": ("refused", 4),
        "after": ("ok", 0),
    }
    assert [each["job"] for each in said.json["earlier"]] == ["good", "anyway", "reviewed"]
    assert outcomes(run(desk, "--failed", "--format", "json")) == {"unknown": ("failed", 1), "delete": ("refused", 4)}


def test_named_jobs(desk: Desk) -> None:
    five_jobs(desk)
    assert run(desk, "good").code == 0
    assert run(desk, "delete").code == 4
    assert run(desk, "broken", "unknown").code == 1
    said = run(desk, "god")
    assert said.code == 1
    assert "job 'god' not found" in said.err
    assert "good" in said.err


def test_limits_are_widened_by_allow_only(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "EP002", "state": "absent"}}, name="delete.yml")
    batch(desk, {"delete": {"playbooks": "delete.yml", "allow": {"delete": 1}}})
    assert run(desk).code == 0
    assert "DELETE" in {entry.method for entry in sim.writes()}


def test_check_writes_nothing(desk: Desk, sim: Simulator) -> None:
    five_jobs(desk)
    before = desk.files()
    assert run(desk, "--check").code == 3
    assert desk.files() == before
    assert not sim.writes()


def test_check_shows_what_the_night_would_do(desk: Desk) -> None:
    desk.comment("new")
    desk.play({"asset": {"title": "EP002", "state": "absent"}}, name="delete.yml")
    batch(desk, {"change": {"playbooks": "play.yml"}, "delete": {"playbooks": "delete.yml"}})
    said = run(desk, "--check", "--format", "json")
    assert (said.code, outcomes(said)) == (4, {"change": ("ok", 0), "delete": ("refused", 4)})
    change, delete = said.json["jobs"]
    assert (change["summary"]["change"], change["last_success"]) == (1, None)
    assert delete["reason"].endswith("to allow it, set allow: {delete: 1}")
    shown = run(desk, "--check").out
    assert "1 to change" in shown
    assert "--failed" not in shown


def test_a_batch_file_with_errors(desk: Desk) -> None:
    desk.write("batch.yml", "name: x")
    said = run(desk)
    assert said.code == 1
    assert history(desk)[0]["status"] == "error"


def test_a_saved_plan(desk: Desk, sim: Simulator) -> None:
    inv = ("-i", "inventory.yml", *STATE)
    desk.run("plan", desk.comment("new"), *inv, "--out", "tonight.json")
    batch(desk, {"a": {"plan": "tonight.json"}})
    assert run(desk).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "by hand"
    assert run(desk).code == 4


def test_the_document_passes_its_schema(desk: Desk) -> None:
    import jsonschema

    five_jobs(desk)
    schema = json.loads(desk.run("schema", "batch-result").out)
    jsonschema.validate(run(desk, "--format", "json").json, schema)
