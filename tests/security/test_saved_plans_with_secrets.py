"""Plans that send secrets: saved without them, and applied only with the same ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest

from msauto.planning.saved_plans.plan_file import checksum
from msauto.simulator import Simulator
from tests.cli.command_line import Desk, Said
from tests.security.marked import INV
from tests.security.security_desk import forge

NASTY = "kx7Zq4wertz9 <&\"'ü%41+x"
FILE = "kx7file5 über/alles"
TAGGED = "kx7tagged3Yz & so"
PLAIN = "kx7plain8Ab"
SECRETS = (NASTY, FILE, TAGGED, PLAIN)

PLAY = """
- hosts: all
  vars_files: [secrets.yml]
  vars: {token: !secret "{{ env.TOKEN }}", looked_up: "{{ lookup('file', 'token.txt') | secret }}"}
  tasks:
    - asset:
        title: EP001
        fields: {comment: "card {{ token }} of {{ inventory_hostname }}", user_1: "{{ partner.tokens[1] }}"}
        xmp: {"dc:subject": [news, "{{ token }}", "{{ looked_up }}"], "dc:title": "{{ looked_up }}"}
        segments: [{number: 1, start: 0, duration: 10, title: "a {{ token }}", keywords: "{{ partner.tokens[1] }}"}]
        markers: [{at: 7, track: General, title: "{{ token }} {{ looked_up }}"}]
    - asset: {title: EP002, fields: {comment: "{{ env.OTHER | secret }}", user_2: plain}}
    - asset: {title: EP003, fields: {comment: public}}
    - rss:
        channel: ticker
        items:
          - {guid: s-1, file: s-1.txt, text: "{{ token }} now"}
          - {guid: s-2, file: s-2.xml, item: {title: "x {{ token }}", description: "{{ looked_up }}"}}
    - command:
        name: PARTNER_MOVE_TO_ASSET
        title: EP004
        run: once
        params: {asset_id: "4", house_number: "{{ token }}"}
"""

SMALL = """
- hosts: all
  vars: {token: !secret "{{ env.TOKEN }}"}
  tasks:
    - asset: {title: EP002, fields: {comment: "{{ env.OTHER | secret }}", user_1: "{{ token }}", user_2: plain}}
