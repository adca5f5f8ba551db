"""What the ledger must know again of a secret it knows by a slow hash; the secret of yesterday is hidden as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.security.marked import ENV, INV, OTHER, TOKEN, comment, plans, silent, write


@pytest.mark.scale
def test_the_old_secret_is_hidden_too(desk: Desk, sim: Simulator) -> None:
    comment(desk, "{{ token }}")
    assert desk.run("apply", "play.yml", *INV, "--yes").code == 0
    desk.environment["TOKEN"] = OTHER
    sourced = plans(desk)
    (change,) = sourced.json["targets"][0]["changes"]
    assert (change["before"], change["after"]) == ("***", "***")
    applied = desk.run("apply", "play.yml", *INV, "--yes", "--format", "json")
    silent(
        applied,
        desk.run("history", "last", *INV, "--format", "json"),
        desk.run("undo", "last", "--check", *INV),
    )
    assert sim.state.clip("EP001").home.fields["comment"] == OTHER
    ledger = b"".join(path.read_bytes() for path in desk.state.rglob("*") if path.is_file())
    assert TOKEN.encode() not in ledger
    assert OTHER.encode() not in ledger


def test_nothing_printed_lets_a_short_secret_be_guessed(desk: Desk) -> None:
    """The hash of what is there, or is sent, would: over so little, each guess is tried in no time."""
    comment(desk, "{{ token }}")
    assert desk.run("apply", "play.yml", *INV, "--yes").code == 0
    write(desk, '- asset: {title: EP001, fields: {comment: "{{ token }}", user_1: plain}}')
    plan = desk.run("plan", "play.yml", *INV, "--format", "json").json
    (target,) = plan["targets"]
    assert [change["key"] for change in target["changes"]] == ["user_1"]
    assert target["fingerprint"] == ""
    kept = desk.run("plan", "play.yml", *INV, "--out", "plan.json")
    assert kept.code == 0, kept.err
    applied = desk.run("apply", "plan.json", *INV, "--yes")
    assert applied.code == 0, applied.err
    silent(kept, applied)


@pytest.mark.scale
@pytest.mark.parametrize("read", ["link_fields=hidden"])
def test_what_the_server_does_not_report_is_known_again_by_a_slow_hash(
    tmp_path: Path, read: str
) -> None:
    with Simulator(dialect=[read]) as sim:
        desk = Desk(tmp_path, sim.url, dict(ENV))
        comment(desk, "{{ token }}")
        assert desk.run("apply", "play.yml", *INV, "--yes").code == 0
        again = desk.run("plan", "play.yml", *INV, "--format", "json", "--detailed-exitcode")
        assert again.code == 0, again.out
        for path in desk.state.rglob("*"):
            if path.is_file():
                assert TOKEN.encode() not in path.read_bytes()
        desk.environment["TOKEN"] = OTHER
        other = plans(desk)
        (change,) = other.json["targets"][0]["changes"]
        assert (change["before"], change["after"]) in {("***", "***"), (None, "***")}
        assert desk.run("apply", "play.yml", *INV, "--yes").code == 0
        assert sim.state.clip("EP001").home.fields["comment"] == OTHER
        comment(desk, "plain words")
        plain = plans(desk)
        assert plain.json["targets"][0]["changes"][0]["after"] == "plain words"


def test_a_command_that_runs_once_is_known_again(desk: Desk, sim: Simulator) -> None:
    task = "- command: {name: PARTNER_MOVE_TO_ASSET, title: EP001, run: once, params: {asset_id: '{{ token }}'}}"
    write(desk, task)
    assert desk.run("apply", "play.yml", *INV, "--yes").code == 0
    assert desk.run("plan", "play.yml", *INV, "--detailed-exitcode").code == 0
    desk.environment["TOKEN"] = OTHER  # a new token is no reason to run it again
    assert desk.run("plan", "play.yml", *INV, "--detailed-exitcode").code == 0
    assert len(sim.state.clip("EP001").partner) == 1


def test_two_commands_that_differ_in_a_secret_both_run(desk: Desk, sim: Simulator) -> None:
    play = """
- hosts: all
  tasks:
    - asset: {title: EP001, fields: {comment: "one"}}
      notify: Tell
    - command: {name: PARTNER_MOVE_TO_ASSET, title: EP001, params: {asset_id: "{{ env[item] | secret }}"}}
      loop: [TOKEN, OTHER]
  handlers:
    - name: Tell
      command: {name: PARTNER_MOVE_TO_ASSET, params: {asset_id: "1", house_number: "{{ env[item] | secret }}"}}
      loop: [TOKEN, OTHER]
"""
    desk.write("play.yml", play)
    applied = desk.run("apply", "play.yml", *INV, "--yes", "-vv")
    assert applied.code == 0, applied.err
    silent(applied)
    sent = [each.get("house_number", each["asset_id"]) for each in sim.state.clip("EP001").partner]
    assert sorted(sent) == sorted([TOKEN, OTHER] * 2)


@pytest.mark.parametrize(
    "sourced", ["token: !secret '{{ env.TOKEN }}'", "token: '{{ env.TOKEN | secret }}'"]
)
def test_who_says_a_secret_anew_gives_another_secret(desk: Desk, sourced: str) -> None:
    task = "{asset: {title: EP001, fields: {comment: '{{ token }}'}}}"
    desk.write("play.yml", f"- hosts: all\n  vars: {{{sourced}}}\n  tasks: [{task}]\n")
    assert desk.run("apply", "play.yml", *INV, "--yes").code == 0
    anew = desk.run("plan", "play.yml", *INV, "-e", f"token={OTHER}", "-vv")
    assert "comment  ***  (secret" in anew.out
    silent(
        anew, desk.run("plan", "play.yml", *INV, "-e", f"{{token: {OTHER}}}", "--format", "json")
    )
    short = desk.run("plan", "play.yml", *INV, "-e", "token=abc")
    assert short.code == 1
    short.one_error("at least 4 characters")


def test_a_handler_that_runs_once_is_known_again_though_its_secret_comes_up_late(
    desk: Desk, sim: Simulator
) -> None:
    play = """
- hosts: all
  tasks:
    - asset: {title: EP001, fields: {comment: "WORD"}}
      notify: Tell
  handlers:
    - name: Tell
      command:
        name: PARTNER_MOVE_TO_ASSET
        run: once
        params: {asset_id: "1", house_number: "{{ asset.frames }} {{ env.TOKEN | secret }}"}
"""
    for word in ("one", "two"):
        desk.write("play.yml", play.replace("WORD", word))
        sourced = desk.run("apply", "play.yml", *INV, "--yes", "-vv")
        assert sourced.code == 0, sourced.err
        silent(sourced)
    assert len(sim.state.clip("EP001").partner) == 1
    assert TOKEN in sim.state.clip("EP001").partner[0]["house_number"]
