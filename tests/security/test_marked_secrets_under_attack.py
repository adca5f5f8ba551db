"""A playbook that would show a secret, on purpose or by carelessness: the secret is redacted, or it is an error."""

from __future__ import annotations

import json

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk
from tests.security.marked import INV, TOKEN, comment, plans, silent, write
from tests.tables import table

DERIVED = [
    "{{ token }}",
    "x {{ token }} y",
    "{{ token | upper }}",
    "{{ token | b64encode }}",
    "{{ token | reverse }}",
    "{{ token ~ '!' }}",
    "{{ token + '!!' }}",
    "{{ token.upper() }}",
    "{{ token[:5] }}",
    "{{ token[0] * 5 }}",
    "{{ token | list | join('') }}",
    "{{ token | list | join(' ') }}",
    "{{ [token] | to_json }}",
    "{{ [token] | first }}",
    "{{ {'a': token}.a }}",
    "{{ {'a': token}['a'] ~ '' }}",
    "{{ {'a': token} | to_json }}",
    "{{ {'a': token}.values() | list | first }}",
    "{{ ({'a': token} | dict2items)[0]['value'] }}",
    "{{ creds.token }}",
    "{{ creds | to_json }}",
    "{{ creds.values() | join(';') }}",
    "{{ creds.get('token') }}",
    "{{ creds.items() | list | to_json }}",
    "{{ creds | combine({'b': 'c'}) | to_json }}",
    "{{ [creds, creds] | map(attribute='token') | first }}",
    "{{ nested }}",
    "{{ nested | regex_replace('x', 'y') }}",
    "{{ 'open sesame' if token == 'x' else 'closed sesame' }}",
    "{{ 'open sesame' if is_x else 'closed sesame' }}",
    "{% if token is match('g') %}begins with g{% endif %}",
    "{% for sign in token %}{{ sign }}.{% endfor %}",
    "{% set copy = token %}{{ copy }}",
    "{% set ns = namespace(a='') %}{% for s in token %}{% set ns.a = ns.a ~ s %}{% endfor %}{{ ns.a }}",
    "{% macro say(x) %}{{ x }}{% endmacro %}{{ say(token) }}",
    "{{ '%s' | format(token) }}",
    "{{ '{}'.format(token) }}",
    "{{ '%s' % token }}",
    "{{ hostvars['studio-a'].own }}",
    "{{ hostvars['studio-a'].values() | list | to_json }}",
    "{{ hostvars['studio-a'] | dict2items | to_json }}",
    "{{ hostvars.values() | map(attribute='own') | first }}",
    "{{ hostvars['studio-a'].block.inner }}",
    "{{ lookup('yaml', 'creds.yml').token }}",
    "{{ lookup('yaml', 'creds.yml') | to_json }}",
    "{{ (token | length) * 10000 }}",
    "{{ missing | default(token) }}",
    "{{ [1, 2] | map('string') | join(token) }}",
    "{{ token | replace('g', 'x') }}",
]
VARIABLES = """    creds: {user: ops, token: !secret "{{ env.TOKEN }}"}
    nested: "x{{ token }}y"
    is_x: "{{ token == 'x' }}"
"""


def with_creds(desk: Desk, sim: Simulator) -> None:
    desk.write("creds.yml", f"user: ops\ntoken: !secret {TOKEN}\n")
    own = 'own: !secret "{{ env.TOKEN }}", block: {inner: !secret "{{ env.TOKEN }}"}'
    desk.write(
        "inventory.yml", f"all: {{hosts: {{studio-a: {{server: {{url: '{sim.url}'}}, database: NEWS, {own}}}}}}}\n"
    )


