"""The contract's own playbook: every key of the language is known, to us and to the JSON Schema."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from msauto.errors import InputError
from msauto.playbook.resolve import Options, resolve
from msauto.playbook.schema import json_schema
from msauto.playbook.yaml import load_yaml

PLAYBOOK = Path(__file__).parents[2] / "cases" / "language" / "whole.yml"
NOT_BUILT = {
    "any_errors_fatal",
    "assert",
    "command",
    "handlers",
    "max_fail_percentage",
    "notify",
    "proxy",
    "serial",
    "thumbnail",
    "xmp_batch",
}


def test_every_key_is_known() -> None:
    with pytest.raises(InputError) as caught:
        resolve(Options((str(PLAYBOOK),), server_url="http://h", extra_vars=("house=K5",), env={}))
    left = {problem.message.removesuffix(" is not built yet") for problem in caught.value.problems}
    assert left <= NOT_BUILT


def test_the_schema_accepts_it() -> None:
    jsonschema.validate(load_yaml(PLAYBOOK.read_bytes(), "whole.yml").data, json_schema("playbook"))
