"""What is valid: the schemas that editors use are those of the models; invalid files and their exact messages."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import BeforeValidator

from msauto.documents.loader import load_yaml
from msauto.documents.strict_model import Model, ValidationRecord
from msauto.errors import InputError
from msauto.planning.saved_plan import plan_schema
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.schema.json_schema import json_schema
from msauto.playbook.validate import validate
from msauto.plugins.batch.batch_result import batch_result_schema
from msauto.report.event_lines import events_schema
from tests.tables import one_fast_in, table

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas"


NAMES = (
    "playbook",
    "tasks",
    "handlers",
    "inventory",
    "settings",
    "plan",
    "batch",
    "batch-result",
    "events",
)


@cache
def validator_of(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(name))


def schema_of(name: str) -> dict[str, Any]:
    own = {"plan": plan_schema, "batch-result": batch_result_schema, "events": events_schema}.get(
        name
    )
    return own() if own is not None else json_schema(name)


@pytest.mark.parametrize("name", NAMES)
def test_file_is_fresh(name: str) -> None:
    made = json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
    kept = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    assert kept == made, f"make it again: msauto schema {name} > schemas/{name}.json"


@table("playbook/accepted_by_the_schema", "play")
def test_accepts(play: Any) -> None:
    validator_of("playbook").validate([play])
    validator_of("tasks").validate(play.get("tasks", []))
    validator_of("handlers").validate(play.get("handlers", []))
    assert not validator_of("tasks").is_valid([play])


@table("playbook/rejected_by_the_schema", "play")
def test_rejects(play: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator_of("playbook").validate([play])


@pytest.mark.parametrize(
    "path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.name
)
def test_example_playbooks_fit(path: Path) -> None:
    document = load_yaml(path.read_bytes(), str(path))
    validator_of("playbook" if isinstance(document.data, list) else "inventory").validate(
        document.data
    )


def test_example_playbooks_hold() -> None:
    assert validate([str(ROOT / "playbooks")], ResolveOptions((), env={})) == []


@pytest.mark.parametrize("name", one_fast_in(3, NAMES))
def test_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(name))


def test_every_key_has_a_description() -> None:
    for name in NAMES:
        for model in schema_of(name)["$defs"].values():
            for key, value in model.get("properties", {}).items():
                assert value.get("description"), f"{name}: {key}"


def test_unknown_schema() -> None:
    with pytest.raises(InputError, match="did you mean 'playbook'"):
        json_schema("playbok")


# The example of the whole language: every key of the language is known, to us and to the JSON Schema


PLAYBOOK = Path(__file__).parents[2] / "cases" / "language" / "whole.yml"


def test_every_key_is_known() -> None:
    resolved = resolve(
        ResolveOptions((str(PLAYBOOK),), server_url="http://h", extra_vars=("house=K5",), env={})
    )
    (work,) = resolved.work
    kinds = [type(intent.ref).__name__ for intent in work.intents]
    assert kinds.count("DatabaseRef") == 1
    assert len(kinds) == 13
    assert [handler.name for handler in work.intents[0].notify] == ["Export the version"]
    assert [batch.servers for batch in resolved.batches] == [("h",)]


def test_the_schema_accepts_it() -> None:
    jsonschema.validate(load_yaml(PLAYBOOK.read_bytes(), "whole.yml").data, json_schema("playbook"))


# Which model met which mapping: hints for unknown keys come from it


class Inner(Model):
    number: int


class Outer(Model):
    inner: list[Annotated[Inner, BeforeValidator(dict)]]


def test_a_mapping_that_only_a_validator_made_is_not_taken_for_another() -> None:
    record = ValidationRecord()
    Outer.model_validate({"inner": [{"number": number} for number in range(50)]}, context=record)
    assert len(record.mappings) == 1 + 50, "each has an identity of its own"
    assert {
        number for number, (mapping, _) in record.mappings.items() if id(mapping) != number
    } == set()


# Invalid files and their exact error messages: ``x.yml`` beside ``x.txt``


CASES = Path(__file__).parents[2] / "cases" / "errors"
PLAYBOOKS = sorted(path.stem for path in CASES.glob("*.yml"))
INVENTORIES = sorted(path.stem for path in (CASES / "inventory").glob("*.yml"))
INVENTORY = """
all:
  vars: {house: Kanal 5}
  children:
    playout:
      hosts:
        studio-a: {server: {url: "http://a"}, database: NEWS}
        studio-b: {server: {url: "http://b"}, database: NEWS}
  hosts:
    studio-c: {server: {url: "http://c"}}
"""
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def said_of(options: ResolveOptions) -> str:
    with pytest.raises(InputError) as caught:
        resolve(options)
    for problem in caught.value.problems:
        assert problem.place is not None
        assert problem.message
    return str(caught.value).replace(str(Path.cwd()), "/srv/news") + "\n"


def compare(found: str, expected: Path) -> None:
    if os.environ.get("MSAUTO_WRITE_CASES"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_playbook(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(INVENTORY)
    monkeypatch.chdir(CASES)
    compare(
        said_of(ResolveOptions((f"{name}.yml",), (str(inventory),), env={}, now=NOW)),
        CASES / f"{name}.txt",
    )


@pytest.mark.parametrize("name", INVENTORIES)
def test_inventory(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    playbook = tmp_path / "playbook.yml"
    playbook.write_text("- {hosts: all, database: NEWS, tasks: []}\n")
    folder = CASES / "inventory"
    monkeypatch.chdir(folder)
    found = said_of(ResolveOptions((str(playbook),), (f"{name}.yml",), env={}, now=NOW))
    assert "hunter" not in found
    assert "12345" not in found
    compare(found, folder / f"{name}.txt")


def test_every_expectation_has_its_case() -> None:
    assert {path.stem for path in CASES.glob("*.txt")} == set(PLAYBOOKS)
    assert {path.stem for path in (CASES / "inventory").glob("*.txt")} == set(INVENTORIES)