@pytest.mark.parametrize("template", DERIVED)
def test_whatever_is_made_with_a_secret_is_hidden_or_refused(desk: Desk, sim: Simulator, template: str) -> None:
    with_creds(desk, sim)
    comment(desk, template, VARIABLES)
    sourced = plans(desk)
    if sourced.code != 0:
        assert (
            "cannot be redacted" in sourced.err or "not shown" in sourced.err or "is not allowed here" in sourced.err
        ), sourced.err
        return
    (change,) = sourced.json["targets"][0]["changes"]
    assert (change["after"], change["secret"], change["reversible"]) == ("***", True, False)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ creds.user }}", "ops"),
        ("{{ creds['user'] }} here", "ops here"),
        ("{{ token if false else 'plain text' }}", "plain text"),
        ("{{ 'a text' if creds.user == 'ops' else token }}", "a text"),
        ("{{ hostvars['studio-a'].database }}", "NEWS"),
        ("{{ lookup('yaml', 'creds.yml').user }}", "ops"),
    ],
)
def test_what_no_secret_took_part_in_is_shown(desk: Desk, sim: Simulator, template: str, value: str) -> None:
    with_creds(desk, sim)
    comment(desk, template, VARIABLES)
    (change,) = plans(desk).json["targets"][0]["changes"]
    assert change["after"] == value
    assert "secret" not in change


@pytest.mark.parametrize(
    "template", ["{{ token[0] }}", "{{ token | length }}", "{{ token | list | first }}", "{{ token == 'x' }}"]
)
def test_what_is_too_short_to_be_hidden_is_refused(desk: Desk, template: str) -> None:
    comment(desk, template)
    sourced = plans(desk)
    assert sourced.code == 1
    sourced.one_error("cannot be redacted", "play.yml:")


@pytest.mark.parametrize(
    "task",
    [
        '- asset: {title: "{{ token }}", fields: {comment: x}}',
        '- asset: {title: EP001, was: ["{{ token }}"], fields: {comment: x}}',
        '- asset: {id: "handle:{{ token }}", fields: {comment: x}}',
        '- asset: {title: EP001, folder: "{{ token }}", fields: {comment: x}}',
        '- asset: {title: EP001, links: [{folder: "{{ token }}"}]}',
        '- asset: {title: EP001, links: [{folder: Raw, title: "{{ token }}"}]}',
        '- asset: {title: EP001, fields: {icon_pos: "{{ token }}"}}',
        '- asset: {title: EP001, markers: [{at: 0, track: "{{ token }}"}]}',
        '- asset: {title: EP001, markers: [{at: "{{ token }}", track: General}]}',
        '- asset: {select: {folder: "{{ token }}"}, fields: {comment: x}}',
        '- asset: {title: EP001, xmp: "{{ {token: 1} }}"}',
        '- asset: {title: EP001, state: "{{ token }}"}',
        '- rss: {channel: "{{ token }}", items: []}',
        '- rss: {channel: ticker, items: [{guid: "{{ token }}", text: x}]}',
        '- rss: {channel: ticker, items: [{guid: a, file: "{{ token }}", text: x}]}',
        '- rss: {channel: ticker, items: [{guid: a, item: {pubDate: "{{ token }}"}}]}',
        '- thumbnail: {title: EP001, dest: "{{ token }}"}',
        '- proxy: {title: EP001, profile: WP1, dest: "{{ token }}"}',
        '- command: {name: "{{ token }}", title: EP001}',
        '- xmp_batch: {connector: "{{ token }}", src: creds.yml}',
        '- assert: {that: "1 > 2", msg: "{{ token }}"}',
        '- {name: "{{ token }}", asset: {title: EP001, fields: {comment: x}}}',
        '- {asset: {title: EP001, fields: {comment: x}}, loop: [1], loop_control: {label: "{{ token }}"}}',
        '- {name: !secret "{{ env.TOKEN }}", asset: {title: EP001, fields: {comment: x}}}',
        f"- {{name: !secret {TOKEN}, asset: {{title: EP001, fields: {{comment: x}}}}}}",
        f"- {{asset: {{title: EP001, fields: {{comment: x}}}}, tags: [!secret {TOKEN}]}}",
        f"- {{asset: {{title: EP001, fields: {{comment: x}}}}, when: !secret {TOKEN}}}",
        f"- {{asset: {{title: EP001, fields: {{comment: x}}}}, notify: !secret {TOKEN}}}",
        f"- import_tasks: !secret {TOKEN}",
        f"- asset: {{title: !secret {TOKEN}, fields: {{comment: x}}}}",
        f"- {{asset: {{title: EP001}}, loop: [1], loop_control: {{loop_var: !secret {TOKEN}}}}}",
    ],
)
def test_a_secret_that_would_have_to_be_shown_is_refused(desk: Desk, task: str) -> None:
    write(desk, task)
    sourced = plans(desk)
    assert sourced.code == 1
    assert "play.yml:" in sourced.err
    assert "secret" in sourced.err, sourced.err