"""


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.environment |= {"TOKEN": NASTY, "OTHER": PLAIN}
    desk.write("play.yml", PLAY)
    desk.write("token.txt", FILE + "\n")
    desk.write("secrets.yml", f"partner: {{tokens: [none, !secret '{TAGGED}']}}\n")
    return desk


def save(desk: Desk, *flags: str) -> Path:
    sourced = desk.run("plan", "play.yml", *INV, "--out", "plan.json", *flags)
    assert sourced.code == 0, sourced.err
    hidden(sourced)
    return desk.folder / "plan.json"


def apply(desk: Desk, *flags: str) -> Said:
    sourced = desk.run("apply", "plan.json", *INV, "--yes", *flags)
    hidden(sourced)
    return sourced


def hidden(*outputs: Said | bytes) -> None:
    """No output holds a secret in any encoding."""
    for each in outputs:
        text = each.decode("utf-8", "replace") if isinstance(each, bytes) else each.out + each.err
        assert "Traceback" not in text
        for secret in SECRETS:
            data = secret.encode()
            coded = base64.b64encode(data).decode()[:12]
            forms = (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], coded, data.hex(), secret.split()[0])
            assert [form for form in forms if form in text] == []


def fields(sim: Simulator, title: str) -> dict[str, str]:
    return sim.state.clip(title).home.fields


def test_it_is_saved_without_its_secrets_and_applied_with_them(desk: Desk, sim: Simulator) -> None:
    path = save(desk)
    hidden(path.read_bytes())
    data = json.loads(path.read_text())
    schema = desk.run("schema", "plan").json
    jsonschema.validate(data, schema)
    assert [each["sources"] for each in data["secrets"]] == [
        [{"kind": "env", "name": "TOKEN"}],
        [{"kind": "yaml", "name": "secrets.yml", "place": ["partner", "tokens", 1]}],
        [{"kind": "file", "name": "token.txt"}],
        [{"kind": "env", "name": "OTHER"}],
    ]
    checked = desk.run("apply", "plan.json", *INV, "--check", "-vv")
    assert checked.code == 0, checked.err
    assert "card *** of studio-a" in checked.out
    assert sim.writes() == []
    applied = apply(desk, "--events", "events.jsonl", "-vv")
    assert applied.code == 0, applied.out + applied.err
    assert fields(sim, "EP001")["comment"] == f"card {NASTY} of studio-a"
    assert fields(sim, "EP001")["user_1"] == TAGGED
    assert fields(sim, "EP002")["comment"] == PLAIN
    again = desk.run("plan", "play.yml", *INV, "--format", "json")
    assert again.json["targets"] == []
    undone = desk.run("undo", "last", *INV, "--yes")
    assert undone.code == 0, undone.err
    assert fields(sim, "EP003")["comment"] != "public"
    history = desk.run("history", "last", *INV, "--format", "json")
    ledger = [each.read_bytes() for each in desk.state.rglob("*") if each.is_file()]
    hidden(checked, again, undone, history, (desk.folder / "events.jsonl").read_bytes(), *ledger)


def test_what_is_printed_is_saved_too(desk: Desk, sim: Simulator) -> None:
    printed = desk.run("plan", "play.yml", *INV, "--out", "-")
    hidden(printed)
    desk.write("plan.json", printed.out)
    assert apply(desk).code == 0
    assert fields(sim, "EP002")["comment"] == PLAIN


def test_a_changed_secret_makes_only_its_targets_stale(desk: Desk, sim: Simulator) -> None:
    save(desk)
    desk.environment["OTHER"] = "kx7another1"
    refused = apply(desk)
    assert (refused.code, sim.writes()) == (4, [])
    assert "stale: changed since the plan was made: the environment variable OTHER" in refused.out
    assert "kx7another1" not in refused.out + refused.err
    kept = apply(desk, "--keep-going")
    assert kept.code == 3, kept.err
    assert fields(sim, "EP001")["user_1"] == TAGGED
    assert fields(sim, "EP002").get("comment") != PLAIN


def test_changed_live_state_makes_a_target_stale(desk: Desk, sim: Simulator) -> None:
    save(desk)
    fields(sim, "EP002")["comment"] = "someone else wrote this"
    refused = apply(desk)
    assert (refused.code, sim.writes()) == (4, [])
    assert "1 target changed" in refused.err


def test_all_missing_secrets_are_named(desk: Desk, sim: Simulator) -> None:
    save(desk)
    del desk.environment["TOKEN"]
    desk.write("secrets.yml", f"partner: {{tokens: [none, '{TAGGED}']}}\n")
    (desk.folder / "token.txt").unlink()
    refused = apply(desk)
    assert (refused.code, sim.writes()) == (1, [])
    for source in ("the environment variable TOKEN", "the file token.txt", "partner.tokens.1 in secrets.yml"):
        assert f"a secret from {source}, which cannot be read" in refused.err


@pytest.mark.parametrize(
    "value",
    ["{{ (env.TOKEN ~ 'x') | secret }}", "{{ token | upper }}", "{{ token ~ 'x' }}", "{{ token }}{{ token[:6] }}"],
)
def test_a_computed_secret_cannot_be_saved(desk: Desk, value: str) -> None:
    desk.write("play.yml", SMALL.replace("plain", f'"{value}"'))
    refused = desk.run("plan", "play.yml", *INV, "--out", "plan.json")
    assert refused.code == 1
    refused.one_error("play.yml:5:", "'EP002' (field user_2) is sent a text computed from a secret", "→")
    assert not (desk.folder / "plan.json").exists()
    hidden(refused)


def redirects(data: dict[str, Any]) -> None:
    """The secret of one field goes to another one."""
    target = next(each for each in data["targets"] if each["name"] == "EP002")
    target["changes"][0]["key"] = "user_3"
    for request in target["requests"]:
        request["path"] = request["path"].replace("name=comment", "name=user_3")


def swaps(data: dict[str, Any]) -> None:
    first, *_, last = data["secrets"]
    first["token"], last["token"] = last["token"], first["token"]


def guesses(data: dict[str, Any]) -> None:
    data["secrets"].append({**data["secrets"][0], "token": f"***{{{'0' * 32}}}"})


def drops(data: dict[str, Any]) -> None:
    data["secrets"] = data["secrets"][1:]


def reads_outside(data: dict[str, Any]) -> None:
    data["secrets"][0]["sources"] = [{"kind": "file", "name": "/etc/hostname"}]


@pytest.mark.parametrize("forgery", [redirects, swaps, guesses, drops, reads_outside])
def test_who_does_not_know_a_secret_cannot_have_it_sent(
    desk: Desk, sim: Simulator, forgery: Callable[[dict[str, Any]], None]
) -> None:
    desk.write("play.yml", SMALL)
    forge(save(desk), forgery)
    refused = apply(desk)
    assert (refused.code, sim.writes()) == (1, [])
    refused.one_error("plan.json", "→")


def test_a_wrong_guess_applies_nothing_and_shows_no_more_than_that(desk: Desk, sim: Simulator) -> None:
    desk.write("play.yml", SMALL)
    path = save(desk)
    data = json.loads(path.read_text())
    for entry in data["secrets"]:
        entry["check"] = "0" * 64
    data["checksum"] = checksum(data)
    path.write_text(json.dumps(data))
    refused = apply(desk, "--keep-going")
    assert "the environment variable OTHER, the environment variable TOKEN" in refused.out
    assert sim.writes() == []
