"""``msauto validate .`` in a repository for Ansible: each module once with what replaces it, and no noise."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.validate import validate
from msauto.report.text import render_problems
from tests.tables import CASES

REPOSITORY = yaml.safe_load((CASES / "playbook" / "for_ansible.yml").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(**more: str) -> str:
    for name, text in {**REPOSITORY["files"], **more}.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return render_problems(validate(["."], ResolveOptions(())), colour=False)


def test_each_module_once() -> None:
    assert shown() == REPOSITORY["expected"]
    assert shown().count("\n") <= 16


def test_what_is_ours_beside_it_is_checked_in_full() -> None:
    ours = "- hosts: all\n  tasks:\n    - asset: {titel: A}\n    - {debug: {msg: x}}\n    - {uri: {}}\n"
    lines = [
        line for line in shown(**{"ours.yml": ours}).splitlines() if line.startswith("ours.yml")
    ]
    assert lines == [
        "ours.yml:3:15: unknown key 'titel' [unknown-key]",
        "ours.yml:4:8: debug is not supported [not-supported]",
        "ours.yml:5:8: uri is not supported [not-supported]",
    ]


def test_a_list_of_tasks_that_nothing_imports_is_named() -> None:
    Path("p.yml").write_text("- hosts: all\n  tasks: [{import_tasks: a.yml}]\n", encoding="utf-8")
    for name in ("a", "b"):
        Path(f"{name}.yml").write_text(
            "- asset: {title: A}\n  notify: Of the play\n", encoding="utf-8"
        )
    Path("a.yml").write_text("- asset: {title: A}\n", encoding="utf-8")
    (problem,) = validate(["."], ResolveOptions(()))
    assert (problem.level, problem.message) == ("warning", "no playbook imports these tasks: b.yml")
    assert problem.remedy == "let a play import them: import_tasks: FILE"


def test_hosts_without_a_server_are_one_problem() -> None:
    Path("i.yml").write_text("all: {hosts: {a: {}, b: {}, c: {}, d: {x: 1}}}\n", encoding="utf-8")
    (problem,) = validate(["."], ResolveOptions(()))
    assert problem.message == "the host 'a' has no server, nor have 3 other hosts"
