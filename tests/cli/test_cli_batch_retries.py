"""Retried jobs: what is sent once, and what others had changed is named also after a failed attempt."""

from __future__ import annotations

from typing import Any

from msauto.simulator import Simulator
from tests.cli.command_line import Desk
from tests.cli.test_cli_batch import batch, run

RETRY = {"times": 1, "wait": "1s"}


def command(title: str, **more: Any) -> dict[str, Any]:
    return {"command": {"name": "PARTNER_EXPORT_VERSION", "title": title, **more}}


def test_a_command_that_was_done_is_not_run_again_by_the_retry_of_another_target(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:503@POST .*EP002*3")
    desk.play(command("EP001", run="always"), {"asset": {"title": "EP002", "fields": {"comment": "new"}}})
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    said = run(desk, "--format", "json")
    assert said.json["jobs"][0]["attempts"] == 2, said
    assert len([each for each in sim.writes() if "PARTNER" in each.target]) == 1


def test_a_command_in_doubt_beside_a_difference_is_not_sent_again(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("after:edit:EP001:comment:HAND@POST .*PARTNER*1", "done_status:503@POST .*PARTNER*1")
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "new"}}}, command("EP001", run="always"))
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    said = run(desk, "--format", "json")
    print(said.json["jobs"][0])
    assert len([each for each in sim.writes() if "PARTNER" in each.target]) == 1


def test_a_handler_is_run_once(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:503@POST .*EP002*3")
    fields = {
        "asset": {"title": "{{ item }}", "fields": {"comment": "new"}},
        "loop": ["EP001", "EP002"],
        "notify": "export",
    }
    handler = {"name": "export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
    desk.write("play.yml", [{"hosts": "all", "tasks": [fields], "handlers": [handler]}])
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    said = run(desk, "--format", "json")
    assert said.code == 0, said
    sent = [each.target for each in sim.writes() if "PARTNER" in each.target]
    assert sorted("EP001" in each for each in sent) == [False, True]


def test_a_handler_in_doubt_beside_a_difference_is_not_sent_again(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("after:edit:EP001:comment:HAND@POST .*PARTNER*1", "done_status:503@POST .*PARTNER*1")
    fields = {"asset": {"title": "EP001", "fields": {"comment": "new"}}, "notify": "export"}
    handler = {"name": "export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
    desk.write("play.yml", [{"hosts": "all", "tasks": [fields], "handlers": [handler]}])
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    said = run(desk, "--format", "json")
    print(said.json["jobs"][0])
    assert len([each for each in sim.writes() if "PARTNER" in each.target]) == 1


def test_the_retry_after_a_failed_attempt_still_names_what_was_changed_outside(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "EP002", "fields": {"comment": "one"}}})
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    assert run(desk).code == 0
    sim.state.clip("EP002").home.fields["comment"] = "CALL THE DESK"
    desk.play({"asset": {"title": "EP002", "fields": {"comment": "two"}}})
    sim.faults.add("status:503@POST .*EP002*3")
    said = run(desk)
    assert said.code == 0, said
    assert "changed outside" in said.out


def test_the_summary_counts_what_the_first_attempt_overwrote(desk: Desk, sim: Simulator) -> None:
    def week(value: str) -> None:
        desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": value}}, "loop": ["EP001", "EP002"]})
        batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})

    week("one")
    assert run(desk).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "CALL THE DESK"
    week("two")
    sim.faults.add("status:503@POST .*EP002*3")
    said = run(desk)
    assert said.code == 0, said
    assert "changed outside" in said.out


def test_control_the_summary_counts_it_without_a_retry(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "one"}}})
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    assert run(desk).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "CALL THE DESK"
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "two"}}})
    assert "changed outside" in run(desk).out


def test_a_download_or_once_command_is_not_repeated(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:503@POST .*EP002*3")
    desk.play(command("EP001", run="once"), {"asset": {"title": "EP002", "fields": {"comment": "new"}}})
    batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})
    assert run(desk).code == 0
    assert len([each for each in sim.writes() if "PARTNER" in each.target]) == 1


def test_what_the_first_attempt_overwrote_before_it_failed_is_named(desk: Desk, sim: Simulator) -> None:
    def week(value: str) -> None:
        desk.play({"asset": {"title": "EP001", "fields": {"comment": value, "user_0": value}}})
        batch(desk, {"a": {"playbooks": "play.yml", "retry": RETRY}})

    week("one")
    assert run(desk).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "CALL THE DESK"
    week("two")
    sim.faults.add("status:503@POST .*user_0*3")
    said = run(desk)
    assert said.code == 0, said
    assert "2 attempts" in said.out
    assert 'EP001 changed outside: field comment "CALL THE DESK"' in " ".join(said.out.split())
