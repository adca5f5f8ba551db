"""The contract's own playbook: every key of the language is known, to us and to the JSON Schema."""

from __future__ import annotations

from pathlib import Path

import jsonschema

from msauto.documents.loader import load_yaml
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.schema.json_schema import json_schema

PLAYBOOK = Path(__file__).parents[2] / "cases" / "language" / "whole.yml"


def test_every_key_is_known() -> None:
    resolved = resolve(ResolveOptions((str(PLAYBOOK),), server_url="http://h", extra_vars=("house=K5",), env={}))
    (work,) = resolved.work
    kinds = [type(intent.ref).__name__ for intent in work.intents]
    assert kinds.count("DatabaseRef") == 1
    assert len(kinds) == 13
    assert [handler.name for handler in work.intents[0].notify] == ["Export the version"]
    assert [batch.servers for batch in resolved.batches] == [("h",)]


def test_the_schema_accepts_it() -> None:
    jsonschema.validate(load_yaml(PLAYBOOK.read_bytes(), "whole.yml").data, json_schema("playbook"))
