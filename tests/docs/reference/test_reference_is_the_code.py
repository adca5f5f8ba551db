"""The pages made from the code are up to date and complete, and their examples hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.documents.loader import load_yaml
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.reference import TOPICS, ReferenceTopic, module
from msauto.playbook.templates import reference
from msauto.playbook.templates.sandbox import Sandbox
from msauto.playbook.validate import validate
from tests.docs import module_map
from tests.docs.make_reference import PAGES
from tests.docs.pages import ROOT

INVENTORY = (
    'all: {children: {playout: {hosts: {studio-a: {server: {url: "http://a"}, database: NEWS}}}}}\n'
)
HANDLER = "  handlers: [{name: Export the version, command: {name: PARTNER_EXPORT_VERSION}}]\n"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_fresh(name: str) -> None:
    kept = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    assert kept == PAGES[name](), "make it again: python -m tests.docs.make_reference"


def test_the_list_of_modules_is_fresh() -> None:
    kept = module_map.PAGE.read_text(encoding="utf-8")
    assert kept == module_map.with_map(kept), "make it again: python -m tests.docs.module_map"


@pytest.mark.parametrize("name", TOPICS)
def test_every_key_is_in_an_example(name: str) -> None:
    topic = module(name)
    used = {path for example in topic.examples for path in paths_of(topic, example)}
    assert [key.path for key in topic.keys if key.path not in used] == [], (
        "add it to msauto/playbook/reference_texts"
    )


def paths_of(topic: ReferenceTopic, example: str) -> Iterator[str]:
    for item in load_yaml(example.encode(), topic.name).data:
        yield from paths(part_of(topic, item), "")
        for inner in item.get("block", []) if topic.name == "task" else []:
            yield from paths(inner, "")


def part_of(topic: ReferenceTopic, item: dict[str, Any]) -> Any:
    if topic.name in {"play", "task", "handler"}:
        return item
    return item["asset"]["select"] if topic.name == "select" else item[topic.name]


def paths(data: Any, before: str) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield f"{before}{key}"
            yield from paths(value, f"{before}{key}.")
    elif isinstance(data, list):
        for value in data:
            yield from paths(value, f"{before.removesuffix('.')}[].")


@pytest.mark.parametrize("name", TOPICS)
def test_examples_hold(name: str, tmp_path: Path) -> None:
    topic = module(name)
    (tmp_path / "inventory.yml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "shows.yml").write_text("show: News\n", encoding="utf-8")
    (tmp_path / "more.yml").write_text(
        "- {hosts: all, tasks: [{asset: {title: A}}]}\n", encoding="utf-8"
    )
    (tmp_path / "tasks.yml").write_text("- asset: {title: A}\n", encoding="utf-8")
    for role in ("promos", "films"):
        (tmp_path / "roles" / role / "tasks").mkdir(parents=True)
        (tmp_path / "roles" / role / "tasks" / "main.yml").write_text(
            "- asset: {title: A}\n", encoding="utf-8"
        )
    (tmp_path / "batch.xml").write_text("<xml/>", encoding="utf-8")
    for number, example in enumerate(topic.examples):
        text = example if topic.name == "play" else play_of(topic.name, example)
        (tmp_path / f"play{number}.yml").write_text(
            text.replace(":!studio-b", ""), encoding="utf-8"
        )
    paths = [str(path) for path in tmp_path.glob("play*.yml")]
    found = validate(paths, ResolveOptions((), (str(tmp_path / "inventory.yml"),), env={}))
    found = [problem for problem in found if problem.level == "error"]
    assert [str(problem) for problem in found] == []


def play_of(topic: str, example: str) -> str:
    indented = "".join(f"    {line}" for line in example.splitlines(keepends=True))
    if topic == "handler":
        task = "  tasks: [{asset: {title: A, state: absent}, notify: Tell the partner before it goes}]\n"
        return f"- hosts: all\n{task}  handlers:\n{indented}"
    return f"- hosts: all\n{HANDLER if topic == 'task' else ''}  tasks:\n{indented}"


def test_facts_of_the_sample_are_all_told() -> None:
    from msauto.model.facts import Facts

    assert set(Facts(asset=reference.SAMPLE).names()) == {entry.name for entry in reference.facts()}


OTHER_NAMES = {"==", "!=", "<", "<=", ">", ">="}
"""Names of tests that are documented with another name."""


def test_filters_and_tests_are_all_told() -> None:
    known, filters, tests = Sandbox(), reference.filters(), reference.tests()
    assert {name for name in known.filters if name.isidentifier()} == {
        entry.name for entry in filters
    }
    assert known.tests.keys() - OTHER_NAMES == {entry.name for entry in tests}
    assert all(entry.words and entry.example for entry in (*filters, *tests, *reference.lookups()))


def test_unknown_topic() -> None:
    with pytest.raises(KeyError):
        module("nothing")
