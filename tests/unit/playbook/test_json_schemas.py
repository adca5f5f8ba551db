"""The schemas that editors use are those of the models, and agree with them on what a playbook may be."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from msauto.batch.batch_result import batch_result_schema
from msauto.documents.loader import load_yaml
from msauto.errors import InputError
from msauto.planning.saved_plan import plan_schema
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.schema.json_schema import json_schema
from msauto.playbook.validate import validate
from msauto.report.event_lines import events_schema

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas"

GOOD: list[Any] = [
    {"hosts": "all", "tasks": [{"asset": {"title": "A", "fields": {"comment": "x", "user_0": 3}}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": "{{ t }}", "segments": "{{ list }}"}, "when": "asset.frames > 1"}]},
    {"hosts": ["a", "b"], "tasks": [{"asset": {"select": {"mimetype": "Video"}, "restore": True, "lossy": True}}]},
    {"hosts": "a", "tasks": [{"asset": {"id": "h:1", "exactly": {"markers": {"tracks": ["Icon"]}}, "markers": []}}]},
    {"import_playbook": "x.yml"},
    {"hosts": "a", "tasks": [{"rss": {"channel": "t", "items": [{"guid": "g", "text": "x"}], "exactly": True}}]},
    {"hosts": "a", "serial": ["10%", 2], "tasks": [{"block": [{"asset": {"title": "A"}}], "tags": "a"}]},
]
BAD: list[Any] = [
    {"hosts": "all", "tasks": [{"asset": {"title": "A", "fields": {"comment": True}}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": "A", "fieldz": {}}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": "A", "markers": [{"at": 1.5}]}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": "A", "markers": [{"at": "1:2"}]}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": "A", "id": "a:b"}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": None}}]},
    {"hosts": "all", "tasks": [{"asset": {"title": "A"}, "rss": {"channel": "x"}}]},
    {"tasks": []},
    "text",
]


NAMES = ("playbook", "inventory", "settings", "plan", "batch", "batch-result", "events")


@cache
def validator_of(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(name))


def schema_of(name: str) -> dict[str, Any]:
    own = {"plan": plan_schema, "batch-result": batch_result_schema, "events": events_schema}.get(name)
    return own() if own is not None else json_schema(name)


@pytest.mark.parametrize("name", NAMES)
def test_file_is_fresh(name: str) -> None:
    made = json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
    kept = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    assert kept == made, f"make it again: msauto schema {name} > schemas/{name}.json"


@pytest.mark.parametrize("play", GOOD)
def test_accepts(play: Any) -> None:
    validator_of("playbook").validate([play])


@pytest.mark.parametrize("play", BAD)
def test_rejects(play: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator_of("playbook").validate([play])


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.name)
def test_example_playbooks_fit(path: Path) -> None:
    document = load_yaml(path.read_bytes(), str(path))
    validator_of("playbook" if isinstance(document.data, list) else "inventory").validate(document.data)


def test_example_playbooks_hold() -> None:
    assert validate([str(ROOT / "playbooks")], ResolveOptions((), env={})) == []


@pytest.mark.parametrize("name", NAMES)
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
