"""``msauto validate .`` in a repository for Ansible: each module once with what replaces it, and no noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.validate import validate
from msauto.report.text import render_problems

SITE = """\
- name: Promos
  hosts: playout
  become: false
  pre_tasks:
    - ansible.builtin.uri: {url: "http://{{ inventory_hostname }}:7901/databases"}
      register: databases
    - debug: var=databases
  roles:
    - {role: promos, channel: ticker}
  tasks:
    - include_tasks: tasks/promos.yml
      loop: "{{ promos }}"
    - uri: {url: "http://{{ inventory_hostname }}/rss/ticker", method: PUT, body: "{{ x | urlencode }}"}
      until: put.status == 200
    - set_fact: {done: true}
    - command: ls
    - ansible.builtin.command: {argv: [ls]}
"""
TASKS = """\
- name: Read
  ansible.builtin.uri: {url: "http://{{ inventory_hostname }}/storage/NEWS@{{ promo.title | urlencode }}"}
  register: clip
- template: {src: a.j2, dest: b}
- community.general.slack: {msg: done}
- shell: echo
- ansible.builtin.yum_repository: {name: x}
"""
ROLE = "- copy: {src: a, dest: b}\n- include_vars: x.yml\n- debug: {msg: x}\n"
FILES = {
    "site.yml": SITE,
    "tasks/promos.yml": TASKS,
    "roles/promos/tasks/main.yml": ROLE,
    "roles/promos/defaults/main.yml": "channel: x",
    "requirements.yml": "- src: geerlingguy.java\n  version: '1.0'\n",
    "collections/requirements.yml": "collections: [{name: community.general}]\n",
    "ansible.cfg": "[defaults]\ninventory = hosts\n",
    "hosts": "[playout]\nstudio-a\n",
    "molecule/default/converge.yml": "- hosts: all\n  tasks: [{include_role: {name: promos}}]\n",
    "group_vars/all.yml": "promos: [{title: A}]\n",
}
EXPECTED = """\
roles/promos/tasks/main.yml:1:3: written for Ansible (files: 3); msauto has instead: [not-supported]
  copy, template, community.general.slack, yum_repository: keep it in Ansible:
    msauto changes media servers only
  include_vars: use vars_files of the play, or lookup('yaml', …)
  debug: show values with: msauto vars HOST NAME, msauto show, or msauto plan -v
  include_tasks: use import_tasks
  uri: use asset, rss, command, thumbnail or proxy
  set_fact: use vars
  command, shell: run shell commands outside of msauto, or by the CI job
  become, pre_tasks, until, register: keys to replace or remove
  msauto does not read: ansible.cfg, hosts, molecule/default/converge.yml and 1
    more
  no playbook imports these tasks: tasks/promos.yml
  → convert one file at a time, as in the how-to: Coming from Ansible

1 problem.
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(**more: str) -> str:
    for name, text in {**FILES, **more}.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return render_problems(validate(["."], ResolveOptions(())), colour=False)


def test_each_module_once() -> None:
    assert shown() == EXPECTED
    assert EXPECTED.count("\n") <= 16


def test_what_is_ours_beside_it_is_checked_in_full() -> None:
    ours = "- hosts: all\n  tasks:\n    - asset: {titel: A}\n    - {debug: {msg: x}}\n    - {uri: {}}\n"
    lines = [line for line in shown(**{"ours.yml": ours}).splitlines() if line.startswith("ours.yml")]
    assert lines == [
        "ours.yml:3:15: unknown key 'titel' [unknown-key]",
        "ours.yml:4:8: debug is not supported [not-supported]",
        "ours.yml:5:8: uri is not supported [not-supported]",
    ]


def test_a_list_of_tasks_that_nothing_imports_is_named() -> None:
    Path("p.yml").write_text("- hosts: all\n  tasks: [{import_tasks: a.yml}]\n", encoding="utf-8")
    for name in ("a", "b"):
        Path(f"{name}.yml").write_text("- asset: {title: A}\n  notify: Of the play\n", encoding="utf-8")
    Path("a.yml").write_text("- asset: {title: A}\n", encoding="utf-8")
    (problem,) = validate(["."], ResolveOptions(()))
    assert (problem.level, problem.message) == ("warning", "no playbook imports these tasks: b.yml")
    assert problem.remedy == "let a play import them: import_tasks: FILE"


def test_hosts_without_a_server_are_one_problem() -> None:
    Path("i.yml").write_text("all: {hosts: {a: {}, b: {}, c: {}, d: {x: 1}}}\n", encoding="utf-8")
    (problem,) = validate(["."], ResolveOptions(()))
    assert problem.message == "the host 'a' has no server, nor have 3 other hosts"
