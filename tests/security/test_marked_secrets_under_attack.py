"""A playbook that would show a secret, on purpose or by carelessness: the secret is redacted, or it is an error."""

from __future__ import annotations

import json

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.security.marked import INV, TOKEN, comment, plans, silent, write
from tests.tables import table

VARIABLES = """    creds: {user: ops, token: !secret "{{ env.TOKEN }}"}
    nested: "x{{ token }}y"
    is_x: "{{ token == 'x' }}"
"""


def with_creds(desk: Desk, sim: Simulator) -> None:
    desk.write("creds.yml", f"user: ops\ntoken: !secret {TOKEN}\n")
    own = 'own: !secret "{{ env.TOKEN }}", block: {inner: !secret "{{ env.TOKEN }}"}'
    desk.write(
        "inventory.yml",
        f"all: {{hosts: {{studio-a: {{server: {{url: '{sim.url}'}}, database: NEWS, {own}}}}}}}\n",
    )


@table("security/made_with_a_secret", "template", one_in=6)
def test_whatever_is_made_with_a_secret_is_hidden_or_refused(
    desk: Desk, sim: Simulator, template: str
) -> None:
    with_creds(desk, sim)
    comment(desk, template, VARIABLES)
    sourced = plans(desk)
    if sourced.code != 0:
        assert (
            "cannot be redacted" in sourced.err
            or "not shown" in sourced.err
            or "is not allowed here" in sourced.err
        ), sourced.err
        return
    (change,) = sourced.json["targets"][0]["changes"]
    assert (change["after"], change["secret"], change["reversible"]) == ("***", True, False)


@table("security/no_secret_took_part", "template", "value")
def test_what_no_secret_took_part_in_is_shown(
    desk: Desk, sim: Simulator, template: str, value: str
) -> None:
    with_creds(desk, sim)
    comment(desk, template, VARIABLES)
    (change,) = plans(desk).json["targets"][0]["changes"]
    assert change["after"] == value
    assert "secret" not in change


@pytest.mark.parametrize(
    "template",
    ["{{ token[0] }}", "{{ token | length }}", "{{ token | list | first }}", "{{ token == 'x' }}"],
)
def test_what_is_too_short_to_be_hidden_is_refused(desk: Desk, template: str) -> None:
    comment(desk, template)
    sourced = plans(desk)
    assert sourced.code == 1
    sourced.one_error("cannot be redacted", "play.yml:")


@table("security/secrets_that_would_show", "task", one_in=3)
def test_a_secret_that_would_have_to_be_shown_is_refused(desk: Desk, task: str) -> None:
    write(desk, task)
    sourced = plans(desk)
    assert sourced.code == 1
    assert "play.yml:" in sourced.err
    assert "secret" in sourced.err, sourced.err


@table("security/secret_names_of_plays", "play", "words")
def test_plays_have_no_secret_names(desk: Desk, play: str, words: str) -> None:
    desk.write("play.yml", f"- {play}\n".replace("$TOKEN", TOKEN))
    sourced = plans(desk)
    assert sourced.code == 1
    assert words in sourced.err, sourced.err


@table("security/errors_beside_a_secret", "line", "words", one_in=3)
def test_errors_do_not_show_them(desk: Desk, line: str, words: str) -> None:
    comment(desk, "{{ a }}", f"    {line}\n")
    sourced = plans(desk)
    assert sourced.code == 1
    assert words in sourced.err, sourced.err


@pytest.mark.parametrize(
    "expression",
    ["token.nope", "token | int > 'x'", "token", "lookup('file', token)", "token ~ 1", "{}[token]"],
)
def test_conditions_do_not_show_them(desk: Desk, expression: str) -> None:
    write(
        desk,
        f"- {{asset: {{title: EP001, fields: {{comment: x}}}}, when: {json.dumps(expression)}}}",
    )
    sourced = plans(desk)
    assert sourced.code == 1
    write(desk, f"- assert: {{that: {json.dumps(expression)}}}")
    assert plans(desk).code == 1


def test_a_condition_may_ask_about_a_secret(desk: Desk) -> None:
    """An oracle that a playbook's author always has: docs/explanation/safety.md documents it."""
    write(desk, "- {asset: {title: EP001, fields: {comment: x}}, when: token is match('g')}")
    assert plans(desk).json["summary"]["change"] == 1
    write(desk, "- {asset: {title: EP001, fields: {comment: x}}, when: token is match('h')}")
    assert plans(desk).json["summary"]["change"] == 0


def test_what_stays_plain_in_an_item_is_shown(desk: Desk) -> None:
    write(
        desk,
        '- asset: {title: EP001, markers: [{at: 7, track: General, title: Ad break, comment: "{{ token }}"}]}',
    )
    (change,) = plans(desk).json["targets"][0]["changes"]
    assert change["after"] == {
        "frame": 7,
        "track": "General",
        "title": "Ad break",
        "comment": "***",
    }


def test_what_is_wrong_with_another_variable_is_still_told(desk: Desk) -> None:
    comment(desk, "{{ token }} {{ broken }}", '    broken: "{{ nowhere }}"\n')
    sourced = plans(desk)
    assert sourced.code == 1
    sourced.one_error("undefined variable 'nowhere'", "play.yml:4:")


@table("playbook/marked_secrets_in_errors_of_planning", "task", one_in=5)
def test_errors_of_planning_do_not_show_them(desk: Desk, sim: Simulator, task: str) -> None:
    write(desk, task)
    assert plans(desk).code == 1
    sourced = [
        desk.run("apply", "play.yml", *INV, "--yes", "--keep-going", "--format", form)
        for form in ("text", "json")
    ]
    silent(*sourced, desk.run("history", "last", *INV))
    assert sim.writes() == []
