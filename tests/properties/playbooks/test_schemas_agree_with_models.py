"""The JSON Schemas accept what msauto accepts and reject what it rejects, on thousands of changed examples.

What no schema can express is listed here and described in ``docs/reference/json.md``.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from msauto.documents.document import SourceNode
from msauto.documents.loader import load_yaml, plain
from msauto.errors import InputError, in_order
from msauto.playbook.input_files import Files
from msauto.playbook.plays import Loader
from msauto.playbook.reference import TOPICS, module
from msauto.playbook.schema.inventory import InventoryArgs
from msauto.playbook.schema.json_schema import json_schema
from msauto.playbook.schema.schema_errors import validate_data
from msauto.plugins.batch.schema import BatchFileArgs
from tests.docs.pages import ROOT, Block, all_blocks
from tests.tables import CASES, yaml_text

BEYOND_SCHEMAS = re.compile(
    "|".join(
        (
            "stands twice|duplicate",  # unique by a key of the items
            "invalid (template|expression)|unknown (filter|test) ",  # Jinja's grammar
            "handler .* not found",  # names that refer to names elsewhere
            "is already that of a loop",
            "is greater than max",  # numbers compared with each other
            "circular import|file not found|cannot be read: not found|imported file cannot",  # other files
            "duration of a segment cannot be 0",  # 0 in all its notations
            "must be a name, not a path",
            "is no host|is not a host|must not (hold|contain)|cannot be read as a URL",  # the finer parts of a URL
            "unknown time zone",
            "is encrypted with SOPS",  # a text for any other program
            "must be a date",  # 30 February
            "is a keyword of templates",
            "a number with a decimal point|must be a whole number, not -?[0-9]+[.]0",  # 5.0 is an integer to a schema
            "name of a handler cannot be a template",
            "tracks is empty|headline would be empty",
            "and never equal to",  # the types of facts in a condition
            "is not a date and time of a feed",
        )
    )
)
ODD: tuple[Any, ...] = (
    None, True, False, 0, 5, -1, 1.5, "", " ", "x", "012", "a/b", "a:b", "00:00:10:05", "00:00:61:00", "30m", "WP1",
    "absent", "present", "{{ x }}", "{% if x %}", "2026-11-13", [], ["x"], ["{{ x }}"], [None], {}, {"bogus": 1},
    {"title": "A"}, [{"title": "A"}], [{"state": "absent"}], {"segments": True}, [1, 2], "asset.frames > 2",
)  # fmt: skip
INVENTORY = (CASES / "language/every-key-inventory.yml").read_text(encoding="utf-8")


BATCH = (CASES / "language/every-key-batch.yml").read_text(encoding="utf-8")


class _Memory(Files):
    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text.encode()

    def read(self, path: str) -> bytes:
        return self._text if path == "p.yml" else b"[]"


@cache
def seeds() -> tuple[Any, ...]:
    """Every example of the reference and of the repository, as data."""
    found = []
    for topic in map(module, TOPICS):
        for example in topic.examples:
            data = plain(load_yaml(example.encode(), topic.name).data)
            handlers = [
                {"name": "Export the version", "command": {"name": "PARTNER_EXPORT_VERSION"}}
            ]
            play = {"hosts": "all", "handlers": data if topic.name == "handler" else handlers}
            found.append(
                data
                if topic.name == "play"
                else [play | ({} if topic.name == "handler" else {"tasks": data})]
            )
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        data = plain(load_yaml(path.read_bytes(), str(path)).data)
        if isinstance(data, list):
            found.append(data)
    return tuple(found)


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in pairs:
        yield from places(value, (*path, key))


def changed(data: Any, path: tuple[str | int, ...], value: Any, *, how: str) -> Any:
    result = copy.deepcopy(data)
    holder = result
    for part in path[:-1]:
        holder = holder[part]
    if how == "drop":
        del holder[path[-1]]
    elif how == "add" and isinstance(holder[path[-1]], dict):
        holder[path[-1]]["bogus"] = value
    elif how == "move" and isinstance(holder, dict):
        holder["bogus"] = holder.pop(path[-1])
    else:
        holder[path[-1]] = copy.deepcopy(value)
    return result


def all_changes(data: Any) -> Iterator[Any]:
    yield data
    for path in places(data):
        for how in ("drop", "add", "move"):
            yield changed(data, path, 1, how=how)
        for value in ODD:
            yield changed(data, path, value, how="put")


def verdict_on_playbook(text: str) -> list[str]:
    files = _Memory(text)
    Loader(files).playbook("p.yml")
    messages = [problem.message for problem in in_order(files.problems)]
    return [
        each for each in messages if not re.match("role '.+' not found", each)
    ]  # the folder of a role


def verdict_on_inventory(text: str) -> list[str]:
    try:
        document = load_yaml(text.encode(), "i.yml")
    except InputError as error:
        return [problem.message for problem in error.problems]
    _, found, _ = validate_data(InventoryArgs, document.data, SourceNode(document))
    return [problem.message for _, problem in found]


def check(data: Any, messages: list[str], validator: jsonschema.Draft202012Validator) -> None:
    errors = list(validator.iter_errors(data))
    if not messages:
        assert not errors, (
            f"msauto accepts it and the schema does not: {errors[0].json_path}: {errors[0].message}\n{data}"
        )
    elif not errors:
        open_still = [message for message in messages if not BEYOND_SCHEMAS.search(message)]
        assert not open_still, f"msauto rejects it and the schema does not: {open_still}\n{data}"


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(json_schema(name))
    return jsonschema.Draft202012Validator(json_schema(name))


def run_playbooks(share: int, part: slice) -> int:
    chosen = random.Random(share)
    count = 0
    for data in seeds()[part]:
        for each in all_changes(data):
            if share > 1 and chosen.randrange(share):
                continue
            text = yaml_text(each)
            check(
                load_yaml(text.encode(), "p.yml").data,
                verdict_on_playbook(text),
                validator("playbook"),
            )
            count += 1
    return count


def test_the_examples_fit() -> None:
    for data in seeds():
        text = yaml_text(data)
        assert verdict_on_playbook(text) == [], text
        check(data, [], validator("playbook"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "cases" / "errors").glob("*.yml")), ids=lambda path: path.stem
)
def test_the_cases_of_errors(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        data = plain(load_yaml(text.encode(), path.name).data)
    except InputError:
        return  # no YAML, so nothing that a schema could look at
    check(data, verdict_on_playbook(text), validator("playbook"))


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=str)
def test_the_examples_of_the_docs(block: Block) -> None:
    data = plain(load_yaml(block.body.encode(), str(block)).data)
    if isinstance(data, list) and all(isinstance(each, dict) and "hosts" in each for each in data):
        check(data, verdict_on_playbook(block.body), validator("playbook"))


@pytest.mark.scale
@pytest.mark.parametrize("part", range(4))
def test_every_third_changed_playbook(part: int) -> None:
    assert run_playbooks(3, slice(part, None, 4)) > 300


def run_inventories(share: int) -> int:
    data = plain(load_yaml(INVENTORY.encode(), "i.yml").data)
    chosen = [each for number, each in enumerate(all_changes(data)) if number % share == 0]
    for each in chosen:
        text = yaml_text(each)
        check(
            load_yaml(text.encode(), "i.yml").data,
            verdict_on_inventory(text),
            validator("inventory"),
        )
    return len(chosen)


def test_some_changed_inventories() -> None:
    assert run_inventories(21) > 30


@pytest.mark.scale
def test_all_changed_inventories() -> None:
    assert run_inventories(1) > 1000


def run_batches(share: int) -> int:
    data = plain(load_yaml(BATCH.encode(), "batch.yml").data)
    chosen = [each for number, each in enumerate(all_changes(data)) if number % share == 0]
    for each in chosen:
        document = load_yaml(yaml_text(each).encode(), "batch.yml")
        _, found, _ = validate_data(BatchFileArgs, document.data, SourceNode(document))
        check(document.data, [problem.message for _, problem in found], validator("batch"))
    return len(chosen)


def test_some_changed_batches() -> None:
    assert run_batches(69) > 30


@pytest.mark.scale
def test_every_third_changed_batch() -> None:
    assert run_batches(3) > 450