@pytest.mark.parametrize(
    ("play", "words"),
    [
        ("hosts: all\n  name: '{{ env.TOKEN | secret }}'\n  tasks: []", "is not allowed here"),
        ("hosts: '{{ env.TOKEN | secret }}'\n  tasks: []", "is not allowed here"),
        (
            "hosts: all\n  database: '{{ env.TOKEN | secret }}'\n  tasks: [{asset: {title: EP001}}]",
            "is not allowed here",
        ),
        ("hosts: all\n  vars_files: ['{{ env.TOKEN | secret }}']\n  tasks: []", "is not allowed here"),
        ("hosts: all\n  serial: '{{ env.TOKEN | secret }}'\n  tasks: []", "is not allowed here"),
        (f"hosts: all\n  tasks: []\n  handlers: [{{name: !secret {TOKEN}, command: {{}}}}]", "secret"),
    ],
)
def test_plays_have_no_secret_names(desk: Desk, play: str, words: str) -> None:
    desk.write("play.yml", f"- {play}\n")
    sourced = plans(desk)
    assert sourced.code == 1
    assert words in sourced.err, sourced.err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('a: "{{ env.SHORT | secret }}"', "at least 4 characters"),
        ('a: "{{ env.EMPTY | secret }}"', "the secret is empty"),
        ('a: !secret "{{ env.SHORT }}"', "at least 4 characters"),
        ('a: !secret ""', "the secret is empty"),
        ("a: !secret abc", "at least 4 characters"),
        ('a: !secret "{{ [token] }}"', "only a text can be secret"),
        (f"a: !secret [{TOKEN}]", "marks a text"),
        (f"!secret {TOKEN}: b", "a key cannot be secret"),
        (f"a: !secret{TOKEN}", "needs a space after it"),
        (f"a: !Secret {TOKEN}", "unknown tag"),
        (f"a: !secret {TOKEN}\n    a: b", "duplicate key"),
        (f"a: !secret {TOKEN}\n   b: c", "indentation"),
        (f'a: !secret "{TOKEN}\n    b: c', "indentation"),
        (f"a: !secret |\n      {TOKEN}\n     b: c", "indentation"),
        (f"a: !secret '{{{{ {TOKEN}'", "invalid template"),
        (f"a: !secert {TOKEN}", "unknown tag"),
        (f"a: !vault |\n      {TOKEN}", "Ansible Vault is not supported"),
        (f"a: !secret \"{{{{ '{TOKEN}' | nope }}}}\"", "invalid template"),
        ('a: "{{ token | int + nope }}"', "not shown"),
        ("a: \"{{ lookup('file', token) }}\"", "not shown"),
        ('a: "{{ token.nope }}"', "not shown"),
        ('a: "{{ token | from_json }}"', "not shown"),
        ('a: "{{ {}[token] }}"', "not shown"),
        ('a: "{{ token | no_such_filter }}"', "unknown filter"),
    ],
)
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
    write(desk, f"- {{asset: {{title: EP001, fields: {{comment: x}}}}, when: {json.dumps(expression)}}}")
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
    write(desk, '- asset: {title: EP001, markers: [{at: 7, track: General, title: Ad break, comment: "{{ token }}"}]}')
    (change,) = plans(desk).json["targets"][0]["changes"]
    assert change["after"] == {"frame": 7, "track": "General", "title": "Ad break", "comment": "***"}


def test_what_is_wrong_with_another_variable_is_still_told(desk: Desk) -> None:
    comment(desk, "{{ token }} {{ broken }}", '    broken: "{{ nowhere }}"\n')
    sourced = plans(desk)
    assert sourced.code == 1
    sourced.one_error("undefined variable 'nowhere'", "play.yml:4:")


@table("playbook/marked_secrets_in_errors_of_planning", "task")
def test_errors_of_planning_do_not_show_them(desk: Desk, sim: Simulator, task: str) -> None:
    write(desk, task)
    assert plans(desk).code == 1
    sourced = [
        desk.run("apply", "play.yml", *INV, "--yes", "--keep-going", "--format", form) for form in ("text", "json")
    ]
    silent(*sourced, desk.run("history", "last", *INV))
    assert sim.writes() == []
