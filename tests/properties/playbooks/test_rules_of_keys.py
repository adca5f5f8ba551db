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

from msauto.documents.document import Document, SourceNode, given_document
from msauto.documents.key_rules import broken_rules
from msauto.documents.strict_model import Model
from msauto.playbook.schema import inventory, settings  # noqa: F401 - their models have rules, too
from msauto.playbook.schema.json_schema import schema_of_model
from msauto.playbook.schema.play import AssetArgs, CommandArgs, TaskArgs
from msauto.playbook.schema.schema_errors import validate_data
from msauto.plugins.batch import schema as batch_schema  # noqa: F401 - as above
from tests.tables import CASES, load

FILE = CASES / "playbook" / "values_of_keys.yml"
VALUES: dict[str, dict[str, list[Any]]] = load(FILE)


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
    values = VALUES[model.__name__]
    needed: list[str] = []
    free: list[str] = []
    for name in values:
        field = model.model_fields[_field(model, name)]
        (needed if field.is_required() else free).append(name)
    for size in range(min(4, len(free)) + 1):
        most = {3: 2, 4: 1}.get(size, 100)
        for further in combinations(free, size):
            names = (*needed, *further)
            choices = [values[name][:most] for name in names]
            for chosen in product(*choices):
                yield dict(zip(names, chosen, strict=True))


def _field(model: type[Model], name: str) -> str:
    return next(
        field for field, info in model.model_fields.items() if (info.alias or field) == name
    )


@cache
def validator(model: type[Model]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema_of_model(model))


def test_every_model_with_rules_is_tried() -> None:
    assert sorted(each.__name__ for each in models()) == sorted(VALUES)


@pytest.mark.scale
@pytest.mark.parametrize("name", VALUES)
def test_model_and_schema_say_the_same(name: str) -> None:
    (model,) = (each for each in models() if each.__name__ == name)
    broken = dict.fromkeys(range(len(model.rules)), 0)
    tried = list(mappings(model))
    for data in tried:
        marked = given_document(data, "f").data
        _, found, _ = validate_data(model, marked, SourceNode(Document("f")))
        problems = [problem.message for _, problem in found]
        errors = list(validator(model).iter_errors(data))
        assert bool(problems) == bool(errors), (
            f"{data}\nmsauto: {problems}\nschema: {[e.message for e in errors]}"
        )
        for number, rule in enumerate(model.rules):
            broken[number] += any(True for _ in broken_rules([rule], marked))
    for number, times in broken.items():
        assert 0 < times < len(tried), (
            f"{model.rules[number]} was broken {times} of {len(tried)} times"
        )


@pytest.mark.parametrize("model", [AssetArgs, CommandArgs, TaskArgs])
def test_a_rule_that_is_left_out_of_the_schema_is_noticed(model: type[Model]) -> None:
    schema = schema_of_model(model)
    for each in (schema, schema["$defs"].get(model.__name__, {})):
        each.pop("allOf", None)
    lenient = jsonschema.Draft202012Validator(schema)
    assert any(
        validate_data(model, given_document(data, "f").data, SourceNode(Document("f")))[1]
        and lenient.is_valid(data)
        for data in mappings(model)
    )
