"""Repositories as files (``tests/cases/repositories``): what msauto reads in their files, and what is wrong there.

A case gives ``files``, and the options of a run (``given``). ``tasks`` are those of the only play. Expectations are
``intents`` with their comments, those that tags leave out, ``servers`` with some attributes, and ``warnings``. Problems
are ``refused`` (by planning), ``problems`` (of ``validate``), or ``wrong`` (both). They may omit the remedy. ``then``
are the files of a user who followed the remedies, which are read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.errors import InputError, Problem
from msauto.model.desired import (
    ChannelRef,
    DatabaseRef,
    DesiredAsset,
    Intent,
    Ref,
    ResolvedPlaybooks,
    TitleRef,
)
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.model.server import Secret
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.validate import validate
from tests.tables import CASES, load

FACTS = Facts(asset=Asset("A", attributes={"frames": "300", "frame_time": "0.0400"}))
INVENTORY = 'all: {hosts: {h: {server: {url: "http://h"}, database: D}}}\n'


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['about']}")
        for path in sorted((CASES / "repositories").glob("*.yml"))
        for case in load(path)
    ]


def write(case: dict[str, Any]) -> ResolveOptions:
    tasks = "".join(f"    - {task}\n" for task in case.pop("tasks", ()))
    play = f"- hosts: all\n  tasks:\n{tasks or '    []'}"
    files = {"i.yml": INVENTORY, "p.yml": play, **case.pop("files", {})}
    for name, text in files.items():
        if text is None:
            continue
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    given = {"playbooks": ["p.yml"], "inventories": ["i.yml"], **case.pop("given", {})}
    lists = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    options: dict[str, Any] = {"env": {}, "now": datetime(2026, 11, 20, tzinfo=UTC), **lists}
    return ResolveOptions(**options)


def named(ref: Ref) -> str:
    match ref:
        case TitleRef(database, title):
            return f"{database}/{title}"
        case ChannelRef(channel):
            return f"channel {channel}"
        case DatabaseRef(database):
            return f"database {database}"
    raise AssertionError(ref)


def shown(intent: Intent) -> str:
    desired = intent.evaluate(FACTS)
    if desired is None:
        return f"{named(intent.ref)}, whose condition does not hold"
    comment = (
        desired.parts.get("field", {}).get("comment") if isinstance(desired, DesiredAsset) else None
    )
    task = f"{intent.source.task} → " if intent.source.task else ""
    return task + named(intent.ref) + (f": {comment.value}" if comment else "")


def intents(resolved: ResolvedPlaybooks) -> list[str]:
    return [shown(intent) for work in resolved.work for intent in work.intents]


def attribute(server: object, name: str) -> object:
    value = attrgetter(name)(server)
    return value.reveal() if isinstance(value, Secret) else value


def check(found: list[Problem], expected: list[str]) -> None:
    texts = []
    for number, problem in enumerate(found):
        text, place = problem.message, problem.place
        if place is not None:
            text = f"{place}: {text}"
        if place and place.line and place.file.endswith(".yml"):
            line, caret = problem.excerpt.split("\n")
            at = len(caret.rstrip()) - 1
            assert line[at:].strip(), "the caret points at something"
        has_remedy = number < len(expected) and "\n  → " in expected[number]
        if has_remedy:
            text += f"\n  → {problem.remedy}"
        texts.append(text)
    assert texts == expected


@pytest.mark.parametrize("case", cases())
def test_what_a_repository_comes_to(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = {key: value for key, value in case.items() if key != "about"}
    options = write(case)
    if "wrong" in case:
        case["problems"] = case["refused"] = case.pop("wrong")
    if "problems" in case:
        check(
            validate(case.pop("validate", ["p.yml"]), structs.replace(options, playbooks=())),
            case.pop("problems"),
        )
    if "refused" in case:
        with pytest.raises(InputError) as caught:
            intents(resolve(options))
        check(list(caught.value.problems), case.pop("refused"))
    if "then" in case:
        for name, text in case.pop("then").items():
            Path(name).write_text(text, encoding="utf-8")
        assert intents(resolve(options))
    if not case:
        return
    resolved = resolve(options)
    assert list(resolved.warnings) == case.pop("warnings", [])
    if "intents" in case:
        assert intents(resolved) == case.pop("intents")
    if "inputs" in case:
        assert [each.path for each in resolved.inputs] == case.pop("inputs")
        assert all(len(each.sha256) == 64 for each in resolved.inputs)
    left_out = [named(intent.ref) for work in resolved.work for intent in work.left_out]
    assert left_out == case.pop("left_out", [])
    for name, attributes in case.pop("servers", {}).items():
        (server,) = (work.server for work in resolved.work if work.server.name == name)
        assert {each: attribute(server, each) for each in attributes} == attributes
    assert not case, "an expectation with a misspelt name"
