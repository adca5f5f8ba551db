"""A model's rules for keys that depend on each other agree with its JSON Schema, for every combination.

Each model is tried with every small set of its keys, with several values for each. A rule that no set breaks, or that
no set keeps, fails, because it would be untested.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from typing import Any

import jsonschema
import pytest

from msauto.aspects.command import CommandOnly
from msauto.aspects.marker import MarkerArgs
from msauto.aspects.rss_arguments import RssArgs, RssItemArgs
from msauto.aspects.segment_arguments import SegmentArgs
from msauto.documents.document import Document, SourceNode
from msauto.documents.strict_model import Model
from msauto.documents.value_types import mark
from msauto.playbook.schema.batch import JobArgs, SecretSource
from msauto.playbook.schema.inventory import AuthArgs, BasicArgs
from msauto.playbook.schema.json_schema import schema_of_model
from msauto.playbook.schema.play import (
    AssertArgs,
    AssetArgs,
    CommandArgs,
    HandlerArgs,
    PlayArgs,
    ProxyArgs,
    RunTarget,
    TargetKeys,
    TaskArgs,
    ThumbnailArgs,
)
from msauto.playbook.schema.schema_errors import validate_data
from msauto.playbook.schema.settings import StateArgs

TEMPLATE = "{{ x }}"
TARGET: dict[str, tuple[Any, ...]] = {"title": ("A", TEMPLATE), "id": ("handle:1",), "select": ({}, {"folder": "Raw"})}
STATE: dict[str, tuple[Any, ...]] = {"state": ("present", "absent", TEMPLATE)}
SECRETS: dict[str, tuple[Any, ...]] = {"password": ("p", TEMPLATE), "password_file": ("f",), "password_keyring": ("k",)}
COMMAND: dict[str, tuple[Any, ...]] = {
    "name": ("PARTNER_EXPORT_VERSION", "PARTNER_COPY_PROGRAM_FIELDS", "PARTNER_MOVE_TO_ASSET", TEMPLATE),
    "params": (
        {}, {"asset_id": "1"}, {"house_number": "1"}, {"asset_id": "1", "house_number": "2"},
        {"asset_id": "1", "x": "2"},
        {"ns": "a"}, {"id": "1", "asset_id": "1"}, {"command": "x"}, TEMPLATE,
    ),
    "run": ("once",),
}  # fmt: skip
RUN = {"name": "PARTNER_EXPORT_VERSION"}
TASK: dict[str, tuple[Any, ...]] = {
    "asset": ({"title": "A"},), "rss": ({"channel": "c"},), "thumbnail": ({"title": "A", "dest": "d"},),
    "proxy": ({"title": "A", "profile": "WP1", "dest": "d"},), "xmp_batch": ({"connector": "c", "src": "s"},),
    "command": ({"title": "A", **RUN},), "assert": ({"that": "true"},), "block": ([],), "import_tasks": ("t.yml",),
    "loop": ([1], TEMPLATE), "loop_control": ({}, {"label": "x"}), "notify": ("n", ["n"]), "when": ("true",),
}  # fmt: skip

VALUES: dict[type[Model], dict[str, tuple[Any, ...]]] = {
    AssetArgs: {
        **TARGET, **STATE, "was": ("B", [], TEMPLATE), "fields": ({}, {"comment": "x"}), "xmp": ({"a:b": "c"},),
        "segments": (
            [], [{"number": 1, "state": "absent"}], TEMPLATE,
            [{"number": 1, "state": "absent"}, {"title": "x", "state": "absent"}],
            [{"title": "y", "state": "absent"}, {"title": "x", "state": "absent"}],
            [{"number": 1, "state": "absent"}, TEMPLATE],
        ),
        "segmentation": ({"duration": 5},), "markers": ([], [{"at": 1}]), "links": ([{"folder": "a"}],),
        "exactly": (
            [], ["segments"], ["markers", "links"], [TEMPLATE], TEMPLATE, {}, {"segments": True}, {"segments": False},
            {"markers": True}, {"markers": {"tracks": ["General"]}}, {"links": TEMPLATE}, {"links": True},
        ),
        "restore": (True, False), "lossy": (True,),
    },
    SegmentArgs: {**STATE, "number": (0,), "start": (0, TEMPLATE), "duration": (5,), "title": ("", "x")},
    MarkerArgs: {**STATE, "at": (0, TEMPLATE), "uid": (0,), "track": ("General",)},
    RssItemArgs: {**STATE, "guid": ("g",), "text": ("", TEMPLATE), "item": ({}, {"title": "t"}), "file": ("f",)},
    RssArgs: {"channel": ("c",), "items": ([], TEMPLATE), "exactly": (True, False, TEMPLATE)},
    TargetKeys: TARGET,
    RunTarget: {**TARGET, "missing": ("skip", TEMPLATE)},
    ThumbnailArgs: {**TARGET, "dest": ("d",), "missing": ("error",)},
    ProxyArgs: {**TARGET, "dest": ("d",), "profile": ("WP1",), "missing": ("error",)},
    CommandArgs: {**TARGET, **COMMAND},
    CommandOnly: COMMAND,
    AssertArgs: {**TARGET, "that": ("true",), "msg": ("m",)},
    TaskArgs: TASK,
    HandlerArgs: {
        "name": ("n",), "command": (RUN,), "thumbnail": ({"dest": "d"},), "proxy": ({"profile": "WP1", "dest": "d"},),
        "loop": ([1],), "loop_control": ({},), "before": (True, False, TEMPLATE),
    },
    PlayArgs: {
        "hosts": ("all", ["a"]), "import_playbook": ("p.yml",), "database": ("D",), "vars": ({},), "vars_files": ("v",),
        "serial": (1, "30%"), "max_fail_percentage": (5,), "any_errors_fatal": (True,), "tasks": ([],), "tags": ("t",),
        "handlers": ([],), "when": ("true", True), "name": ("n",),
    },
    AuthArgs: {
        "basic": ({"username": "u", "password": "p"},), "bearer": ("b", TEMPLATE), "bearer_file": ("f",),
        "bearer_keyring": ("k",), "headers": ({}, {"X": "y"}),
    },
    BasicArgs: {"username": ("u", TEMPLATE), **SECRETS},
    SecretSource: {"env": ("E",), "file": ("f",), "keyring": ("k",), "credential": ("c",)},
    JobArgs: {
        "playbooks": ("p.yml", ["p.yml"]), "plan": ("p.json",), "optional": (True,), "needs": ("a", {"a": "any"}),
        "extra_vars": ({},), "limit": ("all",), "tags": ("t",), "do": ("plan", "apply"), "drift": ({"after": 2},),
        "forks": (3,),
    },
    StateArgs: {
        "url": ("postgresql://db/msauto",), "password_env": ("E",), "password_file": ("f",), "password_keyring": ("k",),
        "require": (True,),
    },
}  # fmt: skip


def models() -> set[type[Model]]:
    """All models that have rules."""
    found, waiting = set(), [Model]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model.rules:
            found.add(model)
    return found


def mappings(model: type[Model]) -> Iterator[dict[str, Any]]:
    """Sets of up to four keys beside those that are always needed; the larger the set, the fewer of their values."""
    values = VALUES[model]
    needed = [name for name in values if model.model_fields[_field(model, name)].is_required()]
    free = [name for name in values if name not in needed]
    for size in range(min(4, len(free)) + 1):
        for names in combinations(free, size):
            most = {3: 2, 4: 1}.get(size, 100)
            chosen = [values[name][:most] for name in (*needed, *names)]
            for each in product(*chosen):
                yield dict(zip((*needed, *names), each, strict=True))


def _field(model: type[Model], name: str) -> str:
    return next(field for field, info in model.model_fields.items() if (info.alias or field) == name)


@cache
def validator(model: type[Model]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema_of_model(model))


def test_every_model_with_rules_is_tried() -> None:
    assert models() == set(VALUES)


@pytest.mark.scale
@pytest.mark.parametrize("model", VALUES, ids=lambda model: f"{model.__module__.rpartition('.')[2]}.{model.__name__}")
def test_model_and_schema_say_the_same(model: type[Model]) -> None:
    broken = dict.fromkeys(range(len(model.rules)), 0)
    tried = list(mappings(model))
    for data in tried:
        marked = mark(data)
        _, found, _ = validate_data(model, marked, SourceNode(Document("f")))
        problems = [problem.message for _, problem in found]
        errors = list(validator(model).iter_errors(data))
        assert bool(problems) == bool(errors), f"{data}\nmsauto: {problems}\nschema: {[e.message for e in errors]}"
        for number, rule in enumerate(model.rules):
            broken[number] += any(True for _ in rule.broken(marked))
    for number, times in broken.items():
        assert 0 < times < len(tried), f"{model.rules[number]} was broken {times} of {len(tried)} times"


@pytest.mark.parametrize("model", [AssetArgs, CommandArgs, TaskArgs])
def test_a_rule_that_is_left_out_of_the_schema_is_noticed(model: type[Model]) -> None:
    schema = schema_of_model(model)
    for each in (schema, schema["$defs"].get(model.__name__, {})):
        each.pop("allOf", None)
    lenient = jsonschema.Draft202012Validator(schema)
    assert any(
        validate_data(model, mark(data), SourceNode(Document("f")))[1] and lenient.is_valid(data)
        for data in mappings(model)
    )
