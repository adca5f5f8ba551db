"""Secrets that were encoded elsewhere, secrets in broken YAML, and files that hold only a secret."""

from __future__ import annotations

import hashlib
import html
import json
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

import pytest

from msauto.model.server import Auth, Secret, ServerSpec
from msauto.secrets.redaction import Secrets
from msauto.server.access import secrets_of
from tests.cli.command_line import Desk
from tests.security.marked import INV, TOKEN, plans, silent
from tests.tables import table

NASTY = 'caf\u00e9-it\'s <"Geheim/7"> Tok'

FORMS: dict[str, Callable[[str], str]] = {
    "composed": lambda text: unicodedata.normalize("NFC", text),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "capitals": str.upper,
    "small": str.lower,
    "decimal entities": lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(sign):X};" for sign in text),
    "entities twice": lambda text: html.escape(html.escape(text)),
    "apostrophe left": lambda text: html.escape(text).replace("&#x27;", "'"),
    "percent, all": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent, decomposed": lambda text: quote(unicodedata.normalize("NFD", text)),
    "percent, Latin-1": lambda text: quote(unicodedata.normalize("NFC", text), encoding="latin-1"),
    "JSON in capitals": lambda text: "".join(f"\\u{ord(sign):04X}" for sign in text),
    "backslashes": lambda text: text.replace("'", "\\'").replace('"', '\\"'),
    "slashes": lambda text: json.dumps(text).strip('"').replace("/", "\\/"),
    "wrapped": lambda text: f"{text[:7]}\n   {text[7:]}",
    "soft hyphen": lambda text: f"{text[:7]}\u00ad{text[7:]}",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", [NASTY, unicodedata.normalize("NFD", NASTY)])
def test_what_a_server_makes_of_a_secret_does_not_show(form: str, secret: str) -> None:
    repeated = FORMS[form](secret)
    message = f"Error 500: you said {repeated} and more"
    server = secrets_of(
        ServerSpec("studio", "http://studio:7901", auth=Auth(bearer=Secret(secret)))
    )
    for shown in (Secrets([secret]).redact_message(message), server.redact_message(message)):
        assert "***" in shown
        assert repeated not in shown


def test_other_messages_stay_as_they_are() -> None:
    message = "the field 'comment' is not there: caf\u00e9 %41 &amp; \\u00fc \\U99999999"
    assert Secrets([NASTY, "Ready"]).redact_message(message) == message


@table("security/pins", "pin")
def test_no_plan_has_the_hash_of_a_file_that_holds_a_secret(desk: Desk, pin: str) -> None:
    """Ten thousand guesses of a PIN take no time."""
    desk.write("pin.txt", TOKEN)
    desk.write("c.yml", f"pin: !secret {TOKEN}\n")
    late = "late: \"{{ lookup('file', 'pin.txt') }}\""
    task = f"{{asset: {{title: EP001, fields: {{comment: {json.dumps(pin)}}}}}}}"
    desk.write("play.yml", f"- hosts: all\n  vars: {{{late}}}\n  tasks: [{task}]\n")
    sourced = plans(desk)
    assert sourced.code == 0, sourced.err
    hashes = {}
    for name in ("pin.txt", "c.yml", "play.yml"):
        hashes[name] = hashlib.sha256((desk.folder / name).read_bytes()).hexdigest()
    assert hashes["pin.txt"] not in sourced.out
    assert hashes["c.yml"] not in sourced.out
    inputs = {file["path"]: file["sha256"] for file in sourced.json["inputs"]}
    assert inputs["play.yml"] == hashes["play.yml"]
    assert inputs.get("pin.txt", "***") == "***"
    assert inputs.get("c.yml", "***") == "***"


def test_with_secrets_about_no_large_file_is_named_by_its_hash(desk: Desk) -> None:
    desk.write("large.txt", "x" * 1_000_001)
    task = "{asset: {title: EP001, fields: {comment: \"{{ lookup('file', 'large.txt') | length }}x\", user_1: SECRET}}}"
    for text, hidden in (("plain", False), ("'{{ env.TOKEN | secret }}'", True)):
        desk.write("play.yml", f"- hosts: all\n  tasks: [{task.replace('SECRET', text)}]\n")
        inputs = {each["path"]: each["sha256"] for each in plans(desk).json["inputs"]}
        assert (inputs["large.txt"] == "***") == hidden


@table("security/broken_yaml", "line")
def test_yaml_that_is_broken_beside_a_secret_does_not_show_it(desk: Desk, line: str) -> None:
    task = "{asset: {title: EP001, fields: {comment: '{{ a }}'}}}"
    play = f"- hosts: all\n  vars:\n    {line}\n  tasks: [{task}]\n"
    desk.write("play.yml", play.replace("$TOKEN", TOKEN))
    sourced = plans(desk)
    assert sourced.code == 1
    assert "play.yml:" in sourced.err


def test_the_line_of_a_tag_without_a_text_is_shown_as_it_is(desk: Desk) -> None:
    desk.write("play.yml", f"- hosts: all\n  vars:\n    a: !secret\n      - {TOKEN}\n  tasks: []\n")
    sourced = plans(desk)
    assert sourced.code == 1
    assert "    a: !secret\n" in sourced.err


@pytest.mark.parametrize(
    "given", [f"tok=!secret {TOKEN}", f"a=b tok='!secret {TOKEN}'", f"tok=!secret{TOKEN}"]
)
def test_a_tag_where_it_would_be_text_is_refused(desk: Desk, given: str) -> None:
    desk.write(
        "play.yml",
        "- hosts: all\n  tasks: [{asset: {title: EP001, fields: {comment: '{{ tok }}'}}}]\n",
    )
    sourced = desk.run("plan", "play.yml", *INV, "-e", given)
    assert sourced.code == 1
    sourced.one_error("the value of tok is text here", "-e @FILE")
    silent(sourced)
